//! What a measurement says beside its tables, as far as all kinds of measurement say it alike.
//!
//! `sojourn.facts` in Python has the same shapes under the same names; tests hold what is written
//! here against them.

use serde::Serialize;

/// The version of the shape.
pub const FORMAT: u32 = 1;

/// Why what was handed over before a measurement's end is not whole.
pub const UNFINISHED: &str = "the measurement had not ended when this was written: sojourn was killed, or is measuring still";

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All of it was measured.
    Complete,
    /// Somebody ended it.
    Interrupted,
    /// Something went wrong on the way.
    Partial,
}

/// A phase that began. Times are those of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Phase {
    pub name: String,
    /// idle, download, upload, both
    pub kind: &'static str,
    pub start_ns: u64,
    pub end_ns: u64,
    /// False: the measurement ended in it.
    pub complete: bool,
}

/// A flow of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: FlowKind,
    /// Seen from who measures.
    pub direction: FlowDirection,
    /// The number of the phase that it loads; `None`: a probe, or a phase that never began.
    pub phase: Option<usize>,
    /// One for each phase and direction, and for each probe.
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

/// What a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    /// A connection that carries load.
    Bulk,
    /// A probe.
    Ping,
}

/// Which way a flow's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowDirection {
    /// There and back: a probe.
    #[serde(rename = "")]
    Both,
    /// To who measures.
    Down,
    /// From who measures.
    Up,
}

/// A direction of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Link {
    pub name: String,
    pub interface: String,
    pub direction: LinkDirection,
    /// The kinds from the root down, as "htb, bfifo"; empty for what is received.
    pub qdisc: String,
}

/// Which way an interface's packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum LinkDirection {
    Out,
    In,
}
