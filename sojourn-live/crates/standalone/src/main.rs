//! `sojourn-probe`: what a router or a rented host needs of sojourn, as one static program without
//! Python: the server of `sojourn measure`, that of `sojourn rpm measure`, and a measuring client.
//!
//! All of the work is that of the crates `live` and `rpm`, which `sojourn` calls, too. Here are the
//! words of the command line, a few numbers of a session (`numbers`) and how it is kept for
//! `sojourn import` (`kept`).
//!
//! Data are written to stdout, messages to stderr. The exit status is 0 (fine), 1 (the measurement
//! was cut short), 2 (wrong input, or nothing could be done) or 130 (interrupted).

mod arguments;
mod kept;
mod measure;
mod numbers;
mod serve;
mod words;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use live::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};

const INTERRUPTED: u8 = 130;
const WRONG: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(words) {
        Ok(status) => ExitCode::from(status),
        Err(Failure { problem, hint }) => {
            say(&format!("error: {problem}"));
            if !hint.is_empty() {
                say(&format!("hint: {hint}"));
            }
            ExitCode::from(WRONG)
        }
    }
}

fn run(mut words: Vec<OsString>) -> Result<u8, Failure> {
    let asked = |word: &OsString| word == "--help" || word == "-h" || word == "help";
    if words.is_empty() || words.iter().any(asked) {
        show(&words::help());
        return Ok(if words.is_empty() { WRONG } else { 0 });
    }
    if words.iter().any(|word| word == "--version" || word == "-V") {
        show(&format!("sojourn-probe {}", env!("CARGO_PKG_VERSION")));
        return Ok(0);
    }
    let verb = words.remove(0);
    match verb.to_str() {
        Some("serve") => serve::serve(words),
        Some("measure") => measure::measure(words),
        Some("rpm") if words.first().is_some_and(|word| word == "serve") => {
            serve::serve_rpm(words.split_off(1))
        }
        Some("rpm") => Err(Failure::new(
            "rpm has one verb here, serve",
            "sojourn, with Python, has measure, too",
        )),
        _ => Err(Failure::new(
            format!("there is no verb '{}'", verb.to_string_lossy()),
            "serve, measure, rpm serve; sojourn-probe --help tells of their options",
        )),
    }
}

/// Data.
fn show(text: &str) {
    // Whoever does not read it has closed the pipe.
    let _ = writeln!(io::stdout().lock(), "{}", text.trim_end());
    let _ = io::stdout().lock().flush();
}

/// A message.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Ctrl-C and SIGTERM: the first is asked about, the second ends the program.
#[derive(Clone)]
struct Signals(Arc<AtomicBool>);

impl Signals {
    fn heeded() -> Result<Signals, Failure> {
        let seen = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let status = i32::from(INTERRUPTED);
            signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&seen))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&seen)))
                .map_err(|error| Failure::new(format!("signals: {error}"), ""))?;
        }
        Ok(Signals(seen))
    }

    fn seen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
