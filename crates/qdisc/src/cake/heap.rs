//! Which queue of all tins has the most bytes, once memory has run out.
//!
//! A binary heap over every queue there could be. It is made when it is first needed and kept in
//! order while it is needed often. Which of two equal queues is first depends on the heap's own
//! order, so this is the plain heap: the root goes down to its larger child, the left one of
//! equals.

use super::flows::QUEUES;

/// Tins of the widest mode; the heap has room for all in every mode.
const TINS: usize = 8;
const ENTRIES: usize = QUEUES * TINS;
/// Packets that leave before a heap that nobody needed is given up.
const KEPT: u32 = 65_535;

/// A queue: tin and index.
pub(super) type Queue = (u8, u16);

/// The bytes of a queue.
pub(super) trait Bytes {
    fn bytes(&self, queue: Queue) -> u32;
}

#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    entries: Vec<Queue>,
    /// Where each queue is among the entries.
    places: Vec<u16>,
    /// Packets that may still leave until it is out of date.
    kept: u32,
}

fn place_of((tin, index): Queue) -> usize {
    usize::from(index) * TINS + usize::from(tin)
}

impl Heap {
    /// Whether it is kept in order now.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        self.kept > 0
    }

    /// A packet has left.
    #[inline]
    pub(super) fn one_left(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// The queue with the most bytes.
    pub(super) fn longest(&mut self, all: &impl Bytes) -> Queue {
        if self.entries.is_empty() {
            let of = |place: usize| ((place % TINS) as u8, (place / TINS) as u16);
            self.entries = (0..ENTRIES).map(of).collect();
            self.places = (0..ENTRIES as u16).collect();
        }
        if !self.is_kept() {
            for place in (0..ENTRIES / 2).rev() {
                self.sink(place, all);
            }
        }
        self.kept = KEPT;
        self.entries[0]
    }

    /// A queue has grown.
    #[cold]
    pub(super) fn grew(&mut self, queue: Queue, all: &impl Bytes) {
        let mut place = usize::from(self.places[place_of(queue)]);
        while place > 0 {
            let above = (place - 1) / 2;
            if all.bytes(self.entries[place]) <= all.bytes(self.entries[above]) {
                break;
            }
            self.swap(place, above);
            place = above;
        }
    }

    /// A queue has shrunk.
    #[cold]
    pub(super) fn shrank(&mut self, queue: Queue, all: &impl Bytes) {
        self.sink(usize::from(self.places[place_of(queue)]), all);
    }

    fn sink(&mut self, mut place: usize, all: &impl Bytes) {
        loop {
            let mut largest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < ENTRIES
                    && all.bytes(self.entries[child]) > all.bytes(self.entries[largest])
                {
                    largest = child;
                }
            }
            if largest == place {
                return;
            }
            self.swap(place, largest);
            place = largest;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.entries.swap(one, other);
        for place in [one, other] {
            self.places[place_of(self.entries[place])] = place as u16;
        }
    }
}
