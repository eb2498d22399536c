//! pfifo, bfifo, pfifo_head_drop: first in, first out, with a limit; and `Fifo`, the ring every
//! discipline is built on.
//!
//! `pfifo` counts packets and `bfifo` bytes; both refuse the arriving packet when the limit would
//! be passed. `pfifo_head_drop` makes room by dropping the oldest packet instead, so the news of
//! congestion leaves at once.
//!
//! Source: tc-pfifo(8); Linux net/sched/sch_fifo.c for the boundary: pfifo takes a packet while
//! fewer than `limit` are queued, bfifo while backlog + packet stays at or below `limit`. The
//! packet in transmission is not counted. Deviations: pfifo_head_drop may drop a packet that Linux
//! has let past the queue (see `bypass`): where `limit` packets come while one is transmitted.

use crate::{Backlog, Cause, Fate, Packet, Qdisc, State};
use serde::Deserialize;
use std::collections::VecDeque;
use units::Time;

/// `limit N`: packets for pfifo and pfifo_head_drop, bytes for bfifo.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FifoParams {
    /// Packets or bytes.
    pub limit: u64,
}

/// Packets in order of arrival, their bytes counted.
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
    /// Takes a packet in at the tail and stamps its time of enqueue.
    #[inline]
    pub fn push(&mut self, mut packet: Packet<B>, now: Time) {
        packet.enqueued = now;
        self.bytes += packet.size as u64;
        self.packets.push_back(packet);
    }

    /// Takes the oldest packet out.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.size as u64;
        Some(packet)
    }

    /// What is queued.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u32, bytes: self.bytes }
    }
}

/// `pfifo limit PACKETS`.
pub struct Pfifo<B> {
    limit: u64,
    queue: Fifo<B>,
}

impl<B> Pfifo<B> {
    /// An empty queue with this limit.
    pub fn new(params: &FifoParams) -> Self {
        Pfifo { limit: params.limit, queue: Fifo::default() }
    }
}

impl<B> Qdisc<B> for Pfifo<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, fates: &mut Vec<Fate<B>>) {
        if u64::from(self.queue.backlog().packets) < self.limit {
            self.queue.push(packet, now);
        } else {
            fates.push(Fate::Dropped(packet, Cause::Limit));
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _fates: &mut Vec<Fate<B>>) -> Option<Packet<B>> {
        self.queue.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }
}

/// `bfifo limit BYTES`.
pub struct Bfifo<B> {
    limit: u64,
    queue: Fifo<B>,
}

impl<B> Bfifo<B> {
    /// An empty queue with this limit.
    pub fn new(params: &FifoParams) -> Self {
        Bfifo { limit: params.limit, queue: Fifo::default() }
    }
}

impl<B> Qdisc<B> for Bfifo<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, fates: &mut Vec<Fate<B>>) {
        if self.queue.backlog().bytes + u64::from(packet.size) <= self.limit {
            self.queue.push(packet, now);
        } else {
            fates.push(Fate::Dropped(packet, Cause::Limit));
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _fates: &mut Vec<Fate<B>>) -> Option<Packet<B>> {
        self.queue.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }
}

/// `pfifo_head_drop limit PACKETS`.
pub struct HeadDropFifo<B> {
    limit: u64,
    queue: Fifo<B>,
}

impl<B> HeadDropFifo<B> {
    /// An empty queue with this limit.
    pub fn new(params: &FifoParams) -> Self {
        HeadDropFifo { limit: params.limit, queue: Fifo::default() }
    }
}

impl<B> Qdisc<B> for HeadDropFifo<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, fates: &mut Vec<Fate<B>>) {
        // A limit of 0 takes nothing in, as in Linux.
        if self.limit == 0 {
            fates.push(Fate::Dropped(packet, Cause::Limit));
            return;
        }
        if u64::from(self.queue.backlog().packets) >= self.limit
            && let Some(oldest) = self.queue.pop()
        {
            fates.push(Fate::Dropped(oldest, Cause::Limit));
        }
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _fates: &mut Vec<Fate<B>>) -> Option<Packet<B>> {
        self.queue.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;

    fn packet(flow: u32, size: u32) -> Packet<()> {
        Packet { enqueued: Time::ZERO, flow, size, ds: DsField::BEST_EFFORT, body: () }
    }

    #[test]
    fn pfifo_refuses_the_newcomer_when_full() {
        let mut q = Pfifo::new(&FifoParams { limit: 2 });
        let mut fates = Vec::new();
        for flow in 0..3 {
            q.enqueue(packet(flow, 100), Time(flow.into()), &mut fates);
        }
        assert!(matches!(fates[..], [Fate::Dropped(Packet { flow: 2, .. }, Cause::Limit)]));
        assert_eq!(
            q.dequeue(Time(9), &mut fates).map(|p| (p.flow, p.enqueued)),
            Some((0, Time(0)))
        );
        assert_eq!(Qdisc::<()>::backlog(&q), Backlog { packets: 1, bytes: 100 });
    }

    #[test]
    fn bfifo_fills_to_the_last_byte() {
        let mut q = Bfifo::new(&FifoParams { limit: 250 });
        let mut fates = Vec::new();
        for size in [100, 100, 51, 50] {
            q.enqueue(packet(size, size), Time::ZERO, &mut fates);
        }
        assert!(matches!(fates[..], [Fate::Dropped(Packet { size: 51, .. }, Cause::Limit)]));
        assert_eq!(Qdisc::<()>::backlog(&q).bytes, 250);
    }

    #[test]
    fn pfifo_head_drop_drops_the_oldest() {
        let mut q = HeadDropFifo::new(&FifoParams { limit: 2 });
        let mut fates = Vec::new();
        for flow in 0..3 {
            q.enqueue(packet(flow, 100), Time::ZERO, &mut fates);
        }
        assert!(matches!(fates[..], [Fate::Dropped(Packet { flow: 0, .. }, Cause::Limit)]));
        assert_eq!(q.dequeue(Time::ZERO, &mut fates).map(|p| p.flow), Some(1));
    }
}
