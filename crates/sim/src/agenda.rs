//! The agenda: what happens next, in order of time, ties in order of insertion.
//!
//! A timing wheel. Time is cut into slots about as long as a small packet's transmission. Each slot
//! is a ring of its few entries in order, of which the wheel has the last, so that both ends are at
//! hand: most entries are inserted behind the last one, and the first is the next event. Two levels
//! of bitmap find the next slot that is not empty. What lies beyond the wheel's horizon waits in a
//! heap and moves into the wheel as the horizon reaches it, before anything else can be inserted
//! there, so the order is (time, insertion) whatever the slot width: width and horizon are matters
//! of speed only. A heap alone is two to three times slower once round-trip times differ.
//!
//! Source: Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Span, Time};

const NONE: u32 = u32::MAX;

/// An entry: an event's word and, where the event is a packet's arrival, the packet. One cache line
/// for the simulator's packet.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node<P> {
    time: u64,
    /// The next one of the slot's ring, or of the free nodes.
    next: u32,
    word: u32,
    packet: P,
}

/// What came due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub time: Time,
    /// The word it was entered with.
    pub word: u32,
    /// Where its packet lies until the next insertion: see `Agenda::packet`.
    pub node: u32,
}

/// Events in order of (time, insertion).
pub struct Agenda<P> {
    nodes: Vec<Node<P>>,
    free: u32,
    len: usize,
    peak: usize,
    /// The last entry of each slot's ring.
    lasts: Vec<u32>,
    /// One bit a slot, and one bit a word of those.
    occupied: Vec<u64>,
    summary: Vec<u64>,
    shift: u32,
    mask: u64,
    /// The slot of the next event, counted from time 0. What is entered for an earlier one goes into
    /// its ring.
    cursor: u64,
    in_wheel: usize,
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_inserted: u64,
}

impl<P: Copy> Agenda<P> {
    /// An empty agenda. `slot` is rounded down to a power of two of ns, the number of slots up so
    /// that `horizon` fits, within 2^10 to 2^18 slots.
    pub fn new(slot: Span, horizon: Span) -> Self {
        let mut shift = slot.0.max(64).ilog2();
        while (horizon.0 >> shift) >= (1 << 18) {
            shift += 1;
        }
        let slots = ((horizon.0 >> shift) + 1).next_power_of_two().clamp(1 << 12, 1 << 18) as usize;
        Agenda {
            nodes: Vec::new(),
            free: NONE,
            len: 0,
            peak: 0,
            lasts: vec![NONE; slots],
            occupied: vec![0; slots / 64],
            summary: vec![0; slots / 4096],
            shift,
            mask: slots as u64 - 1,
            cursor: 0,
            in_wheel: 0,
            far: BinaryHeap::new(),
            far_inserted: 0,
        }
    }

    /// Enters an event, with its packet where it is a packet's arrival (else with any).
    #[inline]
    pub fn push(&mut self, time: Time, word: u32, packet: P) {
        let node = self.allocate(time.0, word, packet);
        self.insert(time.0, node);
    }

    /// The next event at or before `end`, taken out.
    #[inline]
    pub fn pop(&mut self, end: Time) -> Option<Due> {
        let mut index = (self.cursor & self.mask) as usize;
        while self.lasts[index] == NONE {
            if self.len == 0 || !self.open_next(end.0 >> self.shift) {
                return None;
            }
            index = (self.cursor & self.mask) as usize;
        }
        let last = self.lasts[index];
        let node = self.nodes[last as usize].next;
        let &Node { time, word, next, .. } = &self.nodes[node as usize];
        if time > end.0 {
            return None;
        }
        if node == last {
            self.lasts[index] = NONE;
            self.occupied[index / 64] &= !(1 << (index % 64));
            if self.occupied[index / 64] == 0 {
                self.summary[index / 4096] &= !(1 << (index / 64 % 64));
            }
        } else {
            self.nodes[last as usize].next = next;
        }
        self.nodes[node as usize].next = self.free;
        self.free = node;
        self.len -= 1;
        self.in_wheel -= 1;
        Some(Due { time: Time(time), word, node })
    }

    /// Whether something else is due at the time of the event that was just popped.
    #[inline]
    pub fn more_at(&self, time: Time) -> bool {
        let last = self.lasts[(self.cursor & self.mask) as usize];
        last != NONE && {
            let first = self.nodes[last as usize].next;
            self.nodes[first as usize].time == time.0
        }
    }

    /// The packet of an event that was just popped.
    #[inline]
    pub fn packet(&self, due: Due) -> P {
        self.nodes[due.node as usize].packet
    }

    /// The most entries there were at once.
    pub fn peak(&self) -> usize {
        self.peak
    }

    #[inline]
    fn allocate(&mut self, time: u64, word: u32, packet: P) -> u32 {
        self.len += 1;
        let node = self.free;
        if node != NONE {
            let entry = &mut self.nodes[node as usize];
            self.free = entry.next;
            entry.time = time;
            entry.word = word;
            entry.packet = packet;
            return node;
        }
        self.peak = self.nodes.len() + 1;
        self.nodes.push(Node { time, next: NONE, word, packet });
        (self.nodes.len() - 1) as u32
    }

    #[inline]
    fn insert(&mut self, time: u64, node: u32) {
        let slot = (time >> self.shift).max(self.cursor);
        if slot - self.cursor <= self.mask {
            self.link(slot, time, node);
        } else {
            self.far.push(Reverse((time, self.far_inserted, node)));
            self.far_inserted += 1;
        }
    }

    /// Puts a node into its slot's ring, behind what is there for the same time.
    #[inline]
    fn link(&mut self, slot: u64, time: u64, node: u32) {
        self.in_wheel += 1;
        let index = (slot & self.mask) as usize;
        let last = self.lasts[index];
        if last == NONE {
            self.nodes[node as usize].next = node;
            self.lasts[index] = node;
            self.occupied[index / 64] |= 1 << (index % 64);
            self.summary[index / 4096] |= 1 << (index / 64 % 64);
            return;
        }
        let mut before = last;
        if self.nodes[last as usize].time <= time {
            self.lasts[index] = node;
        } else {
            loop {
                let next = self.nodes[before as usize].next;
                if self.nodes[next as usize].time > time {
                    break;
                }
                before = next;
            }
        }
        self.nodes[node as usize].next = self.nodes[before as usize].next;
        self.nodes[before as usize].next = node;
    }

    /// Goes on to the next slot that has an entry, unless it lies beyond `last`.
    fn open_next(&mut self, last: u64) -> bool {
        let next = if self.in_wheel > 0 {
            self.next_occupied()
        } else {
            match self.far.peek() {
                Some(Reverse((time, ..))) => time >> self.shift,
                None => return false,
            }
        };
        if next > last {
            return false;
        }
        self.cursor = next;
        // The horizon has moved: what it now covers goes into the wheel before anyone can insert
        // there.
        while let Some(&Reverse((time, _, node))) = self.far.peek()
            && (time >> self.shift) - self.cursor <= self.mask
        {
            self.far.pop();
            self.link(time >> self.shift, time, node);
        }
        true
    }

    /// The first slot after the cursor that is occupied; the wheel must not be empty.
    #[inline]
    fn next_occupied(&self) -> u64 {
        let start = ((self.cursor + 1) & self.mask) as usize;
        let (word, bit) = (start / 64, start % 64);
        let here = self.occupied[word] >> bit;
        if here != 0 {
            return self.cursor + 1 + u64::from(here.trailing_zeros());
        }
        let index = self.next_word(word + 1);
        let found = index * 64 + self.occupied[index].trailing_zeros() as usize;
        // Distance around the wheel from `start`.
        self.cursor + 1 + ((found as u64).wrapping_sub(start as u64) & self.mask)
    }

    /// The first word of `occupied` at or after `from`, around the wheel, that is not zero.
    #[inline]
    fn next_word(&self, from: usize) -> usize {
        let words = self.occupied.len();
        let from = if from == words { 0 } else { from };
        let (mut group, bit) = (from / 64, from % 64);
        let mut bits = self.summary[group] >> bit << bit;
        loop {
            if bits != 0 {
                return group * 64 + bits.trailing_zeros() as usize;
            }
            group = if group + 1 == self.summary.len() { 0 } else { group + 1 };
            bits = self.summary[group];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Luck;

    /// A heap keyed by (time, insertion) is the definition of the order.
    fn replay(slot: u64, horizon: u64, spread: u64, seed: u64) {
        let mut agenda = Agenda::new(Span(slot), Span(horizon));
        let mut model = BinaryHeap::new();
        let mut luck = Luck::new(seed, "agenda");
        let (mut now, mut inserted) = (0u64, 0u32);
        for _ in 0..30_000 {
            for _ in 0..luck.below(3) {
                // Coarse times make ties common; some lie far beyond the horizon.
                let reach = if luck.chance(0.05) { spread * 50 } else { spread };
                let time = now + luck.below(reach) / 100 * 100;
                agenda.push(Time(time), inserted, inserted);
                model.push(Reverse((time, inserted)));
                inserted += 1;
            }
            let due = agenda.pop(Time::NEVER);
            assert_eq!(due.map(|d| (d.time.0, d.word)), model.pop().map(|Reverse(e)| e));
            if let Some(due) = due {
                assert_eq!(agenda.packet(due), due.word);
                now = due.time.0;
            }
        }
    }

    #[test]
    fn the_order_is_time_then_insertion_whatever_the_width() {
        for (i, &(slot, horizon)) in
            [(64, 1 << 14), (1 << 10, 1 << 20), (1 << 14, 1 << 26)].iter().enumerate()
        {
            for (j, &spread) in [500, 100_000, 30_000_000].iter().enumerate() {
                replay(slot, horizon, spread, (i * 3 + j) as u64);
            }
        }
    }

    #[test]
    fn pop_stops_at_the_end_and_goes_on_later() {
        let mut agenda = Agenda::new(Span(1000), Span(1_000_000));
        agenda.push(Time(5), 1, ());
        agenda.push(Time(7_000_000_000), 2, ());
        assert_eq!(agenda.pop(Time(4)), None);
        assert_eq!(agenda.pop(Time(6)).map(|d| d.word), Some(1));
        assert_eq!(agenda.pop(Time(6_999_999_999)), None);
        // An earlier event can still come in.
        agenda.push(Time(6_000_000), 3, ());
        assert_eq!(agenda.pop(Time::NEVER).map(|d| d.word), Some(3));
        assert_eq!(agenda.pop(Time::NEVER).map(|d| d.word), Some(2));
        assert_eq!(agenda.pop(Time::NEVER), None);
    }
}
