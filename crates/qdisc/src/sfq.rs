//! sfq: stochastic fairness queueing. Flows are hashed to queues, which are served in turn.
//!
//! A queue with packets has one of `flows` slots and a place in a round. In its turn a slot sends
//! packets until it has used up `quantum` bytes. Each slot holds `depth` packets at most, and all
//! of them `limit`. When the limit is passed a packet of the longest slot is dropped: not whoever
//! comes last pays, but whoever has most.
//!
//! Source: McKenney, "Stochastic fairness queueing" (1990); tc-sfq(8); Linux net/sched/sch_sfq.c
//! (6.12) for the behaviour:
//!
//! - A hash finds one of `divisor` buckets. A bucket without packets takes a free slot, and where
//!   there is none its packet is dropped.
//! - The longest slot is the one with the most packets, whatever their size; of equals the one that
//!   had this length last. It loses its newest packet, or its oldest with `headdrop`. Where every
//!   slot has one packet, the slot next in the round loses it.
//! - A full slot drops the newcomer; with `headdrop` its oldest packet, in the newcomer's favour.
//! - A slot that becomes empty forgets its turn. With its next packet it is the last of the round,
//!   with a whole quantum.
//! - Each `perturb` seconds the hash gets another key, and all that is queued is sorted anew, slot
//!   by slot. The kernel's timer wheel makes 10 s of them 10.24.
//!
//! A packet that finds the queue empty goes past it (`bypass`).
//!
//! Deviations: RED on each slot (`redflowlimit`) is Linux's alone. Linux starts the timer with the
//! discipline; here that is time 0.

use crate::bypass::Bypass;
use crate::timer::Timer;
use crate::{Backlog, Body, Cause, Context, Fate, Fifo, Packet, Qdisc, State};
use serde::Deserialize;
use std::collections::VecDeque;
use units::Time;

/// `sfq limit PACKETS perturb SECONDS quantum BYTES divisor N flows N depth PACKETS [headdrop]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SfqParams {
    /// Packets in all queues together (127).
    pub limit: u64,
    /// Seconds after which the hash changes; 0: never (0).
    pub perturb: u64,
    /// Bytes that a queue may send in its turn (1514).
    pub quantum: u32,
    /// Buckets that flows are hashed into, a power of two (1024).
    pub divisor: u32,
    /// Queues that may have packets at once (128).
    pub flows: u32,
    /// Packets in one queue (127).
    pub depth: u32,
    /// Drop the oldest packet of a queue, not the newest (false).
    pub headdrop: bool,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// The packets of one bucket.
struct Slot<B> {
    queue: Fifo<B>,
    bucket: u32,
    /// Bytes it may still send in its turn.
    allot: i64,
}

/// Slots by their number of packets: for each number a list, the latest to have it first.
struct Lengths {
    first: Vec<u32>,
    /// The neighbours of each slot in its list: the one before and the one behind it.
    beside: Vec<[u32; 2]>,
    longest: usize,
}

impl Lengths {
    fn new(slots: usize, longest: usize) -> Lengths {
        Lengths { first: vec![NONE; longest + 1], beside: vec![[NONE; 2]; slots], longest: 0 }
    }

    /// A slot has one packet more or less. Empty ones are in no list.
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
    /// The first key of the hash, and how often it has changed.
    seed: u64,
    changes: u64,
    perturb: Option<Timer>,
    /// The slot of each bucket.
    buckets: Vec<u32>,
    slots: Vec<Slot<B>>,
    /// Slots without packets; the last is taken first.
    free: Vec<u32>,
    lengths: Lengths,
    /// Slots with packets, the one whose turn it is first.
    round: VecDeque<u32>,
    total: Backlog,
    bypass: Bypass<B>,
}

impl<B: Body> Sfq<B> {
    /// An empty queue; the context's random stream gives the hash its keys.
    pub fn new(params: &SfqParams, mut context: Context) -> Self {
        let slots = params.flows.max(1);
        let depth = params.depth.max(1) as usize;
        let slot = |_| Slot { queue: Fifo::default(), bucket: 0, allot: 0 };
        Sfq {
            limit: params.limit,
            quantum: i64::from(params.quantum.max(1)),
            depth,
            headdrop: params.headdrop,
            seed: context.luck.next_u64(),
            changes: 0,
            perturb: (params.perturb > 0).then(|| Timer::of_seconds(params.perturb)),
            buckets: vec![NONE; params.divisor.max(1) as usize],
            slots: (0..slots).map(slot).collect(),
            free: (0..slots).collect(),
            lengths: Lengths::new(slots as usize, depth),
            round: VecDeque::new(),
            total: Backlog::default(),
            bypass: Bypass::new(context.root && params.limit > 0),
        }
    }

    /// Whether two of these flows, with bodies alike, are hashed into one queue.
    pub fn any_share_a_queue(&self, flows: &[u32], body: &B) -> bool {
        let mut taken = vec![false; self.buckets.len()];
        flows.iter().any(|flow| std::mem::replace(&mut taken[self.bucket(*flow, body)], true))
    }

    /// The bucket of a flow, by the key in force.
    #[inline]
    fn bucket(&self, flow: u32, body: &B) -> usize {
        let key = self.seed.wrapping_add(self.changes.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        crate::hash(body.connection(flow), key) as usize & (self.buckets.len() - 1)
    }

    /// Changes of the hash that are due, with the queue as it has been since the last call.
    #[inline]
    fn catch_up(&mut self, now: Time, fates: &mut Vec<Fate<B>>) {
        if let Some(timer) = self.perturb.as_mut().filter(|timer| timer.next() <= now) {
            for _ in 0..timer.expiries(now) {
                self.changes += 1;
                if self.round.is_empty() {
                    continue;
                }
                self.sort_anew(fates);
            }
        }
    }

    /// Takes everything out, slot by slot, and back in by the hash's new key. Packets keep the time
    /// at which they came. What finds no slot, or a full one, is dropped.
    #[cold]
    fn sort_anew(&mut self, fates: &mut Vec<Fate<B>>) {
        let mut packets = Vec::with_capacity(self.total.packets as usize);
        for slot in 0..self.slots.len() as u32 {
            while self.slots[slot as usize].queue.backlog().packets > 0 {
                packets.push(self.take(slot, true));
            }
        }
        self.round.clear();
        for packet in packets {
            match self.slot_for(&packet).filter(|slot| self.length(*slot) < self.depth) {
                Some(slot) => self.put(slot, packet),
                None => fates.push(Fate::Dropped(packet, Cause::Limit)),
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

    /// Appends a packet; a slot that was empty joins the round as its last.
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
        let came = packet.enqueued;
        slot.queue.push(packet, came);
        self.lengths.change(index, before, before + 1);
    }

    /// Removes the oldest packet of a slot, or the newest. A slot that is empty then is free; its
    /// place in the round is the caller's matter.
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

    /// The limit is passed: the longest slot loses a packet, or where all have one the slot whose
    /// turn it is.
    fn drop_from_longest(&mut self, fates: &mut Vec<Fate<B>>) {
        let slot = if self.lengths.longest > 1 {
            self.lengths.first[self.lengths.longest]
        } else {
            self.round.pop_front().expect("what has just come is in the round")
        };
        let packet = self.take(slot, self.headdrop);
        fates.push(Fate::Dropped(packet, Cause::Limit));
    }

    /// A packet comes to a full slot: it is dropped, or the oldest in its place.
    fn at_depth(&mut self, slot: u32, packet: Packet<B>, fates: &mut Vec<Fate<B>>) {
        if !self.headdrop {
            return fates.push(Fate::Dropped(packet, Cause::Limit));
        }
        let queue = &mut self.slots[slot as usize].queue;
        let oldest = queue.pop().expect("a full slot has packets");
        let came = packet.enqueued;
        self.total.bytes += u64::from(packet.size);
        self.total.bytes -= u64::from(oldest.size);
        queue.push(packet, came);
        fates.push(Fate::Dropped(oldest, Cause::Limit));
    }
}

impl<B: Body> Qdisc<B> for Sfq<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, fates: &mut Vec<Fate<B>>) {
        self.catch_up(now, fates);
        let Some(mut packet) = self.bypass.take_past(packet, self.total, now) else {
            return;
        };
        packet.enqueued = now;
        let Some(slot) = self.slot_for(&packet) else {
            return fates.push(Fate::Dropped(packet, Cause::Limit));
        };
        if self.length(slot) >= self.depth {
            return self.at_depth(slot, packet, fates);
        }
        self.put(slot, packet);
        if u64::from(self.backlog().packets) > self.limit {
            self.drop_from_longest(fates);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, fates: &mut Vec<Fate<B>>) -> Option<Packet<B>> {
        self.catch_up(now, fates);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Luck;

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
        }
    }

    /// None of the flows 0 to 9 share a bucket.
    fn sfq(params: &SfqParams) -> Sfq<u32> {
        let made = |seed| {
            let luck = Luck::new(seed, "sfq");
            let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: false, luck };
            Sfq::new(params, context)
        };
        let flows: Vec<u32> = (0..10).collect();
        let apart = (0..100).map(made).find(|q| !q.any_share_a_queue(&flows, &0));
        apart.unwrap_or_else(|| made(0))
    }

    /// Sends packets of full size, numbered from 0; the numbers of those that were dropped.
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
        let mut fates = Vec::new();
        q.enqueue(packet, Time::ZERO, &mut fates);
        fates.into_iter().map(number).collect()
    }

    fn number(fate: Fate<u32>) -> u32 {
        match fate {
            Fate::Dropped(packet, Cause::Limit) => packet.body,
            other => panic!("{other:?}"),
        }
    }

    /// The flows of all that is queued, in the order of service at this time.
    fn drain(q: &mut Sfq<u32>, at: u64) -> Vec<u32> {
        let served = || q.dequeue(Time(at), &mut Vec::new()).map(|packet| packet.flow);
        std::iter::from_fn(served).collect()
    }

    #[test]
    fn queues_take_turns() {
        let mut q = sfq(&params());
        assert_eq!(send(&mut q, &[1, 1, 1, 2, 2, 3]), []);
        assert_eq!(drain(&mut q, 0), [1, 2, 3, 1, 2, 1]);
        // Two full packets a turn.
        let mut q = sfq(&SfqParams { quantum: 3028, ..params() });
        send(&mut q, &[1, 1, 1, 2, 2, 2]);
        assert_eq!(drain(&mut q, 0), [1, 1, 2, 2, 1, 2]);
    }

    #[test]
    fn what_a_turn_took_too_much_is_missing_in_the_next() {
        // 1000 of 1514 bytes are left of the first turn's end: -486 + 1514 = 1028, then 28, -972.
        let mut q = sfq(&params());
        for body in 0..8 {
            send_one(&mut q, 1, 1000, body);
        }
        send(&mut q, &[2; 5]);
        assert_eq!(drain(&mut q, 0), [1, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 2]);
    }

    #[test]
    fn a_queue_that_was_empty_is_the_last_of_the_round() {
        let mut q = sfq(&params());
        send(&mut q, &[1, 2, 2, 3, 3]);
        assert_eq!(q.dequeue(Time::ZERO, &mut Vec::new()).map(|packet| packet.flow), Some(1));
        send(&mut q, &[1]);
        assert_eq!(drain(&mut q, 0), [2, 3, 1, 2, 3]);
    }

    #[test]
    fn the_longest_queue_pays_at_the_limit() {
        for (headdrop, dropped) in [(false, 3), (true, 0)] {
            let mut q = sfq(&SfqParams { limit: 6, headdrop, ..params() });
            // Packets 0 to 3 are flow 1's, and the last, of flow 3, passes the limit.
            assert_eq!(send(&mut q, &[1, 1, 1, 1, 2, 2, 3]), [dropped]);
            assert_eq!(drain(&mut q, 0), [1, 2, 3, 1, 2, 1]);
        }
    }

    #[test]
    fn of_equal_queues_the_last_to_become_so_long_pays() {
        let mut q = sfq(&SfqParams { limit: 5, ..params() });
        // Flow 2 reached two packets behind flow 1. It falls back to one, and then flow 1 is left.
        assert_eq!(send(&mut q, &[1, 2, 1, 2, 3, 4, 5]), [3, 2]);
        // What has fallen back has its length last: flow 1, then 2, had one packet after 3, 4, 5.
        assert_eq!(q.lengths.longest, 1);
        assert_eq!(send(&mut q, &[6]), [0]);
        assert_eq!(drain(&mut q, 0), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_full_queue_takes_no_more_and_the_others_do() {
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
    fn perturb_sorts_anew_by_another_key() {
        let mut q = sfq(&SfqParams { divisor: 2, perturb: 1, ..params() });
        let share = |q: &Sfq<u32>| q.bucket(1, &0) == q.bucket(2, &0);
        let mut found = [false; 2];
        for second in 1..20 {
            send(&mut q, &[1, 1, 2, 2]);
            // 1.024 s: in whole jiffies of the timer wheel's second level.
            let at = second * 1_024 * SECOND / 1_000;
            q.catch_up(Time(at - 1), &mut Vec::new());
            assert_eq!(q.changes, second - 1);
            let order = drain(&mut q, at);
            assert_eq!(q.changes, second);
            // In one queue they are in the order of the slots that they came from.
            let together = order == [1, 1, 2, 2] || order == [2, 2, 1, 1];
            assert_eq!(together, share(&q), "{order:?}");
            found[usize::from(together)] = true;
        }
        assert_eq!(found, [true; 2]);
    }

    #[test]
    fn what_perturb_finds_no_room_for_is_dropped() {
        let mut q = sfq(&SfqParams { divisor: 2, depth: 2, perturb: 1, ..params() });
        let (mut fates, mut dropped) = (Vec::new(), 0);
        for second in 1..20 {
            send(&mut q, &[1, 1, 2, 2]);
            let queued = q.backlog().packets;
            q.catch_up(Time(second * 1_024 * SECOND / 1_000), &mut fates);
            assert_eq!(q.backlog().packets as usize + fates.len(), queued as usize);
            dropped += fates.drain(..).map(number).count();
            drain(&mut q, 0);
        }
        assert!(dropped > 0);
    }

    #[test]
    fn an_empty_queue_is_passed_by() {
        let luck = Luck::new(1, "sfq");
        let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: true, luck };
        let mut q = Sfq::new(&SfqParams { limit: 2, ..params() }, context);
        // The first takes no slot, and counts in the limit.
        assert_eq!(send(&mut q, &[1, 1, 1]), [2]);
        assert_eq!((q.round.len(), q.backlog().packets), (1, 2));
    }
}
