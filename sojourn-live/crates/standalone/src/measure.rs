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
use crate::kept::Place;
use crate::numbers::Numbers;
use crate::{INTERRUPTED, Signals, say, show};

/// The measurement was cut short.
const CUT_SHORT: u8 = 1;
const NS: f64 = 1e9;

/// `sojourn-probe measure`.
pub fn measure(words: Vec<OsString>) -> Result<u8, Failure> {
    let asked = Asked::read(words)?;
    if let Some(folder) = asked.out.as_ref().and_then(|file| file.parent())
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        return Err(Failure::new(
            format!("there is no folder {}", folder.display()),
            "make it first",
        ));
    }
    let place = asked.out.as_ref().map(|file| Place::take(file, asked.force)).transpose()?;
    let signals = Signals::heeded()?;
    if !asked.quiet {
        let seconds = asked.plan.total() as f64 / NS;
        say(&format!("measuring the way to {}: about {seconds:.0} s", asked.plan.host));
    }
    let mut looker = Looker::new(&asked, place, signals);
    let measured = session::measure(&asked.plan, &mut looker);
    looker.clear();
    let measured = match measured {
        Err(_) if looker.signals.seen() => {
            say("interrupted: no phase was finished");
            return Ok(INTERRUPTED);
        }
        other => other?,
    };
    let numbers = Numbers::of(&measured);
    if asked.json {
        show(&serde_json::to_string_pretty(&numbers).expect("numbers are plain values"));
    } else {
        show(&numbers.in_words());
    }
    if let (Some(file), Some(place)) = (&asked.out, &mut looker.place) {
        place.write(&asked.plan, &measured)?;
        if !asked.quiet {
            say(&format!(
                "wrote {0}; verdict, scores and figures: sojourn import {0}",
                file.display()
            ));
        }
    }
    Ok(match measured.facts.outcome {
        Outcome::Complete => 0,
        Outcome::Interrupted => {
            say("interrupted: the above is what was measured");
            INTERRUPTED
        }
        Outcome::Partial => {
            say(&format!("ended early: {}", measured.facts.why));
            CUT_SHORT
        }
    })
}

/// What is asked for.
struct Asked {
    plan: Plan,
    json: bool,
    out: Option<PathBuf>,
    force: bool,
    quiet: bool,
}

impl Asked {
    fn read(words: Vec<OsString>) -> Result<Asked, Failure> {
        let mut plan = Plan::usual("", PORT);
        let (mut host, mut port, mut word) = (None, None, None);
        let (mut kinds, mut targets) = (Vec::new(), Vec::new());
        let (mut idle, mut load) = (Kind::Idle.usual_ns(), Kind::Both.usual_ns());
        let mut asked =
            Asked { plan: plan.clone(), json: false, out: None, force: false, quiet: false };
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
                Long("json") => asked.json = true,
                Short('o') | Long("out") => asked.out = Some(text(&mut parser)?.into()),
                Long("force") => asked.force = true,
                Short('q') | Long("quiet") => asked.quiet = true,
                _ => return Err(unexpected(arg)),
            }
        }
        let Some(host) = host else {
            return Err(Failure::new("no HOST is given", "sojourn-probe measure HOST"));
        };
        let (name, own) = session::endpoint(&host.to_string_lossy())?;
        if let (Some(own), Some(port)) = (own, port)
            && own != port
        {
            return Err(Failure::new(
                format!("HOST says port {own} and --port {port}"),
                "give one of them",
            ));
        }
        (plan.host, plan.port) = (name, own.or(port).unwrap_or(PORT));
        plan.secret = secret(word)?;
        let kinds = if kinds.is_empty() { Kind::USUAL.to_vec() } else { kinds };
        let phase =
            |kind| PlannedPhase { kind, duration_ns: if kind == Kind::Idle { idle } else { load } };
        plan.phases = kinds.into_iter().map(phase).collect();
        if !targets.is_empty() {
            plan.targets = targets;
        }
        plan.check().map_err(|why| Failure::new(why, ""))?;
        Ok(Asked { plan, ..asked })
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

/// Looks on: shows how far it is where somebody can see it, and keeps what was measured so far.
struct Looker<'a> {
    plan: &'a Plan,
    place: Option<Place>,
    shows: bool,
    signals: Signals,
}

impl Looker<'_> {
    fn new(asked: &Asked, place: Option<Place>, signals: Signals) -> Looker<'_> {
        let shows = !asked.quiet && io::stderr().is_terminal();
        Looker { plan: &asked.plan, place, shows, signals }
    }

    fn clear(&self) {
        if self.shows {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Watcher for Looker<'_> {
    fn reached(&mut self, now: i64, total: i64, phase: &str) -> bool {
        if self.shows {
            let doing = if phase.is_empty() { "the queue drains" } else { phase };
            let (now, total) = (now as f64 / NS, total as f64 / NS);
            let _ = write!(io::stderr(), "\r\x1b[K{doing}, {now:.0} of {total:.0} s");
        }
        !self.signals.seen()
    }

    fn keeps(&self) -> bool {
        self.place.as_ref().is_some_and(Place::grows)
    }

    fn keep(&mut self, so_far: Measured) -> bool {
        if let Some(place) = &mut self.place {
            // A disk that is full now may have room at the end, which says whether it had.
            let _ = place.write(self.plan, &so_far);
        }
        true
    }
}
