//! A leaf: a plain link whose queue never drops, and which all packets reach in order of time.
//!
//! Such a packet's arrival at the far end follows from its size and from the packet before it. So
//! the caller knows that arrival as soon as the packet reaches the leaf. The link itself follows
//! later, in one long window (`count`). It then has the state and the counts that it would have
//! without the leaf, because it is moved by `run` like any other plain link.

use crate::{Departure, Framing, Link, Outlet, Schedule, Transmission, Window};
use qdisc::{Body, Discipline, Packet, Verdict};
use units::{Span, Time};

/// The arrivals at far ends, ahead of the link's own state.
pub struct Leaf<B> {
    free_at: Time,
    delay: Span,
    framing: Framing,
    schedule: Schedule,
    /// The last transmission.
    alike: Transmission,
    /// The packets that the link has not seen yet, and their times.
    ahead: Vec<(Packet<B>, Time)>,
    /// The link has seen all packets before this time.
    counted: Time,
}

impl<B> Leaf<B> {
    /// A packet reaches the leaf at `now`, not before any earlier one. Returns the time at which it
    /// reaches the far end.
    #[inline]
    pub fn pass(&mut self, packet: Packet<B>, now: Time) -> Time {
        if packet.size != self.alike.ip_bytes {
            self.alike = Transmission::new(&self.framing, &self.schedule, packet.size, now);
        }
        self.free_at = self.free_at.max(now) + self.alike.span;
        self.ahead.push((packet, now));
        self.free_at + self.delay
    }
}

impl<B: Body + Copy> Link<B> {
    /// The link as a leaf, if its packets reach it in order. `None`: it may drop, or is not plain.
    pub fn leaf(&self) -> Option<Leaf<B>> {
        let keeps_all = matches!(&self.qdisc, Discipline::Pfifo(fifo) if fifo.never_drops());
        (keeps_all && self.is_plain()).then(|| Leaf {
            free_at: self.free_at,
            delay: self.wire.delay(),
            framing: self.framing,
            schedule: self.schedule.clone(),
            alike: self.last,
            ahead: Vec::new(),
            counted: Time::ZERO,
        })
    }

    /// Moves the link of a leaf up to `last`. `left` is called with each packet's time in the
    /// queue. Returns the number of packets that have arrived.
    pub fn count(&mut self, leaf: &mut Leaf<B>, last: Time, left: impl FnMut(Span)) -> u64 {
        let arrived = leaf.ahead.partition_point(|(_, at)| *at <= last);
        if arrived > 0 || self.backlog.packets > 0 {
            let arrivals = leaf.ahead[..arrived].iter().copied();
            self.run((leaf.counted, last), Counted { arrivals, left });
            leaf.ahead.drain(..arrived);
        }
        leaf.counted = last + Span(1);
        arrived as u64
    }
}

struct Counted<I, F> {
    arrivals: I,
    left: F,
}

impl<B, I, F: FnMut(Span)> Outlet<B> for Counted<I, F> {
    #[inline]
    fn departed(&mut self, departure: Departure<B>) {
        (self.left)(departure.dequeued.since(departure.packet.enqueued));
    }

    fn doubled(&mut self, _: &Packet<B>, _: Time) {
        unreachable!("a plain wire doubles no packet")
    }

    fn decided(&mut self, _: Verdict<B>, _: Time) {
        unreachable!("a leaf's queue drops no packet")
    }
}

impl<B, I: Iterator<Item = (Packet<B>, Time)>, F: FnMut(Span)> Window<B> for Counted<I, F> {
    #[inline]
    fn arrival(&mut self) -> Option<(Packet<B>, Time)> {
        self.arrivals.next()
    }

    fn end(self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Log;
    use crate::window::tests::{any_arrivals, link, state};
    use proptest::prelude::*;
    use qdisc::{FifoParams, Params};

    const MS: u64 = 1_000_000;

    proptest! {
        #[test]
        fn a_leaf_returns_arrival_times_and_its_link_counts_the_packets_later(
            header_bytes in prop::sample::select(vec![0u32, 14]),
            arrivals in any_arrivals(),
            mut counts in prop::collection::vec(0..400 * MS, 0..20),
        ) {
            let params = Params::Pfifo(FifoParams { limit: u32::MAX.into() });
            let (mut general, mut late) = (link(&params, header_bytes), link(&params, header_bytes));
            let mut leaf = late.leaf().expect("it never drops");
            let (mut general_log, mut sojourns) = (Log::default(), Vec::new());
            let passed: Vec<Time> =
                arrivals.iter().map(|(packet, at)| leaf.pass(*packet, *at)).collect();
            let (mut left, mut number) = (&arrivals[..], 0);
            counts.sort_unstable();
            for last in counts.into_iter().chain([400 * MS, 1000 * MS]).map(Time) {
                let (inside, after) = left.split_at(left.partition_point(|(_, at)| *at <= last));
                left = after;
                inside.iter().for_each(|(packet, at)| general.send(*packet, *at, &mut general_log));
                general.advance(last, &mut general_log);
                number += late.count(&mut leaf, last, |sojourn| sojourns.push(sojourn));
                prop_assert_eq!(state(&late, last), state(&general, last));
            }
            prop_assert_eq!(number as usize, arrivals.len());
            let arrive: Vec<Time> = general_log.departures.iter().map(|d| d.arrives).collect();
            prop_assert_eq!(arrive, passed);
            let waited = general_log.departures.iter().map(|d| d.dequeued.since(d.packet.enqueued));
            prop_assert_eq!(sojourns, waited.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_link_that_may_drop_is_not_a_leaf() {
        assert!(link(&Params::Pfifo(FifoParams { limit: 1000 }), 0).leaf().is_none());
    }
}
