//! Lanes: packets in flight from one place to the next, in the order of their arrival.
//!
//! All packets of a lane take the same path, so the last to enter is the last to arrive, unless a
//! wire on the path reorders. Then a packet is inserted by its arrival time. All packets are in one
//! slab, those in queues too. The last freed node is used first, so packets in flight stay in the
//! processor's cache however many lanes there are.

use crate::payload::Parcel;
use qdisc::DsField;
use units::Time;

const NONE: u32 = u32::MAX;

/// A packet in flight. One cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node {
    arrives: Time,
    /// The next packet of its lane; for a free node the next free node.
    next: u32,
    packet: Parcel,
}

/// The ends of a lane.
#[derive(Clone, Copy)]
struct Lane {
    /// The time at which the first packet arrives; NEVER: the lane is empty.
    first_arrives: Time,
    first: u32,
    last: u32,
}

/// All packets in flight.
pub struct Lanes {
    nodes: Vec<Node>,
    free: u32,
    lanes: Vec<Lane>,
}

impl Lanes {
    /// Starts without lanes.
    pub fn new() -> Lanes {
        Lanes { nodes: Vec::new(), free: NONE, lanes: Vec::new() }
    }

    /// Opens a lane and returns its number.
    pub fn open(&mut self) -> u32 {
        self.lanes.push(Lane { first_arrives: Time::NEVER, first: NONE, last: NONE });
        (self.lanes.len() - 1) as u32
    }

    /// Places a packet; returns its node. The packet keeps the node until it is taken.
    #[inline(always)]
    pub fn place(&mut self, packet: Parcel) -> u32 {
        let node = self.free;
        if node == NONE {
            self.nodes.push(Node { arrives: Time::NEVER, next: NONE, packet });
            return (self.nodes.len() - 1) as u32;
        }
        let place = &mut self.nodes[node as usize];
        self.free = place.next;
        place.packet = packet;
        node
    }

    /// The packet of a node.
    #[inline]
    pub fn packet(&mut self, node: u32) -> &mut Parcel {
        &mut self.nodes[node as usize].packet
    }

    /// The host of a node's packet.
    #[inline]
    pub fn host(&self, node: u32) -> u32 {
        self.nodes[node as usize].packet.flow / 2
    }

    /// Takes a packet and frees its node.
    #[inline]
    pub fn take(&mut self, node: u32) -> Parcel {
        let place = &mut self.nodes[node as usize];
        place.next = self.free;
        self.free = node;
        place.packet
    }

    /// A placed packet enters a lane, behind the packets that arrive no later. Returns whether it
    /// is the first in the lane.
    #[inline]
    pub fn push(&mut self, number: u32, arrives: Time, node: u32) -> bool {
        let ds = self.nodes[node as usize].packet.ds;
        self.push_with(ds, number, arrives, node)
    }

    /// `push` of a packet whose DS field is `ds` from now on.
    #[inline(always)]
    pub fn push_with(&mut self, ds: DsField, number: u32, arrives: Time, node: u32) -> bool {
        let entered = &mut self.nodes[node as usize];
        entered.packet.ds = ds;
        entered.arrives = arrives;
        entered.next = NONE;
        let lane = &mut self.lanes[number as usize];
        if lane.first_arrives == Time::NEVER {
            lane.first_arrives = arrives;
            (lane.first, lane.last) = (node, node);
            return true;
        }
        let last = &mut self.nodes[lane.last as usize];
        if last.arrives > arrives {
            return self.overtake(number, arrives, node);
        }
        last.next = node;
        lane.last = node;
        false
    }

    /// `push` if the last packet of the lane arrives later.
    #[cold]
    fn overtake(&mut self, number: u32, arrives: Time, node: u32) -> bool {
        let lane = &mut self.lanes[number as usize];
        if lane.first_arrives > arrives {
            self.nodes[node as usize].next = lane.first;
            lane.first = node;
            lane.first_arrives = arrives;
            return true;
        }
        let mut before = lane.first;
        loop {
            let next = self.nodes[before as usize].next;
            if self.nodes[next as usize].arrives > arrives {
                self.nodes[before as usize].next = node;
                self.nodes[node as usize].next = next;
                return false;
            }
            before = next;
        }
    }

    /// The time at which the next packet arrives; NEVER: none is in flight.
    #[inline]
    pub fn first_arrives(&self, lane: u32) -> Time {
        self.lanes[lane as usize].first_arrives
    }

    /// Takes the next packet of a lane that has one, and frees its node.
    #[inline]
    pub fn receive(&mut self, lane: u32) -> Parcel {
        let lane = &mut self.lanes[lane as usize];
        let node = lane.first;
        let place = &mut self.nodes[node as usize];
        let next = std::mem::replace(&mut place.next, self.free);
        let packet = place.packet;
        self.free = node;
        lane.first = next;
        lane.first_arrives =
            if next == NONE { Time::NEVER } else { self.nodes[next as usize].arrives };
        packet
    }

    /// Removes the next packet of a lane that has one; returns its node. The packet keeps the node.
    #[inline]
    pub fn pop(&mut self, lane: u32) -> u32 {
        let lane = &mut self.lanes[lane as usize];
        let node = lane.first;
        let next = self.nodes[node as usize].next;
        lane.first = next;
        lane.first_arrives =
            if next == NONE { Time::NEVER } else { self.nodes[next as usize].arrives };
        node
    }

    /// The most packets that were in flight at once.
    pub fn peak(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{Envelope, kind};
    use qdisc::Ecn;
    use std::collections::VecDeque;
    use units::Rng;

    fn packet(seq: u32) -> Parcel {
        let envelope = Envelope { flow: 0, ds: DsField::BEST_EFFORT };
        envelope.packet(100, Ecn::NotEct, kind::DATAGRAM, seq, Time::ZERO)
    }

    #[test]
    fn an_earlier_arrival_is_inserted_ahead_and_an_equal_one_behind() {
        let mut rng = Rng::new(1, "overtaking");
        let mut lanes = Lanes::new();
        let lane = lanes.open();
        for _ in 0..200 {
            let mut model: Vec<(u64, u32)> = (0..30).map(|seq| (rng.below(20), seq)).collect();
            for &(at, seq) in &model {
                let node = lanes.place(packet(seq));
                let first = lanes.first_arrives(lane);
                assert_eq!(lanes.push(lane, Time(at), node), Time(at) < first);
            }
            model.sort();
            for (at, seq) in model {
                assert_eq!(lanes.first_arrives(lane), Time(at));
                assert_eq!(lanes.receive(lane), packet(seq));
            }
            assert_eq!(lanes.first_arrives(lane), Time::NEVER);
        }
    }

    #[test]
    fn each_lane_is_a_queue_and_freed_slots_are_reused() {
        let (mut lanes, mut models) = (Lanes::new(), vec![VecDeque::new(); 5]);
        (0..models.len()).for_each(|_| _ = lanes.open());
        let (mut rng, mut most) = (Rng::new(1, "lanes"), 0);
        for now in 0..10_000u32 {
            let lane = rng.below(5) as usize;
            if rng.chance(0.5) {
                let node = lanes.place(packet(now));
                lanes.push(lane as u32, Time(now.into()), node);
                models[lane].push_back(now);
            } else if let Some(seq) = models[lane].pop_front() {
                let node = lanes.pop(lane as u32);
                assert_eq!(lanes.take(node), packet(seq));
            }
            let first = models[lane].front().map_or(Time::NEVER, |&seq| Time(seq.into()));
            assert_eq!(lanes.first_arrives(lane as u32), first);
            most = most.max(models.iter().map(VecDeque::len).sum());
        }
        assert_eq!(lanes.peak(), most);
    }
}
