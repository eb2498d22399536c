//! What a session says beside its tables: `sojourn.facts.SessionFacts` under the same names.

use std::collections::BTreeMap;

use probe::sys::Priority;
use serde::Serialize;
use tables::facts::{Flow, Link, Outcome, Phase};

use crate::caps::Caps;
use crate::protocol::Direction;

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Facts {
    pub format: u32,
    pub outcome: Outcome,
    /// A sentence; empty if complete.
    pub why: String,
    /// On what could not be measured or is not as it should be, a sentence each.
    pub notes: Vec<String>,
    /// The time of day at t = 0, since 1970.
    pub zero_ns: i64,
    /// t at the end.
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
    /// `None`: it was not asked for.
    pub marks: Option<Marks>,
}

/// A probe.
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
    /// Replies to requests that had been given up.
    pub late: u64,
    pub duplicate: u64,
    /// Slots in which nothing was sent.
    pub missed: u64,
    /// Why requests were lost, and how many.
    pub reasons: BTreeMap<&'static str, u64>,
    /// `None`: not known.
    pub lost_forward: Option<usize>,
    pub lost_backward: Option<usize>,
    pub phases: Vec<ProbedPhase>,
}

/// Requests of a probe, by the phase in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct ProbedPhase {
    pub phase: usize,
    pub sent: usize,
    pub lost: usize,
    pub lost_forward: Option<usize>,
    pub lost_backward: Option<usize>,
}

/// What the receivers got in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Goodput {
    pub phase: usize,
    pub direction: Direction,
    pub bytes: i64,
    pub bps: i64,
}

/// The server's clock less ours at t = 0; `None`: not known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Clock {
    pub offset_ns: Option<i64>,
    pub drift_ppm: Option<f64>,
    pub error_ns: Option<i64>,
    /// udp, control; empty: not known.
    pub by: &'static str,
    pub samples: usize,
    /// How far our time of day was stepped or slewed meanwhile.
    pub stepped_ns: i64,
}

/// How long after their slots requests were sent.
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

/// A priority's word.
pub fn priority(of: Priority) -> &'static str {
    match of {
        Priority::Realtime => "realtime",
        Priority::Raised => "raised",
        Priority::Normal => "normal",
    }
}

/// How the load was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Load {
    pub streams: u32,
    pub congestion: Congestion,
    /// The codepoint of streams and probes.
    pub dscp: u8,
}

/// Congestion controls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Congestion {
    /// `None`: each host's own.
    pub asked: Option<String>,
    pub client: String,
    pub server: String,
}

/// Who answered.
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

/// Who measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Client {
    pub address: Option<String>,
    pub interface: Option<String>,
    pub gateway: Option<String>,
    pub version: &'static str,
    pub kernel: String,
}

/// What became of ECN and DSCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Marks {
    /// Whether the server answered any of these requests.
    pub answered: bool,
    /// Of the requests of `loads`.
    pub dscp: u8,
    pub path: Vec<MarkedPath>,
    pub loads: Vec<MarkedLoad>,
    pub tcp: Vec<MarkedTcp>,
}

/// What became of a DS field one way, before any load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct MarkedPath {
    pub direction: Direction,
    /// The field as it was sent.
    pub ds: u8,
    pub sent: usize,
    pub arrived: Vec<Arrived>,
}

/// Datagrams that came with this field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Arrived {
    pub ds: u8,
    pub count: usize,
}

/// What became of ECN-capable datagrams in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct MarkedLoad {
    pub phase: usize,
    pub direction: Direction,
    pub ds: u8,
    pub sent: usize,
    pub arrived: Vec<Arrived>,
}

/// What ECN told the senders of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct MarkedTcp {
    pub phase: usize,
    pub direction: Direction,
    pub streams: usize,
    /// Those that agreed on ECN.
    pub ecn: usize,
    /// Segments of all streams that were delivered, and those acknowledged with ECE.
    pub delivered: u64,
    pub marked: u64,
}

impl Marks {
    /// In a sentence; sojourn's `live/measure/marks` says more.
    pub fn in_words(&self) -> String {
        if !self.answered {
            return "ECN and DSCP: the server answered none of the requests that ask.".into();
        }
        let changed = self.path.iter().filter(|one| one.arrived.iter().any(|a| a.ds != one.ds));
        let changed: Vec<String> = changed
            .map(|one| {
                let came: Vec<String> =
                    one.arrived.iter().map(|a| format!("{:#04x} ({})", a.ds, a.count)).collect();
                format!("{} {:#04x} as {}", one.direction.word(), one.ds, came.join(", "))
            })
            .collect();
        let lost = self.path.iter().filter(|one| one.arrived.is_empty()).count();
        let marked: usize = self
            .loads
            .iter()
            .flat_map(|load| &load.arrived)
            .filter(|arrived| arrived.ds & 3 == 3)
            .map(|arrived| arrived.count)
            .sum();
        let segments: u64 = self.tcp.iter().map(|tcp| tcp.marked).sum();
        let fields = match changed.as_slice() {
            [] => "every DS field that arrived is as it was sent".into(),
            some => format!("DS fields that arrived otherwise: {}", some.join("; ")),
        };
        format!(
            "ECN and DSCP: {fields}; {lost} of {} never arrived; marked: {marked} probes, {segments} segments.",
            self.path.len()
        )
    }
}
