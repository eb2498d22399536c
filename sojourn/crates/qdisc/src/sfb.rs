//! sfb: stochastic fair BLUE. One queue; each flow is dropped or marked according to its share of
//! the queue.
//!
//! A packet's hash selects a bin on each of eight levels. A bin counts the queued packets that are
//! hashed to it, and has a probability p. At each arrival the p of a bin of the packet rises if the
//! bin counts `target` packets or more, and falls if it counts none. The smallest p of a packet's
//! bins decides on the packet: a flow that shares some bins with a greedy one still has other bins
//! of its own.
//!
//! Source: Feng, Kandlur, Saha, Shin, "Stochastic fair blue" (2001); tc-sfb(8); Linux
//! net/sched/sch_sfb.c (6.12) for the behaviour:
//!
//! - A packet is dropped if each of its bins has `max` packets.
//! - If the smallest p is 1 the flow is unresponsive: it may send `penalty_rate` packets a second,
//!   `penalty_burst` at once. If no token is left, new ones are given for the time since they were
//!   last given, in jiffies, at most 10 s.
//! - Otherwise the packet is marked with probability p, or dropped if it can't be marked. Above p =
//!   1/2 a fraction of the marks are drops instead: all of them at p = 1.
//! - There are two sets of bins with keys of their own. Every `rehash` ms they are swapped, and the
//!   retired set gets a new key. During the last `db` ms before a swap, packets of unresponsive
//!   flows are counted in the other set, too.
//! - p is in units of 2^-16 (1 is 65535).
//!
//! Deviation: rehash and tokens are counted from time 0, in Linux from the creation of the
//! discipline.

use crate::ds::mark;
use crate::timer::JIFFY;
use crate::{Backlog, Body, Cause, Context, Fifo, Packet, Qdisc, Replayable, State, Verdict};
use serde::Deserialize;
use std::collections::VecDeque;
use units::{Rng, Time};

/// `sfb rehash MS db MS limit PACKETS max PACKETS target PACKETS increment P decrement P penalty_rate PPS penalty_burst PACKETS`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SfbParams {
    /// The limit of the queue, packets (1000).
    pub limit: u64,
    /// The time between two changes of the hash, ms; 0: never (600 000).
    pub rehash_ms: u64,
    /// The time before such a change in which the other set is warmed up, ms (60 000).
    pub db_ms: u64,
    /// A flow's packets are dropped while each of its bins has this many packets or more (25).
    pub max: u32,
    /// The p of a bin rises at arrivals while it has this many packets or more (20).
    pub target: u32,
    /// The increment of p, of 65535 (33).
    pub increment: u32,
    /// The decrement of p, of 65535 (3).
    pub decrement: u32,
    /// The rate of unresponsive flows, packets a second (10).
    pub penalty_rate: u32,
    /// The burst of unresponsive flows, packets (20).
    pub penalty_burst: u32,
}

const LEVELS: usize = 8;
/// The bins of a level, one for each value of four bits of the hash.
const BINS: usize = 16;
/// p = 1.
const ONE: u32 = 65535;
/// The number of values of 16 random bits.
const DRAWS: u32 = 1 << 16;
const HZ: u64 = 1_000_000_000 / JIFFY;
/// The longest time for which tokens are given, jiffies.
const LONGEST: u64 = 10 * HZ;

fn jiffies(now: Time) -> u64 {
    now.0 / JIFFY
}

#[derive(Clone, Copy, Default)]
struct Bin {
    packets: u32,
    p: u32,
}

/// A set of bins, and the key of its hash.
struct Set {
    key: u64,
    levels: [[Bin; BINS]; LEVELS],
}

/// The bin of a hash on each level.
fn places(hash: u32) -> impl Iterator<Item = (usize, usize)> {
    (0..LEVELS).map(move |level| (level, (hash >> (4 * level)) as usize % BINS))
}

impl Set {
    fn new(rng: &mut Rng) -> Set {
        Set { key: rng.next_u64(), levels: [[Bin::default(); BINS]; LEVELS] }
    }

    /// Updates p of the bins for an arrival.
    fn update(&mut self, hash: u32, law: &Law) {
        for (level, bin) in places(hash) {
            let bin = &mut self.levels[level][bin];
            if bin.packets == 0 {
                bin.p = bin.p.saturating_sub(law.decrement);
            } else if bin.packets >= law.target {
                bin.p = (bin.p + law.increment).min(ONE);
            }
        }
    }

    /// The fewest packets and the smallest p of a hash's bins.
    fn least(&self, hash: u32) -> Bin {
        let bins = places(hash).map(|(level, bin)| self.levels[level][bin]);
        let most = Bin { packets: u32::MAX, p: ONE };
        bins.fold(most, |least, bin| Bin {
            packets: least.packets.min(bin.packets),
            p: least.p.min(bin.p),
        })
    }

    fn enter(&mut self, hash: u32) {
        places(hash).for_each(|(level, bin)| self.levels[level][bin].packets += 1);
    }

    fn leave(&mut self, hash: u32) {
        places(hash).for_each(|(level, bin)| self.levels[level][bin].packets -= 1);
    }
}

/// The parameters of the updates of p.
struct Law {
    target: u32,
    increment: u32,
    decrement: u32,
}

/// The token bucket of unresponsive flows.
struct Penalty {
    rate: u64,
    burst: u64,
    tokens: u64,
    counted: u64,
}

impl Penalty {
    /// Whether a packet of an unresponsive flow passes.
    fn passes(&mut self, now: u64) -> bool {
        if self.tokens == 0 {
            let age = (now - self.counted).min(LONGEST);
            self.tokens = (age * self.rate / HZ).min(self.burst);
            self.counted = now;
        }
        let passes = self.tokens > 0 && self.rate > 0;
        self.tokens -= u64::from(passes);
        passes
    }
}

/// The decision on an arrival.
enum Decision {
    Pass,
    Signal,
    Drop,
}

/// One queue under stochastic fair BLUE.
pub struct Sfb<B> {
    limit: u64,
    max: u32,
    law: Law,
    penalty: Penalty,
    sets: Box<[Set; 2]>,
    /// The set in force.
    current: usize,
    rehash: u64,
    warmup: u64,
    /// The jiffy of the last change of sets.
    changed: u64,
    /// The other set is being warmed up.
    doubled: bool,
    queue: Fifo<B>,
    /// For each queued packet its hash in each set; `None` if the packet is not counted there.
    hashes: VecDeque<[Option<u32>; 2]>,
    rng: Rng,
    /// For replays: the recorded draw of the next arrival (`Replayable::set_recorded_draw`).
    recorded_draw: Option<bool>,
    /// For replays: the probability that the last arrival was dropped or marked early.
    chance: f64,
}

impl<B: Body> Sfb<B> {
    /// An empty queue. The hash keys and the draws are from the context's random stream.
    pub fn new(params: &SfbParams, mut context: Context) -> Self {
        let sets = Box::new([Set::new(&mut context.rng), Set::new(&mut context.rng)]);
        let burst = u64::from(params.penalty_burst);
        Sfb {
            limit: params.limit,
            max: params.max,
            law: Law {
                target: params.target,
                increment: params.increment,
                decrement: params.decrement,
            },
            penalty: Penalty { rate: params.penalty_rate.into(), burst, tokens: burst, counted: 0 },
            sets,
            current: 0,
            rehash: (params.rehash_ms * 1_000_000).div_ceil(JIFFY),
            warmup: (params.db_ms * 1_000_000).div_ceil(JIFFY),
            changed: 0,
            doubled: false,
            queue: Fifo::default(),
            hashes: VecDeque::new(),
            rng: context.rng,
            recorded_draw: None,
            chance: 0.0,
        }
    }

    /// Swaps the sets, or begins to warm up the other one, if it is time to.
    #[inline]
    fn catch_up(&mut self, now: u64) {
        if self.rehash == 0 {
            return;
        }
        let end = self.changed + self.rehash;
        if now > end {
            self.sets[self.current].key = self.rng.next_u64();
            self.current ^= 1;
            self.doubled = false;
            self.changed = now;
        } else if self.warmup > 0 && now > end.saturating_sub(self.warmup) {
            self.doubled = true;
        }
    }

    #[inline]
    fn hash(&self, set: usize, packet: &Packet<B>) -> u32 {
        crate::hash(packet.body.connection(packet.flow), self.sets[set].key)
    }

    /// Decides on an arriving packet. `counted` receives its hash in each set that is to count it.
    fn decide(&mut self, packet: &Packet<B>, now: u64, counted: &mut [Option<u32>; 2]) -> Decision {
        let hash = self.hash(self.current, packet);
        counted[self.current] = Some(hash);
        self.sets[self.current].update(hash, &self.law);
        let least = self.sets[self.current].least(hash);
        if least.packets >= self.max {
            self.chance = 1.0;
            return Decision::Drop;
        }
        if least.p < ONE {
            return self.draw(least.p);
        }
        if self.doubled {
            let other = self.current ^ 1;
            let hash = self.hash(other, packet);
            counted[other] = Some(hash);
            self.sets[other].update(hash, &self.law);
        }
        let passes = self.penalty.passes(now);
        self.chance = if passes { 0.0 } else { 1.0 };
        if passes { Decision::Pass } else { Decision::Drop }
    }

    /// Signals with probability p; from p = 1/2 on some signals are drops.
    fn draw(&mut self, p: u32) -> Decision {
        self.chance = f64::from(p) / f64::from(DRAWS);
        let recorded_draw = self.recorded_draw.filter(|_| p > 0);
        let drawn = match recorded_draw {
            None => (self.rng.next_u64() >> 48) as u32,
            Some(true) => self.rng.below(p.into()) as u32,
            Some(false) => ONE,
        };
        if drawn >= p {
            Decision::Pass
        } else if drawn < 2 * p.saturating_sub(ONE / 2) {
            Decision::Drop
        } else {
            Decision::Signal
        }
    }
}

impl<B: Body> Qdisc<B> for Sfb<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        if u64::from(self.queue.backlog().packets) >= self.limit {
            self.chance = 0.0;
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        let jiffy = jiffies(now);
        self.catch_up(jiffy);
        let mut counted = [None; 2];
        let passes = match self.decide(&packet, jiffy, &mut counted) {
            Decision::Pass => true,
            Decision::Signal => mark(&mut packet, Cause::Early, verdicts),
            Decision::Drop => false,
        };
        if !passes {
            return verdicts.push(Verdict::Dropped(packet, Cause::Early));
        }
        for (set, hash) in self.sets.iter_mut().zip(counted) {
            hash.into_iter().for_each(|hash| set.enter(hash));
        }
        self.hashes.push_back(counted);
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let packet = self.queue.pop()?;
        let counted = self.hashes.pop_front().expect("each queued packet has its hashes");
        for (set, hash) in self.sets.iter_mut().zip(counted) {
            hash.into_iter().for_each(|hash| set.leave(hash));
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// The probability is the mean of all bins, as in the kernel's statistics.
    fn state(&self, _now: Time) -> State {
        let bins = self.sets[self.current].levels.as_flattened();
        let sum: u64 = bins.iter().map(|bin| u64::from(bin.p)).sum();
        let mean = sum as f64 / (bins.len() as f64 * f64::from(ONE));
        State { limit: Some(self.limit as f64), probability: Some(mean), ..State::default() }
    }
}

impl<B: Body> Replayable for Sfb<B> {
    fn set_recorded_draw(&mut self, early: bool) {
        self.recorded_draw = Some(early);
    }

    fn chance(&mut self) -> Option<f64> {
        Some(self.chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DsField, Ecn};

    const MS: u64 = 1_000_000;

    fn params() -> SfbParams {
        SfbParams {
            limit: 1000,
            rehash_ms: 600_000,
            db_ms: 60_000,
            max: 25,
            target: 20,
            increment: 33,
            decrement: 3,
            penalty_rate: 10,
            penalty_burst: 20,
        }
    }

    fn sfb(params: &SfbParams) -> Sfb<()> {
        let rng = Rng::new(1, "sfb");
        Sfb::new(params, Context { rate: None, mtu: 1514, header_bytes: 14, root: true, rng })
    }

    /// Enqueues a packet. Returns whether it passed, was marked or was dropped.
    fn send(q: &mut Sfb<()>, flow: u32, ecn: Ecn, at: u64) -> &'static str {
        let packet = Packet { enqueued: Time::NEVER, flow, size: 1514, ds: ecn.into(), body: () };
        let mut verdicts = Vec::new();
        q.enqueue(packet, Time(at), &mut verdicts);
        match verdicts[..] {
            [] => "passed",
            [Verdict::Marked { cause: Cause::Early, .. }] => "marked",
            [Verdict::Dropped(_, Cause::Early)] => "dropped",
            [Verdict::Dropped(_, Cause::Limit)] => "refused",
            _ => panic!("{verdicts:?}"),
        }
    }

    fn serve(q: &mut Sfb<()>) {
        q.dequeue(Time::ZERO, &mut Vec::new());
    }

    fn p_of(q: &Sfb<()>, flow: u32) -> u32 {
        let packet =
            Packet { enqueued: Time::ZERO, flow, size: 0, ds: DsField::BEST_EFFORT, body: () };
        q.sets[q.current].least(q.hash(q.current, &packet)).p
    }

    #[test]
    fn a_flow_s_probability_follows_its_own_packets() {
        let mut q = sfb(&params());
        for _ in 0..21 {
            assert_eq!(send(&mut q, 1, Ecn::NotEct, 0), "passed");
        }
        // The 21st packet found 20 queued.
        assert_eq!((p_of(&q, 1), p_of(&q, 2)), (33, 0));
        (0..21).for_each(|_| serve(&mut q));
        // Twelve arrivals at an empty bin lower p by 36.
        for left in [30, 27, 24, 21, 18, 15, 12, 9, 6, 3, 0, 0] {
            send(&mut q, 1, Ecn::Ect0, 0);
            serve(&mut q);
            assert_eq!(p_of(&q, 1), left);
        }
    }

    #[test]
    fn a_flow_has_no_more_than_max_packets_and_others_have_room() {
        let mut q = sfb(&SfbParams { increment: 0, ..params() });
        let sent: Vec<_> = (0..30).map(|_| send(&mut q, 1, Ecn::Ect0, 0)).collect();
        assert_eq!(sent.iter().filter(|sent| **sent == "passed").count(), 25);
        assert!(sent[25..].iter().all(|sent| *sent == "dropped"));
        assert_eq!(send(&mut q, 2, Ecn::Ect0, 0), "passed");
        let mut q = sfb(&SfbParams { limit: 2, ..params() });
        let sent = [(); 3].map(|()| send(&mut q, 1, Ecn::Ect0, 0));
        assert_eq!(sent, ["passed", "passed", "refused"]);
    }

    /// The shares of marks and drops of many arrivals at this p.
    fn shares(p: u32, ecn: Ecn) -> [f64; 2] {
        let mut q = sfb(&SfbParams { increment: 0, decrement: 0, ..params() });
        q.sets[0].levels = [[Bin { packets: 0, p }; BINS]; LEVELS];
        let sent: Vec<_> = (0..4000)
            .map(|_| {
                let sent = send(&mut q, 1, ecn, 0);
                serve(&mut q);
                sent
            })
            .collect();
        let share = |word| sent.iter().filter(|each| **each == word).count() as f64 / 4000.0;
        ["marked", "dropped"].map(share)
    }

    #[test]
    fn above_a_probability_of_a_half_packets_are_dropped_instead_of_marked() {
        let near = |actual: [f64; 2], expected: [f64; 2]| {
            let apart = actual.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart < 0.03, "{actual:?}, expected {expected:?}");
        };
        near(shares(ONE / 4, Ecn::NotEct), [0.0, 0.25]);
        near(shares(ONE / 4, Ecn::Ect0), [0.25, 0.0]);
        // 0.75: two thirds of the signals are drops.
        near(shares(ONE / 4 * 3, Ecn::Ect0), [0.25, 0.5]);
    }

    #[test]
    fn unresponsive_flows_are_limited_by_tokens() {
        let mut q = sfb(&SfbParams { increment: 0, decrement: 0, ..params() });
        q.sets[0].levels = [[Bin { packets: 0, p: ONE }; BINS]; LEVELS];
        let passed = |q: &mut Sfb<()>, at: u64| {
            let sent = (0..300).map(|_| {
                let sent = send(q, 1, Ecn::Ect0, at);
                serve(q);
                sent
            });
            sent.filter(|sent| *sent == "passed").count()
        };
        assert_eq!(passed(&mut q, 0), 20);
        assert_eq!(passed(&mut q, 99 * MS), 0, "24 jiffies, 96 ms, are less than a token's 100 ms");
        // The failed attempt restarted the clock.
        assert_eq!(passed(&mut q, 1_100 * MS), 10);
        assert_eq!(passed(&mut q, 60_000 * MS), 20);
    }

    #[test]
    fn the_two_sets_alternate_and_the_next_one_is_warmed_up() {
        let mut q = sfb(&SfbParams { rehash_ms: 1_000, db_ms: 100, ..params() });
        let keys = |q: &Sfb<()>| [q.sets[0].key, q.sets[1].key];
        let before = keys(&q);
        send(&mut q, 1, Ecn::Ect0, 900 * MS);
        assert!(!q.doubled);
        send(&mut q, 1, Ecn::Ect0, 904 * MS);
        assert!(q.doubled);
        send(&mut q, 1, Ecn::Ect0, 1_000 * MS);
        assert_eq!((q.current, keys(&q)), (0, before));
        send(&mut q, 1, Ecn::Ect0, 1_004 * MS);
        assert_eq!((q.current, q.doubled), (1, false));
        assert!(keys(&q)[0] != before[0] && keys(&q)[1] == before[1]);
        // Packets from before the change are counted where they were counted on arrival.
        let counted = |q: &Sfb<()>, set: usize| -> u32 {
            q.sets[set].levels[0].iter().map(|bin| bin.packets).sum()
        };
        assert_eq!([counted(&q, 0), counted(&q, 1)], [3, 1]);
        (0..4).for_each(|_| serve(&mut q));
        assert_eq!([counted(&q, 0), counted(&q, 1)], [0, 0]);
    }

    #[test]
    fn unresponsive_flows_are_detected_in_both_sets() {
        let mut q = sfb(&SfbParams { rehash_ms: 1_000, db_ms: 100, decrement: 0, ..params() });
        q.sets[0].levels = [[Bin { packets: 0, p: ONE }; BINS]; LEVELS];
        send(&mut q, 1, Ecn::Ect0, 0);
        assert_eq!(q.hashes[0].map(|hash| hash.is_some()), [true, false]);
        send(&mut q, 1, Ecn::Ect0, 950 * MS);
        assert_eq!(q.hashes[1].map(|hash| hash.is_some()), [true, true]);
    }
}
