//! The facts of a session that are not in its tables: `sojourn.facts.SessionFacts` with the same
//! names.

use std::collections::BTreeMap;

use probe::sys::Priority;
use serde::Serialize;
use tables::facts::{Flow, Link, Outcome, Phase};

use crate::caps::Caps;
use crate::protocol::Direction;

/// All facts of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Facts {
    pub format: u32,
    pub outcome: Outcome,
    /// The reason, as a sentence; empty if complete.
    pub why: String,
    /// A sentence for everything that could not be measured or is not as expected.
    pub notes: Vec<String>,
    /// The time of day at t = 0, ns since 1970.
    pub zero_ns: i64,
    /// t at the end, ns.
    pub duration_ns: i64,
    pub phases: Vec<Phase>,
    pub flows: Vec<Flow>,
    pub links: Vec<Link>,
    pub probes: Vec<Probe>,
    pub goodput: Vec<Goodput>,
    pub clock: Clock,
    pub lateness_ns: Lateness,
    pub load: Load,
    pub server: Server,
    pub client: Client,
    /// `None`: not requested.
    pub marks: Option<Marks>,
}

/// The results of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Probe {
    pub name: String,
    pub how: &'static str,
    pub address: String,
    pub socket: &'static str,
    pub sent: usize,
    pub received: usize,
    pub lost: usize,
    /// Replies after the timeout.
    pub late: u64,
    pub duplicate: u64,
    /// Slots in which no request was sent.
    pub missed: u64,
    /// The reasons for lost requests, and their numbers.
    pub reasons: BTreeMap<&'static str, u64>,
    /// `None`: unknown.
    pub lost_forward: Option<usize>,
    pub lost_backward: Option<usize>,
    pub phases: Vec<ProbedPhase>,
}

/// Requests of a probe, by the phase of their send time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct ProbedPhase {
    pub phase: usize,
    pub sent: usize,
    pub lost: usize,
    pub lost_forward: Option<usize>,
    pub lost_backward: Option<usize>,
}

/// Bytes that the receivers got in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Goodput {
    pub phase: usize,
    pub direction: Direction,
    pub bytes: i64,
    pub bps: i64,
}

/// The server's clock minus ours at t = 0; `None`: unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Clock {
    pub offset_ns: Option<i64>,
    pub drift_ppm: Option<f64>,
    pub error_ns: Option<i64>,
    /// "udp" or "control"; empty: unknown.
    pub by: &'static str,
    pub samples: usize,
    /// How far our time of day was stepped or slewed during the session.
    pub stepped_ns: i64,
}

/// Delay of requests after their slots, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Lateness {
    pub sends: usize,
    pub p50: i64,
    pub p90: i64,
    pub p99: i64,
    pub max: i64,
    pub priority: &'static str,
}

/// Returns the word for a priority.
pub fn priority(of: Priority) -> &'static str {
    match of {
        Priority::Realtime => "realtime",
        Priority::Raised => "raised",
        Priority::Normal => "normal",
    }
}

/// The configuration of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Load {
    pub streams: u32,
    pub congestion: Congestion,
    /// DSCP codepoint of streams and probes.
    pub dscp: u8,
}

/// Congestion controls of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Congestion {
    /// `None`: each host's default.
    pub asked: Option<String>,
    pub client: String,
    pub server: String,
}

/// The server of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Server {
    pub host: String,
    pub address: String,
    pub port: u16,
    pub version: String,
    pub kernel: String,
    pub caps: Caps,
}

/// The measuring host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Client {
    pub address: Option<String>,
    pub interface: Option<String>,
    pub gateway: Option<String>,
    pub version: &'static str,
    pub kernel: String,
}

/// Changes of ECN and DSCP on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Marks {
    /// Whether the server answered any of these requests.
    pub answered: bool,
    /// DSCP codepoint of the requests in `loads`.
    pub dscp: u8,
    pub path: Vec<MarkedPath>,
    pub loads: Vec<MarkedLoad>,
    pub tcp: Vec<MarkedTcp>,
}

/// Changes of a DS field in one direction, before any load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct MarkedPath {
    pub direction: Direction,
    /// The field as sent.
    pub ds: u8,
    pub sent: usize,
    pub arrived: Vec<Arrived>,
}

/// Number of datagrams that arrived with this field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Arrived {
    pub ds: u8,
    pub count: usize,
}

/// ECN-capable datagrams in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct MarkedLoad {
    pub phase: usize,
    pub direction: Direction,
    pub ds: u8,
    pub sent: usize,
    pub arrived: Vec<Arrived>,
}

/// ECN feedback to the senders of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct MarkedTcp {
    pub phase: usize,
    pub direction: Direction,
    pub streams: usize,
    /// Streams that negotiated ECN.
    pub ecn: usize,
    /// Delivered segments of all streams, and those acknowledged with ECE.
    pub delivered: u64,
    pub marked: u64,
}

impl Marks {
    /// Summarises the marks in a sentence; sojourn's `live/measure/marks` has more.
    pub fn in_words(&self) -> String {
        if !self.answered {
            return "ECN and DSCP: the server answered none of the requests.".into();
        }
        let changed = self.path.iter().filter(|path| path.arrived.iter().any(|a| a.ds != path.ds));
        let changed: Vec<String> = changed
            .map(|path| {
                let arrived: Vec<String> =
                    path.arrived.iter().map(|a| format!("{:#04x} ({})", a.ds, a.count)).collect();
                format!("{} {:#04x} as {}", path.direction.word(), path.ds, arrived.join(", "))
            })
            .collect();
        let lost = self.path.iter().filter(|path| path.arrived.is_empty()).count();
        let marked: usize = self
            .loads
            .iter()
            .flat_map(|load| &load.arrived)
            .filter(|arrived| arrived.ds & 3 == 3)
            .map(|arrived| arrived.count)
            .sum();
        let segments: u64 = self.tcp.iter().map(|tcp| tcp.marked).sum();
        let fields = match changed.as_slice() {
            [] => "no DS field changed".into(),
            some => format!("DS fields that changed: {}", some.join("; ")),
        };
        format!(
            "ECN and DSCP: {fields}; {lost} of {} never arrived; marked: {marked} probes, {segments} segments.",
            self.path.len()
        )
    }
}
