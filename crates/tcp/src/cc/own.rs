//! A congestion control of the user's own: code from outside decides the window, and everything
//! else of TCP stays here.
//!
//! The code (`OwnControlLaw`) sees numbers, and cwnd, ssthresh and a pacing rate, which it may set.
//! It is asked when Linux asks a congestion control, and never about a segment: which are lost, which
//! leave, and how cwnd comes down in a recovery is the sender's part. So whatever it sets, a
//! connection delivers its bytes once and in order.
//!
//! | when | question | what it sets |
//! |---|---|---|
//! | an ACK of new data comes, outside a recovery | `on_ack` | cwnd |
//! | a loss was found: a recovery begins | `on_loss` | ssthresh, to which the sender brings cwnd |
//! | an ECN echo comes | `on_ecn`, else `on_loss` | the same |
//! | the retransmission timer expires | `on_timeout`, else `on_loss` | ssthresh; cwnd becomes 1 |
//!
//! A law without `on_loss` halves: ssthresh becomes half of cwnd, at least 2 (RFC 5681 §3.1, eq. 4).
//! Windows that make no sense, and code that fails, end the run: a panic whose payload is an
//! `OwnControlFailure`. It is thrown without a message, for whoever started the run words it.

use super::{Ack, Congestion, CongestionControl, Signal};
use crate::TcpParams;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use units::{Luck, Span};

/// The code failed.
pub const FAILED: i64 = i64::MIN;
/// The largest window that a law may set, segments.
const MOST_SEGMENTS: f64 = (1u32 << 31) as f64;
/// The largest pacing rate, bit/s.
const MOST_RATE: i64 = 1 << 53;

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

/// State of such a control.
pub struct Own {
    name: [String; 2],
    law: Box<dyn OwnControlLaw>,
    window: OwnWindow,
    paces: bool,
    mss: i64,
}

impl Own {
    /// At the initial window.
    ///
    /// # Panics
    ///
    /// Where the code has not been compiled: whoever runs a scenario compiles it first.
    pub fn new(control: &OwnControl, params: &TcpParams) -> Own {
        let program = control.code.0.as_ref().expect("a congestion control's own code is compiled");
        let growth = &params.growth;
        Own {
            name: [control.file.clone(), control.class.clone()],
            law: program.begin(),
            window: OwnWindow {
                cwnd: f64::from(growth.initial_window),
                ssthresh: growth.initial_ssthresh.map_or(f64::INFINITY, f64::from),
                pacing_rate: 0,
            },
            paces: program.paces(),
            mss: params.mss.into(),
        }
    }

    /// Ends the run where the answer, or a window that it set, is wrong.
    #[inline]
    fn check(&self, asked: &'static str, at_ns: u64, answer: Option<i64>) {
        let OwnWindow { cwnd, ssthresh, pacing_rate } = self.window;
        let wrong = if answer == Some(FAILED) {
            None
        } else if !(1.0..=MOST_SEGMENTS).contains(&cwnd) {
            Some(("cwnd", cwnd))
        } else if !(ssthresh >= 1.0 && (asked == "on_ack" || ssthresh <= MOST_SEGMENTS)) {
            Some(("ssthresh", ssthresh))
        } else if !(0..=MOST_RATE).contains(&pacing_rate) {
            Some(("pacing_rate", pacing_rate as f64))
        } else {
            return;
        };
        self.fail(asked, at_ns, wrong)
    }

    #[cold]
    fn fail(&self, asked: &'static str, at_ns: u64, set: Option<(&'static str, f64)>) -> ! {
        let (law, failed) = (self.name.clone(), self.law.failure());
        resume_unwind(Box::new(OwnControlFailure { law, asked, at_ns, set, failed }))
    }
}

/// A number of the code's: it has a sign.
#[inline]
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[inline]
fn ns(span: Option<Span>) -> i64 {
    span.map_or(0, |span| number(span.0))
}

impl CongestionControl for Own {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let shown = OwnAck {
            now: number(ack.now.0),
            acked: ack.acked.into(),
            rtt: ns(ack.rtt),
            srtt: ns(ack.srtt.span()),
            una: ack.una.into(),
            nxt: ack.nxt.into(),
            cwnd_limited: ack.cwnd_limited.into(),
            open: ack.ca_open.into(),
            mss: self.mss,
        };
        let answer = self.law.on_ack(&mut self.window, &shown);
        self.check("on_ack", ack.now.0, answer);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let shown = OwnCongestion {
            now: number(event.now.0),
            inflight: event.inflight.into(),
            mss: self.mss,
        };
        let (law, window) = (&mut self.law, &mut self.window);
        let (asked, answer) = match event.signal {
            Signal::Loss => ("on_loss", None),
            Signal::Ecn => ("on_ecn", law.on_ecn(window, &shown)),
            Signal::Timeout => ("on_timeout", law.on_timeout(window, &shown)),
        };
        let (asked, answer) = match answer {
            Some(answer) => (asked, Some(answer)),
            None => ("on_loss", law.on_loss(window, &shown)),
        };
        if answer.is_none() {
            window.ssthresh = (window.cwnd / 2.0).floor().max(2.0);
        }
        self.check(asked, event.now.0, answer);
        if event.signal == Signal::Timeout {
            self.window.cwnd = 1.0;
        }
    }

    fn paces(&self) -> bool {
        self.paces
    }

    fn rate(&self) -> Option<u64> {
        let rate = self.window.pacing_rate as u64;
        (rate > 0).then_some(rate.div_ceil(8))
    }

    fn set_luck(&mut self, mut luck: Luck) {
        self.law.seed(luck.next_u64());
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    #[inline]
    fn set_cwnd(&mut self, cwnd: f64) {
        self.window.cwnd = cwnd;
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        self.window.ssthresh
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        self.window.ssthresh = ssthresh;
    }
}
