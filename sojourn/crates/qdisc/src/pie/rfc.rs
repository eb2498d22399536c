//! PIE of its two RFCs, in real numbers: RFC 8033, and RFC 8034 for cable modems. Sources and
//! deviations: `pie`.

use super::{Decision, Dice, ONE};
use crate::Backlog;
use serde::Deserialize;
use units::{Rate, Span, Time};

/// `pie variant=rfc limit PACKETS target TIME tupdate TIME alpha N beta N [ecn]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RfcPieParams {
    /// The limit, packets (1000).
    pub limit: u64,
    /// QDELAY_REF, ns (15 000 000).
    pub target_ns: u64,
    /// T_UPDATE, ns (15 000 000).
    pub tupdate_ns: u64,
    /// alpha, sixteenths of 1/s (2).
    pub alpha: f64,
    /// beta, sixteenths of 1/s (20).
    pub beta: f64,
    /// Mark ECN-capable packets instead of dropping them while p is below 10 %.
    pub ecn: bool,
}

/// `pie variant=docsis limit PACKETS target TIME tupdate TIME alpha N beta N`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocsisPieParams {
    /// The buffer, packets (1000).
    pub limit: u64,
    /// LATENCY_TARGET, ns (10 000 000).
    pub target_ns: u64,
    /// INTERVAL, ns (16 000 000).
    pub tupdate_ns: u64,
    /// A, sixteenths of 1/s (4).
    pub alpha: f64,
    /// B, sixteenths of 1/s (40).
    pub beta: f64,
}

/// The part of both RFCs that computes p. Times are in seconds, weights in 1/s.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Controller {
    alpha: f64,
    beta: f64,
    target: f64,
}

impl Controller {
    fn new(alpha: f64, beta: f64, target_ns: u64) -> Controller {
        Controller { alpha: alpha / 16.0, beta: beta / 16.0, target: Span(target_ns).as_secs_f64() }
    }

    /// The step of p before it is scaled.
    fn step(&self, delay: f64, old: f64) -> f64 {
        self.alpha * (delay - self.target) + self.beta * (delay - old)
    }
}

/// RFC 8033 §5.2: the smaller p is, the smaller its steps.
fn scale(p: f64) -> f64 {
    const LADDER: [(f64, f64); 6] = [
        (0.000_001, 2048.0),
        (0.000_01, 512.0),
        (0.000_1, 128.0),
        (0.001, 32.0),
        (0.01, 8.0),
        (0.1, 2.0),
    ];
    LADDER.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

/// RFC 8034 continues above 10 %.
fn docsis_scale(p: f64) -> f64 {
    match p {
        10.0.. => 32.0,
        1.0.. => 8.0,
        0.1.. => 2.0,
        _ => scale(p),
    }
}

/// p in units of 2^-56, for a draw.
fn thrown(p: f64) -> u64 {
    (p * ONE as f64) as u64
}

/// PIE of RFC 8033, Appendix A.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RfcPie {
    controller: Controller,
    update: Span,
    ecn: bool,
    enough_bytes: u64,
    pub(super) p: f64,
    pub(super) delay: f64,
    pub(super) delay_old: f64,
    pub(super) burst: Span,
}

pub(super) const MAX_BURST: Span = Span::from_millis(150);
/// mark_ecnth.
const ECN_THRESHOLD: f64 = 0.1;

impl RfcPie {
    pub(super) fn new(p: &RfcPieParams, mtu: u32) -> RfcPie {
        RfcPie {
            controller: Controller::new(p.alpha, p.beta, p.target_ns),
            update: Span(p.tupdate_ns),
            ecn: p.ecn,
            enough_bytes: 2 * u64::from(mtu),
            p: 0.0,
            delay: 0.0,
            delay_old: 0.0,
            burst: Span::ZERO,
        }
    }

    pub(super) fn probability(&self) -> f64 {
        self.p
    }

    /// Makes `times` updates at once, between which no packet arrives or leaves.
    pub(super) fn update(&mut self, times: u64) {
        for done in 1..=times {
            let before = (self.p, self.delay_old);
            self.calculate_drop_prob();
            if before == (self.p, self.delay_old) {
                // Only the burst allowance still changes: each update subtracts from it.
                let left = Span(self.update.0.saturating_mul(times - done));
                self.burst = Span(self.burst.0.saturating_sub(left.0));
                return;
            }
        }
    }

    fn calculate_drop_prob(&mut self) {
        self.p += self.controller.step(self.delay, self.delay_old) * scale(self.p);
        if self.delay == 0.0 && self.delay_old == 0.0 {
            self.p *= 0.98;
        }
        self.p = self.p.clamp(0.0, 1.0);
        self.delay_old = self.delay;
        self.burst = Span(self.burst.0.saturating_sub(self.update.0));
    }

    #[inline]
    pub(super) fn decide(&mut self, backlog: Backlog, dice: &mut Dice) -> Decision {
        let half = self.controller.target / 2.0;
        if self.p == 0.0 && self.delay < half && self.delay_old < half {
            self.burst = MAX_BURST;
        }
        let safe = self.burst > Span::ZERO
            || (self.delay_old < half && self.p < 0.2)
            || backlog.bytes <= self.enough_bytes;
        if safe {
            dice.certain(false);
            return Decision::Pass;
        }
        match dice.throw(thrown(self.p)) {
            false => Decision::Pass,
            true if self.ecn && self.p < ECN_THRESHOLD => Decision::Signal,
            true => Decision::Drop,
        }
    }

    #[inline]
    pub(super) fn left(&mut self, enqueued: Time, backlog: Backlog, now: Time) {
        self.delay = if backlog.bytes == 0 { 0.0 } else { now.since(enqueued).as_secs_f64() };
    }
}

/// The states of DOCSIS-PIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// DOCSIS-PIE is off until the buffer is a third full.
    Inactive,
    /// The first drop changes this state to active.
    Quiescent,
    Active,
}

/// DOCSIS-PIE of RFC 8034, Appendix A.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DocsisPie {
    controller: Controller,
    interval: Span,
    /// A third of the buffer, packets.
    third: f64,
    /// The link's rate, bytes a second; 0: unknown. An outage does not change it.
    rate: f64,
    pub(super) p: f64,
    pub(super) accu_prob: f64,
    pub(super) delay_old: f64,
    pub(super) burst: Span,
    pub(super) status: Status,
    /// The time for which the state has been quiet.
    quiet: Span,
}

pub(super) const DOCSIS_MAX_BURST: Span = Span::from_millis(142);
const BURST_RESET_TIMEOUT: Span = Span::from_secs(1);
const MEAN_PACKET: f64 = 1024.0;
const MIN_PACKET: f64 = 64.0;
const PROB_LOW: f64 = 0.85;
const PROB_HIGH: f64 = 8.5;
const LATENCY_LOW: f64 = 0.005;
const LATENCY_HIGH: f64 = 0.2;

impl DocsisPie {
    pub(crate) fn new(p: &DocsisPieParams, rate: Option<Rate>) -> DocsisPie {
        let mut pie = DocsisPie {
            controller: Controller::new(p.alpha, p.beta, p.target_ns),
            interval: Span(p.tupdate_ns),
            third: p.limit as f64 / 3.0,
            rate: 0.0,
            p: 0.0,
            accu_prob: 0.0,
            delay_old: 0.0,
            burst: Span::ZERO,
            status: Status::Inactive,
            quiet: Span::ZERO,
        };
        if let Some(rate) = rate {
            pie.rate_changed(rate);
        }
        pie
    }

    pub(crate) fn probability(&self) -> f64 {
        self.p
    }

    pub(super) fn rate_changed(&mut self, rate: Rate) {
        if rate.0 > 0 {
            self.rate = rate.0 as f64 / 8.0;
        }
    }

    pub(super) fn update(&mut self, backlog: Backlog, times: u64) {
        let delay = if self.rate > 0.0 { backlog.bytes as f64 / self.rate } else { 0.0 };
        self.updates(delay, times);
    }

    /// Makes `times` updates at once, all with the same delay.
    pub(crate) fn updates(&mut self, delay: f64, mut times: u64) {
        while times > 0 {
            let before = self.clone();
            self.calculate_drop_prob(delay);
            times -= 1;
            if *self == before {
                return;
            }
            let settled = (self.p, self.delay_old, self.status)
                == (before.p, before.delay_old, before.status);
            if settled {
                times -= self.run_clocks(times);
            }
        }
    }

    /// Makes those of the next `times` updates that change only the burst allowance or the quiet
    /// time. Returns their number. The update that ends either is left to the caller.
    fn run_clocks(&mut self, times: u64) -> u64 {
        let interval = self.interval.0.max(1);
        let (burst, quiet) = (self.burst, self.quiet);
        if burst > Span::ZERO {
            // During the allowance p is 0, and the state is not quiet.
            let fits = ((burst.0 - 1) / interval).min(times);
            self.burst = Span(burst.0 - fits * interval);
            return fits;
        }
        if self.status == Status::Quiescent && quiet > Span::ZERO && quiet <= BURST_RESET_TIMEOUT {
            let fits = ((BURST_RESET_TIMEOUT.0 - quiet.0) / interval).min(times);
            self.quiet = Span(quiet.0 + fits * interval);
            return fits;
        }
        0
    }

    pub(crate) fn calculate_drop_prob(&mut self, delay: f64) {
        let old = self.delay_old;
        if self.burst > Span::ZERO {
            self.p = 0.0;
            self.burst = Span(self.burst.0.saturating_sub(self.interval.0));
        } else {
            let step = self.controller.step(delay, old) * docsis_scale(self.p);
            self.p += if self.p >= 0.1 { step.min(0.02) } else { step };
            if delay < LATENCY_LOW && old < LATENCY_LOW {
                self.p *= 0.98;
            } else if delay > LATENCY_HIGH {
                self.p += 0.02;
            }
            self.p = self.p.clamp(0.0, PROB_LOW * MEAN_PACKET / MIN_PACKET);
        }
        let half = self.controller.target / 2.0;
        let is_quiet = delay < half && old < half && self.p == 0.0 && self.burst == Span::ZERO;
        match self.status {
            Status::Active if is_quiet => {
                (self.status, self.quiet) = (Status::Quiescent, Span::ZERO);
            }
            Status::Quiescent if is_quiet => {
                self.quiet += self.interval;
                if self.quiet > BURST_RESET_TIMEOUT {
                    (self.status, self.quiet) = (Status::Inactive, Span::ZERO);
                }
            }
            Status::Quiescent => self.quiet = Span::ZERO,
            _ => {}
        }
        self.delay_old = delay;
    }

    #[inline]
    pub(crate) fn decide(&mut self, backlog: Backlog, size: u32, dice: &mut Dice) -> Decision {
        if !self.is_early(backlog, size, dice) {
            return Decision::Pass;
        }
        if self.status == Status::Quiescent {
            (self.status, self.burst) = (Status::Active, DOCSIS_MAX_BURST);
        }
        Decision::Drop
    }

    #[inline]
    fn is_early(&mut self, backlog: Backlog, size: u32, dice: &mut Dice) -> bool {
        if self.burst > Span::ZERO {
            return dice.certain(false);
        }
        if self.p == 0.0 {
            self.accu_prob = 0.0;
        }
        if self.status == Status::Inactive {
            if f64::from(backlog.packets) < self.third {
                return dice.certain(false);
            }
            self.status = Status::Quiescent;
        }
        let p = (self.p * f64::from(size) / MEAN_PACKET).min(PROB_LOW);
        self.accu_prob += p;
        let safe = (self.delay_old < self.controller.target / 2.0 && self.p < 0.2)
            || backlog.bytes as f64 <= 2.0 * MEAN_PACKET;
        if safe || self.accu_prob < PROB_LOW {
            return dice.certain(false);
        }
        if self.accu_prob >= PROB_HIGH {
            return dice.certain(true);
        }
        dice.throw(thrown(p))
    }

    #[inline]
    pub(crate) fn dropped(&mut self) {
        self.accu_prob = 0.0;
    }
}
