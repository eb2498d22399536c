//! A congestion control of the user's own, as its engine and whoever compiled it see it: what the code
//! is shown, what it may set, and how it fails. `cc/own.rs` asks it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The code failed.
pub const FAILED: i64 = i64::MIN;

/// `FILE.py:CLASS WORD NUMBER ...`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OwnControl {
    /// The file that it was read from, as the scenario names it.
    pub file: String,
    /// The class in it.
    pub class: String,
    /// What the scenario sets, `WORD NUMBER` after each other.
    pub words: Option<String>,
    /// The file's text.
    pub source: Option<String>,
    /// The compiled code; whoever runs the scenario fills it in.
    #[serde(skip)]
    pub code: OwnControlCode,
}

impl OwnControl {
    /// As a scenario writes it.
    pub fn text(&self) -> String {
        let name = format!("{}:{}", self.file, self.class);
        self.words.as_ref().map_or(name.clone(), |words| format!("{name} {words}"))
    }
}

/// Compiled code, or none yet.
#[derive(Clone, Default)]
pub struct OwnControlCode(pub Option<Arc<dyn OwnControlProgram>>);

impl fmt::Debug for OwnControlCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "compiled" } else { "not compiled" })
    }
}

/// It follows from the source.
impl PartialEq for OwnControlCode {
    fn eq(&self, _other: &OwnControlCode) -> bool {
        true
    }
}

/// Code that any number of connections may run, each with a state of its own.
pub trait OwnControlProgram: Send + Sync {
    /// Its connections are paced, once it has set a rate.
    fn paces(&self) -> bool;

    /// It asks for samples of the delivery rate, and sets cwnd by itself, in a recovery too.
    fn samples(&self) -> bool;

    /// A law at its start.
    fn begin(&self) -> Box<dyn OwnControlLaw>;
}

/// What a law may set.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct OwnWindow {
    /// Segments.
    pub cwnd: f64,
    /// Segments; infinite: none.
    pub ssthresh: f64,
    /// Bits of payload a second; 0: as the connection is paced without.
    pub pacing_rate: i64,
}

/// An ACK, as the code sees it. Times are ns; 0 where there is no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnAck {
    /// Now.
    pub now: i64,
    /// Segments that it newly acknowledged or SACKed.
    pub acked: i64,
    /// The RTT that it measured.
    pub rtt: i64,
    /// Smoothed RTT.
    pub srtt: i64,
    /// The first segment not acknowledged, after this ACK.
    pub una: i64,
    /// The next segment to be sent for the first time.
    pub nxt: i64,
    /// 1: cwnd is the limit.
    pub cwnd_limited: i64,
    /// 1: no recovery, and nothing SACKed beyond a gap.
    pub open: i64,
    /// Payload bytes of a segment.
    pub mss: i64,
}

/// A congestion signal, as the code sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnCongestion {
    /// Now, ns.
    pub now: i64,
    /// Segments outstanding.
    pub inflight: i64,
    /// Payload bytes of a segment.
    pub mss: i64,
}

/// What an ACK says of the delivery rate, as the code sees it. Times are ns; 0 where there is no
/// sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnDelivery {
    /// Now.
    pub now: i64,
    /// Segments that were delivered in the sample's interval.
    pub delivered: i64,
    /// How long they took.
    pub interval: i64,
    /// Bits of payload a second: of these two.
    pub rate: i64,
    /// Segments delivered in all when the measured segment left.
    pub prior_delivered: i64,
    /// Segments delivered in all, by this ACK too.
    pub total_delivered: i64,
    /// 1: the sender was short of data in the sample.
    pub app_limited: i64,
    /// Segments that the ACK delivers.
    pub acked: i64,
    /// Segments that the ACK shows to be lost.
    pub losses: i64,
    /// Segments in flight before the ACK.
    pub prior_inflight: i64,
    /// Segments in flight after it.
    pub inflight: i64,
    /// The RTT that it measured.
    pub rtt: i64,
    /// 0: nothing is being repaired; 1: in a fast recovery; 2: after a timeout.
    pub repair: i64,
    /// 1: cwnd is the limit.
    pub cwnd_limited: i64,
    /// Payload bytes of a segment.
    pub mss: i64,
}

/// The code with a state. Each function sets the window, and gives `None` where the code has no such
/// function, `FAILED` where it failed, and anything else where all is well.
pub trait OwnControlLaw: Send {
    /// See the table.
    fn on_ack(&mut self, window: &mut OwnWindow, ack: &OwnAck) -> Option<i64>;
    /// See the table.
    fn on_loss(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64>;
    /// See the table.
    fn on_ecn(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64>;
    /// See the table.
    fn on_timeout(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64>;
    /// See the table.
    fn on_delivery(&mut self, window: &mut OwnWindow, delivery: &OwnDelivery) -> Option<i64>;
    /// Its random stream begins here.
    fn seed(&mut self, key: u64);
    /// Why it failed and in which line of its source, by numbers of whoever compiled it.
    fn failure(&self) -> [i64; 2];
}

/// What ends a run, thrown as the payload of a panic.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnControlFailure {
    /// The file of the law, and its class.
    pub law: [String; 2],
    /// What it was asked.
    pub asked: &'static str,
    /// When, ns.
    pub at_ns: u64,
    /// What it set that makes no sense, and to what; `None`: it failed.
    pub set: Option<(&'static str, f64)>,
    /// See `OwnControlLaw::failure`.
    pub failed: [i64; 2],
}
