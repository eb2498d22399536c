//! A user-defined congestion control: the user's code decides the window, and the rest of TCP
//! is built in.
//!
//! The code (`OwnControlLaw`) sees numbers, and it may set cwnd, ssthresh and a pacing rate. It is
//! called when Linux calls a congestion control, and never about single segments. The sender
//! decides which segments are lost, which leave, and how cwnd falls in a recovery. So whatever the
//! code sets, a connection delivers its bytes once and in order.
//!
//! | when | function | variables it sets |
//! |---|---|---|
//! | an ACK of new data arrives, outside a recovery | `on_ack` | cwnd |
//! | a loss was detected: a recovery begins | `on_loss` | ssthresh, to which the sender reduces cwnd |
//! | an ECN echo arrives | `on_ecn`, else `on_loss` | the same |
//! | the retransmission timer expires | `on_timeout`, else `on_loss` | ssthresh; cwnd becomes 1 |
//! | an ACK was processed, also in a recovery | `on_delivery` | cwnd and the rate |
//!
//! A law without `on_loss` halves: ssthresh becomes half of cwnd, at least 2 (RFC 5681 §3.1, eq.
//! 4). A law with `on_delivery` sets cwnd by itself, as BBR does: no loss reduces it, and only a
//! timeout sets it, to the segments in flight. Its argument is a sample of `rate.rs`. Invalid
//! windows and failures of the code end the run with a panic whose payload is an
//! `OwnControlFailure`. The panic has no message, because the caller that started the run writes
//! the message.

use super::{Ack, Congestion, CongestionControl, Needs, Paced, RateSampled, Signal};
use crate::TcpParams;
use crate::own::{
    FAILED, OwnAck, OwnCongestion, OwnControl, OwnControlFailure, OwnControlLaw, OwnDelivery,
    OwnWindow,
};
use crate::rate::{RateSample, Repair, Totals};
use std::panic::resume_unwind;
use units::{Rng, Span};

/// The largest window that a law may set, segments.
const MOST_SEGMENTS: f64 = (1u32 << 31) as f64;
/// The largest pacing rate, bit/s.
const MOST_RATE: i64 = 1 << 53;

/// The state of such a control.
pub struct Own {
    name: [String; 2],
    law: Box<dyn OwnControlLaw>,
    window: OwnWindow,
    paces: bool,
    samples: bool,
    mss: i64,
}

impl Own {
    /// The control at the initial window.
    ///
    /// # Panics
    ///
    /// Panics if the code has not been compiled: the runner of a scenario compiles it first.
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
            samples: program.samples(),
            mss: params.mss.into(),
        }
    }

    /// Ends the run if the code failed or set an invalid window.
    #[inline]
    fn check(&self, function: &'static str, at_ns: u64, answer: Option<i64>) {
        let OwnWindow { cwnd, ssthresh, pacing_rate } = self.window;
        let free = self.samples || matches!(function, "on_ack" | "on_delivery");
        let wrong = if answer == Some(FAILED) {
            None
        } else if !(1.0..=MOST_SEGMENTS).contains(&cwnd) {
            Some(("cwnd", cwnd))
        } else if !(ssthresh >= 1.0 && (free || ssthresh <= MOST_SEGMENTS)) {
            Some(("ssthresh", ssthresh))
        } else if !(0..=MOST_RATE).contains(&pacing_rate) {
            Some(("pacing_rate", pacing_rate as f64))
        } else {
            return;
        };
        self.fail(function, at_ns, wrong)
    }

    #[cold]
    fn fail(&self, function: &'static str, at_ns: u64, set: Option<(&'static str, f64)>) -> ! {
        let (law, failed) = (self.name.clone(), self.law.failure());
        resume_unwind(Box::new(OwnControlFailure { law, function, at_ns, set, failed }))
    }
}

/// A number for the code, which uses signed integers.
#[inline]
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[inline]
fn ns(span: Option<Span>) -> i64 {
    span.map_or(0, |span| number(span.0))
}

impl CongestionControl for Own {
    /// A control that takes samples is paced, because Linux's samples assume pacing.
    fn needs(&self) -> Needs {
        let (rate_samples, sets_cwnd) = (self.samples, self.samples);
        Needs { rate_samples, sets_cwnd, paced: self.paces || self.samples, ..Needs::ACKS }
    }

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
        let (function, answer) = match event.signal {
            Signal::Loss => ("on_loss", None),
            Signal::Ecn => ("on_ecn", law.on_ecn(window, &shown)),
            Signal::Timeout => ("on_timeout", law.on_timeout(window, &shown)),
        };
        let (function, answer) = match answer {
            Some(answer) => (function, Some(answer)),
            None => ("on_loss", law.on_loss(window, &shown)),
        };
        if answer.is_none() && !self.samples {
            window.ssthresh = (window.cwnd / 2.0).floor().max(2.0);
        }
        self.check(function, event.now.0, answer);
        if event.signal == Signal::Timeout {
            self.window.cwnd = 1.0;
        }
    }

    /// If the control sets cwnd by itself, only its own code reverts its reductions.
    fn undo(&mut self, prior_cwnd: f64, _: Totals) {
        if !self.samples {
            self.window.cwnd = self.window.cwnd.max(prior_cwnd);
        }
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

impl RateSampled for Own {
    fn set_rng(&mut self, mut rng: Rng) {
        self.law.seed(rng.next_u64());
    }

    fn on_rate_sample(&mut self, rs: &RateSample) {
        let sample = rs.sample.filter(|_| rs.interval().is_some());
        let interval_us = i64::from(rs.interval().unwrap_or(0));
        let delivered = sample.map_or(0, |sample| i64::from(sample.delivered));
        let bits = delivered * self.mss * 8;
        let shown = OwnDelivery {
            now: number(rs.now.0),
            delivered,
            interval: interval_us * 1000,
            rate: (bits * 1_000_000).checked_div(interval_us).unwrap_or(0),
            prior_delivered: sample.map_or(0, |sample| sample.prior_delivered.into()),
            total_delivered: rs.totals.delivered.into(),
            app_limited: sample.is_some_and(|sample| sample.app_limited).into(),
            acked: rs.acked.into(),
            losses: rs.losses.into(),
            prior_inflight: rs.prior_in_flight.into(),
            inflight: rs.in_flight.into(),
            rtt: i64::from(rs.rtt_us.unwrap_or(0)) * 1000,
            repair: match rs.repair {
                Repair::None => 0,
                Repair::Recovery => 1,
                Repair::Loss => 2,
            },
            cwnd_limited: rs.cwnd_limited.into(),
            mss: self.mss,
        };
        let answer = self.law.on_delivery(&mut self.window, &shown);
        self.check("on_delivery", rs.now.0, answer);
    }
}

impl Paced for Own {
    fn rate(&self) -> Option<u64> {
        let rate = self.window.pacing_rate as u64;
        (rate > 0).then_some(rate.div_ceil(8))
    }
}
