//! Finds the queue with the most bytes among all tins when memory is exhausted.
//!
//! A binary heap over all possible queues. It is built when it is first needed and kept in order
//! while it is needed often. The order of equal queues depends on the heap: a queue that has shrunk
//! sinks below its larger child, the left one of equals.
//!
//! Linux's heap has a fault that sometimes decides which queue drops, so it is reproduced here.
//! When a queue sinks, its bytes are compared only at the first step. At the next step those of the
//! child that has just risen are compared instead, and in a heap in order no grandchild is larger.
//! So a queue sinks by one step, and may be above longer ones until these grow. An empty queue may
//! be first: Linux then finds nothing to drop, and rebuilds the heap (`cake_drop`).

use super::flows::QUEUES;

/// The tins of the widest mode. The heap has room for all of them in every mode.
const TINS: usize = 8;
const ENTRIES: usize = QUEUES * TINS;
/// The number of departures after which an unused heap is abandoned.
const LIFETIME: u32 = 65_535;

/// A queue: tin and index.
pub(super) type Queue = (u8, u16);

/// Returns the bytes of a queue.
pub(super) trait Bytes {
    fn bytes(&self, queue: Queue) -> u32;
}

#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    entries: Vec<Queue>,
    /// The index of each queue in `entries`.
    places: Vec<u16>,
    /// The departures left until the heap is abandoned; 0: it is out of order.
    lifetime: u32,
}

fn place_of((tin, index): Queue) -> usize {
    usize::from(index) * TINS + usize::from(tin)
}

impl Heap {
    /// Whether the heap is in order.
    #[inline]
    pub(super) fn is_in_order(&self) -> bool {
        self.lifetime > 0
    }

    /// Abandons the heap. It is rebuilt when it is needed next.
    pub(super) fn forget(&mut self) {
        self.lifetime = 0;
    }

    /// A packet has left.
    #[inline]
    pub(super) fn packet_left(&mut self) {
        self.lifetime = self.lifetime.saturating_sub(1);
    }

    /// The queue with the most bytes.
    pub(super) fn longest(&mut self, all: &impl Bytes) -> Queue {
        if self.entries.is_empty() {
            let of = |place: usize| ((place % TINS) as u8, (place / TINS) as u16);
            self.entries = (0..ENTRIES).map(of).collect();
            self.places = (0..ENTRIES as u16).collect();
        }
        if !self.is_in_order() {
            for place in (0..ENTRIES / 2).rev() {
                self.sink(place, all);
            }
        }
        self.lifetime = LIFETIME;
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
        // After the first step these are not the bytes of the sinking queue.
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

    /// The bytes of the first queues of tins 0 to 3, which have places 0 to 3 in the heap.
    struct All([u32; 4]);

    impl Bytes for All {
        fn bytes(&self, (tin, index): Queue) -> u32 {
            if index > 0 { 0 } else { self.0.get(usize::from(tin)).copied().unwrap_or(0) }
        }
    }

    #[test]
    fn the_longest_queue_is_at_the_top_and_growing_queues_move_up() {
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
    fn a_queue_moved_down_one_step_may_lie_above_longer_ones_as_in_linux() {
        // Queue 3 is below 1, and 1 below 0.
        let mut all = All([10, 9, 0, 8]);
        let mut heap = Heap::default();
        assert_eq!(heap.longest(&all), (0, 0));
        // Queue 0 sinks to the place of 1, but not below 3.
        all.0[0] = 1;
        heap.shrank((0, 0), &all);
        assert_eq!(heap.longest(&all), (1, 0));
        // So it rises again when 1 shrinks, though 3 is longer.
        all.0[1] = 0;
        heap.shrank((1, 0), &all);
        assert_eq!(heap.longest(&all), (0, 0));
        // The growth of 3 repairs the order.
        all.0[3] = 9;
        heap.grew((3, 0), &all);
        assert_eq!(heap.longest(&all), (3, 0));
    }
}
