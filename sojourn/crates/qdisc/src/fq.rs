//! fq: a queue for each flow, paced at a rate, in three bands that share by weight.
//!
//! Flows of a band are served by deficit round robin, new flows before old ones. A flow whose
//! `maxrate` allows no packet yet is throttled: it leaves the round until its next packet is due. A
//! band sends while it has credit; then the next band has its turn. Packets are dropped only at the
//! limits of each band (`limit`) and of each flow (`flow_limit`).
//!
//! Source: tc-fq(8); Linux net/sched/sch_fq.c (6.12) for the behaviour:
//!
//! - A flow is identified by a packet's hash masked with `orphan_mask`, as Linux does for every
//!   packet that a router forwards. A router has no socket, and so no socket's pacing rate.
//! - If `maxrate` is not given and no flow has packets, up to eight packets bypass the flows, first
//!   in, first out, and ahead of all others (the fast path).
//! - A flow is charged for at least a quantum when its credit is used up. At `low_rate_threshold`
//!   and below it is charged for each packet. If the flow is late, its next wait is shorter by the
//!   delay, but at most by half.
//! - A flow that has become empty passes through the old flows once more. If it stays empty for
//!   `refill_delay` after that, its credit is raised to at least a quantum.
//! - A flow's first packet is served in the round of the first band, whatever its priority.
//! - The timer for throttled flows expires up to `timer_slack` late.
//! - `ce_threshold` counts from the time at which a packet was due, not from its arrival.
//!
//! Deviations: a flow is never forgotten. Linux forgets flows that were idle for 3 s when it finds
//! them (fq_gc). So here the number of `buckets` has no effect. A packet received from a wire has
//! no departure time from its sender, so `horizon` has no effect either. The timer is always late
//! by the full slack.

use crate::bands::{PRIORITIES, listed, priomap};
use crate::pfifo_fast::priority_of;
use crate::slab::{NONE, Slab};
use crate::timer::JIFFY;
use crate::{Backlog, Body, Cause, Context, Fifo, Packet, Qdisc, State, Verdict, ds};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::Time;

/// `fq limit PACKETS flow_limit PACKETS quantum BYTES initial_quantum BYTES maxrate RATE ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqParams {
    /// The limit of each band, packets (10000).
    pub limit: u64,
    /// The limit of each flow, packets (100).
    pub flow_limit: u64,
    /// Bytes that a flow may send in its turn; `None`: two of the largest packets.
    pub quantum: Option<u32>,
    /// Bytes that a new flow may send in its first turn; `None`: ten of the largest packets.
    pub initial_quantum: Option<u32>,
    /// The rate of each flow, bit/s; `None`: unlimited.
    pub maxrate: Option<u64>,
    /// Pace flows at their rate (true).
    pub pacing: bool,
    /// Up to this rate, bit/s, a flow is paced packet by packet (550 000).
    pub low_rate_threshold: u64,
    /// The time that a flow must be empty to regain a quantum, ns, counted in jiffies (40 000 000).
    pub refill_delay_ns: u64,
    /// The bits of the hash that identify a flow, 16 at most (1023).
    pub orphan_mask: u16,
    /// Mark ECN-capable packets that leave more than this after they were due, ns; `None`: off.
    pub ce_threshold_ns: Option<u64>,
    /// The delay of the timer, ns (10 000).
    pub timer_slack_ns: u64,
    /// The band of each priority, from priority 0 on, separated by blanks (1 2 2 2 1 2 0 0, then
    /// eight times 1).
    #[serde(deserialize_with = "priomap")]
    pub priomap: [u8; PRIORITIES],
    /// Bytes that each band may send in its turn (589824 196608 65536).
    #[serde(deserialize_with = "weights")]
    pub weights: [u32; BANDS],
}

const BANDS: usize = 3;
/// The largest number of packets on the fast path.
const FAST: usize = 8;
const SECOND: u64 = 1_000_000_000;

fn weights<'de, D: Deserializer<'de>>(from: D) -> Result<[u32; BANDS], D::Error> {
    listed(from)?.try_into().map_err(|_| D::Error::custom("there are three weights"))
}

/// A flow: its packets and its credit.
struct Flow {
    head: u32,
    tail: u32,
    packets: u32,
    band: usize,
    /// The bytes that the flow may still send in its turn.
    credit: i64,
    /// The time before which no packet of the flow leaves; 0 if it was never paced.
    next: u64,
    /// The jiffy in which the flow left the round, forced to be odd as in Linux. `None`: the flow
    /// is in the round, or throttled.
    away_since: Option<u64>,
}

/// The round and the credit of a band.
#[derive(Default)]
struct Band {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u64,
    credit: i64,
    weight: i64,
}

/// The kernel's timer for throttled flows.
#[derive(Default)]
struct Alarm {
    slack: u64,
    /// The time that it is set for; it expires up to `slack` later.
    set_for: u64,
}

impl Alarm {
    /// Sets the timer for a throttled flow's time, and returns the time of expiry. A timer that
    /// already covers `time` within its slack is left alone.
    fn set(&mut self, time: u64, now: u64) -> u64 {
        let pending = self.set_for + self.slack > now;
        let near = (time..=time + self.slack).contains(&self.set_for);
        if !(pending && near) {
            self.set_for = time;
        }
        self.set_for + self.slack
    }
}

/// Linux's fair queue.
pub struct Fq<B> {
    limit: u64,
    flow_limit: u64,
    quantum: i64,
    initial_quantum: i64,
    /// The pacing rate in bytes/s; `None`: flows are not paced.
    rate: Option<u64>,
    low_rate: u64,
    has_fast_path: bool,
    refill_jiffies: u64,
    ce_threshold: Option<u64>,
    priomap: [u8; PRIORITIES],
    key: u64,
    mask: u32,
    /// The flow of each masked hash; NONE if there was none yet.
    by_hash: Vec<u32>,
    flows: Vec<Flow>,
    slab: Slab<B>,
    fast: Fifo<B>,
    bands: [Band; BANDS],
    /// The index of the band whose turn it is.
    turn: usize,
    /// The throttled flows, by time and then in the order in which they were throttled.
    throttled: BinaryHeap<Reverse<(u64, u64, u32)>>,
    throttlings: u64,
    /// The number of flows with packets.
    active: u32,
    total: Backlog,
    alarm: Alarm,
    /// A dequeue before this time returns nothing.
    wake: u64,
}

impl<B: Body> Fq<B> {
    /// An empty queue. The hash key is drawn from the context's random stream.
    pub fn new(params: &FqParams, mut context: Context) -> Self {
        let full = context.mtu;
        let maxrate = params.maxrate.map(|bps| bps / 8).filter(|rate| *rate < u32::MAX.into());
        let band = |weight: u32| Band { weight: weight.max(1).into(), ..Band::default() };
        Fq {
            limit: params.limit,
            flow_limit: params.flow_limit,
            quantum: params.quantum.unwrap_or(2 * full).max(1).into(),
            initial_quantum: params.initial_quantum.unwrap_or(10 * full).into(),
            rate: maxrate.filter(|_| params.pacing),
            low_rate: params.low_rate_threshold / 8,
            has_fast_path: maxrate.is_none(),
            refill_jiffies: params.refill_delay_ns.div_ceil(JIFFY),
            ce_threshold: params.ce_threshold_ns,
            priomap: params.priomap.map(|band| band.min(BANDS as u8 - 1)),
            key: context.rng.next_u64(),
            mask: params.orphan_mask.into(),
            by_hash: vec![NONE; usize::from(params.orphan_mask) + 1],
            flows: Vec::new(),
            slab: Slab::default(),
            fast: Fifo::default(),
            bands: params.weights.map(band),
            turn: 0,
            throttled: BinaryHeap::new(),
            throttlings: 0,
            active: 0,
            total: Backlog::default(),
            alarm: Alarm { slack: params.timer_slack_ns, set_for: 0 },
            wake: 0,
        }
    }

    /// Whether two of these flows share a queue, if their packets have bodies like `body`.
    pub fn any_share_a_queue(&self, flows: &[u32], body: &B) -> bool {
        let mut taken = vec![false; self.by_hash.len()];
        flows.iter().any(|flow| std::mem::replace(&mut taken[self.hash(*flow, body)], true))
    }

    #[inline]
    fn hash(&self, flow: u32, body: &B) -> usize {
        (body.hash(flow, self.key) & self.mask) as usize
    }

    #[inline]
    fn band_of(&self, packet: &Packet<B>) -> usize {
        self.priomap[usize::from(priority_of(packet.ds))].into()
    }

    /// Whether a packet may take the fast path, since no flow has packets.
    #[inline]
    fn takes_fast_path(&self) -> bool {
        self.has_fast_path && self.active == 0 && (self.fast.backlog().packets as usize) < FAST
    }

    #[inline]
    fn flow_of(&mut self, packet: &Packet<B>, now: Time) -> u32 {
        let hash = self.hash(packet.flow, &packet.body);
        if self.by_hash[hash] == NONE {
            self.by_hash[hash] = self.flows.len() as u32;
            self.flows.push(Flow {
                head: NONE,
                tail: NONE,
                packets: 0,
                band: 0,
                credit: self.initial_quantum,
                next: 0,
                away_since: Some(odd(jiffy(now))),
            });
        }
        self.by_hash[hash]
    }

    /// Puts a flow that had left the round back into it, as a new flow.
    #[inline]
    fn come_back(&mut self, index: u32, now: Time) {
        let flow = &mut self.flows[index as usize];
        let Some(since) = flow.away_since.take() else {
            return;
        };
        if jiffy(now) > since + self.refill_jiffies {
            flow.credit = flow.credit.max(self.quantum);
        }
        self.bands[flow.band].new.push_back(index);
    }

    #[inline]
    fn push(&mut self, index: u32, packet: Packet<B>) {
        let place = self.slab.insert(packet);
        let flow = &mut self.flows[index as usize];
        if flow.packets == 0 {
            flow.head = place;
            self.active += 1;
        } else {
            self.slab.link(flow.tail, place);
        }
        flow.tail = place;
        flow.packets += 1;
    }

    #[inline]
    fn pop(&mut self, index: u32) -> Packet<B> {
        let flow = &mut self.flows[index as usize];
        let (packet, next) = self.slab.remove(flow.head);
        flow.head = next;
        flow.packets -= 1;
        if flow.packets == 0 {
            self.active -= 1;
        }
        let band = self.band_of(&packet);
        self.bands[band].packets -= 1;
        packet
    }

    /// Puts the throttled flows whose time has come back into the round.
    fn release(&mut self, now: Time) {
        while let Some(Reverse((time, _, index))) = self.throttled.peek().copied()
            && time <= now.0
        {
            self.throttled.pop();
            self.bands[self.flows[index as usize].band].old.push_back(index);
        }
    }

    fn throttle(&mut self, index: u32, until: u64) {
        self.flows[index as usize].next = until;
        self.throttlings += 1;
        self.throttled.push(Reverse((until, self.throttlings, index)));
    }

    /// The first flow of the band whose turn it is, and whether it is a new flow.
    #[inline]
    fn first(&self) -> Option<(u32, bool)> {
        let band = &self.bands[self.turn];
        let new = band.new.front().map(|index| (*index, true));
        let first = || new.or_else(|| band.old.front().map(|index| (*index, false)));
        if band.credit > 0 { first() } else { None }
    }

    /// Passes the turn to the next band with credit. Returns false if every band has had its turn
    /// and had no flow.
    #[inline]
    fn pass_turn(&mut self, in_vain: &mut usize) -> bool {
        loop {
            *in_vain += 1;
            if *in_vain > BANDS {
                return false;
            }
            self.turn = (self.turn + 1) % BANDS;
            let band = &mut self.bands[self.turn];
            band.credit = (band.credit + band.weight).min(band.weight);
            if band.credit > 0 {
                return true;
            }
            *in_vain = 0;
        }
    }

    /// The flow to serve, and the time since which its packet has been due.
    #[inline]
    fn choose(&mut self, now: Time) -> Option<(u32, u64)> {
        let mut in_vain = 0;
        loop {
            let Some((index, is_new)) = self.first() else {
                if self.pass_turn(&mut in_vain) {
                    continue;
                }
                return None;
            };
            in_vain = 0;
            let flow = &mut self.flows[index as usize];
            let spent = flow.credit <= 0;
            if !spent && flow.packets > 0 {
                let head = self.slab.get(flow.head);
                let due = head.enqueued.0.max(flow.next);
                if due <= now.0 {
                    return Some((index, due));
                }
                self.leave_round(is_new);
                self.throttle(index, due);
                continue;
            }
            if spent {
                flow.credit += self.quantum;
            }
            let (stays, band) = (spent || is_new, flow.band);
            if !stays {
                flow.away_since = Some(odd(jiffy(now)));
            }
            self.leave_round(is_new);
            if stays {
                self.bands[band].old.push_back(index);
            }
        }
    }

    fn leave_round(&mut self, is_new: bool) {
        let band = &mut self.bands[self.turn];
        if is_new {
            band.new.pop_front()
        } else {
            band.old.pop_front()
        };
    }

    /// Charges a packet of `bytes` to its flow and to the band whose turn it is.
    #[inline]
    fn charge(&mut self, index: u32, bytes: u32, now: Time) {
        let size = i64::from(bytes);
        self.bands[self.turn].credit -= size;
        let flow = &mut self.flows[index as usize];
        flow.credit -= size;
        let Some(rate) = self.rate else {
            return;
        };
        let counted = if rate <= self.low_rate {
            flow.credit = 0;
            size
        } else if flow.credit > 0 {
            return;
        } else {
            size.max(self.quantum)
        };
        // The wait is at most a second for each packet, also at a rate of 0.
        let wait = (counted as u64 * SECOND / rate.max(1)).min(SECOND);
        let late = if flow.next == 0 { 0 } else { now.0 - flow.next };
        flow.next = now.0 + wait - late.min(wait / 2);
    }
}

/// The jiffy, in which the kernel counts refills.
#[inline]
fn jiffy(now: Time) -> u64 {
    now.0 / JIFFY
}

#[inline]
fn odd(jiffy: u64) -> u64 {
    jiffy | 1
}

impl<B: Body> Qdisc<B> for Fq<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        // Whether or not the packet is queued, Linux calls dequeue now.
        self.wake = 0;
        packet.enqueued = now;
        let band = self.band_of(&packet);
        if self.bands[band].packets >= self.limit {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        let size = packet.size;
        if self.takes_fast_path() {
            self.fast.push(packet, now);
        } else {
            let index = self.flow_of(&packet, now);
            if u64::from(self.flows[index as usize].packets) >= self.flow_limit {
                return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
            }
            self.come_back(index, now);
            self.flows[index as usize].band = band;
            self.bands[band].packets += 1;
            self.push(index, packet);
        }
        self.total.packets += 1;
        self.total.bytes += u64::from(size);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        if self.total.packets == 0 {
            return None;
        }
        let packet = match self.fast.pop() {
            Some(packet) => packet,
            None => {
                self.release(now);
                let Some((index, due)) = self.choose(now) else {
                    let Reverse((next, _, _)) = *self.throttled.peek()?;
                    self.wake = self.alarm.set(next, now.0);
                    return None;
                };
                let mut packet = self.pop(index);
                if self.ce_threshold.is_some_and(|most| now.0 - due > most) {
                    ds::mark(&mut packet, Cause::CeThreshold, verdicts);
                }
                self.charge(index, packet.size, now);
                packet
            }
        };
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size);
        Some(packet)
    }

    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.has_fast_path && self.limit > 0
    }

    /// The time of the timer, if the last dequeue returned nothing and no packet has arrived since.
    #[inline]
    fn holds_until(&self) -> Option<Time> {
        self.rate.map(|_| Time(self.wake))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.limit as f64),
            flows: Some(f64::from(self.active)),
            ..State::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    const MS: u64 = 1_000_000;
    const BEST_EFFORT: DsField = DsField::BEST_EFFORT;
    const LOW_DELAY: DsField = DsField(0x10);
    const THROUGHPUT: DsField = DsField(0x08);
    const BULK: u32 = 1514;

    fn params() -> FqParams {
        FqParams {
            limit: 10_000,
            flow_limit: 100,
            quantum: None,
            initial_quantum: None,
            maxrate: None,
            pacing: true,
            low_rate_threshold: 550_000,
            refill_delay_ns: 40 * MS,
            orphan_mask: 1023,
            ce_threshold_ns: None,
            timer_slack_ns: 10_000,
            priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            weights: [9 << 16, 3 << 16, 1 << 16],
        }
    }

    fn fq(params: &FqParams) -> Fq<u32> {
        let rng = Rng::new(1, "fq");
        let context = Context { rate: None, mtu: BULK, header_bytes: 14, root: true, rng };
        Fq::new(params, context)
    }

    fn packet(flow: u32, size: u32, ds: DsField) -> Packet<u32> {
        Packet { enqueued: Time::NEVER, flow, size, ds, body: flow }
    }

    /// Enqueues a full packet of each of these flows. Returns the number of drops.
    fn send(q: &mut Fq<u32>, flows: &[u32], at: u64) -> usize {
        let mut verdicts = Vec::new();
        for flow in flows {
            q.enqueue(packet(*flow, BULK, BEST_EFFORT), Time(at), &mut verdicts);
        }
        verdicts.len()
    }

    fn served(q: &mut Fq<u32>, at: u64) -> Option<u32> {
        q.dequeue(Time(at), &mut Vec::new()).map(|packet| packet.flow)
    }

    fn drain(q: &mut Fq<u32>, at: u64) -> Vec<u32> {
        std::iter::from_fn(|| served(q, at)).collect()
    }

    /// The departure times. The queue is called at each time that its timer names.
    fn times(q: &mut Fq<u32>, mut now: u64) -> Vec<u64> {
        let mut times = Vec::new();
        while q.backlog().packets > 0 {
            match served(q, now) {
                Some(_) => times.push(now),
                None => now = q.holds_until().expect("fq has a rate").0,
            }
        }
        times
    }

    /// Fills the fast path with eight packets, so that later packets join flows.
    fn past_the_fast_path(q: &mut Fq<u32>) {
        assert_eq!(send(q, &[99; FAST], 0), 0);
        assert_eq!(q.state(Time::ZERO).flows, Some(0.0));
    }

    #[test]
    fn the_fast_path_takes_eight_packets_ahead_of_the_flows() {
        let mut q = fq(&params());
        past_the_fast_path(&mut q);
        send(&mut q, &[1, 2], 0);
        assert_eq!(q.state(Time::ZERO).flows, Some(2.0));
        assert_eq!(served(&mut q, 0), Some(99));
        // There is room on the fast path again, but there are flows.
        send(&mut q, &[3], 0);
        assert_eq!(drain(&mut q, 0), [99, 99, 99, 99, 99, 99, 99, 1, 2, 3]);
    }

    #[test]
    fn a_new_flow_sends_ten_packets_and_then_two_a_turn() {
        let mut q = fq(&params());
        past_the_fast_path(&mut q);
        send(&mut q, &[1; 20], 0);
        send(&mut q, &[2; 20], 0);
        let order = drain(&mut q, 0);
        let runs = order[FAST..].chunk_by(|a, b| a == b).map(<[u32]>::len);
        assert_eq!(runs.collect::<Vec<_>>(), [10, 10, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn a_flow_that_was_idle_gets_a_new_quantum() {
        for (away, credit) in [(30, 486), (60, 3028)] {
            let mut q = fq(&FqParams { initial_quantum: Some(2000), ..params() });
            past_the_fast_path(&mut q);
            // Flow 1 sends 1514 of its 2000 bytes, and is found empty twice while flow 2 is served.
            send(&mut q, &[1, 2, 2, 2, 2, 2, 2], 0);
            (0..FAST + 4).for_each(|_| assert!(served(&mut q, 0).is_some()));
            let index = q.by_hash[q.hash(1, &1)] as usize;
            assert_eq!(q.flows[index].away_since, Some(1));
            send(&mut q, &[1], away * MS);
            assert_eq!(q.flows[index].credit, credit);
        }
    }

    #[test]
    fn each_flow_is_limited_to_its_rate() {
        // 12.112 Mbit/s: a packet a millisecond, charged in quanta of two.
        let maxrate = Some(12_112_000);
        let params = FqParams { maxrate, initial_quantum: Some(BULK), ..params() };
        let mut q = fq(&FqParams { timer_slack_ns: 0, ..params.clone() });
        send(&mut q, &[1; 6], 0);
        // One packet uses up the credit of the first turn; two packets use up that of each later
        // turn.
        assert_eq!(times(&mut q, 0), [0, 2, 2, 4, 4, 6].map(|ms| ms * MS));
        // The timer is late by its slack. The flow gains that time at its next turn.
        let mut q = fq(&params);
        send(&mut q, &[1; 6], 0);
        let slack = params.timer_slack_ns;
        let late =
            [0, 2 * MS + slack, 2 * MS + slack, 4 * MS + slack, 4 * MS + slack, 6 * MS + slack];
        assert_eq!(times(&mut q, 0), late);
        // Two flows are paced independently.
        let mut q = fq(&FqParams { timer_slack_ns: 0, ..params });
        send(&mut q, &[1, 2, 1, 2], 0);
        assert_eq!(times(&mut q, 0), [0, 0, 2 * MS, 2 * MS]);
    }

    #[test]
    fn a_slow_flow_is_delayed_before_each_packet() {
        // 500 kbit/s: a packet takes 24.224 ms, whatever the credit; 40 bytes take 0.64 ms.
        let params = FqParams { maxrate: Some(500_000), timer_slack_ns: 0, ..params() };
        let mut q = fq(&params);
        send(&mut q, &[1; 3], 0);
        assert_eq!(times(&mut q, 0), [0, 24_224_000, 48_448_000]);
        let mut q = fq(&params);
        for _ in 0..2 {
            q.enqueue(packet(1, 40, BEST_EFFORT), Time::ZERO, &mut Vec::new());
        }
        assert_eq!(times(&mut q, 0), [0, 640_000]);
        // No packet waits for more than a second.
        let mut q = fq(&FqParams { maxrate: Some(8), ..params });
        send(&mut q, &[1; 2], 0);
        assert_eq!(times(&mut q, 0), [0, SECOND]);
    }

    #[test]
    fn nopacing_holds_nothing_back_and_has_no_fast_path_either() {
        let params = FqParams { maxrate: Some(8), pacing: false, ..params() };
        let mut q = fq(&params);
        send(&mut q, &[1; 3], 0);
        assert_eq!((q.holds_until(), q.state(Time::ZERO).flows), (None, Some(1.0)));
        assert_eq!(drain(&mut q, 0), [1; 3]);
    }

    #[test]
    fn an_arrival_makes_linux_dequeue_before_the_timer() {
        let params = FqParams { maxrate: Some(500_000), ..params() };
        let mut q = fq(&params);
        send(&mut q, &[1; 2], 0);
        assert_eq!((served(&mut q, 0), served(&mut q, 1)), (Some(1), None));
        let due = 24_224_000;
        assert_eq!(q.holds_until(), Some(Time(due + 10_000)));
        // The packet arrives between the flow's time and the timer's expiry.
        send(&mut q, &[2], due + 1);
        assert_eq!(q.holds_until(), Some(Time::ZERO));
        assert_eq!(drain(&mut q, due + 1), [1, 2]);
    }

    #[test]
    fn a_timer_within_its_slack_is_not_set_again() {
        let mut alarm = Alarm { slack: 10, set_for: 0 };
        assert_eq!(alarm.set(100, 50), 110);
        // A timer set for 100 may expire until 110, and one set for 95 at 105 or later.
        assert_eq!(alarm.set(95, 60), 110);
        assert_eq!(alarm.set(85, 60), 95);
        assert_eq!(alarm.set(90, 70), 100, "the timer was set for an earlier time");
        assert_eq!(alarm.set(200, 150), 210, "the timer has expired");
    }

    #[test]
    fn bands_share_by_weight_and_a_flow_begins_in_the_first() {
        let params = FqParams { limit: 3000, flow_limit: 3000, maxrate: Some(8), ..params() };
        let mut q = fq(&FqParams { pacing: false, ..params });
        for _ in 0..2000 {
            for (flow, ds) in [(1, LOW_DELAY), (2, BEST_EFFORT), (3, THROUGHPUT)] {
                q.enqueue(packet(flow, 1000, ds), Time::ZERO, &mut Vec::new());
            }
        }
        // The first band sends 590 packets: the first turns of the others' flows, 16 each, and 558
        // of its own. Then the second band sends 197, the third 66, and the first again.
        let mut sent = [0; 4];
        for _ in 0..900 {
            sent[served(&mut q, 0).expect("a backlog") as usize] += 1;
        }
        assert_eq!(sent, [0, 558 + 47, 16 + 197, 16 + 66]);
    }

    #[test]
    fn limits_apply_to_each_band_and_to_each_flow() {
        let params = FqParams { limit: 5, flow_limit: 3, maxrate: Some(8), ..params() };
        let mut q = fq(&params);
        assert_eq!(send(&mut q, &[1, 1, 1, 1, 2, 2, 3, 3], 0), 3);
        assert_eq!(q.backlog(), Backlog { packets: 5, bytes: 5 * 1514 });
        let mut verdicts = Vec::new();
        q.enqueue(packet(4, BULK, LOW_DELAY), Time::ZERO, &mut verdicts);
        assert!(verdicts.is_empty());
    }

    #[test]
    fn the_marking_delay_counts_from_the_packet_s_due_time() {
        let ce_threshold_ns = Some(MS);
        let params = FqParams { maxrate: Some(500_000), ce_threshold_ns, ..params() };
        let mut q = fq(&params);
        let mut verdicts = Vec::new();
        let capable = BEST_EFFORT.with_ecn(crate::Ecn::Ect0);
        for _ in 0..3 {
            q.enqueue(packet(1, BULK, capable), Time::ZERO, &mut verdicts);
        }
        // The second packet waited for 25 ms, 24.224 ms of them for its flow.
        for at in [0, 25 * MS, 60 * MS] {
            assert!(q.dequeue(Time(at), &mut verdicts).is_some());
            assert_eq!(verdicts.len(), usize::from(at == 60 * MS), "{at}");
        }
    }

    #[test]
    fn the_mask_decides_which_hashes_are_one_flow() {
        let flows = [1, 2, 3];
        assert!(fq(&FqParams { orphan_mask: 0, ..params() }).any_share_a_queue(&flows, &0));
        assert!(!fq(&FqParams { orphan_mask: u16::MAX, ..params() }).any_share_a_queue(&flows, &0));
    }
}
