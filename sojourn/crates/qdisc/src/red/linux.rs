//! Linux's RED: in bytes and fixed point, with idle damping by table and a timer for the adaptive
//! mode. Sources and deviations: `red`.

use super::Decision;
use crate::{Backlog, Cause};
use serde::Deserialize;
use units::{Rng, Span, Time};

/// `red limit BYTES min BYTES max BYTES avpkt BYTES burst PACKETS probability P bandwidth RATE [adaptive] [ecn] [harddrop] [nodrop]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxRedParams {
    /// The physical limit, bytes.
    pub limit: u64,
    /// Below this average there is no early decision, bytes.
    pub min: u32,
    /// From this average on every packet is dropped or marked, bytes.
    pub max: u32,
    /// The size of an average packet, for the weight and the idle time, bytes.
    pub avpkt: u32,
    /// The number of packets that may arrive at once without drops; it determines the weight.
    pub burst: u32,
    /// The probability reached at `max`, a fraction (0.02).
    pub probability: f64,
    /// The rate that converts idle time to packets, bit/s (10 000 000).
    pub bandwidth: u64,
    /// Adapt `probability` to keep the average in the middle fifth between `min` and `max`.
    pub adaptive: bool,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// With `ecn`: drop above `max` instead of marking.
    pub harddrop: bool,
    /// With `ecn`: let packets that can't be marked pass, never drop early.
    pub nodrop: bool,
}

/// Linux's probabilities are in units of 2^-32.
pub(super) const TWO_32: f64 = 4_294_967_296.0;
/// One per cent in those units: the least max_p of the adaptive mode, and its largest increment.
pub(super) const ONE_PERCENT: u32 = 42_949_673;
/// Size of the table of idle damping.
pub(super) const STAB_SIZE: usize = 256;
/// Nanoseconds of a tick in tc's tables (psched).
pub(super) const TICK_NS: f64 = 64.0;
/// The period of the adaptive timer: HZ/2, which with Debian's HZ of 250 is 125 ticks of 4 ms. A
/// timer more than 63 ticks ahead is in a coarser wheel of 8 ticks and is rounded up, to 128. (HZ =
/// 1000: 504 ms.)
pub(super) const LINUX_ADAPT: Span = Span::from_millis(512);

/// The time for which the timer is set, in jiffies: HZ/2.
pub(super) const ADAPT_JIFFIES: u64 = 125;

/// Linux's RED. Lengths are in bytes, with `wlog` fractional bits if scaled.
#[derive(Clone, Debug)]
pub(crate) struct LinuxRed {
    pub(super) limit: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) wlog: u32,
    /// Idle damping: an idle time of (i << cell_log) µs shifts the average right by table[i].
    pub(super) cell_log: u32,
    pub(super) table: [u8; STAB_SIZE],
    pub(super) adaptive: bool,
    pub(super) ecn: bool,
    pub(super) harddrop: bool,
    pub(super) nodrop: bool,

    /// The average queue, bytes scaled by 2^wlog.
    pub(super) average: u64,
    /// max_p, in units of 2^-32.
    pub(super) max_p: u32,
    /// Packets since the last early drop or mark. `None`: the average was not between the
    /// thresholds.
    pub(super) count: Option<u64>,
    /// The random number drawn after that packet (qR): uniform in [0, (max - min) / max_p), bytes.
    pub(super) draw: u64,
    /// For replays: the largest `above * count` since then that did not reach the draw.
    pub(super) passed: Option<u64>,
    /// For replays: the recorded draw of the next arrival (`Replayable::set_recorded_draw`).
    pub(crate) recorded_draw: Option<bool>,
    /// For replays: the probability that the last arrival was dropped or marked early
    /// (`Replayable::chance`).
    pub(crate) chance: f64,
    pub(super) idle_since: Option<Time>,
    pub(super) next_adapt: Time,
}

impl LinuxRedParams {
    /// Wlog: the weight is 2^-Wlog. `None` if there is no such weight, which tc refuses: the burst
    /// is below min/avpkt, or far too large.
    pub fn weight_log(&self) -> Option<u32> {
        weight_log(self.burst, self.min_packets())
    }

    /// Scell_log, with this weight: the cells of idle time are 2^Scell_log ticks.
    pub fn cell_log(&self, weight_log: u32) -> u32 {
        idle_damping(self.avpkt, self.bandwidth, weight_log).0
    }

    fn min_packets(&self) -> f64 {
        f64::from(self.min) / f64::from(self.avpkt.max(1))
    }
}

/// Wlog: the weight W = 2^-Wlog is the largest for which `burst` + 1 - `min` <= (1 - (1 - W)^burst)
/// / W, with both in packets.
fn weight_log(burst: u32, min: f64) -> Option<u32> {
    let burst = f64::from(burst);
    let excess = burst + 1.0 - min;
    if excess < 1.0 {
        return None;
    }
    (1..32).find(|log| {
        let weight = libm::exp2(-f64::from(*log));
        excess <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
    })
}

/// The probability, reached `width` above `min`, as tc passes it to Linux. A probability of 1 has
/// no representation in 32 bits. For 1, tc passes 0, and Linux takes another number from tc: the
/// next power of two below probability / width. The result is between one half and 1.
fn encoded_probability(probability: f64, width: u32) -> u32 {
    if probability < 1.0 {
        return (probability * TWO_32) as u32;
    }
    let width = width.max(1);
    let log = 32 - width.leading_zeros();
    u32::MAX.checked_shr(log).unwrap_or(0).saturating_mul(width)
}

/// Scell_log and Stab: how far idle time shifts the average, in cells of 2^Scell_log ticks.
pub(super) fn idle_damping(avpkt: u32, bandwidth: u64, wlog: u32) -> (u32, [u8; STAB_SIZE]) {
    let seconds = f64::from(avpkt) * 8.0 / bandwidth.max(1) as f64;
    let ticks_per_packet = libm::ceil(seconds * 1e9 / TICK_NS).max(1.0);
    let shift_per_tick = -libm::log1p(-libm::exp2(-f64::from(wlog))) / ticks_per_packet;
    let longest = 31.0 / shift_per_tick;
    let cell_log = (0..32).find(|log| longest / libm::exp2(f64::from(*log)) < 512.0).unwrap_or(31);
    let cell = libm::exp2(f64::from(cell_log));
    let mut table = std::array::from_fn(|i| (i as f64 * cell * shift_per_tick).min(31.0) as u8);
    table[STAB_SIZE - 1] = 31;
    (cell_log, table)
}

impl LinuxRed {
    pub(crate) fn new(p: &LinuxRedParams) -> LinuxRed {
        LinuxRed::averaging(p, p.min_packets())
    }

    /// A RED with the weight for a lower threshold of `min_packets`.
    pub(super) fn averaging(p: &LinuxRedParams, min_packets: f64) -> LinuxRed {
        // tc refuses parameters that have no weight. A scenario made without tc gets the nearest
        // weight.
        let too_small = f64::from(p.burst) < min_packets;
        let wlog = weight_log(p.burst, min_packets).unwrap_or(if too_small { 1 } else { 31 });
        let (cell_log, table) = idle_damping(p.avpkt, p.bandwidth, wlog);
        LinuxRed {
            limit: p.limit,
            min: u64::from(p.min),
            max: u64::from(p.max),
            wlog,
            cell_log,
            table,
            adaptive: p.adaptive,
            ecn: p.ecn,
            harddrop: p.harddrop,
            nodrop: p.nodrop,
            average: 0,
            max_p: encoded_probability(p.probability, p.max.saturating_sub(p.min)),
            count: None,
            draw: 0,
            passed: None,
            recorded_draw: None,
            chance: 0.0,
            idle_since: Some(Time::ZERO),
            next_adapt: Time::ZERO + LINUX_ADAPT,
        }
    }

    /// Resets the state to that of a queue that has been empty for so long that the average is 0.
    pub(crate) fn restart(&mut self) {
        self.average = 0;
        self.count = None;
        self.idle_since = None;
        self.chance = 0.0;
    }

    pub(crate) fn average_bytes(&self) -> f64 {
        self.average as f64 / (1u64 << self.wlog) as f64
    }

    #[inline]
    pub(crate) fn decide(&mut self, backlog: Backlog, now: Time, rng: &mut Rng) -> Decision {
        if self.adaptive && now >= self.next_adapt {
            self.adapt(now);
        }
        self.arrival(backlog.bytes, now);
        self.red_action(rng)
    }

    /// Updates the average with an arrival that finds `queued` bytes (red_calc_qavg).
    #[inline]
    pub(crate) fn arrival(&mut self, queued: u64, now: Time) {
        self.average = match self.idle_since.take() {
            Some(since) => self.damped(now.since(since)),
            None => self.average + queued - (self.average >> self.wlog),
        };
    }

    /// The average after an idle time, without one step for each missed packet: a shift, or for the
    /// first cells a linear function.
    pub(super) fn damped(&self, idle: Span) -> u64 {
        let us = (idle.0 / 1000).min(255 << self.cell_log);
        let shift = self.table[(us >> self.cell_log) as usize];
        if shift > 0 {
            return self.average >> shift;
        }
        let lost = ((u128::from(self.average) * u128::from(us)) >> self.cell_log) as u64;
        let half = self.average >> 1;
        if lost < half { self.average - lost } else { half }
    }

    #[inline]
    pub(super) fn red_action(&mut self, rng: &mut Rng) -> Decision {
        let recorded_draw = self.recorded_draw.take();
        if self.average < self.min << self.wlog {
            self.count = None;
            self.chance = 0.0;
            return Decision::Pass;
        }
        if self.average >= self.max << self.wlog {
            self.count = None;
            self.chance = 1.0;
            // The kernel counts certain and random decisions together (`early` of tc -s), so they
            // have one cause here.
            return self.signal(Cause::Early, self.harddrop);
        }
        self.between(recorded_draw, rng)
    }

    /// Decides while the average is between the thresholds.
    #[inline]
    pub(super) fn between(&mut self, recorded_draw: Option<bool>, rng: &mut Rng) -> Decision {
        // The first packet between the thresholds passes, and draws the number that decides on the
        // next packets.
        let Some(count) = self.count else {
            self.begin_count(rng);
            self.chance = 0.0;
            return Decision::Pass;
        };
        let count = count + 1;
        let above = (self.average - (self.min << self.wlog)) >> self.wlog;
        let reached = above * count;
        if !self.is_early(reached, recorded_draw) {
            self.count = Some(count);
            return Decision::Pass;
        }
        self.begin_count(rng);
        self.signal(Cause::Early, false)
    }

    #[inline]
    fn begin_count(&mut self, rng: &mut Rng) {
        self.count = Some(0);
        self.draw = self.draw_number(rng);
        self.passed = None;
    }

    /// Whether `above * count` has reached the draw. In a replay the recorded draw decides where
    /// both outcomes are possible.
    #[inline]
    fn is_early(&mut self, reached: u64, recorded_draw: Option<bool>) -> bool {
        let Some(recorded_draw) = recorded_draw else {
            return reached >= self.draw;
        };
        let before = self.passed.map_or(0.0, |passed| self.share_of_draws(passed));
        self.chance = (self.share_of_draws(reached) - before).max(0.0) / (1.0 - before);
        self.passed = self.passed.max(Some(reached));
        match self.chance {
            0.0 => false,
            1.0.. => true,
            _ => recorded_draw,
        }
    }

    /// The probability that a draw is at most this.
    fn share_of_draws(&self, number: u64) -> f64 {
        ((number + 1) as f64 * self.per_byte() as f64 / TWO_32).min(1.0)
    }

    #[inline]
    pub(super) fn signal(&self, cause: Cause, hard: bool) -> Decision {
        match (self.ecn && !hard, self.nodrop) {
            (false, _) => Decision::Drop(cause),
            (true, false) => Decision::Signal(cause),
            (true, true) => Decision::MarkOnly(cause),
        }
    }

    /// A number uniform in [0, (max - min) / max_p). When above * count reaches it, max_p (average
    /// - min) / (max - min) * count reaches a number uniform in [0, 1).
    #[inline]
    pub(super) fn draw_number(&self, rng: &mut Rng) -> u64 {
        (rng.next_u64() >> 32) / self.per_byte()
    }

    /// max_p / (max - min), in units of 2^-32 a byte.
    #[inline]
    fn per_byte(&self) -> u64 {
        let width = self.max.saturating_sub(self.min).max(1);
        (u64::from(self.max_p) / width).max(1)
    }

    /// Fires the timer for each expiry up to `now`, with the average of that time
    /// (red_adaptative_timer).
    #[cold]
    pub(super) fn adapt(&mut self, now: Time) {
        let fifth = self.max.saturating_sub(self.min) / 5;
        let (low, high) = (self.min + 2 * fifth, self.min + 3 * fifth);
        while self.next_adapt <= now {
            let average = match self.idle_since {
                Some(since) if since <= self.next_adapt => {
                    self.damped(self.next_adapt.since(since))
                }
                _ => self.average,
            } >> self.wlog;
            if average > high && self.max_p <= 50 * ONE_PERCENT {
                self.max_p += ONE_PERCENT.min(self.max_p / 4);
            } else if average < low && self.max_p >= ONE_PERCENT {
                self.max_p = self.max_p / 10 * 9;
            } else if average < low {
                // The average only falls, so nothing more can change. Skip to the last expiry.
                let missed = now.since(self.next_adapt).0 / LINUX_ADAPT.0;
                self.next_adapt += LINUX_ADAPT * missed;
            }
            self.next_adapt += LINUX_ADAPT;
        }
    }
}
