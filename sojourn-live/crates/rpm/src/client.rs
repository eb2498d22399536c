//! A measurement: an idle phase, then load in each direction, or in both at once, with probes all
//! along.
//!
//! Nothing is computed here that the raw samples don't hold: `Outcome` has every probe and every
//! sample of goodput with its time. The judge (`algorithm`) only decides when to stop.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use units::Rng;

use crate::Problem;
use crate::algorithm::{Confidence, Judge, Parameters, Samples, Stage};
use crate::asking::{self, Failure, Way};
use crate::document::{self, Document, Url};
use crate::http::{cores, runtime};
use crate::load::{Direction, Load};
use crate::tls::Trust;

/// What to measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// A host, `host:port`, or the URL of a server's document.
    pub url: String,
    /// Whose certificate to take.
    pub trust: Trust,
    /// The draft's parameters.
    pub parameters: Parameters,
    /// What is loaded, one after the other: one direction, or several at once.
    pub stages: Vec<Vec<Direction>>,
    /// Foreign probes before any load.
    pub idle_probes: u32,
    /// Chooses the connections of self probes.
    pub seed: u64,
    /// A probe without an answer after this has none, ns.
    pub patience_ns: u64,
}

impl Plan {
    fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience_ns)
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Since the start.
    pub elapsed_ns: u64,
    /// The phase, counted from 0: idle, then each of the plan's stages.
    pub phase: usize,
    /// What is waited for.
    pub stage: Stage,
    /// Intervals that the phase has had.
    pub intervals: usize,
    /// Goodput of the last second, all directions together, bit/s.
    pub goodput_bps: f64,
}

/// The kinds of probe, in the order of their numbers: the handshake first, which is what comes
/// nearest to a ping.
pub const PROBES: [&str; 4] = ["foreign-tcp", "foreign-tls", "foreign-http", "self"];
const TCP: usize = 0;
const TLS: usize = 1;
const HTTP: usize = 2;
const SELF: usize = 3;

/// One probe: what was asked and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it was sent.
    pub t_ns: u64,
    /// Its place in `PROBES`.
    pub kind: usize,
    /// The number of the probe it belongs to, counted over all; a foreign one's three parts have
    /// the same.
    pub seq: u64,
    /// `None`: it failed, or got no answer in time.
    pub rtt_ns: Option<u64>,
}

/// One sample of a connection that carries load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// When.
    pub t_ns: u64,
    /// Its place in `Outcome::flows`.
    pub flow: usize,
    /// Application bytes delivered since its start.
    pub delivered_bytes: u64,
    /// What else the kernel says of an upload.
    pub sender: Option<SenderSample>,
}

/// A sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in the table `flow`")]
pub struct SenderSample {
    pub cwnd_bytes: u64,
    pub ssthresh_bytes: Option<u64>,
    pub srtt_ns: u64,
    pub inflight_bytes: u64,
    pub retransmits: u64,
    pub window_bytes: u64,
}

/// One interval of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Its end.
    pub t_ns: u64,
    /// Connections that carried load at its end.
    pub connections: usize,
    /// In it, bit/s, by direction.
    pub goodput_bps: Vec<f64>,
    /// Its moving average, bit/s, by direction.
    pub moving_average_bps: Vec<f64>,
    /// Over the last MAD intervals; `None`: too few samples.
    pub responsiveness: Option<f64>,
}

/// What was measured under load in one direction or several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// The directions that were loaded at once.
    pub directions: Vec<Direction>,
    /// From when.
    pub start_ns: u64,
    /// Until when.
    pub end_ns: u64,
    /// From when on a probe's answer counts for the result: MAD intervals before the end of the
    /// last.
    pub window_start_ns: u64,
    /// To when: the end of the last interval.
    pub window_end_ns: u64,
    /// Every interval.
    pub intervals: Vec<Interval>,
    /// What the goodput is worth.
    pub goodput_confidence: Confidence,
    /// What the responsiveness is worth.
    pub responsiveness_confidence: Confidence,
    /// Probes under way at the end: they are no samples, and no losses either.
    pub unanswered: u64,
}

/// A measurement, or as much of it as there was.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The server's URLs.
    pub document: Document,
    /// The address that was measured.
    pub address: SocketAddr,
    /// The time of day at t = 0, ns since 1970.
    pub zero_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Round trips of a TLS handshake with this server: what a foreign probe's whole handshake took
    /// is so many times its sample.
    pub tls_round_trips: u32,
    /// The idle phase: from the start to here.
    pub idle_end_ns: u64,
    /// What was measured under load.
    pub loaded: Vec<Loaded>,
    /// All probes, by time of sending.
    pub probes: Vec<Probe>,
    /// Names of the connections that carried load: "download-1".
    pub flows: Vec<String>,
    /// Every 100 ms of each of them.
    pub samples: Vec<FlowSample>,
    /// Why it ended early; `None`: it did not.
    pub stopped: Option<Stopped>,
}

/// Why a measurement ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// `tell` said so.
    Asked,
    /// The server did not do its part.
    Failed(Problem),
    /// It goes on: this is what there is so far, every stage of it whole.
    Not,
}

/// Takes what was measured so far, after each stage but the last.
pub type Keep<'a> = &'a mut dyn FnMut(&Outcome) -> bool;

const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// The capacity that probes may take a share of is the goodput over this.
const CAPACITY_OVER: usize = 10;
/// Before the next direction: the queue of the last one empties.
const REST: Duration = Duration::from_secs(1);
/// Idle probes are sent no faster.
const IDLE_EVERY: Duration = Duration::from_millis(100);
/// Probes under way, at most, in seconds' worth of MPS: those of a network that answers after
/// longer tell no more.
const UNDER_WAY_S: f64 = 10.0;

/// Measures. `tell` is called every 100 ms and ends the measurement early by answering `false`, as
/// `keep` does. An error means that nothing was measured; what goes wrong later is in the outcome,
/// beside what was measured until then.
pub fn measure(
    plan: &Plan,
    tell: &mut dyn FnMut(&Reached) -> bool,
    keep: Keep,
) -> Result<Outcome, Problem> {
    let url = whole_url(&plan.url)?;
    let tls = TlsConnector::from(Arc::new(plan.trust.clone().client()?));
    // Probes have threads of their own: gigabits of load must not make them late.
    let (probes, load) = (runtime("rpm-probe", 2)?, runtime("rpm-load", cores())?);
    let outcome = probes.block_on(async {
        let begun = attended(Session::begin(plan, &url, tls, load.handle().clone()), tell).await;
        let session = begun
            .unwrap_or_else(|| Err(Problem::new("ended before the server had answered", "")))?;
        Ok(session.run(plan, tell, keep).await)
    });
    probes.shutdown_background();
    load.shutdown_background();
    outcome
}

/// Waits for something without load meanwhile, and tells of it; `None`: ended by `tell`.
async fn attended<T>(
    work: impl Future<Output = T>,
    tell: &mut dyn FnMut(&Reached) -> bool,
) -> Option<T> {
    let (begun, mut work) = (Instant::now(), pin!(work));
    loop {
        match timeout(SAMPLE_EVERY, &mut work).await {
            Ok(done) => return Some(done),
            Err(_) if tell(&Reached::idle(begun)) => {}
            Err(_) => return None,
        }
    }
}

impl Reached {
    fn idle(zero: Instant) -> Reached {
        let elapsed_ns = since(zero, Instant::now());
        Reached { elapsed_ns, phase: 0, stage: Stage::Goodput, intervals: 0, goodput_bps: 0.0 }
    }
}

/// A host alone means its document.
fn whole_url(text: &str) -> Result<Url, Problem> {
    let given = if text.contains("://") { text.to_string() } else { format!("https://{text}") };
    let mut url = Url::parse(&given).map_err(|why| {
        Problem::new(
            format!("no server to measure: {why}"),
            "write https://HOST:PORT, or just HOST:PORT",
        )
    })?;
    if url.path == "/" {
        url.path = document::PATH.into();
    }
    Ok(url)
}

async fn ways_to(
    url: &Url,
    host: &str,
    tls: &TlsConnector,
    patience: Duration,
) -> Result<Vec<Way>, Problem> {
    let no_name =
        |_| Problem::new(format!("'{}' is not a host's name", url.host), "write https://HOST:PORT");
    let name = ServerName::try_from(url.host.clone()).map_err(no_name)?;
    let found = timeout(patience, tokio::net::lookup_host((host, url.port))).await;
    let unknown = |why: String| {
        Problem::new(
            format!("the address of {host} can't be found: {why}"),
            "check its name, or give an address",
        )
    };
    let addresses = found
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(|error| unknown(error.to_string()))?;
    let ways: Vec<Way> = addresses
        .map(|address| Way { address, name: name.clone(), tls: tls.clone(), patience })
        .collect();
    if ways.is_empty() {
        return Err(unknown("it has none".into()));
    }
    Ok(ways)
}

/// What the first request brought, and how.
struct Answer {
    way: Way,
    content: Vec<u8>,
    round_trips: u32,
}

/// The first of a host's addresses that answers, and what it answers to a request for `url`.
async fn first_answer(ways: Vec<Way>, url: &Arc<Url>) -> Result<Answer, Failure> {
    let mut last = Failure::Silent(Duration::ZERO);
    for way in ways {
        let made = match way.connect().await {
            Ok(made) => made,
            Err(failure) => {
                last = failure;
                continue;
            }
        };
        tokio::spawn(timeout(2 * way.patience, made.connection));
        let content = asking::get(made.requests, url, way.patience).await?;
        return Ok(Answer { way, content, round_trips: made.round_trips });
    }
    Err(last)
}

/// What a measurement's tasks share.
struct Session {
    way: Way,
    document: Arc<Document>,
    small: Arc<Url>,
    zero: Instant,
    zero_of_day: SystemTime,
    tls_round_trips: u32,
    /// Where load runs.
    load: Handle,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    probes: Mutex<Probes>,
    load: Mutex<Vec<Arc<Load>>>,
    /// Probes a second that are allowed now.
    rate: Mutex<f64>,
}

#[derive(Default)]
struct Probes {
    /// The phase whose probes count; `None` between phases. Those that are answered after their
    /// phase are no samples.
    phase: Option<usize>,
    launched: u64,
    done: Vec<Done>,
    /// The last failure, and how many there were since a probe last got its answer.
    failing: Option<(String, u64)>,
}

/// A probe, and when it had its answer or was given up.
struct Done {
    probe: Probe,
    done_ns: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    async fn begin(
        plan: &Plan,
        url: &Url,
        tls: TlsConnector,
        load: Handle,
    ) -> Result<Session, Problem> {
        let asked = Arc::new(url.clone());
        let ways = ways_to(url, &url.host, &tls, plan.patience()).await?;
        let answer = first_answer(ways, &asked).await.map_err(|failure| failure.problem(url))?;
        let document = Document::parse(&answer.content).map_err(|why| {
            Problem::new(
                format!("{url} does not describe a responsiveness server: {why}"),
                "give the URL of its /.well-known/nq",
            )
        })?;
        let small = Arc::new(document.small.clone());
        let same_place =
            small.host == url.host && small.port == url.port && document.endpoint.is_none();
        let answer = if same_place {
            answer
        } else {
            let host = document.endpoint.as_deref().unwrap_or(&small.host);
            let ways = ways_to(&small, host, &tls, plan.patience()).await?;
            first_answer(ways, &small).await.map_err(|failure| failure.problem(&small))?
        };
        Ok(Session {
            way: answer.way,
            document: Arc::new(document),
            small,
            zero: Instant::now(),
            zero_of_day: SystemTime::now(),
            tls_round_trips: answer.round_trips,
            load,
            shared: Arc::default(),
        })
    }

    fn now_ns(&self) -> u64 {
        since(self.zero, Instant::now())
    }

    async fn run(
        self,
        plan: &Plan,
        tell: &mut dyn FnMut(&Reached) -> bool,
        keep: Keep<'_>,
    ) -> Outcome {
        let mut outcome = Outcome {
            document: (*self.document).clone(),
            address: self.way.address,
            zero_ns: self.zero_of_day.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
                as u64,
            end_ns: 0,
            tls_round_trips: self.tls_round_trips,
            idle_end_ns: 0,
            loaded: Vec::new(),
            probes: Vec::new(),
            flows: Vec::new(),
            samples: Vec::new(),
            stopped: None,
        };
        let idle = self.idle(plan, tell).await;
        outcome.idle_end_ns = self.now_ns();
        outcome.stopped = idle.err();
        for (number, directions) in plan.stages.iter().enumerate() {
            if outcome.stopped.is_some() {
                break;
            }
            outcome.stopped = Some(Stopped::Not);
            self.bring_up(&mut outcome);
            if !keep(&outcome) {
                outcome.stopped = Some(Stopped::Asked);
                break;
            }
            outcome.stopped = None;
            let rest = if number > 0 { REST } else { Duration::ZERO };
            if attended(sleep(rest), tell).await.is_none() {
                outcome.stopped = Some(Stopped::Asked);
                break;
            }
            let mut test = Test::new(&self, plan, number + 1, directions, &mut outcome);
            let ended = test.run(tell).await;
            let loaded = test.into_loaded();
            outcome.loaded.push(loaded);
            outcome.stopped = ended.err();
        }
        self.bring_up(&mut outcome);
        outcome
    }

    /// Its end and its probes are those until now.
    fn bring_up(&self, outcome: &mut Outcome) {
        outcome.end_ns = self.now_ns();
        outcome.probes = locked(&self.shared.probes).done.iter().map(|done| done.probe).collect();
        outcome.probes.sort_by_key(|probe| (probe.t_ns, probe.seq, probe.kind));
    }

    /// Foreign probes, one after the other, through empty queues.
    async fn idle(
        &self,
        plan: &Plan,
        tell: &mut dyn FnMut(&Reached) -> bool,
    ) -> Result<(), Stopped> {
        locked(&self.shared.probes).phase = Some(0);
        for _ in 0..plan.idle_probes {
            let begun = tokio::time::Instant::now();
            let probe = attended(Prober::new(self, plan, 0).foreign(), tell).await;
            if probe.is_none() || !tell(&Reached::idle(self.zero)) {
                return Err(Stopped::Asked);
            }
            if let Some((why, _)) = &locked(&self.shared.probes).failing {
                return Err(Stopped::Failed(self.lost("did not answer a probe", why)));
            }
            sleep_until(begun + IDLE_EVERY).await;
        }
        Ok(())
    }

    fn lost(&self, what: &str, why: &str) -> Problem {
        Problem::new(
            format!("{} {what}: {why}", self.small.authority()),
            "what was measured until then is above; run it again, and look at the server if it recurs",
        )
    }
}

fn since(zero: Instant, then: Instant) -> u64 {
    then.saturating_duration_since(zero).as_nanos() as u64
}

/// One stage of the plan under way.
struct Test<'a> {
    session: &'a Session,
    parameters: &'a Parameters,
    prober: Prober,
    phase: usize,
    directions: &'a [Direction],
    flows: &'a mut Vec<String>,
    samples: &'a mut Vec<FlowSample>,
    judge: Judge,
    loads: JoinSet<()>,
    failures: UnboundedReceiver<(usize, Failure)>,
    failed: UnboundedSender<(usize, Failure)>,
    opened: Vec<usize>,
    start_ns: u64,
    intervals: Vec<Interval>,
    boundaries: Vec<u64>,
    unanswered: u64,
}

impl<'a> Test<'a> {
    fn new(
        session: &'a Session,
        plan: &'a Plan,
        phase: usize,
        directions: &'a [Direction],
        outcome: &'a mut Outcome,
    ) -> Test<'a> {
        let (failed, failures) = mpsc::unbounded_channel();
        let start_ns = session.now_ns();
        Test {
            session,
            parameters: &plan.parameters,
            prober: Prober::new(session, plan, phase),
            phase,
            directions,
            flows: &mut outcome.flows,
            samples: &mut outcome.samples,
            judge: Judge::new(&plan.parameters, directions.len()),
            loads: JoinSet::new(),
            failures,
            failed,
            opened: vec![0; directions.len()],
            start_ns,
            intervals: Vec::new(),
            boundaries: vec![start_ns],
            unanswered: 0,
        }
    }

    async fn run(&mut self, tell: &mut dyn FnMut(&Reached) -> bool) -> Result<(), Stopped> {
        self.open(self.parameters.inp);
        *locked(&self.session.shared.rate) = 0.0;
        let (launched_before, done_before) = {
            let mut probes = locked(&self.session.shared.probes);
            probes.phase = Some(self.phase);
            (probes.launched, probes.done_count())
        };
        let probing = Probing(tokio::spawn(self.prober.clone().probe()).abort_handle());
        let ended = self.intervals(tell).await;
        locked(&self.session.shared.probes).phase = None;
        drop(probing);
        self.loads.abort_all();
        while self.loads.join_next().await.is_some() {}
        // Only now none is added any more.
        locked(&self.session.shared.load).clear();
        let probes = locked(&self.session.shared.probes);
        let (launched, done) =
            (probes.launched - launched_before, probes.done_count() - done_before);
        self.unanswered = launched.saturating_sub(done);
        ended
    }

    /// Adds connections in each direction, to MNP at most.
    fn open(&mut self, more: usize) {
        for (direction, opened) in self.directions.iter().copied().zip(&mut self.opened) {
            for _ in 0..more.min(self.parameters.mnp.saturating_sub(*opened)) {
                *opened += 1;
                let number = self.flows.len();
                self.flows.push(format!("{}-{opened}", direction.word()));
                let (shared, failed) = (Arc::clone(&self.session.shared), self.failed.clone());
                let (way, document) =
                    (self.session.way.clone(), Arc::clone(&self.session.document));
                let carry = async move {
                    let begun = |load| locked(&shared.load).push(load);
                    let failure = Load::carry(way, document, direction, number, begun).await;
                    // Nobody listens any more where the test has ended.
                    let _ = failed.send((number, failure));
                };
                self.loads.spawn_on(carry, &self.session.load);
            }
        }
    }

    async fn intervals(&mut self, tell: &mut dyn FnMut(&Reached) -> bool) -> Result<(), Stopped> {
        let interval = Duration::from_nanos(self.parameters.id_ns);
        let begun = tokio::time::Instant::now();
        let (mut next_sample, mut next_interval) = (begun + SAMPLE_EVERY, begun + interval);
        let mut recent: VecDeque<(u64, Vec<u64>)> = VecDeque::new();
        let mut at_boundary = vec![0; self.directions.len()];
        while self.judge.stage() != Stage::Done {
            sleep_until(next_sample.min(next_interval)).await;
            let (t_ns, delivered) = self.sample();
            if let Ok((number, failure)) = self.failures.try_recv() {
                let what = format!("broke off {}", self.flows[number]);
                return Err(Stopped::Failed(self.session.lost(&what, &failure.to_string())));
            }
            let goodput = self.allow_probes(&mut recent, t_ns, &delivered);
            let now = tokio::time::Instant::now();
            next_sample = (next_sample + SAMPLE_EVERY).max(now);
            if now >= next_interval {
                // Where this host stood still there is no interval of no time at all.
                next_interval = (next_interval + interval).max(now + interval / 2);
                self.end_interval(t_ns, &delivered, &at_boundary)?;
                at_boundary = delivered;
            }
            let reached = Reached {
                elapsed_ns: t_ns,
                phase: self.phase,
                stage: self.judge.stage(),
                intervals: self.intervals.len(),
                goodput_bps: goodput * 8.0,
            };
            if !tell(&reached) {
                return Err(Stopped::Asked);
            }
        }
        Ok(())
    }

    /// Looks at every connection; bytes delivered by direction.
    fn sample(&mut self) -> (u64, Vec<u64>) {
        let t_ns = self.session.now_ns();
        let mut delivered = vec![0; self.directions.len()];
        for load in locked(&self.session.shared.load).iter() {
            let (bytes, info) = load.delivered();
            let place = self.directions.iter().position(|direction| *direction == load.direction);
            delivered[place.expect("load goes in a direction of its stage")] += bytes;
            let sender = info.map(|info| {
                let mss = u64::from(info.snd_mss_bytes);
                // The kernel's way to say "not yet known".
                let ssthresh =
                    (info.ssthresh_segments < 0x7fff_ffff).then_some(info.ssthresh_segments);
                SenderSample {
                    cwnd_bytes: u64::from(info.cwnd_segments) * mss,
                    ssthresh_bytes: ssthresh.map(|segments| u64::from(segments) * mss),
                    srtt_ns: u64::from(info.srtt_us) * 1000,
                    inflight_bytes: info.inflight_bytes(),
                    retransmits: u64::from(info.total_retrans_segments),
                    window_bytes: u64::from(info.snd_wnd_bytes),
                }
            });
            self.samples.push(FlowSample {
                t_ns,
                flow: load.number,
                delivered_bytes: bytes,
                sender,
            });
        }
        (t_ns, delivered)
    }

    /// Sets how many probes a second the goodput of the last second allows; that goodput, bytes a
    /// second, all directions.
    fn allow_probes(
        &self,
        recent: &mut VecDeque<(u64, Vec<u64>)>,
        t_ns: u64,
        delivered: &[u64],
    ) -> f64 {
        recent.push_back((t_ns, delivered.to_vec()));
        if recent.len() > CAPACITY_OVER + 1 {
            recent.pop_front();
        }
        let (then, before) = recent.front().expect("one was just added");
        let time = (t_ns - then) as f64 / 1e9;
        if time <= 0.0 {
            return 0.0;
        }
        let rates: Vec<f64> =
            delivered.iter().zip(before).map(|(now, then)| (now - then) as f64 / time).collect();
        // Probes go both ways: the slower direction bounds them.
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        *locked(&self.session.shared.rate) = self.parameters.probes_per_second(slowest);
        rates.iter().sum()
    }

    fn end_interval(
        &mut self,
        t_ns: u64,
        delivered: &[u64],
        before: &[u64],
    ) -> Result<(), Stopped> {
        let took_ns = (t_ns - self.boundaries.last().copied().unwrap_or(0)).max(1);
        self.boundaries.push(t_ns);
        let samples = self.samples_since(self.window_start());
        let bytes: Vec<u64> = delivered.iter().zip(before).map(|(now, then)| now - then).collect();
        let averages = self.judge.interval(took_ns, &bytes, &samples);
        self.intervals.push(Interval {
            t_ns,
            connections: locked(&self.session.shared.load).len(),
            goodput_bps: bytes.iter().map(|bytes| *bytes as f64 * 8e9 / took_ns as f64).collect(),
            moving_average_bps: averages.iter().map(|average| average * 8.0).collect(),
            responsiveness: samples.responsiveness(self.parameters.tmp),
        });
        self.open(self.parameters.inc);
        self.check_answers()
    }

    /// A server that answers no probe any more, though its load goes on, has stopped doing its
    /// part.
    fn check_answers(&self) -> Result<(), Stopped> {
        const TOO_MANY: u64 = 10;
        match &locked(&self.session.shared.probes).failing {
            Some((why, times)) if *times >= TOO_MANY => Err(Stopped::Failed(
                self.session.lost(&format!("failed {times} probes in a row"), why),
            )),
            _ => Ok(()),
        }
    }

    /// Where the last MAD intervals began.
    fn window_start(&self) -> u64 {
        let ended = self.boundaries.len() - 1;
        self.boundaries[ended.saturating_sub(self.parameters.mad)]
    }

    fn samples_since(&self, start_ns: u64) -> Samples {
        let mut samples = Samples::default();
        for Done { probe, done_ns } in &locked(&self.session.shared.probes).done {
            let Some(rtt_ns) = probe.rtt_ns.filter(|_| *done_ns >= start_ns) else { continue };
            let kind = match probe.kind {
                TCP => &mut samples.tcp_f,
                TLS => &mut samples.tls_f,
                HTTP => &mut samples.http_f,
                _ => &mut samples.http_l,
            };
            kind.push(rtt_ns as f64 / 1e6);
        }
        samples
    }

    fn into_loaded(self) -> Loaded {
        Loaded {
            directions: self.directions.to_vec(),
            start_ns: self.start_ns,
            end_ns: self.session.now_ns(),
            window_start_ns: self.window_start(),
            window_end_ns: self.boundaries.last().copied().unwrap_or(self.start_ns),
            goodput_confidence: self.judge.goodput_confidence(),
            responsiveness_confidence: self.judge.responsiveness_confidence(),
            intervals: self.intervals,
            unanswered: self.unanswered,
        }
    }
}

/// Ends a task when dropped.
struct Probing(AbortHandle);

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Probes {
    /// Whole probes that are over: a foreign one's parts count as one.
    fn done_count(&self) -> u64 {
        self.done.iter().filter(|done| matches!(done.probe.kind, SELF | HTTP)).count() as u64
    }
}

/// Sends probes at the rate that is allowed, foreign and self in turn.
#[derive(Clone)]
struct Prober {
    way: Way,
    small: Arc<Url>,
    shared: Arc<Shared>,
    zero: Instant,
    phase: usize,
    seed: u64,
    under_way: u64,
}

impl Prober {
    fn new(session: &Session, plan: &Plan, phase: usize) -> Prober {
        Prober {
            way: session.way.clone(),
            small: Arc::clone(&session.small),
            shared: Arc::clone(&session.shared),
            zero: session.zero,
            phase,
            seed: plan.seed,
            under_way: (plan.parameters.mps * UNDER_WAY_S).max(1.0) as u64,
        }
    }

    async fn probe(self) {
        let mut rng = Rng::new(self.seed, "self probes");
        let mut tasks = JoinSet::new();
        let mut foreign = true;
        let mut next = tokio::time::Instant::now();
        loop {
            let rate = *locked(&self.shared.rate);
            let due = next + Duration::from_secs_f64((1.0 / rate.max(1e-3)).min(1e3));
            let now = tokio::time::Instant::now();
            if now < due {
                // The rate may rise meanwhile.
                sleep_until(due.min(now + SAMPLE_EVERY)).await;
                continue;
            }
            // Probes that are late are not made up for: they would come in a burst.
            next = due.max(now - Duration::from_millis(20));
            while tasks.try_join_next().is_some() {}
            if tasks.len() as u64 >= self.under_way {
                continue;
            }
            let prober = self.clone();
            if foreign {
                tasks.spawn(async move { prober.foreign().await });
            } else if let Some(load) = self.choose(&mut rng) {
                tasks.spawn(async move { prober.own(load).await });
            }
            foreign = !foreign;
        }
    }

    /// One of the connections that carry load, each as likely as the other.
    fn choose(&self, rng: &mut Rng) -> Option<Arc<Load>> {
        let load = locked(&self.shared.load);
        let place = (rng.next_u64() % (load.len().max(1) as u64)) as usize;
        load.get(place).cloned()
    }

    fn launch(&self) -> (u64, u64) {
        let mut probes = locked(&self.shared.probes);
        probes.launched += 1;
        (probes.launched - 1, since(self.zero, Instant::now()))
    }

    async fn foreign(&self) {
        let (seq, t_ns) = self.launch();
        let outcome = asking::foreign(&self.way, &self.small).await;
        let part = |t_ns, kind, took: Option<Duration>| Probe {
            t_ns,
            kind,
            seq,
            rtt_ns: took.map(|took| took.as_nanos() as u64),
        };
        match outcome {
            Ok(times) => {
                let asked_ns = since(self.zero, times.asked);
                let connected_ns = t_ns + times.tcp.as_nanos() as u64;
                self.over(&[
                    part(t_ns, TCP, Some(times.tcp)),
                    part(connected_ns, TLS, Some(times.tls)),
                    part(asked_ns, HTTP, Some(times.http)),
                ]);
            }
            Err(failure) => {
                self.over(&[part(t_ns, TCP, None), part(t_ns, TLS, None), part(t_ns, HTTP, None)]);
                self.fail(&failure);
            }
        }
    }

    async fn own(&self, load: Arc<Load>) {
        let (seq, t_ns) = self.launch();
        let begun = Instant::now();
        let outcome = asking::get(load.requests.clone(), &self.small, self.way.patience).await;
        let took = begun.elapsed().as_nanos() as u64;
        self.over(&[Probe { t_ns, kind: SELF, seq, rtt_ns: outcome.as_ref().ok().map(|_| took) }]);
        if let Err(failure) = outcome {
            self.fail(&failure);
        }
    }

    fn over(&self, parts: &[Probe]) {
        let done_ns = since(self.zero, Instant::now());
        let mut probes = locked(&self.shared.probes);
        if probes.phase != Some(self.phase) {
            return;
        }
        probes.done.extend(parts.iter().map(|&probe| Done { probe, done_ns }));
        if parts.iter().all(|probe| probe.rtt_ns.is_some()) {
            probes.failing = None;
        }
    }

    fn fail(&self, failure: &Failure) {
        let mut probes = locked(&self.shared.probes);
        let times = probes.failing.as_ref().map_or(0, |(_, times)| *times);
        probes.failing = Some((failure.to_string(), times + 1));
    }
}
