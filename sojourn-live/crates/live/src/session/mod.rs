//! A session with a server: phases of load, probes all the while, and what came of it.
//!
//! This thread says what is done when and reads this host's interface; the probes have a thread of
//! their own, and so has each direction of load. The server's samples are said after each phase, so
//! that saying them disturbs nothing. However a session ends, whole or by the server's going away
//! or by its owner's wish, what was measured until then is handed over with the reason. Whoever
//! wants to keep it even if this process is killed is handed all of it after each phase, and now
//! and then in a long one.

mod clock;
mod control;
pub mod facts;
mod loading;
mod local;
mod marking;
mod plan;
mod probing;
mod result;
mod tables;
mod targets;

use std::collections::HashMap;
use std::time::Duration;

use facts::Facts;
use probe::Clock;
use probe::prober::{Prober, Timing};

use ::tables::Table;
use ::tables::facts::UNFINISHED;

use crate::Failure;
use crate::caps::Caps;
use crate::load::Row;
use crate::protocol::{Direction, Reply, Request};
use clock::Exchange;
use control::{Control, Gone};
use loading::{Loading, Spec};
use local::{Local, Surroundings};
use marking::{Marking, Whom};
pub use plan::{How, Kind, PORT, Phase as PlannedPhase, Plan, Target, endpoint};
use probing::Probing;
use targets::Aim;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
/// Between two signs of life, each an exchange of clocks.
const ALIVE: i64 = SECOND;
/// Exchanges of clocks at the beginning.
const EXCHANGES: usize = 8;
/// Between two calls of the watcher.
const WATCH: i64 = 100 * MS;
/// For the last replies at the end.
const LINGER: i64 = SECOND;
/// For what is on the way when the server has said that a load is over.
const QUIET: i64 = SECOND / 2;
/// For what the server has measured, when the session is ended early.
const HASTE: i64 = 3 * SECOND;
/// Within a phase what was measured is handed over this long after the last time; or after a
/// quarter of the session's time, if that is more, so that all of it together costs a few times
/// what the last one costs.
const KEEP: i64 = 20 * SECOND;

/// Who looks on.
pub trait Watcher {
    /// The session has reached `now` of about `total` ns, in this phase ("": between two). False
    /// ends it.
    fn reached(&mut self, now: i64, total: i64, phase: &str) -> bool;

    /// Whether it wants what was measured so far, as soon as a phase is complete.
    fn keeps(&self) -> bool {
        false
    }

    /// All that was measured so far, in the place of what it had before. False ends the session.
    fn keep(&mut self, _so_far: Measured) -> bool {
        true
    }
}

/// What a session brought back.
#[derive(Debug)]
pub struct Measured {
    /// As `sojourn_live.session.Session.tables`.
    pub tables: Vec<Table>,
    /// As its `facts`.
    pub facts: Facts,
}

/// Why a session ends before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Interrupted,
    Gone(String),
    /// The server is there and will not go on.
    Refused(String),
}

impl From<Gone> for End {
    fn from(Gone(why): Gone) -> End {
        End::Gone(why)
    }
}

/// A phase that began.
#[derive(Debug)]
struct Phase {
    name: String,
    kind: Kind,
    start: i64,
    end: i64,
    complete: bool,
}

/// A load, and what both ends saw.
#[derive(Debug)]
struct Pair {
    phase: usize,
    direction: Direction,
    /// Samples of this end.
    ours: Vec<Row>,
    /// Of the server, on its clock.
    theirs: Vec<Row>,
}

/// A load that is going on.
#[derive(Debug)]
struct Going {
    number: u32,
    direction: Direction,
    loading: Loading,
    /// Samples of this end so far.
    ours: Vec<Row>,
}

/// What the server has said of a load.
#[derive(Debug, Default)]
struct Said {
    ready: bool,
    complete: bool,
    rows: Vec<Row>,
    /// Why it is over, and when that was said.
    over: Option<(String, i64)>,
}

/// The server, as it says.
#[derive(Clone, Debug)]
struct Welcome {
    software: String,
    kernel: String,
    token: u64,
    caps: Caps,
    congestion: String,
}

struct Session<'a> {
    plan: &'a Plan,
    control: Control,
    watcher: &'a mut dyn Watcher,
    clock: Clock,
    welcome: Welcome,
    around: Surroundings,
    local: Option<Local>,
    aims: Vec<Aim>,
    probing: Probing,
    marking: Option<Marking>,
    notes: Vec<String>,
    exchanges: Vec<Exchange>,
    /// Loads by their numbers.
    said: HashMap<u32, Said>,
    heard: Option<(u32, u64)>,
    refused: Option<String>,
    phase: String,
    /// When the server last said something, and when we last asked it something.
    last_heard: i64,
    last_said: i64,
    next_watch: i64,
    next_sample: i64,
    next_keep: i64,
    phases: Vec<Phase>,
    /// Whether the last of them goes on.
    in_phase: bool,
    /// Loads that are over, and those that go on.
    loads: Vec<Pair>,
    going: Vec<Going>,
    total: i64,
}

/// Measures. `Err`: nothing could be measured.
pub fn measure(plan: &Plan, watcher: &mut dyn Watcher) -> Result<Measured, Failure> {
    let total = plan.total();
    let mut go_on = || watcher.reached(0, total, "");
    let mut control = Control::connect(plan, &mut go_on)?;
    let welcome = match control.hello(&plan.secret, &mut go_on)? {
        Reply::Welcome { software, kernel, token, caps, congestion, .. } => {
            Welcome { software, kernel, token, caps, congestion }
        }
        _ => unreachable!("hello answers with a welcome"),
    };
    ask(&mut control, plan, &mut go_on)?;
    ask_for_marks(&mut control, plan, &welcome, &mut go_on)?;
    let server = control.address();
    let around = Surroundings::look(server.ip())
        .map_err(|e| Failure::new(format!("this host's interfaces can't be read: {e}"), ""))?;
    let mut notes = Vec::new();
    let local = watch(plan, &around, &mut notes)?;
    let identifier = std::process::id() as u16 ^ welcome.token as u16;
    let aims = targets::resolve(plan, server, &around, identifier, &mut notes)?;

    let clock = Clock::starting_in(0);
    let probing = start_probing(plan, &aims, &welcome, server.port(), clock, identifier)
        .map_err(|e| Failure::new(format!("probes: {e}"), "leave the target out"))?;
    let marking = match plan.ecn {
        true => Some(
            Marking::start(Whom { server, token: welcome.token, dscp: plan.dscp }, clock)
                .map_err(|e| Failure::new(format!("ECN's requests: {e}"), "leave --ecn out"))?,
        ),
        false => None,
    };
    let mut session = Session {
        plan,
        control,
        watcher,
        clock,
        welcome,
        around,
        local,
        aims,
        probing,
        marking,
        notes,
        exchanges: Vec::new(),
        said: HashMap::new(),
        heard: None,
        refused: None,
        phase: String::new(),
        last_heard: 0,
        last_said: 0,
        next_watch: 0,
        next_sample: 0,
        next_keep: KEEP,
        phases: Vec::new(),
        in_phase: false,
        loads: Vec::new(),
        going: Vec::new(),
        total,
    };
    let ended = session.run();
    let duration = session.finish(&ended)?;
    Ok(result::make(&session, &ended, duration))
}

/// Has the server's echoes bear the codepoint of our own.
fn ask_for_marks(
    control: &mut Control,
    plan: &Plan,
    welcome: &Welcome,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), Failure> {
    if plan.dscp == 0 {
        return Ok(());
    }
    let at = control.address();
    let said = control
        .say(&Request::Mark { dscp: plan.dscp })
        .and_then(|()| control.answer(go_on))
        .map_err(|Gone(why)| Failure::new(format!("{at}: {why}"), ""))?;
    match said {
        Reply::Refused { why } => Err(Failure::new(
            format!("{at} (sojourn {}) does not mark its packets: {why}", welcome.software),
            "use this release of sojourn there, too, or leave --dscp out",
        )),
        _ => Ok(()),
    }
}

/// Whether the server grants all of it, and this kernel has what it takes.
fn ask(control: &mut Control, plan: &Plan, go_on: &mut dyn FnMut() -> bool) -> Result<(), Failure> {
    let seconds = plan.load_seconds();
    if seconds == 0 {
        return Ok(());
    }
    crate::server::check_congestion(plan.congestion.as_deref()).map_err(|why| {
        Failure::new(
            format!("here: {why}"),
            "sysctl net.ipv4.tcp_available_congestion_control names those there are",
        )
    })?;
    let at = control.address();
    let broken = |Gone(why): Gone| Failure::new(format!("{at}: {why}"), "");
    let congestion = plan.congestion.clone();
    control.say(&Request::Ask { streams: plan.streams, seconds, congestion }).map_err(broken)?;
    match control.answer(go_on).map_err(broken)? {
        Reply::Refused { why } => Err(Failure::new(
            format!("{at} refused: {why}"),
            "ask for less, or let whoever runs `sojourn serve` grant more (its options --seconds, --bytes, --streams)",
        )),
        _ => Ok(()),
    }
}

/// The interface to watch: the one asked for, or that on the way.
fn watch(
    plan: &Plan,
    around: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Option<Local>, Failure> {
    let wanted = match plan.interface.as_deref() {
        Some("") => return Ok(None),
        Some(name) => Some(name),
        None => around.device.as_deref(),
    };
    let Some(name) = wanted else {
        notes.push(
            "no interface is watched: this host has no route to the server that it tells of".into(),
        );
        return Ok(None);
    };
    let Some((index, _)) = around.devices.iter().find(|(_, known)| known == name) else {
        let names: Vec<&str> = around.devices.iter().map(|(_, name)| name.as_str()).collect();
        return Err(Failure::new(
            format!("there is no interface '{name}'"),
            format!("those of this host are {}", names.join(", ")),
        ));
    };
    match Local::new(*index, name) {
        Ok(local) => Ok(Some(local)),
        Err(error) => {
            notes.push(format!("{name} is not watched: {error}"));
            Ok(None)
        }
    }
}

fn start_probing(
    plan: &Plan,
    aims: &[Aim],
    welcome: &Welcome,
    port: u16,
    clock: Clock,
    identifier: u16,
) -> std::io::Result<Probing> {
    let targets: Vec<_> =
        aims.iter().map(|aim| aim.target(port, plan.probe_bytes, plan.dscp)).collect();
    let timing = Timing {
        // The thread has begun by then.
        start: clock.now() + 20 * MS,
        interval: plan.probe_interval_ns,
        timeout: plan.probe_timeout_ns,
    };
    let mut prober = Prober::new(&targets, timing, identifier)?;
    for (index, aim) in aims.iter().enumerate() {
        if aim.how == plan::How::Udp {
            prober.set_token(index, welcome.token);
        }
    }
    Probing::start(prober, aims.len(), clock, LINGER.min(plan.probe_timeout_ns))
}

impl Session<'_> {
    fn run(&mut self) -> Result<(), End> {
        for _ in 0..EXCHANGES {
            let had = self.exchanges.len();
            self.exchange()?;
            self.wait(self.plan.patience_ns, |s| s.exchanges.len() > had)?;
        }
        // Before the phases: the path is tried without load.
        self.wait(self.plan.patience_ns, |s| s.marking.as_ref().is_none_or(Marking::is_through))?;
        // What was asked of clocks and marks comes on top.
        self.total = self.clock.now() + self.plan.total();
        let names = self.plan.phase_names();
        for (phase, name) in self.plan.phases.iter().zip(names) {
            self.phase = name;
            let result = match phase.kind {
                Kind::Idle => self.idle(phase.duration_ns),
                kind => self.loaded(kind, phase.duration_ns),
            };
            self.phase = String::new();
            result?;
            self.keep()?;
        }
        Ok(())
    }

    /// Hands over what was measured so far, once a phase is complete.
    fn keep(&mut self) -> Result<(), End> {
        if !self.watcher.keeps() || !self.phases.iter().any(|phase| phase.complete) {
            return Ok(());
        }
        let so_far = self.so_far();
        let goes_on = self.watcher.keep(so_far);
        let now = self.clock.now();
        self.next_keep = now + KEEP.max(now / 4);
        if goes_on { Ok(()) } else { Err(End::Interrupted) }
    }

    fn so_far(&mut self) -> Measured {
        let now = self.clock.now();
        if let (true, Some(phase)) = (self.in_phase, self.phases.last_mut()) {
            phase.end = now;
        }
        let (over, phase) = (self.loads.len(), self.phases.len().wrapping_sub(1));
        for going in &mut self.going {
            going.ours.extend(going.loading.take_rows());
            // The server's samples come after the phase.
            let (ours, theirs) = (going.ours.clone(), Vec::new());
            self.loads.push(Pair { phase, direction: going.direction, ours, theirs });
        }
        self.probing.update();
        let measured = result::make(self, &Err(End::Refused(UNFINISHED.into())), now);
        self.loads.truncate(over);
        measured
    }

    /// What is left of the session: the last replies, what the server heard.
    fn finish(&mut self, ended: &Result<(), End>) -> Result<i64, Failure> {
        let duration = self.clock.now();
        self.sample(duration);
        self.probing
            .finish()
            .map_err(|e| Failure::new(format!("the probes broke off: {e}"), "please report it"))?;
        if !matches!(ended, Err(End::Gone(_))) {
            // What can't be told any more is told as not known.
            let _ = self.control.say(&Request::Heard);
            let _ = self.wait_on(HASTE.min(self.plan.patience_ns), false, |s| s.heard.is_some());
            let _ = self.control.say(&Request::Bye);
        }
        if let Some(marking) = &mut self.marking {
            marking
                .finish()
                .map_err(|e| Failure::new(format!("ECN's requests broke off: {e}"), ""))?;
        }
        Ok(duration)
    }

    // ------------------------------------------------------------------------------------- phases

    fn begin(&mut self, kind: Kind) {
        let start = self.clock.now();
        let name = self.phase.clone();
        self.phases.push(Phase { name, kind, start, end: start, complete: false });
        self.in_phase = true;
    }

    /// The phase that was begun last is over.
    fn end(&mut self, complete: bool) {
        let now = self.clock.now();
        self.in_phase = false;
        if let Some(phase) = self.phases.last_mut() {
            (phase.end, phase.complete) = (now, complete);
        }
    }

    fn idle(&mut self, duration: i64) -> Result<(), End> {
        self.begin(Kind::Idle);
        let result = self.wait(duration, |_| false);
        self.end(result.is_ok());
        result.map(drop)
    }

    fn loaded(&mut self, kind: Kind, duration: i64) -> Result<(), End> {
        let directions = match kind {
            Kind::Idle => &[][..],
            Kind::Download => &[Direction::Down],
            Kind::Upload => &[Direction::Up],
            Kind::Both => &[Direction::Down, Direction::Up],
        };
        let result = self.load(kind, duration, directions);
        // However it ended: what both ends saw, as far as there is time.
        for going in &self.going {
            going.loading.stop();
            let _ = self.control.say(&Request::Stop { load: going.number });
        }
        let limit = match &result {
            Err(End::Gone(_)) => 0,
            Err(_) => HASTE.min(self.plan.patience_ns),
            Ok(()) => self.plan.patience_ns,
        };
        let drained = match result {
            Err(End::Gone(_)) => Ok(true),
            _ => self.drain(limit),
        };
        let phase = self.phases.len().wrapping_sub(1);
        let mut broken = None;
        for Going { number, direction, loading, mut ours } in std::mem::take(&mut self.going) {
            let (last, why) = loading.finish();
            ours.extend(last);
            let said = self.said.remove(&number).unwrap_or_default();
            let word = direction.word();
            if let Some(why) = why.or(said.over.map(|over| over.0).filter(|why| !why.is_empty())) {
                broken.get_or_insert(format!("{word}load: {why}"));
            }
            self.loads.push(Pair { phase, direction, ours, theirs: said.rows });
        }
        if let (Some(why), Ok(())) = (&broken, &result) {
            return Err(End::Refused(why.clone()));
        }
        result.and_then(|()| match drained {
            Ok(true) => Ok(()),
            Ok(false) => Err(End::Gone("the server did not say what it had measured".into())),
            Err(end) => Err(end),
        })
    }

    fn load(&mut self, kind: Kind, duration: i64, directions: &[Direction]) -> Result<(), End> {
        let patience = self.plan.patience_ns;
        for &direction in directions {
            let number = self.loads.len() as u32 + self.going.len() as u32 + 1;
            self.said.insert(number, Said::default());
            self.control.say(&Request::Load {
                load: number,
                direction,
                streams: self.plan.streams,
                milliseconds: (duration / MS) as u32,
                congestion: self.plan.congestion.clone(),
                sample_ms: (self.plan.sample_ns / MS) as u32,
                dscp: self.plan.dscp,
                ecn: self.plan.ecn,
            })?;
            self.expect(patience, "did not make a load ready", |s| s.said[&number].ready)?;
            let spec = Spec {
                direction,
                number,
                streams: self.plan.streams as usize,
                server: self.control.address(),
                token: self.welcome.token,
                congestion: self.plan.congestion.clone(),
                dscp: self.plan.dscp,
                ecn: self.plan.ecn,
                interval: self.plan.sample_ns,
                patience,
            };
            let loading = Loading::start(spec, self.clock)
                .map_err(|e| End::Refused(format!("a thread for load: {e}")))?;
            self.going.push(Going { number, direction, loading, ours: Vec::new() });
        }
        let streams = self.plan.streams as usize;
        self.expect(patience, "did not get all streams", |s| {
            s.going.iter().all(|Going { number, loading, .. }| {
                loading.is_finished() || s.said[number].complete && loading.ready() == streams
            })
        })?;
        self.begin(kind);
        for going in &self.going {
            self.control.say(&Request::Go { load: going.number })?;
            going.loading.go();
        }
        let ended_early = |s: &Session| {
            s.going.iter().any(|Going { number, loading, .. }| {
                loading.is_finished() || s.said[number].over.is_some()
            })
        };
        // The server ends a load by itself when its time is over, perhaps a moment before ours is.
        let result = self.wait(duration, |s| {
            let near =
                s.phases.last().is_none_or(|p| s.clock.now() - p.start >= duration - SECOND / 2);
            !near && ended_early(s)
        });
        self.end(matches!(result, Ok(false)));
        result.map(drop)
    }

    /// Waits for the ends of loads.
    fn drain(&mut self, limit: i64) -> Result<bool, End> {
        // The end of a connection may be lost like any packet; what the server says comes behind
        // what it sent.
        let over = |s: &Session| {
            s.going.iter().all(|Going { number, loading, .. }| {
                let said = s.said[number].over.as_ref();
                said.is_some_and(|over| loading.is_finished() || s.clock.now() - over.1 >= QUIET)
            })
        };
        match self.wait(limit, over) {
            // Whoever does not want to wait gets what there is.
            Err(End::Interrupted) => self.wait_on(limit, false, over).and(Err(End::Interrupted)),
            other => other,
        }
    }

    // ------------------------------------------------------------------------------------ waiting

    /// Waits until something is so, or the server is taken for gone.
    fn expect(
        &mut self,
        limit: i64,
        what: &str,
        done: impl Fn(&Session) -> bool,
    ) -> Result<(), End> {
        if self.wait(limit, done)? {
            return Ok(());
        }
        Err(End::Gone(format!("the server {what} within {:.0} s", limit as f64 / 1e9)))
    }

    /// Goes on for so long, or until something is so: then true.
    fn wait(&mut self, limit: i64, done: impl Fn(&Session) -> bool) -> Result<bool, End> {
        self.wait_on(limit, true, done)
    }

    fn wait_on(
        &mut self,
        limit: i64,
        watched: bool,
        done: impl Fn(&Session) -> bool,
    ) -> Result<bool, End> {
        let until = self.clock.now() + limit;
        loop {
            if done(self) {
                return Ok(true);
            }
            if let Some(why) = self.refused.take() {
                return Err(End::Refused(why));
            }
            let now = self.clock.now();
            if now >= until {
                return Ok(false);
            }
            if watched && now >= self.next_watch {
                self.next_watch = now + WATCH;
                if !self.watcher.reached(now, self.total, &self.phase) {
                    return Err(End::Interrupted);
                }
            }
            if self.in_phase && now >= self.next_keep {
                self.keep()?;
            }
            if now >= self.next_sample {
                self.next_sample = now - now.rem_euclid(self.plan.sample_ns) + self.plan.sample_ns;
                self.sample(now);
            }
            if now - self.last_said >= ALIVE {
                self.exchange()?;
            }
            if now - self.last_heard >= self.plan.patience_ns {
                let seconds = self.plan.patience_ns as f64 / 1e9;
                return Err(End::Gone(format!("the server did not answer for {seconds:.0} s")));
            }
            // Threads have nothing to say here: they are looked at now and then.
            let next = until.min(self.next_watch).min(self.next_sample).min(now + 20 * MS);
            if let Some(reply) =
                self.control.hear(Duration::from_nanos((next - now).max(0) as u64))?
            {
                self.take(reply);
            }
        }
    }

    fn exchange(&mut self) -> Result<(), End> {
        self.last_said = self.clock.now();
        self.control.say(&Request::Clock { at: self.last_said })?;
        Ok(())
    }

    fn sample(&mut self, now: i64) {
        if let Some(local) = &mut self.local {
            local.sample(now);
        }
    }

    fn take(&mut self, reply: Reply) {
        let now = self.clock.now();
        self.last_heard = now;
        match reply {
            // What we never asked tells nothing.
            Reply::Clock { asked, .. } if !(0..=now).contains(&asked) => {}
            Reply::Clock { asked, at } => {
                self.exchanges.push(Exchange { sent: asked, rtt: now - asked, turned: at });
            }
            Reply::Ready { load } => self.said.entry(load).or_default().ready = true,
            Reply::Complete { load } => self.said.entry(load).or_default().complete = true,
            Reply::Samples { load, rows } => self.said.entry(load).or_default().rows.extend(rows),
            Reply::Over { load, why } => self.said.entry(load).or_default().over = Some((why, now)),
            // None heard is told as 0 of none: no bits.
            Reply::Heard { latest, bits } => self.heard = Some((latest.unwrap_or(0), bits)),
            Reply::Challenge { .. } => {}
            Reply::Refused { why } => self.refused = Some(why),
            Reply::Welcome { .. } | Reply::Granted | Reply::Ending { .. } => {}
        }
    }
}
