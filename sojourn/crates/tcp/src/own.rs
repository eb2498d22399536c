//! The interface of a user-defined congestion control: what its code sees, what the code may
//! set, and how it fails. `cc/own.rs` calls the code.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The return value of code that failed.
pub const FAILED: i64 = i64::MIN;

/// A user-defined control: `FILE.py:CLASS WORD NUMBER ...`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OwnControl {
    /// The file that contains the code, as the scenario names it.
    pub file: String,
    /// The class in that file.
    pub class: String,
    /// The parameters that the scenario sets, as a sequence of `WORD NUMBER`.
    pub words: Option<String>,
    /// The file's text.
    pub source: Option<String>,
    /// The compiled code. The runner of the scenario fills it in.
    #[serde(skip)]
    pub code: OwnControlCode,
}

impl OwnControl {
    /// The text by which a scenario names it.
    pub fn text(&self) -> String {
        let name = format!("{}:{}", self.file, self.class);
        self.words.as_ref().map_or(name.clone(), |words| format!("{name} {words}"))
    }
}

/// Compiled code; `None` before compilation.
#[derive(Clone, Default)]
pub struct OwnControlCode(pub Option<Arc<dyn OwnControlProgram>>);

impl fmt::Debug for OwnControlCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "compiled" } else { "not compiled" })
    }
}

/// Two values are always equal: compiled code follows from the source, and `OwnControl` compares
/// the source.
impl PartialEq for OwnControlCode {
    fn eq(&self, _other: &OwnControlCode) -> bool {
        true
    }
}

/// Code that any number of connections may run, each with its own state.
pub trait OwnControlProgram: Send + Sync {
    /// Connections are paced once the code has set a rate.
    fn paces(&self) -> bool;

    /// The code takes samples of the delivery rate and sets cwnd by itself, even in a recovery.
    fn samples(&self) -> bool;

    /// Returns a law in its initial state.
    fn begin(&self) -> Box<dyn OwnControlLaw>;
}

/// The variables that a law may set.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct OwnWindow {
    /// Segments.
    pub cwnd: f64,
    /// Segments; infinite means no ssthresh.
    pub ssthresh: f64,
    /// Bits of payload a second; 0 keeps the connection's default pacing.
    pub pacing_rate: i64,
}

/// An ACK, as the code sees it. Times are in ns; 0 means no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnAck {
    /// Now.
    pub now: i64,
    /// Segments that the ACK newly acknowledged or SACKed.
    pub acked: i64,
    /// The ACK's RTT sample.
    pub rtt: i64,
    /// Smoothed RTT.
    pub srtt: i64,
    /// The first unacknowledged segment, after this ACK.
    pub una: i64,
    /// The next segment to be sent for the first time.
    pub nxt: i64,
    /// 1: cwnd is the limit.
    pub cwnd_limited: i64,
    /// 1: there is no recovery, and nothing is SACKed beyond a gap.
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

/// A sample of the delivery rate, as the code sees it. Times are in ns; 0 means no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnDelivery {
    /// Now.
    pub now: i64,
    /// Segments delivered in the sample's interval.
    pub delivered: i64,
    /// The length of the interval.
    pub interval: i64,
    /// Bits of payload a second: `delivered` over `interval`.
    pub rate: i64,
    /// All segments delivered before the measured segment left.
    pub prior_delivered: i64,
    /// All segments delivered, this ACK's included.
    pub total_delivered: i64,
    /// 1: the sender was short of data during the sample.
    pub app_limited: i64,
    /// Segments that the ACK delivers.
    pub acked: i64,
    /// Segments that the ACK shows to be lost.
    pub losses: i64,
    /// Segments in flight before the ACK.
    pub prior_inflight: i64,
    /// Segments in flight after the ACK.
    pub inflight: i64,
    /// The ACK's RTT sample.
    pub rtt: i64,
    /// 0: no repair is under way; 1: fast recovery; 2: after a timeout.
    pub repair: i64,
    /// 1: cwnd is the limit.
    pub cwnd_limited: i64,
    /// Payload bytes of a segment.
    pub mss: i64,
}

/// The code with its state. Each function sets the window. It returns `None` if the code lacks that
/// function, `FAILED` if the code failed, and any other value on success.
pub trait OwnControlLaw: Send {
    /// See docs/own.md.
    fn on_ack(&mut self, window: &mut OwnWindow, ack: &OwnAck) -> Option<i64>;
    /// See docs/own.md.
    fn on_loss(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64>;
    /// See docs/own.md.
    fn on_ecn(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64>;
    /// See docs/own.md.
    fn on_timeout(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64>;
    /// See docs/own.md.
    fn on_delivery(&mut self, window: &mut OwnWindow, delivery: &OwnDelivery) -> Option<i64>;
    /// Seeds the law's random stream.
    fn seed(&mut self, key: u64);
    /// The reason of a failure and the line in the source, as numbers that the compiler of the code
    /// defines.
    fn failure(&self) -> [i64; 2];
}

/// The failure that ends a run. It is the payload of a panic.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnControlFailure {
    /// The law's file and class.
    pub law: [String; 2],
    /// The function that was called.
    pub function: &'static str,
    /// The simulated time of the call, ns.
    pub at_ns: u64,
    /// The invalid variable and its value; `None` if the code itself failed.
    pub set: Option<(&'static str, f64)>,
    /// See `OwnControlLaw::failure`.
    pub failed: [i64; 2],
}
