//! Linux's PIE: integers, a timer that counts jiffies, and a p without an upper bound. Sources and
//! deviations: `pie`.

use super::{Decision, Dice, ONE};
use crate::Backlog;
use crate::timer::{JIFFY, Timer, expiry};
use serde::Deserialize;
use units::{Span, Time};

/// `pie limit PACKETS target TIME tupdate TIME alpha N beta N [ecn] [bytemode] [dq_rate_estimator]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxPieParams {
    /// The limit, packets (1000).
    pub limit: u64,
    /// The queueing delay that p is controlled for, ns (15 000 000).
    pub target_ns: u64,
    /// The time between two updates of p, ns (15 000 000).
    pub tupdate_ns: u64,
    /// Weight of the delay's distance from the target, sixteenths of 1/s (2).
    pub alpha: u32,
    /// Weight of the delay's growth, sixteenths of 1/s (20).
    pub beta: u32,
    /// Mark ECN-capable packets instead of dropping them while p is at most 10 %.
    pub ecn: bool,
    /// Scale p with the packet's size.
    pub bytemode: bool,
    /// Estimate the delay as backlog / departure rate instead of by timestamps.
    pub dq_rate_estimator: bool,
}

/// The first update is HZ/2 after the creation of the discipline.
const FIRST_JIFFIES: u64 = 125;

/// A tick of the delay's clock is 2^6 ns.
const TICK_SHIFT: u32 = 6;
const TICKS_PER_SECOND: u64 = 1_000_000_000 >> TICK_SHIFT;
/// MAX_PROB: p = 1.
const MAX: u64 = ONE - 1;
/// The largest step of p from 10 % on, and also the increment at a long delay.
const TWO_PERCENT: i64 = (MAX / 100 * 2) as i64;
const LONG: u64 = ticks(250_000_000);
const BURST: u64 = ticks(150_000_000);
/// accu_prob: below LOW nothing is dropped, from HIGH on every packet.
const LOW: u64 = MAX / 100 * 85;
const HIGH: u64 = MAX / 2 * 17;
/// Bytes over which a rate is measured.
const CYCLE: u64 = 1 << 14;
/// Rates are in bytes a tick, times 2^8.
const RATE_SHIFT: u32 = 8;

const fn ticks(ns: u64) -> u64 {
    ns >> TICK_SHIFT
}

/// The timer of p's updates.
pub(super) fn timer(tupdate_ns: u64) -> Timer {
    timers(tupdate_ns, 1).next().expect("there is one part")
}

/// The timers of an update that is made in `parts`, one a jiffy. They have been running for long
/// when time begins.
pub(crate) fn timers(tupdate_ns: u64, parts: u64) -> impl Iterator<Item = Timer> {
    let first = expiry(0, FIRST_JIFFIES);
    let second = expiry(first + parts - 1, tupdate_ns.div_ceil(JIFFY));
    let period = second - first;
    (first..first + parts)
        .map(move |jiffy| Timer::new(Time(jiffy % period * JIFFY), Span(period * JIFFY)))
}

/// The variables. Delays and times in ticks, p and accu_prob in units of 2^-56.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vars {
    pub(super) prob: u64,
    pub(super) accu_prob: u64,
    pub(super) delay: u64,
    pub(super) delay_old: u64,
    pub(super) burst: u64,
    /// The time of the last departure, or, with the estimator, of the start of the cycle.
    since: Option<u64>,
    /// The estimator: bytes that have left in this cycle; `None`: there is no cycle.
    cycle: Option<u64>,
    /// The estimator: the average rate; 0: unknown.
    rate: u64,
}

impl Vars {
    fn reset_burst(&mut self) {
        (self.burst, self.accu_prob) = (BURST, 0);
        (self.since, self.cycle, self.rate) = (None, None, 0);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LinuxPie {
    target: u64,
    alpha: u64,
    beta: u64,
    ecn: bool,
    /// The largest p with which packets are marked.
    most_marked: u64,
    bytemode: bool,
    estimates: bool,
    mtu: u64,
    pub(super) vars: Vars,
}

impl LinuxPie {
    pub(crate) fn new(p: &LinuxPieParams, mtu: u32) -> LinuxPie {
        let per_tick = |sixteenths: u32| (u64::from(sixteenths) * (MAX / TICKS_PER_SECOND)) >> 4;
        let mut vars = Vars {
            prob: 0,
            accu_prob: 0,
            delay: 0,
            delay_old: 0,
            burst: 0,
            since: None,
            cycle: None,
            rate: 0,
        };
        vars.reset_burst();
        LinuxPie {
            target: ticks(p.target_ns),
            alpha: per_tick(p.alpha),
            beta: per_tick(p.beta),
            ecn: p.ecn,
            most_marked: MAX / 10,
            bytemode: p.bytemode,
            estimates: p.dq_rate_estimator,
            mtu: u64::from(mtu),
            vars,
        }
    }

    /// Sets the parameters; the variables stay as they are.
    pub(super) fn change(&mut self, p: &LinuxPieParams) {
        let mtu = u32::try_from(self.mtu).expect("a packet's size has 32 bits");
        *self = LinuxPie { vars: self.vars, ..LinuxPie::new(p, mtu) };
    }

    /// This law, with marks up to a p of `percent`.
    pub(crate) fn marking_up_to(self, percent: u32) -> LinuxPie {
        LinuxPie { most_marked: MAX / 100 * u64::from(percent), ..self }
    }

    /// Whether the law is in its initial state. Updates then change nothing until a packet arrives.
    pub(crate) fn is_at_rest(&self) -> bool {
        let mut fresh = self.vars;
        (fresh.prob, fresh.delay, fresh.delay_old) = (0, 0, 0);
        fresh.reset_burst();
        self.vars == fresh
    }

    pub(super) fn probability(&self) -> f64 {
        self.vars.prob as f64 / ONE as f64
    }

    pub(crate) fn dropped(&mut self) {
        self.vars.accu_prob = 0;
    }

    /// Makes `times` updates. They end in a state that no longer changes, or in which p grows by
    /// the same step each time, so the rest are made at once.
    pub(crate) fn update(&mut self, backlog: Backlog, mut times: u64) {
        while times > 0 {
            let before = self.vars;
            self.update_once(backlog);
            times -= 1;
            let Vars { prob, .. } = self.vars;
            if (Vars { prob, ..before }) != self.vars {
                continue;
            }
            if prob == before.prob {
                return;
            }
            if before.prob >= MAX / 10 && prob > before.prob {
                let step = prob - before.prob;
                let many = times.min((u64::MAX - prob) / step);
                self.vars.prob += many * step;
                times -= many;
            }
        }
    }

    fn update_once(&mut self, backlog: Backlog) {
        let vars = &mut self.vars;
        let old = if self.estimates {
            let old = vars.delay;
            vars.delay = (backlog.bytes << RATE_SHIFT).checked_div(vars.rate).unwrap_or(0);
            old
        } else {
            vars.delay_old
        };
        let delay = vars.delay;
        vars.delay_old = delay;

        let shift = shift_of(vars.prob);
        // The product wraps as Linux's does, for delays from minutes on.
        let distance = (self.alpha >> shift).wrapping_mul(delay.wrapping_sub(self.target));
        let growth = (self.beta >> shift).wrapping_mul(delay.wrapping_sub(old));
        let mut step = distance.wrapping_add(growth) as i64;
        if vars.prob >= MAX / 10 {
            step = step.min(TWO_PERCENT);
        }
        if delay > LONG {
            step = step.wrapping_add(TWO_PERCENT);
        }
        vars.prob = match vars.prob.checked_add_signed(step) {
            Some(prob) => prob,
            None if step > 0 => MAX,
            None => 0,
        };
        if delay == 0 && old == 0 && backlog.bytes == 0 {
            vars.prob -= vars.prob / 64;
        }
        let measured = !self.estimates || vars.rate > 0;
        if delay < self.target / 2 && old < self.target / 2 && vars.prob == 0 && measured {
            vars.reset_burst();
        }
    }

    #[inline]
    pub(crate) fn decide(&mut self, backlog: Backlog, size: u32, dice: &mut Dice) -> Decision {
        if !self.is_early(backlog, size, dice) {
            Decision::Pass
        } else if self.ecn && self.vars.prob <= self.most_marked {
            // A forced mark does not reset accu_prob, so the next decision is forced as well.
            Decision::Signal
        } else {
            Decision::Drop
        }
    }

    #[inline]
    fn is_early(&mut self, backlog: Backlog, size: u32, dice: &mut Dice) -> bool {
        let vars = &mut self.vars;
        if vars.burst > 0
            || (vars.delay < self.target / 2 && vars.prob < MAX / 5)
            || backlog.bytes < 2 * self.mtu
        {
            return dice.certain(false);
        }
        let size = u64::from(size);
        let p = if self.bytemode && size <= self.mtu {
            size * (vars.prob / self.mtu)
        } else {
            vars.prob
        };
        vars.accu_prob = if p == 0 { 0 } else { vars.accu_prob.wrapping_add(p) };
        if vars.accu_prob < LOW {
            return dice.certain(false);
        }
        if vars.accu_prob >= HIGH {
            return dice.certain(true);
        }
        let hit = dice.throw(p);
        if hit {
            vars.accu_prob = 0;
        }
        hit
    }

    #[inline]
    pub(crate) fn left(&mut self, enqueued: Time, size: u32, backlog: Backlog, now: Time) {
        let now = ticks(now.0);
        let elapsed = if self.estimates {
            self.measure(size, backlog, now)
        } else {
            let vars = &mut self.vars;
            vars.delay = if backlog.bytes == 0 { 0 } else { now - ticks(enqueued.0) };
            now - vars.since.replace(now).unwrap_or(now)
        };
        self.vars.burst = self.vars.burst.saturating_sub(elapsed);
    }

    /// Measures the departure rate. Returns the length of a cycle that has ended, otherwise 0.
    fn measure(&mut self, size: u32, backlog: Backlog, now: u64) -> u64 {
        let vars = &mut self.vars;
        if vars.cycle.is_none() && backlog.bytes >= CYCLE {
            (vars.since, vars.cycle) = (Some(now), Some(0));
        }
        let Some(bytes) = vars.cycle.as_mut() else {
            return 0;
        };
        *bytes += u64::from(size);
        let elapsed = now - vars.since.unwrap_or(now);
        if *bytes < CYCLE || elapsed == 0 {
            return 0;
        }
        let rate = (*bytes << RATE_SHIFT) / elapsed;
        vars.rate = if vars.rate == 0 { rate } else { vars.rate - (vars.rate >> 3) + (rate >> 3) };
        if backlog.bytes < CYCLE {
            vars.cycle = None;
        } else {
            (vars.since, vars.cycle) = (Some(now), Some(0));
        }
        elapsed
    }
}

/// The shift of alpha and beta: a half below 10 %, and a quarter of that below each of 1 %, 0.1 %
/// ... 0.0001 %.
fn shift_of(prob: u64) -> u32 {
    if prob >= MAX / 10 {
        return 0;
    }
    let (mut shift, mut power) = (1, 100);
    while power <= 1_000_000 && prob < MAX / power {
        shift += 2;
        power *= 10;
    }
    shift
}
