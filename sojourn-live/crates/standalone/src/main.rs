//! `sojourn-probe`: one static program without Python, for a router or a rented host. It contains
//! the servers of `sojourn measure` and `sojourn rpm measure`, and a measuring client.
//!
//! The crates `live` and `rpm`, which `sojourn` uses too, do the work. This crate contains the
//! command line, a few numbers of a session (`numbers`) and its file for `sojourn import`
//! (`session_file`).
//!
//! Data is written to stdout, messages to stderr. The exit status is 0 (success), 1 (the
//! measurement was cut short), 2 (wrong input, or nothing could be done) or 130 (interrupted).

mod arguments;
mod measure;
mod numbers;
mod serve;
mod session_file;
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
    let wants_help = |word: &OsString| word == "--help" || word == "-h" || word == "help";
    if words.is_empty() || words.iter().any(wants_help) {
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
            "rpm has only the verb serve here",
            "sojourn, with Python, also has measure",
        )),
        _ => Err(Failure::new(
            format!("there is no verb '{}'", verb.to_string_lossy()),
            "serve, measure, rpm serve; see sojourn-probe --help for the options",
        )),
    }
}

/// Prints data.
fn show(text: &str) {
    // If this fails, the reader has closed the pipe.
    let _ = writeln!(io::stdout().lock(), "{}", text.trim_end());
    let _ = io::stdout().lock().flush();
}

/// Prints a message.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Ctrl-C and SIGTERM: the first one sets a flag, the second one ends the program.
#[derive(Clone)]
struct Signals(Arc<AtomicBool>);

impl Signals {
    fn install() -> Result<Signals, Failure> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let status = i32::from(INTERRUPTED);
            signal_hook::flag::register_conditional_shutdown(
                signal,
                status,
                Arc::clone(&interrupted),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .map_err(|error| Failure::new(format!("can't handle signals: {error}"), ""))?;
        }
        Ok(Signals(interrupted))
    }

    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
