//! Which queue of all tins has the most bytes, once memory has run out.
//!
//! A binary heap over every queue there could be. It is made when it is first needed and kept in
//! order while it is needed often. Which of two equal queues is first depends on the heap's own
//! order: a queue that has shrunk goes down to its larger child, the left one of equals.
//!
//! Linux's heap has a fault that decides now and then which queue pays, so it is kept here: what goes
//! down a step is compared, at the next, not by its own bytes but by those of the child that has just
//! gone up. No grandchild is larger in a heap that is in order. So a queue goes down one step, and
//! may lie above longer ones until these grow. An empty one may come first: Linux finds nothing to
//! drop there, and makes the heap anew (`cake_drop`).

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

    /// It is made anew when it is needed next.
    pub(super) fn forget(&mut self) {
        self.kept = 0;
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
        // Not of the queue that goes down, once it has gone a step.
        let mut most = all.bytes(self.entries[place]);
        loop {
            let mut largest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                let bytes = self.entries.get(child).map_or(0, |queue| all.bytes(*queue));
                if bytes > most {
                    (largest, most) = (child, bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the queues 0 to 3 of the first eight tins' first queues: places 0 to 3 of the heap.
    struct All([u32; 4]);

    impl Bytes for All {
        fn bytes(&self, (tin, index): Queue) -> u32 {
            if index > 0 { 0 } else { self.0.get(usize::from(tin)).copied().unwrap_or(0) }
        }
    }

    #[test]
    fn the_longest_queue_is_first_and_what_grows_goes_up() {
        let mut all = All([3, 10, 1, 8]);
        let mut heap = Heap::default();
        assert_eq!(heap.longest(&all), (1, 0));
        all.0[3] = 11;
        heap.grew((3, 0), &all);
        assert_eq!(heap.longest(&all), (3, 0));
        all.0[3] = 0;
        heap.shrank((3, 0), &all);
        assert_eq!(heap.longest(&all), (1, 0));
    }

    #[test]
    fn what_has_gone_down_a_step_lies_above_longer_ones_as_in_linux() {
        // Queue 3 lies below 1, and 1 below 0.
        let mut all = All([10, 9, 0, 8]);
        let mut heap = Heap::default();
        assert_eq!(heap.longest(&all), (0, 0));
        // Queue 0 goes down to the place of 1, and not below 3.
        all.0[0] = 1;
        heap.shrank((0, 0), &all);
        assert_eq!(heap.longest(&all), (1, 0));
        // So it comes up again as 1 goes, though 3 is longer.
        all.0[1] = 0;
        heap.shrank((1, 0), &all);
        assert_eq!(heap.longest(&all), (0, 0));
        // Growing sets that right.
        all.0[3] = 9;
        heap.grew((3, 0), &all);
        assert_eq!(heap.longest(&all), (3, 0));
    }
}
