//! sfq: stochastic fairness queueing. Flows are hashed to queues, which are served in turn.
//!
//! A queue with packets has one of `flows` slots and a place in a round. In its turn a slot sends
//! packets until it has used up `quantum` bytes. Each slot has room for `depth` packets, and all
//! slots together for `limit`. When the limit is exceeded a packet of the longest slot is dropped.
//! So the flow with the most packets pays, not the last arrival.
//!
//! Source: McKenney, "Stochastic fairness queueing" (1990); tc-sfq(8); Linux net/sched/sch_sfq.c
//! (6.12) for the behaviour:
//!
//! - A hash selects one of `divisor` buckets. A bucket without packets takes a free slot; if there
//!   is none its packet is dropped.
//! - The longest slot is the one with the most packets, whatever their size. Of equals it is the
//!   one that reached this length last. It loses its newest packet, or its oldest with `headdrop`.
//!   If every slot has one packet, the slot next in the round loses it.
//! - A full slot drops the newcomer. With `headdrop` it drops its oldest packet and takes the
//!   newcomer.
//! - A slot that becomes empty loses its turn. With its next packet it is the last of the round,
//!   with a whole quantum.
//! - Every `perturb` seconds the hash gets another key, and all packets are rehashed, slot by slot.
//!   In the kernel's timer wheel 10 s become 10.24 s.
//!
//! With `redflowlimit` each slot has a RED of its own (`red`), over its bytes:
//!
//! - When a slot gets its first packet, RED's average starts at 0, and RED does not decide on this
//!   packet. The average does not age. Rehashed packets count in the new slot's average, and RED
//!   does not decide on them.
//! - With `headdrop` the oldest packet of the slot is marked, or the newcomer if the oldest is not
//!   ECN-capable. If RED drops, it drops the oldest packet, and the newcomer is queued.
//! - With `harddrop` nothing is marked above `max`.
//! - `redflowlimit` itself limits nothing, contrary to tc-sfq(8): tc computes `max` from it.
//!
//! A packet that finds the queue empty bypasses it (`bypass`).
//!
//! Deviation: Linux starts the timer with the discipline; here it starts at time 0.

use crate::bypass::Bypass;
use crate::ds::mark;
use crate::red::{Decision, LinuxRed, LinuxRedParams};
use crate::timer::Timer;
use crate::{Backlog, Body, Cause, Context, Ecn, Fifo, Packet, Qdisc, Replayable, State, Verdict};
use serde::Deserialize;
use std::collections::VecDeque;
use units::{Rng, Time};

/// `sfq limit PACKETS perturb SECONDS quantum BYTES divisor N flows N depth PACKETS [headdrop]
/// [redflowlimit BYTES min BYTES max BYTES avpkt BYTES burst PACKETS probability P [ecn] [harddrop]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SfqParams {
    /// The limit of all queues together, packets (127).
    pub limit: u64,
    /// The period after which the hash changes, seconds; 0: never (0).
    pub perturb: u64,
    /// Bytes that a queue may send in its turn (1514).
    pub quantum: u32,
    /// The number of buckets that flows are hashed into, a power of two (1024).
    pub divisor: u32,
    /// The number of queues that may have packets at once (128).
    pub flows: u32,
    /// The limit of one queue, packets (127).
    pub depth: u32,
    /// Drop the oldest packet of a queue, not the newest (false).
    pub headdrop: bool,
    /// The limit of a queue with RED, bytes; tc computes `max` from it. 0: no RED (0).
    pub redflowlimit: u64,
    /// Below this average there is no early decision, bytes.
    pub min: u32,
    /// From this average on every packet is dropped or marked, bytes.
    pub max: u32,
    /// The size of an average packet, for the weight, bytes (1000).
    pub avpkt: u32,
    /// The number of packets that may arrive at once without drops; it determines the weight.
    pub burst: u32,
    /// The probability reached at `max`, a fraction (0.02).
    pub probability: f64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// With `ecn`: drop above `max` instead of marking.
    pub harddrop: bool,
}

impl SfqParams {
    /// The RED of a queue, if queues have one.
    fn red(&self) -> Option<LinuxRed> {
        let params = LinuxRedParams {
            limit: self.redflowlimit,
            min: self.min,
            max: self.max,
            avpkt: self.avpkt,
            burst: self.burst,
            probability: self.probability,
            // The bandwidth matters only for idle times.
            bandwidth: 10_000_000,
            adaptive: false,
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: false,
        };
        let mut red = (self.redflowlimit > 0).then(|| LinuxRed::new(&params))?;
        red.restart();
        Some(red)
    }
}

/// In place of a slot's index: there is no slot.
const NONE: u32 = u32::MAX;

/// The packets of one bucket.
struct Slot<B> {
    queue: Fifo<B>,
    bucket: u32,
    /// The bytes that the slot may still send in its turn.
    allot: i64,
}

/// Slots by their number of packets: a list for each number. Its first slot is the one that reached
/// this number last.
struct Lengths {
    first: Vec<u32>,
    /// The neighbours of each slot in its list: the previous and the next one.
    beside: Vec<[u32; 2]>,
    longest: usize,
}

impl Lengths {
    fn new(slots: usize, longest: usize) -> Lengths {
        Lengths { first: vec![NONE; longest + 1], beside: vec![[NONE; 2]; slots], longest: 0 }
    }

    /// Moves a slot between lists after it has gained or lost a packet. Empty slots are in no list.
    fn change(&mut self, slot: u32, from: usize, to: usize) {
        if from > 0 {
            self.unlink(slot, from);
        }
        if to > 0 {
            self.link(slot, to);
        }
        if to > self.longest || (from == self.longest && self.first[from] == NONE) {
            self.longest = to;
        }
    }

    fn unlink(&mut self, slot: u32, length: usize) {
        let [before, behind] = self.beside[slot as usize];
        match before {
            NONE => self.first[length] = behind,
            _ => self.beside[before as usize][1] = behind,
        }
        if behind != NONE {
            self.beside[behind as usize][0] = before;
        }
    }

    fn link(&mut self, slot: u32, length: usize) {
        let behind = std::mem::replace(&mut self.first[length], slot);
        self.beside[slot as usize] = [NONE, behind];
        if behind != NONE {
            self.beside[behind as usize][0] = slot;
        }
    }
}

/// Stochastic fairness queueing.
pub struct Sfq<B> {
    limit: u64,
    quantum: i64,
    depth: usize,
    headdrop: bool,
    /// The first key of the hash, and the number of its changes.
    seed: u64,
    changes: u64,
    perturb: Option<Timer>,
    /// The slot of each bucket.
    buckets: Vec<u32>,
    slots: Vec<Slot<B>>,
    /// The RED of each slot; empty without `redflowlimit`.
    reds: Vec<LinuxRed>,
    rng: Rng,
    /// For replays: the recorded draw of the next arrival (`Replayable::set_recorded_draw`), and
    /// the probability that the last arrival was dropped or marked early (`Replayable::chance`).
    recorded_draw: Option<bool>,
    chance: f64,
    /// Slots without packets; the last is used first.
    free: Vec<u32>,
    lengths: Lengths,
    /// Slots with packets; the first one has its turn.
    round: VecDeque<u32>,
    total: Backlog,
    bypass: Bypass<B>,
}

impl<B: Body> Sfq<B> {
    /// An empty queue. The hash keys are drawn from the context's random stream.
    pub fn new(params: &SfqParams, mut context: Context) -> Self {
        let slots = params.flows.max(1);
        let depth = params.depth.max(1) as usize;
        let slot = |_| Slot { queue: Fifo::default(), bucket: 0, allot: 0 };
        Sfq {
            limit: params.limit,
            quantum: i64::from(params.quantum.max(1)),
            depth,
            headdrop: params.headdrop,
            seed: context.rng.next_u64(),
            changes: 0,
            perturb: (params.perturb > 0).then(|| Timer::of_seconds(params.perturb)),
            buckets: vec![NONE; params.divisor.max(1) as usize],
            slots: (0..slots).map(slot).collect(),
            reds: params.red().map_or_else(Vec::new, |red| vec![red; slots as usize]),
            rng: context.rng,
            recorded_draw: None,
            chance: 0.0,
            free: (0..slots).collect(),
            lengths: Lengths::new(slots as usize, depth),
            round: VecDeque::new(),
            total: Backlog::default(),
            bypass: Bypass::new(context.root && params.limit > 0),
        }
    }

    /// Whether two of these flows are hashed into one queue, if their packets have bodies like
    /// `body`.
    pub fn any_share_a_queue(&self, flows: &[u32], body: &B) -> bool {
        let mut taken = vec![false; self.buckets.len()];
        flows.iter().any(|flow| std::mem::replace(&mut taken[self.bucket(*flow, body)], true))
    }

    /// The bucket of a flow, by the current key.
    #[inline]
    fn bucket(&self, flow: u32, body: &B) -> usize {
        let key = self.seed.wrapping_add(self.changes.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        crate::hash(body.connection(flow), key) as usize & (self.buckets.len() - 1)
    }

    /// Changes the hash once for each expiry of the timer since the last call, and rehashes the
    /// packets each time.
    #[inline]
    fn catch_up(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        if let Some(timer) = self.perturb.as_mut().filter(|timer| timer.next() <= now) {
            for _ in 0..timer.expiries(now) {
                self.changes += 1;
                if self.round.is_empty() {
                    continue;
                }
                self.sort_anew(verdicts);
            }
        }
    }

    /// Rehashes all packets, slot by slot, with the new key. Packets keep their times of enqueue. A
    /// packet that finds no slot, or a full one, is dropped.
    #[cold]
    fn sort_anew(&mut self, verdicts: &mut Vec<Verdict<B>>) {
        let mut packets = Vec::with_capacity(self.total.packets as usize);
        for slot in 0..self.slots.len() as u32 {
            if self.length(slot) > 0
                && let Some(red) = self.reds.get_mut(slot as usize)
            {
                red.restart();
            }
            while self.slots[slot as usize].queue.backlog().packets > 0 {
                packets.push(self.take(slot, true));
            }
        }
        self.round.clear();
        for packet in packets {
            match self.slot_for(&packet).filter(|slot| self.length(*slot) < self.depth) {
                Some(slot) => {
                    let queued = self.slots[slot as usize].queue.backlog().bytes;
                    if let Some(red) = self.reds.get_mut(slot as usize) {
                        red.arrival(queued, packet.enqueued);
                    }
                    self.put(slot, packet);
                }
                None => verdicts.push(Verdict::Dropped(packet, Cause::Limit)),
            }
        }
    }

    fn length(&self, slot: u32) -> usize {
        self.slots[slot as usize].queue.backlog().packets as usize
    }

    /// The slot of the packet's bucket, a free one if the bucket has none.
    #[inline]
    fn slot_for(&mut self, packet: &Packet<B>) -> Option<u32> {
        let bucket = self.bucket(packet.flow, &packet.body);
        if self.buckets[bucket] == NONE {
            let slot = self.free.pop()?;
            self.buckets[bucket] = slot;
            self.slots[slot as usize].bucket = bucket as u32;
        }
        Some(self.buckets[bucket])
    }

    /// Appends a packet. A slot that was empty joins the round as its last.
    #[inline]
    fn put(&mut self, index: u32, packet: Packet<B>) {
        let slot = &mut self.slots[index as usize];
        let before = slot.queue.backlog().packets as usize;
        if before == 0 {
            slot.allot = self.quantum;
            self.round.push_back(index);
        }
        self.total.packets += 1;
        self.total.bytes += u64::from(packet.size);
        let arrival = packet.enqueued;
        slot.queue.push(packet, arrival);
        self.lengths.change(index, before, before + 1);
    }

    /// Removes the oldest or the newest packet of a slot. A slot that is then empty becomes free;
    /// the caller must update the round.
    #[inline]
    fn take(&mut self, index: u32, oldest: bool) -> Packet<B> {
        let slot = &mut self.slots[index as usize];
        let before = slot.queue.backlog().packets as usize;
        let packet = if oldest { slot.queue.pop() } else { slot.queue.pop_newest() };
        let packet = packet.expect("a slot with a bucket has packets");
        if before == 1 {
            self.buckets[slot.bucket as usize] = NONE;
            self.free.push(index);
        }
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size);
        self.lengths.change(index, before, before - 1);
        packet
    }

    /// The limit is exceeded: the longest slot loses a packet, or the slot whose turn it is if all
    /// have one.
    fn drop_from_longest(&mut self, verdicts: &mut Vec<Verdict<B>>) {
        let slot = if self.lengths.longest > 1 {
            self.lengths.first[self.lengths.longest]
        } else {
            self.round.pop_front().expect("the packet that has just arrived is in the round")
        };
        let packet = self.take(slot, self.headdrop);
        verdicts.push(Verdict::Dropped(packet, Cause::Limit));
    }

    /// RED's decision on a packet that arrives at a slot. Returns the cause if a packet is to be
    /// dropped.
    fn early(
        &mut self,
        slot: u32,
        packet: &mut Packet<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Cause> {
        let recorded_draw = self.recorded_draw.take();
        self.chance = 0.0;
        let red = self.reds.get_mut(slot as usize)?;
        let Slot { queue, .. } = &mut self.slots[slot as usize];
        let backlog = queue.backlog();
        if backlog.packets == 0 {
            red.restart();
            return None;
        }
        // The recording does not show the draw if the slot is full, because then the packet is
        // dropped anyway, nor if the packet to be marked has a mark already.
        let has_room = (backlog.packets as usize) < self.depth;
        let is_marked = self.headdrop && queue.front_mut().is_some_and(|it| it.ds.ecn() == Ecn::Ce);
        red.recorded_draw = recorded_draw.map(|early| early && has_room && !is_marked);
        let decision = red.decide(backlog, now, &mut self.rng);
        self.chance = red.chance;
        if let Decision::Signal(cause) = decision
            && self.headdrop
        {
            let oldest = queue.front_mut().expect("a slot with a bucket has packets");
            if mark(oldest, cause, verdicts) {
                return None;
            }
        }
        let cause = decision.drops(packet.ds.ecn());
        if cause.is_none() {
            decision.mark(packet, verdicts);
        }
        cause
    }

    /// Drops a packet that arrives at a slot in use, or with `headdrop` the oldest packet in its
    /// place.
    fn refuse(
        &mut self,
        slot: u32,
        packet: Packet<B>,
        cause: Cause,
        verdicts: &mut Vec<Verdict<B>>,
    ) {
        if !self.headdrop {
            return verdicts.push(Verdict::Dropped(packet, cause));
        }
        let queue = &mut self.slots[slot as usize].queue;
        let oldest = queue.pop().expect("a full slot has packets");
        let arrival = packet.enqueued;
        self.total.bytes += u64::from(packet.size);
        self.total.bytes -= u64::from(oldest.size);
        queue.push(packet, arrival);
        verdicts.push(Verdict::Dropped(oldest, cause));
    }
}

impl<B: Body> Qdisc<B> for Sfq<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.catch_up(now, verdicts);
        let Some(mut packet) = self.bypass.take_past(packet, self.total, now) else {
            return;
        };
        packet.enqueued = now;
        let Some(slot) = self.slot_for(&packet) else {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        };
        if !self.reds.is_empty()
            && let Some(cause) = self.early(slot, &mut packet, now, verdicts)
        {
            return self.refuse(slot, packet, cause, verdicts);
        }
        if self.length(slot) >= self.depth {
            return self.refuse(slot, packet, Cause::Limit, verdicts);
        }
        self.put(slot, packet);
        if u64::from(self.backlog().packets) > self.limit {
            self.drop_from_longest(verdicts);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.catch_up(now, verdicts);
        if let Some(packet) = self.bypass.take_out() {
            return Some(packet);
        }
        let mut index = *self.round.front()?;
        while self.slots[index as usize].allot <= 0 {
            self.slots[index as usize].allot += self.quantum;
            self.round.rotate_left(1);
            index = self.round[0];
        }
        let packet = self.take(index, true);
        if self.length(index) == 0 {
            self.round.pop_front();
        } else {
            self.slots[index as usize].allot -= i64::from(packet.size);
        }
        Some(packet)
    }

    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.bypass.is_open()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bypass.backlog(self.total)
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.limit as f64),
            flows: Some(self.round.len() as f64),
            ..State::default()
        }
    }
}

impl<B: Body> Replayable for Sfq<B> {
    /// Has an effect only with RED.
    fn set_recorded_draw(&mut self, early: bool) {
        self.recorded_draw = Some(early);
        self.chance = 0.0;
    }

    fn chance(&mut self) -> Option<f64> {
        (!self.reds.is_empty()).then_some(self.chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    const SECOND: u64 = 1_000_000_000;

    fn params() -> SfqParams {
        SfqParams {
            limit: 127,
            perturb: 0,
            quantum: 1514,
            divisor: 1024,
            flows: 128,
            depth: 127,
            headdrop: false,
            redflowlimit: 0,
            min: 0,
            max: 0,
            avpkt: 1000,
            burst: 1,
            probability: 0.02,
            ecn: false,
            harddrop: false,
        }
    }

    /// An sfq in which no two of the flows 0 to 9 share a bucket.
    fn sfq(params: &SfqParams) -> Sfq<u32> {
        let new_queue = |seed| {
            let rng = Rng::new(seed, "sfq");
            let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: false, rng };
            Sfq::new(params, context)
        };
        let flows: Vec<u32> = (0..10).collect();
        let apart = (0..100).map(new_queue).find(|q| !q.any_share_a_queue(&flows, &0));
        apart.unwrap_or_else(|| new_queue(0))
    }

    /// Sends packets of full size, numbered from 0. Returns the numbers of the drops.
    fn send(q: &mut Sfq<u32>, flows: &[u32]) -> Vec<u32> {
        let mut dropped = Vec::new();
        for (body, flow) in (0..).zip(flows) {
            dropped.extend(send_one(q, *flow, 1514, body));
        }
        dropped
    }

    fn send_one(q: &mut Sfq<u32>, flow: u32, size: u32, body: u32) -> Vec<u32> {
        let ds = DsField::BEST_EFFORT;
        let packet = Packet { enqueued: Time::NEVER, flow, size, ds, body };
        let mut verdicts = Vec::new();
        q.enqueue(packet, Time::ZERO, &mut verdicts);
        verdicts.into_iter().map(number).collect()
    }

    fn number(verdict: Verdict<u32>) -> u32 {
        match verdict {
            Verdict::Dropped(packet, Cause::Limit) => packet.body,
            other => panic!("{other:?}"),
        }
    }

    /// The flows of all queued packets, in the order of service at this time.
    fn drain(q: &mut Sfq<u32>, at: u64) -> Vec<u32> {
        let served = || q.dequeue(Time(at), &mut Vec::new()).map(|packet| packet.flow);
        std::iter::from_fn(served).collect()
    }

    #[test]
    fn queues_take_turns() {
        let mut q = sfq(&params());
        assert_eq!(send(&mut q, &[1, 1, 1, 2, 2, 3]), []);
        assert_eq!(drain(&mut q, 0), [1, 2, 3, 1, 2, 1]);
        // Two full packets in a turn.
        let mut q = sfq(&SfqParams { quantum: 3028, ..params() });
        send(&mut q, &[1, 1, 1, 2, 2, 2]);
        assert_eq!(drain(&mut q, 0), [1, 1, 2, 2, 1, 2]);
    }

    #[test]
    fn bytes_above_the_quantum_are_subtracted_from_the_next_turn() {
        // In its first turn flow 1 sends two packets of 1000 bytes, which leave 1514 - 2000 = -486.
        // The next turn begins with -486 + 1514 = 1028; packets leave 28, then -972.
        let mut q = sfq(&params());
        for body in 0..8 {
            send_one(&mut q, 1, 1000, body);
        }
        send(&mut q, &[2; 5]);
        assert_eq!(drain(&mut q, 0), [1, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 2]);
    }

    #[test]
    fn a_queue_that_becomes_active_is_last_in_the_round() {
        let mut q = sfq(&params());
        send(&mut q, &[1, 2, 2, 3, 3]);
        assert_eq!(q.dequeue(Time::ZERO, &mut Vec::new()).map(|packet| packet.flow), Some(1));
        send(&mut q, &[1]);
        assert_eq!(drain(&mut q, 0), [2, 3, 1, 2, 3]);
    }

    #[test]
    fn at_the_limit_the_longest_queue_loses_a_packet() {
        for (headdrop, dropped) in [(false, 3), (true, 0)] {
            let mut q = sfq(&SfqParams { limit: 6, headdrop, ..params() });
            // Packets 0 to 3 are flow 1's. The last packet, of flow 3, exceeds the limit.
            assert_eq!(send(&mut q, &[1, 1, 1, 1, 2, 2, 3]), [dropped]);
            assert_eq!(drain(&mut q, 0), [1, 2, 3, 1, 2, 1]);
        }
    }

    #[test]
    fn of_equally_long_queues_the_last_to_reach_the_length_loses_a_packet() {
        let mut q = sfq(&SfqParams { limit: 5, ..params() });
        // Flow 2 reached two packets after flow 1. It falls back to one packet, and then flow 1 is
        // the longest.
        assert_eq!(send(&mut q, &[1, 2, 1, 2, 3, 4, 5]), [3, 2]);
        // Now each slot has one packet. So the next slot of the round, flow 1's, loses its packet
        // to flow 6.
        assert_eq!(q.lengths.longest, 1);
        assert_eq!(send(&mut q, &[6]), [0]);
        assert_eq!(drain(&mut q, 0), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_full_queue_refuses_packets_and_other_queues_accept_them() {
        for (headdrop, dropped) in [(false, [2, 3]), (true, [0, 1])] {
            let mut q = sfq(&SfqParams { depth: 2, headdrop, ..params() });
            assert_eq!(send(&mut q, &[1, 1, 1, 1, 2, 2]), dropped);
            assert_eq!(q.backlog(), Backlog { packets: 4, bytes: 4 * 1514 });
            assert_eq!(drain(&mut q, 0), [1, 2, 1, 2]);
        }
    }

    #[test]
    fn a_flow_without_a_slot_is_dropped() {
        let mut q = sfq(&SfqParams { flows: 2, ..params() });
        assert_eq!(send(&mut q, &[1, 2, 3, 1]), [2]);
        assert_eq!(drain(&mut q, 0), [1, 2, 1]);
        assert_eq!(send(&mut q, &[3, 1, 2]), [2], "slots are free again");
    }

    #[test]
    fn flows_of_one_bucket_share_a_queue() {
        let mut q = sfq(&SfqParams { divisor: 1, ..params() });
        send(&mut q, &[1, 1, 2, 3]);
        assert_eq!(drain(&mut q, 0), [1, 1, 2, 3]);
    }

    #[test]
    fn perturb_rehashes_the_queued_packets_with_another_key() {
        let mut q = sfq(&SfqParams { divisor: 2, perturb: 1, ..params() });
        let share = |q: &Sfq<u32>| q.bucket(1, &0) == q.bucket(2, &0);
        let mut actual = [false; 2];
        for second in 1..20 {
            send(&mut q, &[1, 1, 2, 2]);
            // 1.024 s: whole jiffies of the timer wheel's second level.
            let at = second * 1_024 * SECOND / 1_000;
            q.catch_up(Time(at - 1), &mut Vec::new());
            assert_eq!(q.changes, second - 1);
            let order = drain(&mut q, at);
            assert_eq!(q.changes, second);
            // In one queue the packets are in the order of their former slots.
            let together = order == [1, 1, 2, 2] || order == [2, 2, 1, 1];
            assert_eq!(together, share(&q), "{order:?}");
            actual[usize::from(together)] = true;
        }
        assert_eq!(actual, [true; 2]);
    }

    #[test]
    fn packets_without_room_after_a_perturbation_are_dropped() {
        let mut q = sfq(&SfqParams { divisor: 2, depth: 2, perturb: 1, ..params() });
        let (mut verdicts, mut dropped) = (Vec::new(), 0);
        for second in 1..20 {
            send(&mut q, &[1, 1, 2, 2]);
            let queued = q.backlog().packets;
            q.catch_up(Time(second * 1_024 * SECOND / 1_000), &mut verdicts);
            assert_eq!(q.backlog().packets as usize + verdicts.len(), queued as usize);
            dropped += verdicts.drain(..).map(number).count();
            drain(&mut q, 0);
        }
        assert!(dropped > 0);
    }

    #[test]
    fn an_empty_queue_is_skipped() {
        let rng = Rng::new(1, "sfq");
        let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: true, rng };
        let mut q = Sfq::new(&SfqParams { limit: 2, ..params() }, context);
        // The first packet takes no slot, but counts towards the limit.
        assert_eq!(send(&mut q, &[1, 1, 1]), [2]);
        assert_eq!((q.round.len(), q.backlog().packets), (1, 2));
    }

    /// RED in bytes from 3000 to 9000, with a weight of 1/2. From 9000 on it marks or drops every
    /// packet.
    fn red() -> SfqParams {
        SfqParams {
            redflowlimit: 36_000,
            min: 3_000,
            max: 9_000,
            avpkt: 1_000,
            burst: 3,
            probability: 0.02,
            ..params()
        }
    }

    /// Enqueues packets of full size of one flow. No draw drops, so RED acts only above `max`.
    /// Returns the numbers of the drops.
    fn judged(q: &mut Sfq<u32>, ecn: Ecn, bodies: std::ops::Range<u32>) -> Vec<u32> {
        let mut verdicts = Vec::new();
        for body in bodies {
            q.set_recorded_draw(false);
            let packet =
                Packet { enqueued: Time::NEVER, flow: 1, size: 1514, ds: DsField::from(ecn), body };
            q.enqueue(packet, Time::ZERO, &mut verdicts);
        }
        let dropped = |verdict| match verdict {
            Verdict::Dropped(packet, cause) => {
                assert_eq!(cause, Cause::Early);
                Some(packet.body)
            }
            Verdict::Marked { cause, .. } => {
                assert_eq!(cause, Cause::Early);
                None
            }
        };
        verdicts.into_iter().filter_map(dropped).collect()
    }

    /// The numbers of the packets that leave with a mark.
    fn marked(q: &mut Sfq<u32>) -> Vec<u32> {
        let served = || q.dequeue(Time::ZERO, &mut Vec::new());
        let all = std::iter::from_fn(served).filter(|packet| packet.ds.ecn() == Ecn::Ce);
        all.map(|packet| packet.body).collect()
    }

    #[test]
    fn red_s_average_is_of_the_slot_s_bytes_and_begins_with_it() {
        let average =
            |q: &Sfq<u32>, flow| q.reds[q.buckets[q.bucket(flow, &0)] as usize].average_bytes();
        let mut q = sfq(&red());
        send(&mut q, &[1, 2, 1, 1]);
        // Each arrival sets the average to half of its value plus half of the queued bytes. At flow
        // 1's second packet that is 1514 / 2 = 757, at its third 757 / 2 + 3028 / 2 = 1892.5. RED
        // has seen no packet of flow 2.
        assert_eq!([1, 2].map(|flow| average(&q, flow)), [1892.5, 0.0]);
        // A flow that returns to an empty slot starts again at 0.
        drain(&mut q, 0);
        send(&mut q, &[1]);
        assert_eq!(average(&q, 1), 0.0);
    }

    #[test]
    fn above_max_red_drops_or_marks_every_packet() {
        // The average before packet n is below n packets: 1514 (n - 1 + 2^-n) bytes, 9000 and more
        // from the seventh on.
        for (ecn, harddrop, from, marks) in [
            (false, false, Ecn::Ect0, false),
            (true, false, Ecn::Ect0, true),
            (true, true, Ecn::Ect0, false),
            (true, false, Ecn::NotEct, false),
        ] {
            let mut q = sfq(&SfqParams { ecn, harddrop, ..red() });
            let dropped = judged(&mut q, from, 0..10);
            let (none, these) = (Vec::new(), vec![7, 8, 9]);
            let expected = if marks { (none, these) } else { (these, none) };
            assert_eq!((dropped, marked(&mut q)), expected, "{ecn} {harddrop} {from:?}");
        }
    }

    #[test]
    fn with_headdrop_red_marks_or_drops_the_oldest() {
        let new_queue = || sfq(&SfqParams { ecn: true, headdrop: true, ..red() });
        // The oldest packet is ECN-capable. It is marked, and stays marked at later arrivals.
        let mut q = new_queue();
        judged(&mut q, Ecn::Ect0, 0..1);
        assert_eq!(judged(&mut q, Ecn::NotEct, 1..20), []);
        assert_eq!(marked(&mut q), [0]);
        // No packet is ECN-capable: the oldest ones are dropped and the newcomers queued.
        let mut q = new_queue();
        assert_eq!(judged(&mut q, Ecn::NotEct, 0..10), [0, 1, 2]);
        assert_eq!(marked(&mut q), []);
        // The oldest is not ECN-capable: the newcomer is marked.
        let mut q = new_queue();
        judged(&mut q, Ecn::NotEct, 0..1);
        assert_eq!(judged(&mut q, Ecn::Ect0, 1..10), []);
        assert_eq!(marked(&mut q), [7, 8, 9]);
    }

    #[test]
    fn between_min_and_max_red_draws() {
        // At 6056 bytes, about halfway, RED draws a number below 12 000 and drops a packet once
        // 3056 · count reaches this number: after one to four packets, 2.5 on average.
        let mut q = sfq(&SfqParams { probability: 0.5, ..red() });
        let (mut drops, mut verdicts) = (0, Vec::new());
        judged(&mut q, Ecn::NotEct, 0..4);
        for body in 0..1000 {
            let ds = DsField::BEST_EFFORT;
            let packet = Packet { enqueued: Time::NEVER, flow: 1, size: 1514, ds, body };
            q.enqueue(packet, Time::ZERO, &mut verdicts);
            if verdicts.pop().is_some() {
                drops += 1;
            } else {
                q.dequeue(Time::ZERO, &mut verdicts);
            }
        }
        assert!((370..430).contains(&drops), "{drops}");
    }
}
