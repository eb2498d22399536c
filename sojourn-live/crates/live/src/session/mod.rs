//! A session with a server: phases of load, with probes throughout, and the result.
//!
//! This thread controls the session and samples this host's interface. The probes and each
//! direction of load have their own threads. The server sends its samples after each phase, so that
//! sending them does not disturb the measurement. A session may be complete, or end early because
//! the server is lost or the owner wants it; the result then contains everything measured so far,
//! and the reason. After each phase, and repeatedly within a long one, a watcher can get the
//! results so far, so that they survive if this process is killed.

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
use control::{Control, ServerLost};
use loading::{Loading, Spec};
use local::{Local, Surroundings};
use marking::{Destination, Marking};
pub use plan::{How, Kind, PORT, Phase as PlannedPhase, Plan, Target, endpoint};
use probing::Probing;
use targets::ProbeTarget;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
/// Interval between two keep-alive messages, each an exchange of clocks.
const ALIVE: i64 = SECOND;
/// Exchanges of clocks at the start.
const EXCHANGES: usize = 8;
/// Interval between two calls of the watcher.
const WATCH: i64 = 100 * MS;
/// Wait for the last replies at the end.
const LINGER: i64 = SECOND;
/// Wait for data in flight after the server has reported the end of a load.
const QUIET: i64 = SECOND / 2;
/// Time for the server's samples when the session is ended early.
const HASTE: i64 = 3 * SECOND;
/// Interval between two snapshots of the results within a phase. It grows to a quarter of the
/// elapsed time if that is more, so all snapshots together cost a few times as much as the last
/// one.
const KEEP: i64 = 20 * SECOND;

/// Observes a session.
pub trait Watcher {
    /// The session has reached `now` of about `total` ns, in this phase (empty: between phases).
    /// Returning false ends the session.
    fn reached(&mut self, now: i64, total: i64, phase: &str) -> bool;

    /// Whether it wants the results so far, as soon as one phase is complete.
    fn keeps(&self) -> bool {
        false
    }

    /// Takes the results so far, which replace the earlier ones. Returning false ends the session.
    fn keep(&mut self, _so_far: Measured) -> bool {
        true
    }
}

/// The results of a session.
#[derive(Debug)]
pub struct Measured {
    /// Tables as in `sojourn_live.session.Session.tables`.
    pub tables: Vec<Table>,
    /// Facts as in its `facts`.
    pub facts: Facts,
}

/// Reason for the early end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Interrupted,
    ServerLost(String),
    /// The server is connected but refuses to continue.
    Refused(String),
}

impl From<ServerLost> for End {
    fn from(ServerLost(why): ServerLost) -> End {
        End::ServerLost(why)
    }
}

/// A phase that has begun.
#[derive(Debug)]
struct Phase {
    name: String,
    kind: Kind,
    start: i64,
    end: i64,
    complete: bool,
}

/// The samples of both ends of a load.
#[derive(Debug)]
struct Pair {
    phase: usize,
    direction: Direction,
    /// Samples of this end.
    ours: Vec<Row>,
    /// Samples of the server, on its clock.
    theirs: Vec<Row>,
}

/// A running load.
#[derive(Debug)]
struct Going {
    number: u32,
    direction: Direction,
    loading: Loading,
    /// Samples of this end so far.
    ours: Vec<Row>,
}

/// The server's messages about a load.
#[derive(Debug, Default)]
struct LoadReport {
    ready: bool,
    complete: bool,
    rows: Vec<Row>,
    /// The reason for its end, and the time of that message.
    over: Option<(String, i64)>,
}

/// The server's welcome.
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
    probe_targets: Vec<ProbeTarget>,
    probing: Probing,
    marking: Option<Marking>,
    notes: Vec<String>,
    exchanges: Vec<Exchange>,
    /// By the load's number.
    reports: HashMap<u32, LoadReport>,
    received: Option<(u32, u64)>,
    refused: Option<String>,
    phase: String,
    /// Time of the server's last message, and of our last clock request.
    last_reply: i64,
    last_request: i64,
    next_watch: i64,
    next_sample: i64,
    next_keep: i64,
    phases: Vec<Phase>,
    /// Whether the last phase is still running.
    in_phase: bool,
    /// Loads that have ended, and running loads.
    loads: Vec<Pair>,
    going: Vec<Going>,
    total: i64,
}

/// Does a session. Fails if nothing could be measured.
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
    let probe_targets = targets::resolve(plan, server, &around, identifier, &mut notes)?;

    let clock = Clock::starting_in(0);
    let probing = start_probing(plan, &probe_targets, &welcome, server.port(), clock, identifier)
        .map_err(|e| Failure::new(format!("can't probe: {e}"), "remove this target"))?;
    let marking = match plan.ecn {
        true => Some(
            Marking::start(Destination { server, token: welcome.token, dscp: plan.dscp }, clock)
                .map_err(|e| Failure::new(format!("can't send ECN requests: {e}"), "omit --ecn"))?,
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
        probe_targets,
        probing,
        marking,
        notes,
        exchanges: Vec::new(),
        reports: HashMap::new(),
        received: None,
        refused: None,
        phase: String::new(),
        last_reply: 0,
        last_request: 0,
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

/// Asks the server to use our DSCP codepoint in its echoes.
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
    let reply = control
        .send(&Request::Mark { dscp: plan.dscp })
        .and_then(|()| control.answer(go_on))
        .map_err(|ServerLost(why)| Failure::new(format!("{at}: {why}"), ""))?;
    match reply {
        Reply::Refused { why } => Err(Failure::new(
            format!("{at} (sojourn {}) does not mark its packets: {why}", welcome.software),
            "use this release of sojourn there too, or omit --dscp",
        )),
        _ => Ok(()),
    }
}

/// Fails unless the server grants the whole plan and this kernel has the congestion control.
fn ask(control: &mut Control, plan: &Plan, go_on: &mut dyn FnMut() -> bool) -> Result<(), Failure> {
    let seconds = plan.load_seconds();
    if seconds == 0 {
        return Ok(());
    }
    crate::server::check_congestion(plan.congestion.as_deref()).map_err(|why| {
        Failure::new(
            format!("here: {why}"),
            "sysctl net.ipv4.tcp_available_congestion_control lists those available",
        )
    })?;
    let at = control.address();
    let broken = |ServerLost(why): ServerLost| Failure::new(format!("{at}: {why}"), "");
    let congestion = plan.congestion.clone();
    control.send(&Request::Ask { streams: plan.streams, seconds, congestion }).map_err(broken)?;
    match control.answer(go_on).map_err(broken)? {
        Reply::Refused { why } => Err(Failure::new(
            format!("{at} refused: {why}"),
            "request less, or raise the server's limits (--seconds, --bytes, --streams of `sojourn serve`)",
        )),
        _ => Ok(()),
    }
}

/// Begins to sample the requested interface, or the one on the way to the server.
fn watch(
    plan: &Plan,
    around: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Option<Local>, Failure> {
    let name = match plan.interface.as_deref() {
        Some("") => return Ok(None),
        Some(name) => Some(name),
        None => around.device.as_deref(),
    };
    let Some(name) = name else {
        notes.push("no interface is sampled: this host reports no route to the server".into());
        return Ok(None);
    };
    let Some((index, _)) = around.devices.iter().find(|(_, known)| known == name) else {
        let names: Vec<&str> = around.devices.iter().map(|(_, name)| name.as_str()).collect();
        return Err(Failure::new(
            format!("there is no interface '{name}'"),
            format!("this host has {}", names.join(", ")),
        ));
    };
    match Local::new(*index, name) {
        Ok(local) => Ok(Some(local)),
        Err(error) => {
            notes.push(format!("{name} is not sampled: {error}"));
            Ok(None)
        }
    }
}

fn start_probing(
    plan: &Plan,
    probe_targets: &[ProbeTarget],
    welcome: &Welcome,
    port: u16,
    clock: Clock,
    identifier: u16,
) -> std::io::Result<Probing> {
    let targets: Vec<_> = probe_targets
        .iter()
        .map(|probe_target| probe_target.target(port, plan.probe_bytes, plan.dscp))
        .collect();
    let timing = Timing {
        // The thread is running by then.
        start: clock.now() + 20 * MS,
        interval: plan.probe_interval_ns,
        timeout: plan.probe_timeout_ns,
    };
    let mut prober = Prober::new(&targets, timing, identifier)?;
    for (index, probe_target) in probe_targets.iter().enumerate() {
        if probe_target.how == plan::How::Udp {
            prober.set_token(index, welcome.token);
        }
    }
    Probing::start(prober, probe_targets.len(), clock, LINGER.min(plan.probe_timeout_ns))
}

impl Session<'_> {
    fn run(&mut self) -> Result<(), End> {
        for _ in 0..EXCHANGES {
            let had = self.exchanges.len();
            self.exchange()?;
            self.wait(self.plan.patience_ns, |s| s.exchanges.len() > had)?;
        }
        // Before the phases, because the path is tried without load.
        self.wait(self.plan.patience_ns, |s| s.marking.as_ref().is_none_or(Marking::is_through))?;
        // The time for clocks and marks comes on top of the phases.
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

    /// Passes the results so far to the watcher, if a phase is complete.
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

    /// Ends the session: reads the last replies and the requests that reached the server.
    fn finish(&mut self, ended: &Result<(), End>) -> Result<i64, Failure> {
        let duration = self.clock.now();
        self.sample(duration);
        self.probing
            .finish()
            .map_err(|e| Failure::new(format!("the probes failed: {e}"), "please report it"))?;
        if !matches!(ended, Err(End::ServerLost(_))) {
            // If this fails, the information is missing in the result.
            let _ = self.control.send(&Request::Received);
            let _ = self.wait_on(HASTE.min(self.plan.patience_ns), false, |s| s.received.is_some());
            let _ = self.control.send(&Request::Bye);
        }
        if let Some(marking) = &mut self.marking {
            marking.finish().map_err(|e| Failure::new(format!("ECN requests failed: {e}"), ""))?;
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

    /// Ends the current phase.
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
        // In every case: get the samples of both ends, until the time is up.
        for going in &self.going {
            going.loading.stop();
            let _ = self.control.send(&Request::Stop { load: going.number });
        }
        let limit = match &result {
            Err(End::ServerLost(_)) => 0,
            Err(_) => HASTE.min(self.plan.patience_ns),
            Ok(()) => self.plan.patience_ns,
        };
        let drained = match result {
            Err(End::ServerLost(_)) => Ok(true),
            _ => self.drain(limit),
        };
        let phase = self.phases.len().wrapping_sub(1);
        let mut broken = None;
        for Going { number, direction, loading, mut ours } in std::mem::take(&mut self.going) {
            let (last, why) = loading.finish();
            ours.extend(last);
            let report = self.reports.remove(&number).unwrap_or_default();
            let word = direction.word();
            if let Some(why) = why.or(report.over.map(|over| over.0).filter(|why| !why.is_empty()))
            {
                broken.get_or_insert(format!("{word}load: {why}"));
            }
            self.loads.push(Pair { phase, direction, ours, theirs: report.rows });
        }
        if let (Some(why), Ok(())) = (&broken, &result) {
            return Err(End::Refused(why.clone()));
        }
        result.and_then(|()| match drained {
            Ok(true) => Ok(()),
            Ok(false) => Err(End::ServerLost("the server did not send its samples".into())),
            Err(end) => Err(end),
        })
    }

    fn load(&mut self, kind: Kind, duration: i64, directions: &[Direction]) -> Result<(), End> {
        let patience = self.plan.patience_ns;
        for &direction in directions {
            let number = self.loads.len() as u32 + self.going.len() as u32 + 1;
            self.reports.insert(number, LoadReport::default());
            self.control.send(&Request::Load {
                load: number,
                direction,
                streams: self.plan.streams,
                milliseconds: (duration / MS) as u32,
                congestion: self.plan.congestion.clone(),
                sample_ms: (self.plan.sample_ns / MS) as u32,
                dscp: self.plan.dscp,
                ecn: self.plan.ecn,
            })?;
            self.expect(patience, "did not prepare a load", |s| s.reports[&number].ready)?;
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
                .map_err(|e| End::Refused(format!("can't start a thread for the load: {e}")))?;
            self.going.push(Going { number, direction, loading, ours: Vec::new() });
        }
        let streams = self.plan.streams as usize;
        self.expect(patience, "did not get all streams", |s| {
            s.going.iter().all(|Going { number, loading, .. }| {
                loading.is_finished() || s.reports[number].complete && loading.ready() == streams
            })
        })?;
        self.begin(kind);
        for going in &self.going {
            self.control.send(&Request::Go { load: going.number })?;
            going.loading.go();
        }
        let ended_early = |s: &Session| {
            s.going.iter().any(|Going { number, loading, .. }| {
                loading.is_finished() || s.reports[number].over.is_some()
            })
        };
        // The server ends a load on its own clock, perhaps slightly before ours.
        let result = self.wait(duration, |s| {
            let near =
                s.phases.last().is_none_or(|p| s.clock.now() - p.start >= duration - SECOND / 2);
            !near && ended_early(s)
        });
        self.end(matches!(result, Ok(false)));
        result.map(drop)
    }

    /// Waits for the ends of all loads.
    fn drain(&mut self, limit: i64) -> Result<bool, End> {
        // The end of a connection may be lost like any packet. The server's message comes after its
        // data.
        let over = |s: &Session| {
            s.going.iter().all(|Going { number, loading, .. }| {
                let over = s.reports[number].over.as_ref();
                over.is_some_and(|over| loading.is_finished() || s.clock.now() - over.1 >= QUIET)
            })
        };
        match self.wait(limit, over) {
            // If the owner wants to end, take the samples that exist.
            Err(End::Interrupted) => self.wait_on(limit, false, over).and(Err(End::Interrupted)),
            other => other,
        }
    }

    // ------------------------------------------------------------------------------------ waiting

    /// Waits until `done` is true; otherwise the server counts as lost.
    fn expect(
        &mut self,
        limit: i64,
        what: &str,
        done: impl Fn(&Session) -> bool,
    ) -> Result<(), End> {
        if self.wait(limit, done)? {
            return Ok(());
        }
        Err(End::ServerLost(format!("the server {what} within {:.0} s", limit as f64 / 1e9)))
    }

    /// Waits for `limit` ns or until `done` is true; returns whether it is true.
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
            if now - self.last_request >= ALIVE {
                self.exchange()?;
            }
            if now - self.last_reply >= self.plan.patience_ns {
                let seconds = self.plan.patience_ns as f64 / 1e9;
                return Err(End::ServerLost(format!(
                    "the server did not answer for {seconds:.0} s"
                )));
            }
            // The threads do not wake this loop, so it checks them now and then.
            let next = until.min(self.next_watch).min(self.next_sample).min(now + 20 * MS);
            if let Some(reply) =
                self.control.receive(Duration::from_nanos((next - now).max(0) as u64))?
            {
                self.take(reply);
            }
        }
    }

    fn exchange(&mut self) -> Result<(), End> {
        self.last_request = self.clock.now();
        self.control.send(&Request::Clock { at: self.last_request })?;
        Ok(())
    }

    fn sample(&mut self, now: i64) {
        if let Some(local) = &mut self.local {
            local.sample(now);
        }
    }

    fn take(&mut self, reply: Reply) {
        let now = self.clock.now();
        self.last_reply = now;
        match reply {
            // A reply to no request of ours is ignored.
            Reply::Clock { asked, .. } if !(0..=now).contains(&asked) => {}
            Reply::Clock { asked, at } => {
                self.exchanges.push(Exchange { sent: asked, rtt: now - asked, turned: at });
            }
            Reply::Ready { load } => self.reports.entry(load).or_default().ready = true,
            Reply::Complete { load } => self.reports.entry(load).or_default().complete = true,
            Reply::Samples { load, rows } => {
                self.reports.entry(load).or_default().rows.extend(rows)
            }
            Reply::Over { load, why } => {
                self.reports.entry(load).or_default().over = Some((why, now))
            }
            // If no request arrived, the bits are 0 whatever the number.
            Reply::Received { latest, bits } => self.received = Some((latest.unwrap_or(0), bits)),
            Reply::Challenge { .. } => {}
            Reply::Refused { why } => self.refused = Some(why),
            Reply::Welcome { .. } | Reply::Granted | Reply::Ending { .. } => {}
        }
    }
}
