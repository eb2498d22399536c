//! red: random early detection. Drop or mark early and at random, more often as the average queue grows, so that
//! congestion is signalled before the queue is full and to flows in proportion to their share.
//!
//! Two families go under the name. `Linux` (sch_red) is RED as of 1993 in bytes and fixed point, with idle damping by
//! table and a timer for the adaptive mode. `Floyd` is what ns-2 and ns-3 share: gentle, with automatic
//! thresholds and weight, optionally adaptive (ARED). They are different algorithms, not two settings of one.
//!
//! Source: Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; Floyd, Gummadi, Shenker, "Adaptive RED", 2001; for the
//! behaviour of `linux` sch_red.c, red.h and tc's tc_red.c, of `ns2` ns-2.35's red.cc, of `ns3` ns-3's
//! RedQueueDisc.
//!
//! | | ns2 | ns3 |
//! |---|---|---|
//! | physical limit, in packets | full at `limit` | the same |
//! | physical limit, in bytes | full at limit * mean_bytes, the last packet may pass it | never passes it |
//! | a drop at the physical limit | restarts count | does not |
//! | average above the upper threshold (2 max if gentle) | an early decision with p = 1 | forced drop, never a mark |
//! | marks | while p <= 0.1, then drops (use_mark_p_) | whenever the decision is early |
//! | min is automatic | where it is 0 | where min and max are 0 |
//! | least max_p (adaptive) | min(0.01, 80 000 / rate) | min(0.01, 0.8 mean_bytes / rate) |
//!
//! Both: the arriving packet is the victim; where at most one packet (in byte mode: one byte) is queued nothing is
//! dropped early; after crossing min the first packet passes; max_p adapts on arrivals, at the earliest half a
//! second after its last change; the gentle slope above max keeps the max_p of the start, as the code of both does.
//!
//! Deviations: ns-2's automatic weight lengthens the time constant where three times the link's delay is above 100
//! ms; a discipline does not know the delay, so the weight is 1 - exp(-1/C) always. The least max_p is ns-2's and
//! ns-3's, not the 0.01 of the 2001 paper. Neither Floyd variant follows a rate that changes (as ns-2 and ns-3).
//! linux: time in ns is truncated to the kernel's µs; the idle table is tc's, in ticks of 64 ns, and the kernel
//! reads it in µs, so an idle queue's average falls 15.6 times more slowly than red(8) intends: kept, as it is what
//! Linux does. The adaptive timer fires each 0.5 s from the start and is evaluated on arrival.

use crate::codel::mark;
use crate::{Backlog, Cause, Context, Ecn, Fate, Fifo, Packet, Qdisc, State};
use serde::Deserialize;
use units::{Luck, Rate, Span, Time};

/// `red variant=...`: `{"kind": "red", "variant": "linux" | "ns2" | "ns3", ...}` and the fields of that variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "variant", rename_all = "snake_case")]
pub enum RedParams {
    /// Linux's sch_red.
    Linux(LinuxRedParams),
    /// ns-2.35's RED and ARED.
    Ns2(FloydRedParams),
    /// ns-3's RED and ARED.
    Ns3(FloydRedParams),
}

/// `red limit BYTES min BYTES max BYTES avpkt BYTES burst PACKETS probability P bandwidth RATE [adaptive] [ecn] [harddrop] [nodrop]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxRedParams {
    /// Bytes: the physical limit.
    pub limit: u64,
    /// Bytes: below this average nothing happens.
    pub min: u32,
    /// Bytes: from this average on every packet is dropped or marked.
    pub max: u32,
    /// Bytes of an average packet, for the weight and the idle time.
    pub avpkt: u32,
    /// Packets that may arrive at once without harm; sets the weight.
    pub burst: u32,
    /// Probability reached at `max`, a fraction (0.02).
    pub probability: f64,
    /// Rate by which idle time is told in packets, bit/s (10 000 000).
    pub bandwidth: u64,
    /// Adapt `probability` to keep the average in the middle fifth between `min` and `max`.
    pub adaptive: bool,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// With `ecn`: above `max` drop all the same.
    pub harddrop: bool,
    /// With `ecn`: let packets that can't be marked pass, never drop early.
    pub nodrop: bool,
}

/// `red variant=ns2|ns3 limit PACKETS min PACKETS max PACKETS weight W probability P ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloydRedParams {
    /// Packets; in byte mode limit * mean_bytes bytes (ns-2: 50, ns-3: 25).
    pub limit: u64,
    /// Packets, in byte mode of mean_bytes each; 0: max(5, target_delay * C / 2), C = mean packets a second
    /// (ns-2: 0, ns-3: 5). ns3 computes it only when `max` is 0, too.
    pub min: f64,
    /// As `min`; 0: three times `min` (ns-2: 0, ns-3: 15).
    pub max: f64,
    /// Weight of a new sample in the average; 0: 1 - exp(-1/C) (ns-2: 0, ns-3: 0.002; adaptive: 0).
    pub weight: f64,
    /// max_p, the probability reached at `max` (ns-2: 0.1, ns-3: 0.02).
    pub probability: f64,
    /// Bytes of a mean packet (500).
    pub mean_bytes: u32,
    /// Queue, thresholds and limit in bytes, and p in proportion to the packet's size (ns-2: true, ns-3: false).
    pub byte_mode: bool,
    /// Above `max` p grows linearly to 1 at 2 `max` instead of jumping there (true).
    pub gentle: bool,
    /// Wait at least 1/p packets between early drops: gaps uniform in [1/p, 2/p] instead of [0, 1/p] (true).
    pub wait: bool,
    /// Adapt max_p to keep the average in the middle fifth between `min` and `max` (false).
    pub adaptive: bool,
    /// Queueing delay the automatic thresholds aim at, ns (5 000 000).
    pub target_delay_ns: u64,
    /// Mark ECN-capable packets instead of dropping them (false).
    pub ecn: bool,
}

/// The two simulators of the Floyd family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RedVariant {
    /// ns-2.35.
    Ns2,
    /// ns-3.44.
    Ns3,
}

/// What RED wants done with the arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Mark it if it can be marked, else drop it.
    Signal(Cause),
    /// Mark it if it can be marked, else let it pass.
    MarkOnly(Cause),
    Drop(Cause),
}

enum Law {
    Linux(Box<LinuxRed>),
    Floyd(FloydRed),
}

impl Law {
    #[inline]
    fn decide(&mut self, backlog: Backlog, size: u32, now: Time, luck: &mut Luck) -> Verdict {
        match self {
            Law::Linux(red) => red.decide(backlog, now, luck),
            Law::Floyd(red) => red.decide(backlog, size, now, luck),
        }
    }

    /// The physical limit: may a packet of this size join?
    #[inline]
    fn has_room(&self, backlog: Backlog, size: u32) -> bool {
        match self {
            Law::Linux(red) => backlog.bytes + u64::from(size) <= red.limit,
            Law::Floyd(red) => red.has_room(backlog, size),
        }
    }

    /// It may not, and was dropped.
    fn overflowed(&mut self) {
        if let Law::Floyd(red) = self
            && red.variant == RedVariant::Ns2
        {
            red.restart_count(0, 0);
        }
    }

    /// The transmitter wanted a packet and there was none: the idle period starts, unless it has before.
    fn idle(&mut self, now: Time) {
        let idle_since = match self {
            Law::Linux(red) => &mut red.idle_since,
            Law::Floyd(red) => &mut red.idle_since,
        };
        idle_since.get_or_insert(now);
    }
}

/// A queue under RED.
pub struct Red<B> {
    law: Law,
    luck: Luck,
    queue: Fifo<B>,
}

impl<B> Red<B> {
    /// An empty queue, idle since the start of the run.
    pub fn new(params: &RedParams, context: Context) -> Self {
        let law = match params {
            RedParams::Linux(p) => Law::Linux(Box::new(LinuxRed::new(p))),
            RedParams::Ns2(p) => Law::Floyd(FloydRed::new(RedVariant::Ns2, p, context.rate)),
            RedParams::Ns3(p) => Law::Floyd(FloydRed::new(RedVariant::Ns3, p, context.rate)),
        };
        Red { law, luck: context.luck, queue: Fifo::default() }
    }
}

impl<B> Qdisc<B> for Red<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, fates: &mut Vec<Fate<B>>) {
        let verdict = self.law.decide(self.queue.backlog(), packet.size, now, &mut self.luck);
        match verdict {
            Verdict::Drop(cause) => return fates.push(Fate::Dropped(packet, cause)),
            Verdict::Signal(cause) if packet.ecn == Ecn::NotEct => {
                return fates.push(Fate::Dropped(packet, cause));
            }
            _ => {}
        }
        if !self.law.has_room(self.queue.backlog(), packet.size) {
            self.law.overflowed();
            return fates.push(Fate::Dropped(packet, Cause::Limit));
        }
        if let Verdict::Signal(cause) | Verdict::MarkOnly(cause) = verdict {
            mark(&mut packet, cause, fates);
        }
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _fates: &mut Vec<Fate<B>>) -> Option<Packet<B>> {
        let packet = self.queue.pop();
        if packet.is_none() {
            self.law.idle(now);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self) -> State {
        let (limit, probability, average) = match &self.law {
            Law::Linux(red) => (red.limit as f64, f64::from(red.max_p) / TWO_32, red.average_bytes()),
            Law::Floyd(red) => (red.limit, red.max_p, red.average),
        };
        State {
            limit: Some(limit),
            probability: Some(probability),
            average: Some(average),
            ..State::default()
        }
    }
}

/// Time between two changes of max_p, s (ns-2's interval_) and the other constants of the 2001 paper.
const INTERVAL: Span = Span::from_millis(500);
const ALPHA: f64 = 0.01;
const BETA: f64 = 0.9;
const TOP: f64 = 0.5;
/// ns-2 marks while p is at most this, and drops above (mark_p_ with use_mark_p_).
const NS2_MARK_P: f64 = 0.1;
/// Weight where neither the user nor a rate gives one: the 1993 paper's.
const CLASSIC_WEIGHT: f64 = 0.002;

/// RED of ns-2 and ns-3. Lengths are bytes in byte mode, else packets.
#[derive(Clone, Debug)]
struct FloydRed {
    variant: RedVariant,
    limit: f64,
    min: f64,
    max: f64,
    weight: f64,
    mean_bytes: f64,
    byte_mode: bool,
    gentle: bool,
    wait: bool,
    adaptive: bool,
    ecn: bool,
    /// max_p at the start; the gentle slope stays tied to it.
    first_max_p: f64,
    least_max_p: f64,
    /// C: packets of mean size the link sends in a second; 0 = unknown.
    packets_per_second: f64,

    // The state, with the names of the 1993 paper.
    average: f64,
    max_p: f64,
    /// Packets and bytes since the last early drop, this one included.
    count: u64,
    count_bytes: u64,
    /// The average was at or above `min` at the last arrival.
    above_min: bool,
    idle_since: Option<Time>,
    last_change: Time,
}

impl FloydRed {
    fn new(variant: RedVariant, p: &FloydRedParams, rate: Option<Rate>) -> FloydRed {
        let mean_bytes = f64::from(p.mean_bytes.max(1));
        let rate = rate.map_or(0.0, |r| r.0 as f64);
        let packets_per_second = rate / (8.0 * mean_bytes);
        let automatic_min = (p.target_delay_ns as f64 * 1e-9 * packets_per_second / 2.0).max(5.0);
        // In ns-3 a min of 0 beside a max is meant.
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
    fn decide(&mut self, backlog: Backlog, size: u32, now: Time, luck: &mut Luck) -> Verdict {
        let queued = if self.byte_mode { backlog.bytes as f64 } else { f64::from(backlog.packets) };
        self.estimate(queued, now);
        self.count += 1;
        self.count_bytes += u64::from(size);

        if self.average < self.min || queued <= 1.0 {
            self.above_min = false;
            return Verdict::Pass;
        }
        if self.variant == RedVariant::Ns3 && self.average >= self.certain_from() {
            return Verdict::Drop(Cause::Forced);
        }
        if !self.above_min {
            // Just crossed: the gap to the first early drop is counted from here.
            self.above_min = true;
            self.restart_count(1, size);
            return Verdict::Pass;
        }
        self.early(size, luck)
    }

    #[inline]
    fn has_room(&self, backlog: Backlog, size: u32) -> bool {
        match (self.byte_mode, self.variant) {
            (false, _) => f64::from(backlog.packets) < self.limit,
            (true, RedVariant::Ns2) => (backlog.bytes as f64) < self.limit,
            (true, RedVariant::Ns3) => backlog.bytes as f64 + f64::from(size) <= self.limit,
        }
    }

    /// The average queue; after an idle period as if m small packets had found the queue empty meanwhile.
    #[inline]
    fn estimate(&mut self, queued: f64, now: Time) {
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

    /// ARED: additive increase, multiplicative decrease of max_p keep the average within the middle fifth.
    fn adapt(&mut self, now: Time) {
        let part = 0.4 * (self.max - self.min);
        if self.average < self.min + part && self.max_p > self.least_max_p {
            self.max_p *= BETA;
            self.last_change = now;
        } else if self.average > self.max - part && self.max_p < TOP {
            self.max_p += ALPHA.min(0.25 * self.max_p);
            self.last_change = now;
        }
    }

    /// The average from which p is 1.
    #[inline]
    fn certain_from(&self) -> f64 {
        if self.gentle { 2.0 * self.max } else { self.max }
    }

    fn restart_count(&mut self, packets: u64, bytes: u32) {
        self.count = packets;
        self.count_bytes = u64::from(bytes);
    }

    /// The random decision, for a packet that finds the average at or above `min`.
    #[inline]
    fn early(&mut self, size: u32, luck: &mut Luck) -> Verdict {
        let base = self.base_probability();
        if luck.unit() >= self.spread(base, size) {
            return Verdict::Pass;
        }
        self.restart_count(0, 0);
        let cause = if base >= 1.0 { Cause::Forced } else { Cause::Early };
        let may_mark = self.ecn && (self.variant == RedVariant::Ns3 || base <= NS2_MARK_P);
        if may_mark { Verdict::Signal(cause) } else { Verdict::Drop(cause) }
    }

    /// p_b of the paper: 0 at min, max_p at max, and above it 1 or, gentle, linear to 1 at 2 max.
    #[inline]
    fn base_probability(&self) -> f64 {
        let p = if self.average < self.max {
            // Thresholds that are equal would divide by zero; both simulators take a width of 1.
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

    /// p_a of the paper: spreads early drops evenly by the count since the last one; in byte mode large packets
    /// weigh more.
    #[inline]
    fn spread(&self, base: f64, size: u32) -> f64 {
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

/// Linux's probabilities are in units of 2^-32.
const TWO_32: f64 = 4_294_967_296.0;
/// One per cent in those units: the least max_p of the adaptive mode, and its largest step up.
const ONE_PERCENT: u32 = 42_949_673;
/// Size of the table of idle damping.
const STAB_SIZE: usize = 256;
/// Nanoseconds of a tick in tc's tables (psched).
const TICK_NS: f64 = 64.0;
/// The adaptive timer, HZ/2.
const LINUX_ADAPT: Span = Span::from_millis(500);

/// RED of Linux: bytes, with `wlog` fractional bits where scaled.
#[derive(Clone, Debug)]
struct LinuxRed {
    limit: u64,
    min: u64,
    max: u64,
    wlog: u32,
    /// Idle damping: an idle time of (i << cell_log) µs shifts the average right by table[i].
    cell_log: u32,
    table: [u8; STAB_SIZE],
    adaptive: bool,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,

    /// Bytes, scaled by 2^wlog.
    average: u64,
    /// In units of 2^-32.
    max_p: u32,
    /// Packets since the last early drop or mark; `None` = the average was not between the thresholds.
    count: Option<u64>,
    /// The random number drawn after it: uniform in [0, (max - min) / max_p), bytes.
    draw: u64,
    idle_since: Option<Time>,
    next_adapt: Time,
}

impl LinuxRedParams {
    /// Wlog: the weight is 2^-Wlog, the largest for which `burst` + 1 - min/avpkt <= (1 - (1 - W)^burst) / W.
    /// `None` when there is none, which tc refuses: a burst below min/avpkt, or one beyond all reason.
    pub fn weight_log(&self) -> Option<u32> {
        let burst = f64::from(self.burst);
        let excess = burst + 1.0 - f64::from(self.min) / f64::from(self.avpkt.max(1));
        if excess < 1.0 {
            return None;
        }
        (1..32).find(|log| {
            let weight = libm::exp2(-f64::from(*log));
            excess <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
        })
    }

    /// Scell_log and Stab: how far idle time shifts the average, in cells of 2^Scell_log ticks.
    fn idle_damping(&self, wlog: u32) -> (u32, [u8; STAB_SIZE]) {
        let seconds = f64::from(self.avpkt) * 8.0 / self.bandwidth.max(1) as f64;
        let ticks_per_packet = libm::ceil(seconds * 1e9 / TICK_NS).max(1.0);
        let shift_per_tick = -libm::log1p(-libm::exp2(-f64::from(wlog))) / ticks_per_packet;
        let longest = 31.0 / shift_per_tick;
        let cell_log = (0..32).find(|log| longest / libm::exp2(f64::from(*log)) < 512.0).unwrap_or(31);
        let cell = libm::exp2(f64::from(cell_log));
        let mut table = std::array::from_fn(|i| (i as f64 * cell * shift_per_tick).min(31.0) as u8);
        table[STAB_SIZE - 1] = 31;
        (cell_log, table)
    }
}

impl LinuxRed {
    fn new(p: &LinuxRedParams) -> LinuxRed {
        // tc refuses what has no weight; a scenario made without tc gets the nearest there is.
        let too_small = f64::from(p.burst) < f64::from(p.min) / f64::from(p.avpkt.max(1));
        let wlog = p.weight_log().unwrap_or(if too_small { 1 } else { 31 });
        let (cell_log, table) = p.idle_damping(wlog);
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
            // 1.0 itself has no representation in 32 bits; the cast saturates just below.
            max_p: (p.probability * TWO_32) as u32,
            count: None,
            draw: 0,
            idle_since: Some(Time::ZERO),
            next_adapt: Time::ZERO + LINUX_ADAPT,
        }
    }

    fn average_bytes(&self) -> f64 {
        self.average as f64 / (1u64 << self.wlog) as f64
    }

    #[inline]
    fn decide(&mut self, backlog: Backlog, now: Time, luck: &mut Luck) -> Verdict {
        if self.adaptive && now >= self.next_adapt {
            self.adapt(now);
        }
        self.average = match self.idle_since.take() {
            Some(since) => self.damped(now.since(since)),
            None => self.average + backlog.bytes - (self.average >> self.wlog),
        };
        self.red_action(luck)
    }

    /// What an idle time leaves of the average, without one step per missed packet: a shift, or for the first cells
    /// a line.
    fn damped(&self, idle: Span) -> u64 {
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
    fn red_action(&mut self, luck: &mut Luck) -> Verdict {
        if self.average < self.min << self.wlog {
            self.count = None;
            return Verdict::Pass;
        }
        if self.average >= self.max << self.wlog {
            self.count = None;
            return self.signal(Cause::Forced, self.harddrop);
        }
        // The first packet between the thresholds passes and draws the number that decides about the next ones.
        let Some(count) = self.count else {
            self.count = Some(0);
            self.draw = self.draw_number(luck);
            return Verdict::Pass;
        };
        let count = count + 1;
        let above = (self.average - (self.min << self.wlog)) >> self.wlog;
        if above * count < self.draw {
            self.count = Some(count);
            return Verdict::Pass;
        }
        self.count = Some(0);
        self.draw = self.draw_number(luck);
        self.signal(Cause::Early, false)
    }

    #[inline]
    fn signal(&self, cause: Cause, hard: bool) -> Verdict {
        match (self.ecn && !hard, self.nodrop) {
            (false, _) => Verdict::Drop(cause),
            (true, false) => Verdict::Signal(cause),
            (true, true) => Verdict::MarkOnly(cause),
        }
    }

    /// Uniform in [0, (max - min) / max_p): with it max_p (average - min) / (max - min) * count reaches a uniform
    /// number in [0, 1) when above * count reaches the draw.
    #[inline]
    fn draw_number(&self, luck: &mut Luck) -> u64 {
        let width = self.max.saturating_sub(self.min).max(1);
        let per_byte = (u64::from(self.max_p) / width).max(1);
        (luck.next_u64() >> 32) / per_byte
    }

    /// Catches up with the timer, each firing with the average it would have seen.
    #[cold]
    fn adapt(&mut self, now: Time) {
        let fifth = self.max.saturating_sub(self.min) / 5;
        let (low, high) = (self.min + 2 * fifth, self.min + 3 * fifth);
        while self.next_adapt <= now {
            let average = match self.idle_since {
                Some(since) if since <= self.next_adapt => self.damped(self.next_adapt.since(since)),
                _ => self.average,
            } >> self.wlog;
            if average > high && self.max_p <= 50 * ONE_PERCENT {
                self.max_p += ONE_PERCENT.min(self.max_p / 4);
            } else if average < low && self.max_p >= ONE_PERCENT {
                self.max_p = self.max_p / 10 * 9;
            } else if average < low {
                // Nothing more can change while the average only falls: on to the last firing due.
                let missed = now.since(self.next_adapt).0 / LINUX_ADAPT.0;
                self.next_adapt += LINUX_ADAPT * missed;
            }
            self.next_adapt += LINUX_ADAPT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_mbit(10);
    /// 1500 bytes at 10 Mbit/s.
    const PACKET_NS: u64 = 1_200_000;

    fn context() -> Context {
        Context { rate: Some(RATE), mtu: 1514, luck: Luck::new(1, "red") }
    }

    fn packet(size: u32, ecn: Ecn) -> Packet<()> {
        Packet { enqueued: Time::ZERO, flow: 0, size, ecn, body: () }
    }

    /// ns-2.35 as installed, limit 100.
    fn ns2() -> FloydRedParams {
        FloydRedParams {
            limit: 100,
            min: 0.0,
            max: 0.0,
            weight: 0.0,
            probability: 0.1,
            mean_bytes: 500,
            byte_mode: true,
            gentle: true,
            wait: true,
            adaptive: false,
            target_delay_ns: 5_000_000,
            ecn: false,
        }
    }

    /// ns-3's defaults, limit 100.
    fn ns3() -> FloydRedParams {
        FloydRedParams { min: 5.0, max: 15.0, weight: 0.002, probability: 0.02, byte_mode: false, ..ns2() }
    }

    fn floyd(params: &RedParams) -> FloydRed {
        match Red::<()>::new(params, context()).law {
            Law::Floyd(red) => red,
            Law::Linux(_) => unreachable!("asked for a Floyd variant"),
        }
    }

    /// The example of tc's authors: red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10Mbit.
    fn linux() -> LinuxRedParams {
        LinuxRedParams {
            limit: 400_000,
            min: 30_000,
            max: 90_000,
            avpkt: 1000,
            burst: 55,
            probability: 0.02,
            bandwidth: 10_000_000,
            adaptive: false,
            ecn: false,
            harddrop: false,
            nodrop: false,
        }
    }

    /// Keeps `backlog` packets queued while `arrivals` more come and as many leave; returns the fraction dropped.
    fn drop_rate(q: &mut Red<()>, backlog: u32, arrivals: u32, size: u32) -> f64 {
        let mut fates = Vec::new();
        let mut now = Time::ZERO;
        let mut run = |n: u32, fates: &mut Vec<Fate<()>>| {
            for _ in 0..n {
                now += Span(PACKET_NS);
                q.enqueue(packet(size, Ecn::NotEct), now, fates);
                if q.backlog().packets > backlog {
                    q.dequeue(now, fates);
                }
            }
        };
        // First until the average has settled.
        run(40_000, &mut fates);
        fates.clear();
        run(arrivals, &mut fates);
        fates.len() as f64 / f64::from(arrivals)
    }

    #[test]
    fn the_weight_permits_the_bursts_of_red_h() {
        // red.h: with min of 32 average packets the burst L permitted by W = 2^-1, 2^-2, ...
        for (log, permitted) in (1..).zip([33u32, 35, 39, 46, 57, 75, 101, 135, 190]) {
            let weight_log = |burst| LinuxRedParams { min: 32_000, burst, ..linux() }.weight_log();
            let largest = (32..400).rev().find(|burst| weight_log(*burst).is_some_and(|w| w <= log));
            let largest = largest.expect("some burst is permitted");
            assert!(largest.abs_diff(permitted) <= 2, "W = 2^-{log}: {largest}, red.h has {permitted}");
        }
    }

    #[test]
    fn the_example_of_the_kernel_log_is_reproduced() {
        // Linux commit 8af2a218de3: ewma 5, Scell_log 15.
        let wlog = linux().weight_log();
        assert_eq!(wlog, Some(5));
        assert_eq!(linux().idle_damping(5).0, 15);
    }

    #[test]
    fn a_burst_below_min_has_no_weight() {
        assert_eq!(LinuxRedParams { burst: 20, ..linux() }.weight_log(), None);
    }

    #[test]
    fn linux_marks_by_the_average_as_in_the_kernels_selftest() {
        // net/forwarding/sch_red.sh: min 30000 max 30001 avpkt 1400 burst 38 probability 1.
        let params = LinuxRedParams {
            limit: 1 << 20,
            min: 30_000,
            max: 30_001,
            avpkt: 1400,
            burst: 38,
            probability: 1.0,
            ..linux()
        };
        let red = |p: &LinuxRedParams| Red::new(&RedParams::Linux(p.clone()), context());
        // Two thirds of the threshold: nothing.
        assert_eq!(drop_rate(&mut red(&params), 14, 1000, 1400), 0.0);

        // Three halves: at least 95 %. Marked, not dropped, so the backlog can be held there.
        let with_ecn = LinuxRedParams { ecn: true, ..params.clone() };
        let signalled = |p: &LinuxRedParams, ecn| {
            let mut q = red(p);
            let mut fates = Vec::new();
            for _ in 0..33 {
                q.queue.push(packet(1400, ecn), Time::ZERO);
            }
            for i in 1..2000 {
                q.enqueue(packet(1400, ecn), Time(i * PACKET_NS), &mut fates);
                while q.backlog().packets > 33 {
                    q.dequeue(Time(i * PACKET_NS), &mut fates);
                }
            }
            fates
        };
        let marks = signalled(&with_ecn, Ecn::Ect);
        assert!(marks.len() > 1900 && marks.iter().all(|f| matches!(f, Fate::Marked { .. })));
        // nodrop: what can't be marked passes; harddrop: even what can be marked is dropped.
        assert!(signalled(&LinuxRedParams { nodrop: true, ..with_ecn.clone() }, Ecn::NotEct).is_empty());
        let hard = signalled(&LinuxRedParams { harddrop: true, ..with_ecn }, Ecn::Ect);
        assert!(hard.len() > 1900 && hard.iter().all(|f| matches!(f, Fate::Dropped(_, Cause::Forced))));
    }

    #[test]
    fn linux_drops_at_twice_p_between_the_thresholds() {
        // The gap is uniform in [0, 1/p], its mean 1/2p. Backlog 60 of 30..90 packets: p = 0.02 / 2.
        let mut q = Red::new(&RedParams::Linux(linux()), context());
        let rate = drop_rate(&mut q, 60, 200_000, 1000);
        assert!((rate / 0.02 - 1.0).abs() < 0.05, "{rate}");
    }

    #[test]
    fn linux_takes_no_byte_beyond_the_limit() {
        let params = LinuxRedParams { limit: 3000, ..linux() };
        let mut q = Red::new(&RedParams::Linux(params), context());
        let mut fates = Vec::new();
        for size in [1500, 1501, 1500, 1] {
            q.enqueue(packet(size, Ecn::NotEct), Time(1), &mut fates);
        }
        assert_eq!(q.backlog().bytes, 3000);
        assert!(fates.iter().all(|f| matches!(f, Fate::Dropped(_, Cause::Limit))) && fates.len() == 2);
    }

    #[test]
    fn linux_damps_the_average_of_an_idle_queue() {
        let mut red = LinuxRed::new(&linux());
        red.average = 32_000 << 5;
        // Cells of 2^15 µs. 2^15 ticks are 2.6 packets of 12 500 ticks, each worth 0.0317: 0.083 shifts a cell.
        assert_eq!(red.table[12], 0);
        assert_eq!(red.table[13], 1);
        assert_eq!(red.damped(Span::from_micros(13 << 15)), 16_000 << 5);
        assert_eq!(red.damped(Span::from_secs(3600)), 0);
        // The linear part: a quarter of a cell takes a quarter away, and never more than a half.
        assert_eq!(red.damped(Span::from_micros(1 << 13)), 24_000 << 5);
        assert_eq!(red.damped(Span::from_micros(3 << 15)), 16_000 << 5);
    }

    #[test]
    fn linux_adapts_each_half_second_within_its_bounds() {
        let mut red = LinuxRed::new(&LinuxRedParams { adaptive: true, ..linux() });
        red.idle_since = None;
        red.average = 80_000 << 5;
        let percent = |red: &LinuxRed| f64::from(red.max_p) / TWO_32 * 100.0;
        red.adapt(Time(500_000_000));
        // 2 % + min(1 %, 2 % / 4).
        assert!((percent(&red) - 2.5).abs() < 1e-6);
        red.adapt(Time(100_000_000_000));
        assert!((50.0..51.1).contains(&percent(&red)), "{}", percent(&red));
        red.average = 40_000 << 5;
        red.adapt(Time(100_500_000_000));
        red.adapt(Time(300_000_000_000));
        assert!((0.89..1.0).contains(&percent(&red)), "{}", percent(&red));
        // In the middle fifth it rests; years later the timer has not fallen behind.
        red.average = 60_000 << 5;
        let before = red.max_p;
        red.adapt(Time(301_000_000_000));
        assert_eq!(red.max_p, before);
        red.average = 0;
        red.adapt(Time(u64::MAX / 4));
        assert!(red.next_adapt > Time(u64::MAX / 4));
    }

    #[test]
    fn automatic_thresholds_and_weight_are_those_of_ns2() {
        // 10 Mbit/s and 500 bytes: C = 2500/s; 5 ms of it are 12.5 packets, so min is 6.25 packets.
        let red = floyd(&RedParams::Ns2(ns2()));
        assert_eq!((red.min, red.max, red.limit), (3125.0, 9375.0, 50_000.0));
        assert!((red.weight - (1.0 - libm::exp(-1.0 / 2500.0))).abs() < 1e-15);
        // With 1500 bytes C = 833/s and min is its floor of 5 packets.
        let red = floyd(&RedParams::Ns2(FloydRedParams { mean_bytes: 1500, ..ns2() }));
        assert_eq!((red.min, red.max), (7500.0, 22_500.0));
        // max_p adapts down to 1/W, W of 1000-byte packets in 100 ms: 0.008 here.
        assert_eq!(red.least_max_p, 0.008);
        // A min of 0 beside a max is meant in ns-3.
        for (variant, want) in [(RedParams::Ns2 as fn(_) -> _, 6.25), (RedParams::Ns3, 0.0)] {
            let red = floyd(&variant(FloydRedParams { min: 0.0, ..ns3() }));
            assert_eq!((red.min, red.max), (want, 15.0));
        }
        let red = floyd(&RedParams::Ns3(FloydRedParams { max: 0.0, ..ns3() }));
        assert_eq!((red.min, red.max), (5.0, 15.0));
    }

    #[test]
    fn ns2_is_full_at_limit_times_mean_bytes() {
        for (byte_mode, variant, full_at) in [
            // 50 000 bytes: 33 packets of 1500 are 49 500, so ns-2 takes a 34th and ns-3 does not.
            (true, RedVariant::Ns2, 34),
            (true, RedVariant::Ns3, 33),
            (false, RedVariant::Ns2, 100),
            (false, RedVariant::Ns3, 100),
        ] {
            // A high threshold leaves only the physical limit.
            let params = FloydRedParams { min: 1e6, max: 2e6, byte_mode, ..ns2() };
            let params = match variant {
                RedVariant::Ns2 => RedParams::Ns2(params),
                RedVariant::Ns3 => RedParams::Ns3(params),
            };
            let mut q = Red::new(&params, context());
            let mut fates = Vec::new();
            for _ in 0..120 {
                q.enqueue(packet(1500, Ecn::NotEct), Time(1), &mut fates);
            }
            assert_eq!(q.backlog().packets, full_at, "{byte_mode} {variant:?}");
            assert!(fates.iter().all(|f| matches!(f, Fate::Dropped(_, Cause::Limit))));
        }
    }

    #[test]
    fn an_idle_period_counts_as_the_packets_it_could_have_sent() {
        let mut q = Red::new(&RedParams::Ns2(ns2()), context());
        let mut fates = Vec::new();
        if let Law::Floyd(red) = &mut q.law {
            red.average = 3000.0;
            red.idle_since = None;
        }
        q.dequeue(Time(0), &mut fates);
        q.dequeue(Time(900_000_000), &mut fates);
        // One second since the first time there was nothing to send: 2500 missed and the arrival itself, (1 -
        // w)^2501.
        q.enqueue(packet(1500, Ecn::NotEct), Time(1_000_000_000), &mut fates);
        let average = q.state().average.expect("red has an average");
        assert!((average / (3000.0 * libm::exp(-2501.0 / 2500.0)) - 1.0).abs() < 1e-9, "{average}");
        // The second packet finds a queue of 1500 bytes and no idle time.
        q.enqueue(packet(1500, Ecn::NotEct), Time(1_000_000_001), &mut fates);
        let weight = 1.0 - libm::exp(-1.0 / 2500.0);
        let next = q.state().average.expect("red has an average");
        assert!((next - (average * (1.0 - weight) + weight * 1500.0)).abs() < 1e-9);
    }

    #[test]
    fn the_long_run_drop_rate_is_that_of_the_interpolated_max_p() {
        // Backlog 10 of 5..15 packets: p = 0.02 / 2 = 0.01. Without wait gaps are uniform in [1, 1/p - 1], mean 1/2p;
        // with wait in [1/p, 2/p], mean 3/2p.
        for (wait, want) in [(false, 0.02), (true, 0.01 / 1.5)] {
            for variant in [RedParams::Ns2, RedParams::Ns3] {
                let mut q = Red::new(&variant(FloydRedParams { wait, ..ns3() }), context());
                let rate = drop_rate(&mut q, 10, 200_000, 1500);
                assert!((rate / want - 1.0).abs() < 0.05, "wait {wait}: {rate} instead of {want}");
            }
        }
        // Above max, gentle: halfway between max and 2 max p is halfway between 0.02 and 1.
        let mut red = floyd(&RedParams::Ns3(ns3()));
        red.average = 22.5;
        assert!((red.base_probability() - 0.51).abs() < 1e-12);
        red.average = 30.0;
        assert!((red.base_probability() - 1.0).abs() < 1e-12);
        red.gentle = false;
        red.average = 15.0;
        assert_eq!(red.base_probability(), 1.0);
    }

    #[test]
    fn in_byte_mode_large_packets_are_dropped_in_proportion_to_their_size() {
        // min 5, max 15 and backlog 10 packets of 1000 bytes with mean 1000: p = 0.01 for a packet of 1000 bytes.
        let params = FloydRedParams { byte_mode: true, mean_bytes: 1000, wait: false, ..ns3() };
        let red = floyd(&RedParams::Ns2(params));
        let (small, large) = (red.spread(0.01, 500), red.spread(0.01, 1500));
        assert!((large / small - 3.0).abs() < 1e-12);
        // count_bytes counts whole mean packets.
        let red = FloydRed { count_bytes: 49_999, ..red };
        assert!((red.spread(0.01, 1000) - 0.01 / (1.0 - 0.49)).abs() < 1e-12);
    }

    #[test]
    fn adaptive_red_moves_max_p_each_half_second_of_arrivals() {
        let mut red = floyd(&RedParams::Ns2(FloydRedParams { adaptive: true, ..ns2() }));
        let backlog = Backlog { packets: 6, bytes: 9000 };
        let mut luck = Luck::new(1, "ared");
        red.average = 9000.0;
        red.idle_since = None;
        // Not yet at half a second; just after it +0.01; then not before another half second.
        for (ms, want) in [(500, 0.10), (501, 0.11), (1001, 0.11), (1002, 0.12)] {
            red.decide(backlog, 1500, Time(ms * 1_000_000), &mut luck);
            assert!((red.max_p - want).abs() < 1e-12, "{ms} ms: {}", red.max_p);
        }
        // An average below the band: times 0.9, down to the first value at or below 0.008.
        red.average = 0.0;
        for i in 0..200 {
            red.average = 0.0;
            red.decide(Backlog::default(), 1500, Time((2000 + 501 * i) * 1_000_000), &mut luck);
        }
        assert!((0.0072..=0.008).contains(&red.max_p), "{}", red.max_p);
        // Within the band max_p rests.
        let before = red.max_p;
        red.average = (red.min + red.max) / 2.0;
        red.decide(Backlog { packets: 4, bytes: 6250 }, 1500, Time(999_000_000_000), &mut luck);
        assert_eq!(red.max_p, before);
    }

    #[test]
    fn ns2_drops_what_it_could_mark_once_p_is_above_a_tenth_and_ns3_above_the_upper_threshold() {
        let fate_at = |params: RedParams, average: f64| {
            let mut q = Red::new(&params, context());
            let mut fates = Vec::new();
            for _ in 0..20 {
                q.queue.push(packet(1500, Ecn::Ect), Time::ZERO);
            }
            while fates.is_empty() {
                if let Law::Floyd(red) = &mut q.law {
                    red.idle_since = None;
                    red.average = average;
                }
                q.enqueue(packet(1500, Ecn::Ect), Time(1), &mut fates);
                q.dequeue(Time(1), &mut fates);
            }
            match fates[0] {
                Fate::Dropped(_, cause) => ("drop", cause),
                Fate::Marked { cause, .. } => ("mark", cause),
            }
        };
        let params = FloydRedParams { ecn: true, ..ns3() };
        let ns2 = |average| fate_at(RedParams::Ns2(params.clone()), average);
        let ns3 = |average| fate_at(RedParams::Ns3(params.clone()), average);
        // p is 0.01 at 10, 0.15 at 17, 0.51 at 22.5, 1 at 30 packets.
        assert_eq!(
            [ns2(10.0), ns2(17.0), ns2(31.0)],
            [("mark", Cause::Early), ("drop", Cause::Early), ("drop", Cause::Forced)]
        );
        assert_eq!(
            [ns3(10.0), ns3(22.5), ns3(31.0)],
            [("mark", Cause::Early), ("mark", Cause::Early), ("drop", Cause::Forced)]
        );
    }

    #[test]
    fn a_lone_packet_is_never_dropped_early() {
        let mut red = floyd(&RedParams::Ns2(FloydRedParams { byte_mode: false, ..ns3() }));
        let mut luck = Luck::new(1, "lone");
        for i in 0..1000 {
            red.average = 14.0;
            red.idle_since = None;
            assert_eq!(
                red.decide(Backlog { packets: 1, bytes: 1500 }, 1500, Time(i), &mut luck),
                Verdict::Pass
            );
        }
    }
}
