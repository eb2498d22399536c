//! A measurement: an idle phase, then load in each direction or in both at once, with probes
//! throughout.
//!
//! Results are not computed here: `Outcome` contains every probe and every goodput sample with its
//! time. The judge (`algorithm`) only decides when to stop.

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
use crate::document::{self, Document, Url};
use crate::http::{cores, runtime};
use crate::load::{Direction, Load};
use crate::requests::{self, Failure, Target};
use crate::tls::Trust;

/// The plan of a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// A host, `host:port`, or the URL of a server's document.
    pub url: String,
    /// The certificates to accept.
    pub trust: Trust,
    /// The draft's parameters.
    pub parameters: Parameters,
    /// The loaded directions of each stage: one direction, or several at once.
    pub stages: Vec<Vec<Direction>>,
    /// Foreign probes before any load.
    pub idle_probes: u32,
    /// Seed for the choice of the self probes' connections.
    pub seed: u64,
    /// Timeout of a probe, ns.
    pub patience_ns: u64,
}

impl Plan {
    fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience_ns)
    }
}

/// Progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Time since the start, ns.
    pub elapsed_ns: u64,
    /// The phase, from 0: idle, then each of the plan's stages.
    pub phase: usize,
    /// The value that the test waits for.
    pub stage: Stage,
    /// Completed intervals of the phase.
    pub intervals: usize,
    /// Goodput of the last second, all directions together, bit/s.
    pub goodput_bps: f64,
}

/// The kinds of probe, in the order of their numbers. The TCP handshake is first, because it is
/// most similar to a ping.
pub const PROBES: [&str; 4] = ["foreign-tcp", "foreign-tls", "foreign-http", "self"];
const TCP: usize = 0;
const TLS: usize = 1;
const HTTP: usize = 2;
const SELF: usize = 3;

/// The result of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Send time, ns.
    pub t_ns: u64,
    /// Its index in `PROBES`.
    pub kind: usize,
    /// Number of the probe, over all phases; the three parts of a foreign probe have the same
    /// number.
    pub seq: u64,
    /// `None`: it failed or timed out.
    pub rtt_ns: Option<u64>,
}

/// One sample of a connection that carries load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// Time, ns.
    pub t_ns: u64,
    /// Its index in `Outcome::flows`.
    pub flow: usize,
    /// Application bytes delivered since the connection's start.
    pub delivered_bytes: u64,
    /// The kernel's state of an upload's sender.
    pub sender: Option<SenderSample>,
}

/// State of a sender.
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
    /// Its end, ns.
    pub t_ns: u64,
    /// Connections that carried load at its end.
    pub connections: usize,
    /// Goodput in the interval, bit/s, by direction.
    pub goodput_bps: Vec<f64>,
    /// Moving average of the goodput, bit/s, by direction.
    pub moving_average_bps: Vec<f64>,
    /// Responsiveness over the last MAD intervals; `None`: too few samples.
    pub responsiveness: Option<f64>,
}

/// The results of a stage: load in one direction or several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// The directions that were loaded at once.
    pub directions: Vec<Direction>,
    /// Start, ns.
    pub start_ns: u64,
    /// End, ns.
    pub end_ns: u64,
    /// Start of the window in which a probe's answer counts for the result: MAD intervals before
    /// its end.
    pub window_start_ns: u64,
    /// End of that window: the end of the last interval.
    pub window_end_ns: u64,
    /// All intervals.
    pub intervals: Vec<Interval>,
    /// Confidence in the goodput.
    pub goodput_confidence: Confidence,
    /// Confidence in the responsiveness.
    pub responsiveness_confidence: Confidence,
    /// Probes without an answer at the end: neither samples nor losses.
    pub unanswered: u64,
}

/// The results of a measurement, complete or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The server's URLs.
    pub document: Document,
    /// The address of the server.
    pub address: SocketAddr,
    /// The time of day at t = 0, ns since 1970.
    pub zero_ns: u64,
    /// Time of the end, ns.
    pub end_ns: u64,
    /// Round trips of a TLS handshake with this server. A foreign probe's sample is the time of its
    /// handshake divided by this number.
    pub tls_round_trips: u32,
    /// End of the idle phase, ns.
    pub idle_end_ns: u64,
    /// The results of the stages with load.
    pub loaded: Vec<Loaded>,
    /// All probes, by send time.
    pub probes: Vec<Probe>,
    /// Names of the connections that carried load: "download-1".
    pub flows: Vec<String>,
    /// Samples of these connections, every 100 ms.
    pub samples: Vec<FlowSample>,
    /// Reason for an early end; `None`: it is complete.
    pub stopped: Option<Stopped>,
}

/// Reason for the early end of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// `progress` returned false.
    Interrupted,
    /// The server failed.
    Failed(Problem),
    /// The measurement continues; the results so far contain complete stages only.
    Running,
}

/// Takes the results so far, after each stage except the last.
pub type Keep<'a> = &'a mut dyn FnMut(&Outcome) -> bool;

const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// The goodput over this number of samples counts as the capacity, of which probes may use a share.
const CAPACITY_OVER: usize = 10;
/// Pause before the next stage, so that the queue empties.
const REST: Duration = Duration::from_secs(1);
/// Shortest interval between idle probes.
const IDLE_EVERY: Duration = Duration::from_millis(100);
/// Limit of unanswered probes: as many as MPS allows in this time, s. If answers take longer, more
/// probes give no more information.
const UNDER_WAY_S: f64 = 10.0;

/// Does a measurement. `progress` is called every 100 ms; if it or `keep` returns false, the
/// measurement ends early. Fails if nothing was measured. A later failure is in the outcome,
/// together with the results so far.
pub fn measure(
    plan: &Plan,
    progress: &mut dyn FnMut(&Reached) -> bool,
    keep: Keep,
) -> Result<Outcome, Problem> {
    let url = full_url(&plan.url)?;
    let tls = TlsConnector::from(Arc::new(plan.trust.clone().client()?));
    // Probes have their own threads, so that gigabits of load do not delay them.
    let (probes, load) = (runtime("rpm-probe", 2)?, runtime("rpm-load", cores())?);
    let outcome = probes.block_on(async {
        let begun =
            reporting(Session::begin(plan, &url, tls, load.handle().clone()), progress).await;
        let session = begun
            .unwrap_or_else(|| Err(Problem::new("ended before the server had answered", "")))?;
        Ok(session.run(plan, progress, keep).await)
    });
    probes.shutdown_background();
    load.shutdown_background();
    outcome
}

/// Waits for work without load and reports progress; `None`: `progress` ended it.
async fn reporting<T>(
    work: impl Future<Output = T>,
    progress: &mut dyn FnMut(&Reached) -> bool,
) -> Option<T> {
    let (begun, mut work) = (Instant::now(), pin!(work));
    loop {
        match timeout(SAMPLE_EVERY, &mut work).await {
            Ok(done) => return Some(done),
            Err(_) if progress(&Reached::idle(begun)) => {}
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

/// Returns the URL of a server's document; a host alone is sufficient.
fn full_url(text: &str) -> Result<Url, Problem> {
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

async fn targets_of(
    url: &Url,
    host: &str,
    tls: &TlsConnector,
    patience: Duration,
) -> Result<Vec<Target>, Problem> {
    let no_name =
        |_| Problem::new(format!("'{}' is not a host's name", url.host), "write https://HOST:PORT");
    let name = ServerName::try_from(url.host.clone()).map_err(no_name)?;
    let lookup = timeout(patience, tokio::net::lookup_host((host, url.port))).await;
    let unknown = |why: String| {
        Problem::new(
            format!("the address of {host} can't be found: {why}"),
            "check its name, or give an address",
        )
    };
    let addresses = lookup
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(|error| unknown(error.to_string()))?;
    let targets: Vec<Target> = addresses
        .map(|address| Target { address, name: name.clone(), tls: tls.clone(), patience })
        .collect();
    if targets.is_empty() {
        return Err(unknown("it has no address".into()));
    }
    Ok(targets)
}

/// The answer to the first request.
struct Answer {
    target: Target,
    content: Vec<u8>,
    round_trips: u32,
}

/// Requests `url` from the first of a host's addresses that accepts a connection.
async fn first_answer(targets: Vec<Target>, url: &Arc<Url>) -> Result<Answer, Failure> {
    let mut last = Failure::Silent(Duration::ZERO);
    for target in targets {
        let established = match target.connect().await {
            Ok(established) => established,
            Err(failure) => {
                last = failure;
                continue;
            }
        };
        tokio::spawn(timeout(2 * target.patience, established.connection));
        let content = requests::get(established.requests, url, target.patience).await?;
        return Ok(Answer { target, content, round_trips: established.round_trips });
    }
    Err(last)
}

/// Data that the tasks of a measurement share.
struct Session {
    target: Target,
    document: Arc<Document>,
    small: Arc<Url>,
    zero: Instant,
    zero_of_day: SystemTime,
    tls_round_trips: u32,
    /// Runtime of the load.
    load: Handle,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    probes: Mutex<Probes>,
    load: Mutex<Vec<Arc<Load>>>,
    /// Probes per second that are allowed now.
    rate: Mutex<f64>,
}

#[derive(Default)]
struct Probes {
    /// The phase whose probes count; `None` between phases. Probes answered after their phase are
    /// not samples.
    phase: Option<usize>,
    launched: u64,
    done: Vec<Done>,
    /// The last failure, and the number of failures since the last answered probe.
    failing: Option<(String, u64)>,
}

/// A probe, and the time of its answer or failure.
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
        let url_shared = Arc::new(url.clone());
        let targets = targets_of(url, &url.host, &tls, plan.patience()).await?;
        let answer =
            first_answer(targets, &url_shared).await.map_err(|failure| failure.problem(url))?;
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
            let targets = targets_of(&small, host, &tls, plan.patience()).await?;
            first_answer(targets, &small).await.map_err(|failure| failure.problem(&small))?
        };
        Ok(Session {
            target: answer.target,
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
        progress: &mut dyn FnMut(&Reached) -> bool,
        keep: Keep<'_>,
    ) -> Outcome {
        let mut outcome = Outcome {
            document: (*self.document).clone(),
            address: self.target.address,
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
        let idle = self.idle(plan, progress).await;
        outcome.idle_end_ns = self.now_ns();
        outcome.stopped = idle.err();
        for (number, directions) in plan.stages.iter().enumerate() {
            if outcome.stopped.is_some() {
                break;
            }
            outcome.stopped = Some(Stopped::Running);
            self.update(&mut outcome);
            if !keep(&outcome) {
                outcome.stopped = Some(Stopped::Interrupted);
                break;
            }
            outcome.stopped = None;
            let rest = if number > 0 { REST } else { Duration::ZERO };
            if reporting(sleep(rest), progress).await.is_none() {
                outcome.stopped = Some(Stopped::Interrupted);
                break;
            }
            let mut test = Test::new(&self, plan, number + 1, directions, &mut outcome);
            let ended = test.run(progress).await;
            let loaded = test.into_loaded();
            outcome.loaded.push(loaded);
            outcome.stopped = ended.err();
        }
        self.update(&mut outcome);
        outcome
    }

    /// Updates the outcome's end and probes to the present.
    fn update(&self, outcome: &mut Outcome) {
        outcome.end_ns = self.now_ns();
        outcome.probes = locked(&self.shared.probes).done.iter().map(|done| done.probe).collect();
        outcome.probes.sort_by_key(|probe| (probe.t_ns, probe.seq, probe.kind));
    }

    /// Sends foreign probes, one after the other, through empty queues.
    async fn idle(
        &self,
        plan: &Plan,
        progress: &mut dyn FnMut(&Reached) -> bool,
    ) -> Result<(), Stopped> {
        locked(&self.shared.probes).phase = Some(0);
        for _ in 0..plan.idle_probes {
            let begun = tokio::time::Instant::now();
            let probe = reporting(Prober::new(self, plan, 0).foreign(), progress).await;
            if probe.is_none() || !progress(&Reached::idle(self.zero)) {
                return Err(Stopped::Interrupted);
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
            "the results so far are above; run it again, and check the server if it recurs",
        )
    }
}

fn since(zero: Instant, then: Instant) -> u64 {
    then.saturating_duration_since(zero).as_nanos() as u64
}

/// A running stage of the plan.
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

    async fn run(&mut self, progress: &mut dyn FnMut(&Reached) -> bool) -> Result<(), Stopped> {
        self.open(self.parameters.inp);
        *locked(&self.session.shared.rate) = 0.0;
        let (launched_before, done_before) = {
            let mut probes = locked(&self.session.shared.probes);
            probes.phase = Some(self.phase);
            (probes.launched, probes.done_count())
        };
        let probing = Probing(tokio::spawn(self.prober.clone().probe()).abort_handle());
        let ended = self.intervals(progress).await;
        locked(&self.session.shared.probes).phase = None;
        drop(probing);
        self.loads.abort_all();
        while self.loads.join_next().await.is_some() {}
        // Only now are no more connections added.
        locked(&self.session.shared.load).clear();
        let probes = locked(&self.session.shared.probes);
        let (launched, done) =
            (probes.launched - launched_before, probes.done_count() - done_before);
        self.unanswered = launched.saturating_sub(done);
        ended
    }

    /// Adds connections in each direction, up to MNP.
    fn open(&mut self, more: usize) {
        for (direction, opened) in self.directions.iter().copied().zip(&mut self.opened) {
            for _ in 0..more.min(self.parameters.mnp.saturating_sub(*opened)) {
                *opened += 1;
                let number = self.flows.len();
                self.flows.push(format!("{}-{opened}", direction.word()));
                let (shared, failed) = (Arc::clone(&self.session.shared), self.failed.clone());
                let (target, document) =
                    (self.session.target.clone(), Arc::clone(&self.session.document));
                let carry = async move {
                    let begun = |load| locked(&shared.load).push(load);
                    let failure = Load::carry(target, document, direction, number, begun).await;
                    // The receiver is gone if the test has ended.
                    let _ = failed.send((number, failure));
                };
                self.loads.spawn_on(carry, &self.session.load);
            }
        }
    }

    async fn intervals(
        &mut self,
        progress: &mut dyn FnMut(&Reached) -> bool,
    ) -> Result<(), Stopped> {
        let interval = Duration::from_nanos(self.parameters.id_ns);
        let begun = tokio::time::Instant::now();
        let (mut next_sample, mut next_interval) = (begun + SAMPLE_EVERY, begun + interval);
        let mut recent: VecDeque<(u64, Vec<u64>)> = VecDeque::new();
        let mut at_boundary = vec![0; self.directions.len()];
        while self.judge.stage() != Stage::Done {
            sleep_until(next_sample.min(next_interval)).await;
            let (t_ns, delivered) = self.sample();
            if let Ok((number, failure)) = self.failures.try_recv() {
                let what = format!("ended {}", self.flows[number]);
                return Err(Stopped::Failed(self.session.lost(&what, &failure.to_string())));
            }
            let goodput = self.allow_probes(&mut recent, t_ns, &delivered);
            let now = tokio::time::Instant::now();
            next_sample = (next_sample + SAMPLE_EVERY).max(now);
            if now >= next_interval {
                // If this host was suspended, the next interval still has a length.
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
            if !progress(&reached) {
                return Err(Stopped::Interrupted);
            }
        }
        Ok(())
    }

    /// Samples every connection; returns the bytes delivered by direction.
    fn sample(&mut self) -> (u64, Vec<u64>) {
        let t_ns = self.session.now_ns();
        let mut delivered = vec![0; self.directions.len()];
        for load in locked(&self.session.shared.load).iter() {
            let (bytes, info) = load.delivered();
            let place = self.directions.iter().position(|direction| *direction == load.direction);
            delivered[place.expect("load goes in a direction of its stage")] += bytes;
            let sender = info.map(|info| {
                let mss = u64::from(info.snd_mss_bytes);
                // The kernel's value for "unknown".
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

    /// Sets the probe rate that the goodput of the last second allows. Returns that goodput,
    /// bytes/s, over all directions.
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
        // Probes use both directions: the slower one limits them.
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

    /// Fails if no probe is answered any more although the load continues.
    fn check_answers(&self) -> Result<(), Stopped> {
        const TOO_MANY: u64 = 10;
        match &locked(&self.session.shared.probes).failing {
            Some((why, times)) if *times >= TOO_MANY => Err(Stopped::Failed(
                self.session.lost(&format!("failed {times} probes in a row"), why),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the start of the last MAD intervals.
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
    /// Returns the number of completed probes: the parts of a foreign probe count as one.
    fn done_count(&self) -> u64 {
        self.done.iter().filter(|done| matches!(done.probe.kind, SELF | HTTP)).count() as u64
    }
}

/// Sends foreign and self probes alternately, at the allowed rate.
#[derive(Clone)]
struct Prober {
    target: Target,
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
            target: session.target.clone(),
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
                // The rate may increase meanwhile.
                sleep_until(due.min(now + SAMPLE_EVERY)).await;
                continue;
            }
            // Late probes are skipped; otherwise they would be sent in a burst.
            next = due.max(now - Duration::from_millis(20));
            while tasks.try_join_next().is_some() {}
            if tasks.len() as u64 >= self.under_way {
                continue;
            }
            let prober = self.clone();
            if foreign {
                tasks.spawn(async move { prober.foreign().await });
            } else if let Some(load) = self.choose(&mut rng) {
                tasks.spawn(async move { prober.self_probe(load).await });
            }
            foreign = !foreign;
        }
    }

    /// Chooses one of the connections that carry load, with equal probability.
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
        let outcome = requests::foreign(&self.target, &self.small).await;
        let part = |t_ns, kind, elapsed: Option<Duration>| Probe {
            t_ns,
            kind,
            seq,
            rtt_ns: elapsed.map(|elapsed| elapsed.as_nanos() as u64),
        };
        match outcome {
            Ok(times) => {
                let requested_ns = since(self.zero, times.requested);
                let connected_ns = t_ns + times.tcp.as_nanos() as u64;
                self.over(&[
                    part(t_ns, TCP, Some(times.tcp)),
                    part(connected_ns, TLS, Some(times.tls)),
                    part(requested_ns, HTTP, Some(times.http)),
                ]);
            }
            Err(failure) => {
                self.over(&[part(t_ns, TCP, None), part(t_ns, TLS, None), part(t_ns, HTTP, None)]);
                self.fail(&failure);
            }
        }
    }

    async fn self_probe(&self, load: Arc<Load>) {
        let (seq, t_ns) = self.launch();
        let begun = Instant::now();
        let outcome = requests::get(load.requests.clone(), &self.small, self.target.patience).await;
        let elapsed = begun.elapsed().as_nanos() as u64;
        self.over(&[Probe {
            t_ns,
            kind: SELF,
            seq,
            rtt_ns: outcome.as_ref().ok().map(|_| elapsed),
        }]);
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
