//! The measuring client.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use lexopt::Arg::{Long, Short, Value};
use lexopt::Parser;
use live::Failure;
use live::session::{self, How, Kind, Measured, PORT, Plan, PlannedPhase, Target, Watcher};
use tables::facts::Outcome;

use crate::arguments::{codepoint, number, secret, text, time, unexpected, wrong};
use crate::numbers::Numbers;
use crate::session_file::Output;
use crate::{INTERRUPTED, Signals, say, show};

/// Exit status if the measurement was cut short.
const CUT_SHORT: u8 = 1;
const NS: f64 = 1e9;

/// `sojourn-probe measure`.
pub fn measure(words: Vec<OsString>) -> Result<u8, Failure> {
    let options = Options::read(words)?;
    if let Some(folder) = options.out.as_ref().and_then(|file| file.parent())
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        return Err(Failure::new(
            format!("there is no folder {}", folder.display()),
            "create it first",
        ));
    }
    let output = options.out.as_ref().map(|file| Output::take(file, options.force)).transpose()?;
    let signals = Signals::install()?;
    if !options.quiet {
        let seconds = options.plan.total() as f64 / NS;
        say(&format!("measuring the path to {}: about {seconds:.0} s", options.plan.host));
    }
    let mut progress = Progress::new(&options, output, signals);
    let measured = session::measure(&options.plan, &mut progress);
    progress.clear();
    let measured = match measured {
        Err(_) if progress.signals.interrupted() => {
            say("interrupted: no phase was finished");
            return Ok(INTERRUPTED);
        }
        other => other?,
    };
    let numbers = Numbers::of(&measured);
    if options.json {
        show(&serde_json::to_string_pretty(&numbers).expect("numbers are plain values"));
    } else {
        show(&numbers.in_words());
    }
    if let (Some(file), Some(output)) = (&options.out, &mut progress.output) {
        output.write(&options.plan, &measured)?;
        if !options.quiet {
            say(&format!(
                "wrote {0}; verdict, scores and figures: sojourn import {0}",
                file.display()
            ));
        }
    }
    Ok(match measured.facts.outcome {
        Outcome::Complete => 0,
        Outcome::Interrupted => {
            say("interrupted: the results so far are above");
            INTERRUPTED
        }
        Outcome::Partial => {
            say(&format!("ended early: {}", measured.facts.why));
            CUT_SHORT
        }
    })
}

/// The command line's options.
struct Options {
    plan: Plan,
    json: bool,
    out: Option<PathBuf>,
    force: bool,
    quiet: bool,
}

impl Options {
    fn read(words: Vec<OsString>) -> Result<Options, Failure> {
        let mut plan = Plan::usual("", PORT);
        let (mut host, mut port, mut word) = (None, None, None);
        let (mut kinds, mut targets) = (Vec::new(), Vec::new());
        let (mut idle, mut load) = (Kind::Idle.usual_ns(), Kind::Both.usual_ns());
        let mut options =
            Options { plan: plan.clone(), json: false, out: None, force: false, quiet: false };
        let mut parser = Parser::from_args(words);
        while let Some(arg) = parser.next().map_err(wrong)? {
            match arg {
                Value(given) if host.is_none() => host = Some(given),
                Long("port") => port = Some(number(&mut parser, "--port", 1, u16::MAX)?),
                Long("secret") => word = Some(parser.value().map_err(wrong)?),
                Short('4') => plan.family = Some(4),
                Short('6') => plan.family = Some(6),
                Short('n') | Long("streams") => {
                    plan.streams = number(&mut parser, "--streams", 1, 128)?
                }
                Long("dscp") => plan.dscp = codepoint(&mut parser)?,
                Long("ecn") => plan.ecn = true,
                Long("cc") => plan.congestion = Some(text(&mut parser)?),
                Short('l') | Long("length") => {
                    load = time(&mut parser, "the length of a phase", "10 s", false)?
                }
                Long("idle") => {
                    idle = time(&mut parser, "the length of an idle phase", "5 s", false)?
                }
                Long("phase") => kinds.push(kind(&text(&mut parser)?)?),
                Long("ping") => targets.push(target(text(&mut parser)?)),
                Long("interval") => {
                    plan.probe_interval_ns = time(&mut parser, "an interval", "50 ms", false)?
                }
                Long("iface") => {
                    let name = text(&mut parser)?;
                    plan.interface = Some(if name == "none" { String::new() } else { name });
                }
                Long("json") => options.json = true,
                Short('o') | Long("out") => options.out = Some(text(&mut parser)?.into()),
                Long("force") => options.force = true,
                Short('q') | Long("quiet") => options.quiet = true,
                _ => return Err(unexpected(arg)),
            }
        }
        let Some(host) = host else {
            return Err(Failure::new("no HOST is given", "sojourn-probe measure HOST"));
        };
        let (name, host_port) = session::endpoint(&host.to_string_lossy())?;
        if let (Some(host_port), Some(port)) = (host_port, port)
            && host_port != port
        {
            return Err(Failure::new(
                format!("HOST has port {host_port}, but --port is {port}"),
                "give one of them",
            ));
        }
        (plan.host, plan.port) = (name, host_port.or(port).unwrap_or(PORT));
        plan.secret = secret(word)?;
        let kinds = if kinds.is_empty() { Kind::USUAL.to_vec() } else { kinds };
        let phase =
            |kind| PlannedPhase { kind, duration_ns: if kind == Kind::Idle { idle } else { load } };
        plan.phases = kinds.into_iter().map(phase).collect();
        if !targets.is_empty() {
            plan.targets = targets;
        }
        plan.check().map_err(|why| Failure::new(why, ""))?;
        Ok(Options { plan, ..options })
    }
}

fn kind(word: &str) -> Result<Kind, Failure> {
    let all = [Kind::Idle, Kind::Download, Kind::Upload, Kind::Both];
    all.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
        Failure::new(format!("--phase: there is no '{word}'"), "idle, download, upload or both")
    })
}

fn target(word: String) -> Target {
    let (how, address) = match word.as_str() {
        "udp" => (How::Udp, "server".into()),
        "icmp" => (How::Icmp, "server".into()),
        _ => (How::Icmp, word),
    };
    Target { how, address, name: String::new() }
}

/// Shows the progress on a terminal, and writes the results so far.
struct Progress<'a> {
    plan: &'a Plan,
    output: Option<Output>,
    shows: bool,
    signals: Signals,
}

impl Progress<'_> {
    fn new(options: &Options, output: Option<Output>, signals: Signals) -> Progress<'_> {
        let shows = !options.quiet && io::stderr().is_terminal();
        Progress { plan: &options.plan, output, shows, signals }
    }

    fn clear(&self) {
        if self.shows {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Watcher for Progress<'_> {
    fn reached(&mut self, now: i64, total: i64, phase: &str) -> bool {
        if self.shows {
            let doing = if phase.is_empty() { "the queue drains" } else { phase };
            let (now, total) = (now as f64 / NS, total as f64 / NS);
            let _ = write!(io::stderr(), "\r\x1b[K{doing}, {now:.0} of {total:.0} s");
        }
        !self.signals.interrupted()
    }

    fn keeps(&self) -> bool {
        self.output.as_ref().is_some_and(Output::grows)
    }

    fn keep(&mut self, so_far: Measured) -> bool {
        if let Some(output) = &mut self.output {
            // A disk that is full now may have room at the end, and that write reports the failure.
            let _ = output.write(self.plan, &so_far);
        }
        true
    }
}
