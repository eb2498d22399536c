//! RED of ns-2 and ns-3: gentle, with automatic thresholds and weight, optionally adaptive. Sources
//! and deviations: `red`.

use super::{Decision, RedVariant};
use crate::{Backlog, Cause};
use serde::Deserialize;
use units::{Rate, Rng, Span, Time};

/// `red variant=ns2|ns3 limit PACKETS min PACKETS max PACKETS weight W probability P ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloydRedParams {
    /// The limit in packets; in byte mode limit * mean_bytes bytes (ns-2: 50, ns-3: 25).
    pub limit: u64,
    /// The lower threshold in packets, in byte mode of mean_bytes each (ns-2: 0, ns-3: 5). For 0 it
    /// is max(5, target_delay * C / 2), with C mean packets a second. With `ns3` that is so only if
    /// `max` is 0, too.
    pub min: f64,
    /// The upper threshold, as `min`; 0: three times `min` (ns-2: 0, ns-3: 15).
    pub max: f64,
    /// The weight of a new sample in the average; 0: 1 - exp(-1/C) (ns-2: 0, ns-3: 0.002; adaptive:
    /// 0).
    pub weight: f64,
    /// max_p, the probability reached at `max` (ns-2: 0.1, ns-3: 0.02).
    pub probability: f64,
    /// The size of a mean packet, bytes (500).
    pub mean_bytes: u32,
    /// Count queue, thresholds and limit in bytes, and scale p with the packet's size (ns-2: true,
    /// ns-3: false).
    pub byte_mode: bool,
    /// Above `max` p grows linearly to 1 at 2 `max` instead of jumping to 1 (true).
    pub gentle: bool,
    /// Wait at least 1/p packets between early drops: gaps uniform in [1/p, 2/p] instead of [0,
    /// 1/p] (true).
    pub wait: bool,
    /// Adapt max_p to keep the average in the middle fifth between `min` and `max` (false).
    pub adaptive: bool,
    /// The queueing delay that the automatic thresholds are for, ns (5 000 000).
    pub target_delay_ns: u64,
    /// Mark ECN-capable packets instead of dropping them (false).
    pub ecn: bool,
}

/// The time between two changes of max_p (ns-2's interval_, 0.5 s), and the other constants of the
/// 2001 paper.
pub(super) const INTERVAL: Span = Span::from_millis(500);
pub(super) const ALPHA: f64 = 0.01;
pub(super) const BETA: f64 = 0.9;
pub(super) const TOP: f64 = 0.5;
/// ns-2 marks while p is at most this, and drops above (mark_p_ with use_mark_p_).
pub(super) const NS2_MARK_P: f64 = 0.1;
/// The weight if neither the user nor a rate determines one: the 1993 paper's.
pub(super) const CLASSIC_WEIGHT: f64 = 0.002;

/// RED of ns-2 and ns-3. Lengths are in bytes in byte mode, otherwise in packets.
#[derive(Clone, Debug)]
pub(super) struct FloydRed {
    pub(super) variant: RedVariant,
    pub(super) limit: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) weight: f64,
    pub(super) mean_bytes: f64,
    pub(super) byte_mode: bool,
    pub(super) gentle: bool,
    pub(super) wait: bool,
    pub(super) adaptive: bool,
    pub(super) ecn: bool,
    /// The initial max_p, which the gentle slope keeps.
    pub(super) first_max_p: f64,
    pub(super) least_max_p: f64,
    /// C: the packets of mean size that the link sends in a second; 0: unknown.
    pub(super) packets_per_second: f64,

    // The state, with the names of the 1993 paper.
    pub(super) average: f64,
    pub(super) max_p: f64,
    /// Packets and bytes since the last early drop, including the current packet.
    pub(super) count: u64,
    pub(super) count_bytes: u64,
    /// The average was at or above `min` at the last arrival.
    pub(super) above_min: bool,
    pub(super) idle_since: Option<Time>,
    pub(super) last_change: Time,
}

impl FloydRed {
    pub(super) fn new(variant: RedVariant, p: &FloydRedParams, rate: Option<Rate>) -> FloydRed {
        let mean_bytes = f64::from(p.mean_bytes.max(1));
        let rate = rate.map_or(0.0, |r| r.0 as f64);
        let packets_per_second = rate / (8.0 * mean_bytes);
        let automatic_min = (p.target_delay_ns as f64 * 1e-9 * packets_per_second / 2.0).max(5.0);
        // In ns-3 a min of 0 with a given max stays 0.
        let automatic = p.min == 0.0 && (variant == RedVariant::Ns2 || p.max == 0.0);
        let min = if automatic { automatic_min } else { p.min };
        let max = if p.max == 0.0 { 3.0 * min } else { p.max };
        let weight = if p.weight > 0.0 {
            p.weight
        } else if packets_per_second > 0.0 {
            1.0 - libm::exp(-1.0 / packets_per_second)
        } else {
            CLASSIC_WEIGHT
        };
        let per_rate = match variant {
            RedVariant::Ns2 => 80_000.0,
            RedVariant::Ns3 => 0.8 * mean_bytes,
        };
        let scale = if p.byte_mode { mean_bytes } else { 1.0 };
        FloydRed {
            variant,
            limit: p.limit as f64 * scale,
            min: min * scale,
            max: max * scale,
            weight,
            mean_bytes,
            byte_mode: p.byte_mode,
            gentle: p.gentle,
            wait: p.wait,
            adaptive: p.adaptive,
            ecn: p.ecn,
            first_max_p: p.probability,
            least_max_p: if rate > 0.0 { (per_rate / rate).min(0.01) } else { 0.01 },
            packets_per_second,
            average: 0.0,
            max_p: p.probability,
            count: 0,
            count_bytes: 0,
            above_min: false,
            idle_since: Some(Time::ZERO),
            last_change: Time::ZERO,
        }
    }

    #[inline]
    pub(super) fn decide(
        &mut self,
        backlog: Backlog,
        size: u32,
        now: Time,
        rng: &mut Rng,
    ) -> Decision {
        let queued = if self.byte_mode { backlog.bytes as f64 } else { f64::from(backlog.packets) };
        self.estimate(queued, now);
        self.count += 1;
        self.count_bytes += u64::from(size);

        if self.average < self.min || queued <= 1.0 {
            self.above_min = false;
            return Decision::Pass;
        }
        if self.variant == RedVariant::Ns3 && self.average >= self.certain_from() {
            return Decision::Drop(Cause::Forced);
        }
        if !self.above_min {
            // The average has just crossed min: the gap to the first early drop starts here.
            self.above_min = true;
            self.restart_count(1, size);
            return Decision::Pass;
        }
        self.early(size, rng)
    }

    #[inline]
    pub(super) fn has_room(&self, backlog: Backlog, size: u32) -> bool {
        match (self.byte_mode, self.variant) {
            (false, _) => f64::from(backlog.packets) < self.limit,
            (true, RedVariant::Ns2) => (backlog.bytes as f64) < self.limit,
            (true, RedVariant::Ns3) => backlog.bytes as f64 + f64::from(size) <= self.limit,
        }
    }

    /// Updates the average queue. After an idle period it is as if m packets had found the queue
    /// empty, where m is the number that the link could have sent.
    #[inline]
    pub(super) fn estimate(&mut self, queued: f64, now: Time) {
        let mut average = self.average;
        if let Some(since) = self.idle_since.take() {
            let missed = (self.packets_per_second * now.since(since).as_secs_f64()).floor();
            if missed > 0.0 {
                average *= libm::pow(1.0 - self.weight, missed);
            }
        }
        average += self.weight * (queued - average);
        self.average = average;
        if self.adaptive && now > self.last_change + INTERVAL {
            self.adapt(now);
        }
    }

    /// ARED: additive increase and multiplicative decrease of max_p keep the average in the middle
    /// fifth between min and max.
    pub(super) fn adapt(&mut self, now: Time) {
        let part = 0.4 * (self.max - self.min);
        if self.average < self.min + part && self.max_p > self.least_max_p {
            self.max_p *= BETA;
            self.last_change = now;
        } else if self.average > self.max - part && self.max_p < TOP {
            self.max_p += ALPHA.min(0.25 * self.max_p);
            self.last_change = now;
        }
    }

    /// The least average at which p is 1.
    #[inline]
    pub(super) fn certain_from(&self) -> f64 {
        if self.gentle { 2.0 * self.max } else { self.max }
    }

    pub(super) fn restart_count(&mut self, packets: u64, bytes: u32) {
        self.count = packets;
        self.count_bytes = u64::from(bytes);
    }

    /// The random decision on a packet that finds the average at or above `min`.
    #[inline]
    pub(super) fn early(&mut self, size: u32, rng: &mut Rng) -> Decision {
        let base = self.base_probability();
        if rng.unit() >= self.spread(base, size) {
            return Decision::Pass;
        }
        self.restart_count(0, 0);
        let cause = if base >= 1.0 { Cause::Forced } else { Cause::Early };
        let may_mark = self.ecn && (self.variant == RedVariant::Ns3 || base <= NS2_MARK_P);
        if may_mark { Decision::Signal(cause) } else { Decision::Drop(cause) }
    }

    /// p_b of the paper: 0 at min, max_p at max, and above it 1 or, gentle, linear to 1 at 2 max.
    #[inline]
    pub(super) fn base_probability(&self) -> f64 {
        let p = if self.average < self.max {
            // Equal thresholds would divide by zero; ns-2 and ns-3 use a width of 1.
            let width = if self.max > self.min { self.max - self.min } else { 1.0 };
            self.max_p * (self.average - self.min) / width
        } else if self.gentle {
            let first = self.first_max_p;
            (1.0 - first) * self.average / self.max + 2.0 * first - 1.0
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// p_a of the paper: spreads early drops evenly by the count since the last one; in byte mode
    /// large packets weigh more.
    #[inline]
    pub(super) fn spread(&self, base: f64, size: u32) -> f64 {
        // In byte mode whole mean packets are counted, as ns-2's integer division does.
        let count = if self.byte_mode {
            (self.count_bytes as f64 / self.mean_bytes).floor()
        } else {
            self.count as f64
        };
        let progress = count * base;
        let mut p = if self.wait {
            if progress < 1.0 {
                0.0
            } else if progress < 2.0 {
                base / (2.0 - progress)
            } else {
                1.0
            }
        } else if progress < 1.0 {
            base / (1.0 - progress)
        } else {
            1.0
        };
        if self.byte_mode && p < 1.0 {
            p *= f64::from(size) / self.mean_bytes;
        }
        p
    }
}
