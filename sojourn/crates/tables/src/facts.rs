//! The facts of a measurement that are not in its tables. Here are those that all kinds of
//! measurement have.
//!
//! `sojourn.facts` in Python has the same shapes with the same names; tests compare the output of
//! this module with them.

use serde::Serialize;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// Why a result that was written before the measurement's end is incomplete.
pub const UNFINISHED: &str = "the measurement had not ended when this was written: sojourn was killed, or is measuring still";

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All of it was measured.
    Complete,
    /// A user or a signal ended it.
    Interrupted,
    /// An error ended a part of it.
    Partial,
}

/// A phase that began. Times are on the clock of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Phase {
    pub name: String,
    /// idle, download, upload, both
    pub kind: &'static str,
    pub start_ns: u64,
    pub end_ns: u64,
    /// False: the measurement ended in this phase.
    pub complete: bool,
}

/// A flow of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: FlowKind,
    /// The direction as seen from the measuring host.
    pub direction: FlowDirection,
    /// The number of the phase in which it sends load; `None`: a probe, or a phase that never
    /// began.
    pub phase: Option<usize>,
    /// A number for each phase and direction, and for each probe.
    pub group: usize,
    /// `None`: a probe. Empty: not known.
    pub congestion: Option<String>,
}

impl Flow {
    /// A probe.
    pub fn probe(name: impl Into<String>, group: usize) -> Flow {
        Flow {
            name: name.into(),
            kind: FlowKind::Ping,
            direction: FlowDirection::Both,
            phase: None,
            group,
            congestion: None,
        }
    }
}

/// The kind of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    /// A connection that carries load.
    Bulk,
    /// A probe.
    Ping,
}

/// The direction of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowDirection {
    /// Both directions: a probe.
    #[serde(rename = "")]
    Both,
    /// To the measuring host.
    Down,
    /// From the measuring host.
    Up,
}

/// A direction of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Link {
    pub name: String,
    pub interface: String,
    pub direction: LinkDirection,
    /// The kinds from the root down, as "htb, bfifo"; empty for received packets.
    pub qdisc: String,
}

/// The direction of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum LinkDirection {
    Out,
    In,
}
