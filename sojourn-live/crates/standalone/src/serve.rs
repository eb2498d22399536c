//! The servers.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lexopt::Arg::{Long, Short};
use lexopt::Parser;
use live::Failure;
use live::server::{Options, Owner, Server};
use live::session::PORT;
use rpm::Problem;
use rpm::server::{Options as RpmOptions, Server as RpmServer};

use crate::arguments::{address, number, secret, size, text, time, unexpected, wrong};
use crate::{Signals, say, show};

/// Interval between two checks whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The largest number that an option accepts.
const MOST: u32 = i32::MAX as u32;

/// `sojourn-probe serve`.
pub fn serve(words: Vec<OsString>) -> Result<u8, Failure> {
    let mut options = Options { port: PORT, ..Options::default() };
    let (mut duration, mut once, mut quiet, mut word) = (None, false, false, None);
    let mut parser = Parser::from_args(words);
    while let Some(arg) = parser.next().map_err(wrong)? {
        match arg {
            Long("bind") => options.bind.push(address(&mut parser)?),
            Long("port") => options.port = number(&mut parser, "--port", 0, u16::MAX)?,
            Long("for") => duration = Some(time(&mut parser, "a duration", "10 min", true)?),
            Long("once") => once = true,
            Long("bytes") => options.caps.bytes = size(&mut parser)?,
            Long("seconds") => options.caps.seconds = number(&mut parser, "--seconds", 1, MOST)?,
            Long("streams") => options.caps.streams = number(&mut parser, "--streams", 1, MOST)?,
            Long("clients") => options.caps.clients = number(&mut parser, "--clients", 1, MOST)?,
            Long("secret") => word = Some(parser.value().map_err(wrong)?),
            Short('q') | Long("quiet") => quiet = true,
            _ => return Err(unexpected(arg)),
        }
    }
    options.secret = secret(word)?;
    let signals = Signals::install()?;
    let server = Server::bind(&options)?;
    for at in server.addresses() {
        // Data, not a message: a script that uses --port 0 reads the port here.
        show(&format!("serving at {at} (TCP and UDP)"));
    }
    if options.bind.is_empty() && !quiet {
        say(
            "only this host can reach it; for other hosts: --bind ADDRESS, or 0.0.0.0 for all addresses",
        );
    }
    let mut terminal = Terminal { until: until(duration), quiet, signals };
    server.serve(once, &mut terminal).map_err(|error| Failure::new(error.to_string(), ""))?;
    terminal.farewell();
    Ok(0)
}

/// The owner of a server: this program's terminal and signals.
struct Terminal {
    until: Option<Instant>,
    quiet: bool,
    signals: Signals,
}

impl Owner for Terminal {
    fn report(&mut self, words: &str) {
        if !self.quiet {
            say(words);
        }
    }

    fn go_on(&mut self) -> bool {
        !self.signals.interrupted() && self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl Terminal {
    fn farewell(&mut self) {
        if self.signals.interrupted() {
            self.report("stopped");
        }
    }
}

fn until(duration: Option<i64>) -> Option<Instant> {
    duration.map(|ns| Instant::now() + Duration::from_nanos(ns as u64))
}

/// `sojourn-probe rpm serve`.
pub fn serve_rpm(words: Vec<OsString>) -> Result<u8, Failure> {
    let mut options = RpmOptions::default();
    let mut port = options.at[0].port();
    let (mut bind, mut duration, mut quiet) = (Vec::new(), None, false);
    let (mut cert, mut key, mut cert_out) = (None::<PathBuf>, None::<PathBuf>, None::<PathBuf>);
    let mut parser = Parser::from_args(words);
    while let Some(arg) = parser.next().map_err(wrong)? {
        match arg {
            Long("bind") => bind.push(address(&mut parser)?),
            Long("port") => port = number(&mut parser, "--port", 0, u16::MAX)?,
            Long("for") => duration = Some(time(&mut parser, "a duration", "10 min", true)?),
            Long("name") => options.names.push(text(&mut parser)?),
            Long("cert") => cert = Some(text(&mut parser)?.into()),
            Long("key") => key = Some(text(&mut parser)?.into()),
            Long("cert-out") => cert_out = Some(text(&mut parser)?.into()),
            Long("bytes") => options.bytes = size(&mut parser)?,
            Long("seconds") => {
                options.seconds = number(&mut parser, "--seconds", 1, u64::from(MOST))?
            }
            Long("connections") => {
                options.connections = number(&mut parser, "--connections", 1, 65_535)?
            }
            Short('q') | Long("quiet") => quiet = true,
            _ => return Err(unexpected(arg)),
        }
    }
    if !bind.is_empty() {
        options.at = bind.iter().map(|&address| SocketAddr::new(address, port)).collect();
    }
    options.at.iter_mut().for_each(|at| at.set_port(port));
    options.identity = match (cert, key) {
        (None, None) => None,
        (Some(chain), Some(key)) if cert_out.is_none() && options.names.is_empty() => {
            Some((chain, key))
        }
        (Some(_), Some(_)) => {
            return Err(Failure::new(
                "--cert-out and --name apply to a self-signed certificate, not to --cert",
                "",
            ));
        }
        _ => return Err(Failure::new("--cert and --key must be given together", "")),
    };
    let signals = Signals::install()?;
    let server = RpmServer::start(&options)
        .map_err(|Problem { problem, hint }| Failure::new(problem, hint))?;
    if let (Some(file), Some(certificate)) = (&cert_out, server.certificate()) {
        std::fs::write(file, certificate).map_err(|error| {
            Failure::new(format!("can't write {}: {error}", file.display()), "")
        })?;
    }
    for at in server.addresses() {
        show(&format!("serving RPM at https://{at}"));
    }
    let mut terminal = Terminal { until: until(duration), quiet, signals };
    if server.addresses().iter().all(|at| at.ip().is_loopback()) {
        terminal.report("only this host can reach it; for other hosts: --bind ADDRESS, or 0.0.0.0 for all addresses");
    }
    if server.certificate().is_some() {
        let trusted = match &cert_out {
            Some(file) => format!("--ca {}", file.display()),
            None => "--insecure".into(),
        };
        terminal
            .report(&format!("its certificate is self-signed: sojourn rpm measure URL {trusted}"));
    }
    while terminal.go_on() {
        std::thread::sleep(LOOK_EVERY);
        for words in server.take_lines() {
            terminal.report(&words);
        }
    }
    terminal.farewell();
    let served = server.served();
    terminal.report(&format!(
        "{} connections, {} of them refused; {:.0} MB sent, {:.0} MB received",
        served.accepted,
        served.refused,
        served.sent_bytes as f64 / 1e6,
        served.received_bytes as f64 / 1e6
    ));
    Ok(0)
}
