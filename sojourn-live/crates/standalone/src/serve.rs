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

/// Between two looks at whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The largest number that an option takes.
const MOST: u32 = i32::MAX as u32;

/// `sojourn-probe serve`.
pub fn serve(words: Vec<OsString>) -> Result<u8, Failure> {
    let mut options = Options { port: PORT, ..Options::default() };
    let (mut span, mut once, mut quiet, mut word) = (None, false, false, None);
    let mut parser = Parser::from_args(words);
    while let Some(arg) = parser.next().map_err(wrong)? {
        match arg {
            Long("bind") => options.bind.push(address(&mut parser)?),
            Long("port") => options.port = number(&mut parser, "--port", 0, u16::MAX)?,
            Long("for") => span = Some(time(&mut parser, "a duration", "10 min", true)?),
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
    let signals = Signals::heeded()?;
    let server = Server::bind(&options)?;
    for at in server.addresses() {
        // Data: whoever started it with --port 0 reads the port here.
        show(&format!("serving at {at} (TCP and UDP)"));
    }
    if options.bind.is_empty() && !quiet {
        say("only this host can reach it; for others: --bind ADDRESS, 0.0.0.0 for all");
    }
    let mut host = Host { until: until(span), quiet, signals };
    server.serve(once, &mut host).map_err(|error| Failure::new(error.to_string(), ""))?;
    host.farewell();
    Ok(0)
}

/// Whoever started a server.
struct Host {
    until: Option<Instant>,
    quiet: bool,
    signals: Signals,
}

impl Owner for Host {
    fn tell(&mut self, words: &str) {
        if !self.quiet {
            say(words);
        }
    }

    fn go_on(&mut self) -> bool {
        !self.signals.seen() && self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl Host {
    fn farewell(&mut self) {
        if self.signals.seen() {
            self.tell("stopped");
        }
    }
}

fn until(span: Option<i64>) -> Option<Instant> {
    span.map(|ns| Instant::now() + Duration::from_nanos(ns as u64))
}

/// `sojourn-probe rpm serve`.
pub fn serve_rpm(words: Vec<OsString>) -> Result<u8, Failure> {
    let mut options = RpmOptions::default();
    let mut port = options.at[0].port();
    let (mut bind, mut span, mut quiet) = (Vec::new(), None, false);
    let (mut cert, mut key, mut cert_out) = (None::<PathBuf>, None::<PathBuf>, None::<PathBuf>);
    let mut parser = Parser::from_args(words);
    while let Some(arg) = parser.next().map_err(wrong)? {
        match arg {
            Long("bind") => bind.push(address(&mut parser)?),
            Long("port") => port = number(&mut parser, "--port", 0, u16::MAX)?,
            Long("for") => span = Some(time(&mut parser, "a duration", "10 min", true)?),
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
                "--cert-out and --name are for a certificate made at start, not for --cert",
                "",
            ));
        }
        _ => return Err(Failure::new("--cert and --key go together", "")),
    };
    let signals = Signals::heeded()?;
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
    let mut host = Host { until: until(span), quiet, signals };
    if server.addresses().iter().all(|at| at.ip().is_loopback()) {
        host.tell("only this host can reach it; for others: --bind ADDRESS, 0.0.0.0 for all");
    }
    if server.certificate().is_some() {
        let trusted = match &cert_out {
            Some(file) => format!("--ca {}", file.display()),
            None => "--insecure".into(),
        };
        host.tell(&format!("its certificate is its own: sojourn rpm measure URL {trusted}"));
    }
    while host.go_on() {
        std::thread::sleep(LOOK_EVERY);
        for words in server.take_lines() {
            host.tell(&words);
        }
    }
    host.farewell();
    let served = server.served();
    host.tell(&format!(
        "{} connections, {} of them refused; {:.0} MB sent, {:.0} MB received",
        served.accepted,
        served.refused,
        served.sent_bytes as f64 / 1e6,
        served.received_bytes as f64 / 1e6
    ));
    Ok(0)
}
