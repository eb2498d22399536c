//! pfifo, bfifo, pfifo_head_drop: first in, first out, with a limit; and `Fifo`, the ring that
//! every discipline is built on.
//!
//! `pfifo` counts packets and `bfifo` bytes; both drop the arriving packet if it would exceed the
//! limit. `pfifo_head_drop` drops the oldest packet instead, so the sender learns of congestion
//! sooner.
//!
//! Source: tc-pfifo(8); Linux net/sched/sch_fifo.c for the boundary. pfifo (pfifo_enqueue) takes a
//! packet while fewer than `limit` are queued, bfifo (bfifo_enqueue) while backlog + packet <=
//! `limit`. The packet in transmission does not count. Deviation: pfifo_head_drop may drop a packet
//! that bypasses the queue in Linux (see `bypass`), if `limit` packets arrive during one
//! transmission.
//!
//! `bfifo variant time` has a limit in time: `limit` times the link's rate, in bytes as the
//! discipline counts them. It changes with the rate. Packets that are above a smaller limit stay
//! queued. Source: the request for such a limit by A. Cahalan, "txqueuelen has wrong units; should
//! be time", linux-kernel, 27 February 2011; Linux has none.

use crate::{Backlog, Cause, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use std::collections::VecDeque;
use std::marker::PhantomData;
use units::{Rate, Time};

/// `limit N`: packets for pfifo and pfifo_head_drop, bytes for bfifo.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FifoParams {
    /// The limit in packets or bytes.
    pub limit: u64,
}

/// `bfifo limit BYTES`, or `bfifo variant time limit TIME`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum BfifoParams {
    /// Linux's: a limit in bytes.
    Bytes(FifoParams),
    /// A limit in bytes that follows the link's rate.
    Time(TimeFifoParams),
}

/// `bfifo variant time limit TIME`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeFifoParams {
    /// The variant's name.
    pub variant: OfTime,
    /// The longest time that the queued bytes may take at the link's rate, ns.
    pub limit_ns: u64,
}

/// The name of the variant whose limit is a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum OfTime {
    /// `variant time`.
    #[serde(rename = "time")]
    Time,
}

/// A ring of packets in order of arrival, with a count of their bytes.
#[derive(Clone, Debug)]
pub struct Fifo<B> {
    packets: VecDeque<Packet<B>>,
    bytes: u64,
}

impl<B> Default for Fifo<B> {
    fn default() -> Self {
        Fifo { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<B> Fifo<B> {
    /// Appends a packet and sets its time of enqueue.
    #[inline]
    pub fn push(&mut self, mut packet: Packet<B>, now: Time) {
        packet.enqueued = now;
        self.bytes += packet.size as u64;
        self.packets.push_back(packet);
    }

    /// Removes the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.size as u64;
        Some(packet)
    }

    /// The oldest packet.
    #[inline]
    pub fn front(&self) -> Option<&Packet<B>> {
        self.packets.front()
    }

    /// The oldest packet, to modify in place. Its size must not change.
    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut Packet<B>> {
        self.packets.front_mut()
    }

    /// Removes the newest packet.
    #[inline]
    pub fn pop_newest(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_back()?;
        self.bytes -= packet.size as u64;
        Some(packet)
    }

    /// The packets and bytes in the queue.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u32, bytes: self.bytes }
    }
}

/// The unit of a FIFO's limit, and the packet that is dropped at the limit.
pub trait Limit {
    /// Whether the oldest packet is dropped in place of the arriving one.
    const DROPS_OLDEST: bool;

    /// The least limit with which an empty queue takes any packet.
    const ROOM_FOR_ANY: u64;

    /// Whether a packet of `size` bytes may join this backlog.
    fn has_room(limit: u64, backlog: Backlog, size: u32) -> bool;
}

/// pfifo_enqueue: the limit counts packets.
pub enum Packets {}

impl Limit for Packets {
    const DROPS_OLDEST: bool = false;
    const ROOM_FOR_ANY: u64 = 1;

    #[inline]
    fn has_room(limit: u64, backlog: Backlog, _size: u32) -> bool {
        u64::from(backlog.packets) < limit
    }
}

/// bfifo_enqueue: the limit counts bytes.
pub enum Bytes {}

impl Limit for Bytes {
    const DROPS_OLDEST: bool = false;
    const ROOM_FOR_ANY: u64 = u32::MAX as u64;

    #[inline]
    fn has_room(limit: u64, backlog: Backlog, size: u32) -> bool {
        backlog.bytes + u64::from(size) <= limit
    }
}

/// pfifo_tail_enqueue: the limit counts packets, and the oldest packet is dropped.
pub enum HeadDrop {}

impl Limit for HeadDrop {
    const DROPS_OLDEST: bool = true;
    const ROOM_FOR_ANY: u64 = 1;

    #[inline]
    fn has_room(limit: u64, backlog: Backlog, size: u32) -> bool {
        Packets::has_room(limit, backlog, size)
    }
}

/// A FIFO with a limit of the kind `L`.
pub struct LimitedFifo<B, L> {
    limit: u64,
    /// The time that the limit is computed from as the rate changes, if it is a time.
    limit_ns: Option<u64>,
    queue: Fifo<B>,
    kind: PhantomData<L>,
}

/// `pfifo limit PACKETS`.
pub type Pfifo<B> = LimitedFifo<B, Packets>;
/// `bfifo limit BYTES`.
pub type Bfifo<B> = LimitedFifo<B, Bytes>;
/// `pfifo_head_drop limit PACKETS`.
pub type HeadDropFifo<B> = LimitedFifo<B, HeadDrop>;

impl<B, L> LimitedFifo<B, L> {
    /// An empty queue with this limit.
    pub fn new(params: &FifoParams) -> Self {
        let (queue, kind) = (Fifo::default(), PhantomData);
        LimitedFifo { limit: params.limit, limit_ns: None, queue, kind }
    }
}

impl<B> Bfifo<B> {
    /// An empty queue on a link of this rate.
    pub fn on_link(params: &BfifoParams, rate: Option<Rate>) -> Self {
        match params {
            BfifoParams::Bytes(params) => LimitedFifo::new(params),
            BfifoParams::Time(TimeFifoParams { limit_ns, .. }) => {
                let limit = rate.map_or(u64::MAX, |rate| bytes_in(*limit_ns, rate));
                let fifo = LimitedFifo::new(&FifoParams { limit });
                LimitedFifo { limit_ns: Some(*limit_ns), ..fifo }
            }
        }
    }
}

/// The whole bytes that a rate sends in a time.
fn bytes_in(ns: u64, rate: Rate) -> u64 {
    let bytes = u128::from(ns) * u128::from(rate.0) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl<B, L> LimitedFifo<B, L> {
    /// Sets the limit. Packets above it stay queued.
    pub(crate) fn change(&mut self, params: &FifoParams) {
        self.limit = params.limit;
    }
}

impl<B> Pfifo<B> {
    /// Whether no number of packets reaches the limit.
    pub fn never_drops(&self) -> bool {
        self.limit >= u64::from(u32::MAX)
    }
}

impl<B, L: Limit> Qdisc<B> for LimitedFifo<B, L> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        if !L::has_room(self.limit, self.queue.backlog(), packet.size) {
            // With a limit of 0 there is no oldest packet. As in Linux, every arriving packet is
            // dropped.
            let oldest = if L::DROPS_OLDEST { self.queue.pop() } else { None };
            let Some(oldest) = oldest else {
                verdicts.push(Verdict::Dropped(packet, Cause::Limit));
                return;
            };
            verdicts.push(Verdict::Dropped(oldest, Cause::Limit));
        }
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.queue.pop()
    }

    /// True if the limit leaves room for any packet.
    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.limit >= L::ROOM_FOR_ANY
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, _now: Time) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }

    fn rate_changed(&mut self, rate: Rate) {
        // No number of bytes is a time at a rate of 0. The limit stays until the outage is over.
        if let Some(ns) = self.limit_ns.filter(|_| rate > Rate(0)) {
            self.limit = bytes_in(ns, rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;

    const MS: u64 = 1_000_000;

    fn packet(flow: u32, size: u32) -> Packet<()> {
        Packet { enqueued: Time::ZERO, flow, size, ds: DsField::BEST_EFFORT, body: () }
    }

    #[test]
    fn pfifo_refuses_the_newcomer_when_full() {
        let mut q = Pfifo::new(&FifoParams { limit: 2 });
        let mut verdicts = Vec::new();
        for flow in 0..3 {
            q.enqueue(packet(flow, 100), Time(flow.into()), &mut verdicts);
        }
        assert!(matches!(verdicts[..], [Verdict::Dropped(Packet { flow: 2, .. }, Cause::Limit)]));
        assert_eq!(
            q.dequeue(Time(9), &mut verdicts).map(|p| (p.flow, p.enqueued)),
            Some((0, Time(0)))
        );
        assert_eq!(Qdisc::<()>::backlog(&q), Backlog { packets: 1, bytes: 100 });
    }

    #[test]
    fn bfifo_fills_to_the_last_byte() {
        let mut q = Bfifo::new(&FifoParams { limit: 250 });
        let mut verdicts = Vec::new();
        for size in [100, 100, 51, 50] {
            q.enqueue(packet(size, size), Time::ZERO, &mut verdicts);
        }
        assert!(matches!(verdicts[..], [Verdict::Dropped(Packet { size: 51, .. }, Cause::Limit)]));
        assert_eq!(Qdisc::<()>::backlog(&q).bytes, 250);
    }

    #[test]
    fn a_limit_in_time_follows_the_rate_and_an_outage_leaves_it() {
        let params = BfifoParams::Time(TimeFifoParams { variant: OfTime::Time, limit_ns: MS });
        // 8 Mbit/s send 1000 bytes in a millisecond.
        let mut q = Bfifo::on_link(&params, Some(Rate::from_mbit(8)));
        let mut verdicts = Vec::new();
        for flow in 0..3 {
            q.enqueue(packet(flow, 500), Time::ZERO, &mut verdicts);
        }
        assert!(matches!(verdicts[..], [Verdict::Dropped(Packet { flow: 2, .. }, Cause::Limit)]));
        verdicts.clear();
        Qdisc::<()>::rate_changed(&mut q, Rate::from_mbit(4));
        assert_eq!(Qdisc::<()>::backlog(&q).packets, 2);
        q.enqueue(packet(3, 1), Time::ZERO, &mut verdicts);
        assert!(matches!(verdicts[..], [Verdict::Dropped(Packet { flow: 3, .. }, Cause::Limit)]));
        Qdisc::<()>::rate_changed(&mut q, Rate::from_mbit(20));
        Qdisc::<()>::rate_changed(&mut q, Rate(0));
        assert_eq!(Qdisc::<()>::state(&q, Time::ZERO).limit, Some(2500.0));
    }

    #[test]
    fn pfifo_head_drop_drops_the_oldest() {
        let mut q = HeadDropFifo::new(&FifoParams { limit: 2 });
        let mut verdicts = Vec::new();
        for flow in 0..3 {
            q.enqueue(packet(flow, 100), Time::ZERO, &mut verdicts);
        }
        assert!(matches!(verdicts[..], [Verdict::Dropped(Packet { flow: 0, .. }, Cause::Limit)]));
        assert_eq!(q.dequeue(Time::ZERO, &mut verdicts).map(|p| p.flow), Some(1));
    }
}
