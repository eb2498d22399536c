//! The driver's ring: packets that have left the discipline and wait for the transmitter.
//!
//! A FIFO of N descriptors lies between the discipline and the wire. A packet enters it as soon as
//! a descriptor is free and, with BQL, the limit allows it. From then on no discipline can drop or
//! reorder it. Its descriptor becomes free when the driver learns that its last bit is out. That is
//! at once, or, with coalesced interrupts, some time after the first completion that was not yet
//! reported. A ring of one descriptor is the same as no ring.
//!
//! The ring never changes the order, so the time of each packet's last bit is known when it enters.
//! `settle` brings the ring up to a time; `opened_by` returns the time at which it accepts the next
//! packet.
//!
//! Source: D. Siemon, "Queueing in the Linux Network Stack" (Linux Journal, 2013); T. Herbert's BQL
//! (see `dql`). Deviation: a completion interrupt is coalesced by time only, not by a number of
//! packets.

use std::collections::VecDeque;

use qdisc::Backlog;
use serde::{Deserialize, Serialize};
use units::{Span, Time};

use crate::dql::Dql;

/// A ring as the scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RingParams {
    /// Packets in the ring at most, with the one in transmission.
    pub descriptors: u32,
    /// Whether byte queue limits apply, too.
    pub bql: bool,
    /// Completions are reported this long after the first one that was not yet reported, ns.
    pub coalesce_ns: u64,
}

impl RingParams {
    /// One descriptor: the transmitter's own, the same as no ring.
    pub const NONE: RingParams = RingParams { descriptors: 1, bql: false, coalesce_ns: 0 };
}

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The time at which it left the discipline.
    pub entered: Time,
    /// The start of its transmission.
    pub begins: Time,
    /// The time at which its last bit is out.
    pub finished: Time,
    /// Its bytes as the discipline counts them.
    pub bytes: u32,
    /// Its bytes on the wire.
    pub wire_bytes: u64,
}

/// A ring's counts at the time that it was settled to. A sojourn is the time from leaving the
/// discipline to the last bit out.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingCounters {
    /// Packets whose last bit is out.
    pub sent_packets: u64,
    /// Sum of their sojourn times, ns.
    pub sojourn_sum_ns: u128,
    /// Time integral of the packets inside, packet·ns.
    pub packet_ns: u128,
}

/// A ring and the packets in it.
#[derive(Clone, Debug)]
pub struct Ring {
    descriptors: usize,
    coalesce: Span,
    dql: Option<Dql>,
    /// Packets that occupy a descriptor, in order.
    slots: VecDeque<Slot>,
    /// The number of packets at the front that are out and not yet reported.
    out: usize,
    /// The time of the next interrupt; `NEVER`: every completion is reported.
    interrupt_at: Time,
    /// The time at which it began to accept packets; undefined while it accepts none.
    open_since: Time,
    backlog: Backlog,
    backlog_since: Time,
    counters: RingCounters,
    most_packets: u32,
    longest: Span,
}

impl Ring {
    /// An empty ring.
    pub fn new(params: RingParams) -> Ring {
        assert!(params.descriptors > 0, "a ring has at least one descriptor");
        Ring {
            descriptors: params.descriptors as usize,
            coalesce: Span(params.coalesce_ns),
            dql: params.bql.then(Dql::default),
            slots: VecDeque::new(),
            out: 0,
            interrupt_at: Time::NEVER,
            open_since: Time::ZERO,
            backlog: Backlog::default(),
            backlog_since: Time::ZERO,
            counters: RingCounters::default(),
            most_packets: 0,
            longest: Span::ZERO,
        }
    }

    /// The packets in it, with the one in transmission, at the time that it was settled to.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// BQL's limit in bytes; `None` without BQL.
    pub fn limit(&self) -> Option<u64> {
        self.dql.as_ref().map(Dql::limit)
    }

    /// Its counts at `now`, to which it was settled.
    pub fn counters(&self, now: Time) -> RingCounters {
        let packet_ns = self.counters.packet_ns + self.integral(now);
        RingCounters { packet_ns, ..self.counters }
    }

    /// The most packets inside at once, and the longest sojourn of a packet that is out, since
    /// `forget_peak`.
    pub fn peak(&self) -> (u32, Span) {
        (self.most_packets, self.longest)
    }

    /// Resets the peaks.
    pub fn forget_peak(&mut self) {
        (self.most_packets, self.longest) = (self.backlog.packets, Span::ZERO);
    }

    /// Bytes on the wire of the packets inside whose transmission has not begun by `now`.
    pub fn unbegun_wire_bytes(&self, now: Time) -> u64 {
        self.slots.iter().filter(|slot| slot.begins > now).map(|slot| slot.wire_bytes).sum()
    }

    /// The time at which it begins to accept packets, if that is not after `now`.
    #[inline]
    pub fn opened_by(&mut self, now: Time) -> Option<Time> {
        while !self.is_open() {
            if !self.step(now) {
                return None;
            }
        }
        (self.open_since <= now).then_some(self.open_since)
    }

    /// The earliest time at which it may accept a packet: the next completion may be too small for
    /// BQL.
    pub fn may_open_at(&self) -> Time {
        if self.is_open() {
            return self.open_since;
        }
        if self.interrupt_at != Time::NEVER {
            return self.interrupt_at;
        }
        self.slots.front().map_or(Time::NEVER, |slot| slot.finished + self.coalesce)
    }

    /// Brings the ring up to `now`.
    #[inline]
    pub fn settle(&mut self, now: Time) {
        while self.step(now) {}
    }

    /// A packet enters at `slot.entered`; the ring was settled to that time and was open.
    pub fn push(&mut self, slot: Slot) {
        debug_assert!(self.is_open(), "a packet entered a ring that is not open");
        self.note(slot.entered);
        self.slots.push_back(slot);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(slot.bytes);
        self.most_packets = self.most_packets.max(self.backlog.packets);
        if let Some(dql) = &mut self.dql {
            dql.queued(u64::from(slot.bytes));
        }
        self.open_since = slot.entered;
    }

    fn is_open(&self) -> bool {
        self.slots.len() < self.descriptors && !self.dql.as_ref().is_some_and(Dql::is_stopped)
    }

    /// The next event, if it is due by `now`: a last bit is out, or an interrupt.
    fn step(&mut self, now: Time) -> bool {
        let next_out = self.slots.get(self.out).map_or(Time::NEVER, |slot| slot.finished);
        // An interrupt reports packets that are out at the same instant.
        if next_out.min(self.interrupt_at) > now {
            return false;
        }
        if next_out <= self.interrupt_at {
            self.finish_next();
        } else {
            self.interrupt();
        }
        true
    }

    fn finish_next(&mut self) {
        let slot = self.slots[self.out];
        self.note(slot.finished);
        self.out += 1;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(slot.bytes);
        let sojourn = slot.finished.since(slot.entered);
        self.counters.sent_packets += 1;
        self.counters.sojourn_sum_ns += u128::from(sojourn.0);
        self.longest = self.longest.max(sojourn);
        if self.interrupt_at == Time::NEVER {
            self.interrupt_at = slot.finished + self.coalesce;
        }
    }

    fn interrupt(&mut self) {
        let was_open = self.is_open();
        let now = std::mem::replace(&mut self.interrupt_at, Time::NEVER);
        let bytes = self.slots.drain(..self.out).map(|slot| u64::from(slot.bytes)).sum();
        self.out = 0;
        if let Some(dql) = &mut self.dql {
            dql.completed(bytes, now);
        }
        if !was_open {
            self.open_since = now;
        }
    }

    fn note(&mut self, now: Time) {
        self.counters.packet_ns += self.integral(now);
        self.backlog_since = now;
    }

    /// packet·ns since the last change.
    fn integral(&self, now: Time) -> u128 {
        u128::from(self.backlog.packets) * u128::from(now.since(self.backlog_since).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A packet that enters at `entered` ms and is out at `finished` ms.
    fn slot(entered: u64, finished: u64) -> Slot {
        Slot {
            entered: Time(entered * MS),
            begins: Time((finished - 1) * MS),
            finished: Time(finished * MS),
            bytes: 1514,
            wire_bytes: 1538,
        }
    }

    #[test]
    fn a_full_ring_opens_when_its_oldest_packet_is_out() {
        let mut ring = Ring::new(RingParams { descriptors: 2, ..RingParams::NONE });
        ring.push(slot(0, 1));
        assert_eq!(ring.opened_by(Time::ZERO), Some(Time::ZERO));
        ring.push(slot(0, 2));
        assert_eq!(ring.opened_by(Time(MS - 1)), None);
        assert_eq!(ring.may_open_at(), Time(MS));
        assert_eq!(
            ring.opened_by(Time(9 * MS)),
            Some(Time(MS)),
            "a late call returns the same time"
        );
        assert_eq!(ring.backlog().packets, 1);
    }

    #[test]
    fn a_ring_with_room_has_been_open_since_its_last_packet() {
        let mut ring = Ring::new(RingParams { descriptors: 2, ..RingParams::NONE });
        ring.push(slot(3, 4));
        assert_eq!(ring.opened_by(Time(3 * MS)), Some(Time(3 * MS)));
        ring.settle(Time(9 * MS));
        assert_eq!(ring.opened_by(Time(9 * MS)), Some(Time(3 * MS)));
    }

    #[test]
    fn coalesced_completions_free_their_descriptors_together() {
        let mut ring =
            Ring::new(RingParams { descriptors: 3, coalesce_ns: 3 * MS, ..RingParams::NONE });
        for finished in [1, 2, 6] {
            ring.push(slot(0, finished));
        }
        ring.settle(Time(3 * MS));
        assert_eq!(ring.backlog().packets, 1, "two are out");
        assert_eq!(ring.opened_by(Time(3 * MS)), None, "but not yet reported");
        assert_eq!(
            ring.opened_by(Time(5 * MS)),
            Some(Time(4 * MS)),
            "3 ms after the first of them"
        );
        ring.push(slot(5, 7));
        ring.push(slot(5, 8));
        assert_eq!(ring.opened_by(Time(5 * MS)), None, "both descriptors are taken again");
    }

    #[test]
    fn a_packet_completed_at_the_instant_of_the_interrupt_is_reported_by_it() {
        let mut ring =
            Ring::new(RingParams { descriptors: 2, coalesce_ns: MS, ..RingParams::NONE });
        ring.push(slot(0, 1));
        ring.push(slot(0, 2));
        assert_eq!(ring.opened_by(Time(2 * MS)), Some(Time(2 * MS)));
        ring.push(slot(2, 3));
        assert_eq!(
            ring.opened_by(Time(2 * MS)),
            Some(Time(2 * MS)),
            "the second descriptor is free too"
        );
    }

    #[test]
    fn the_time_in_the_ring_ends_with_the_last_bit() {
        let mut ring = Ring::new(RingParams { descriptors: 8, ..RingParams::NONE });
        ring.push(slot(0, 1));
        ring.push(slot(0, 2));
        assert_eq!(ring.unbegun_wire_bytes(Time::ZERO), 1538);
        ring.settle(Time(5 * MS));
        let counters = ring.counters(Time(5 * MS));
        assert_eq!((counters.sent_packets, counters.sojourn_sum_ns), (2, u128::from(3 * MS)));
        assert_eq!(counters.packet_ns, u128::from(3 * MS), "Little's law");
        assert_eq!(ring.peak(), (2, Span(2 * MS)));
    }

    #[test]
    fn taking_the_peaks_resets_them_to_the_present_content() {
        let mut ring = Ring::new(RingParams { descriptors: 8, ..RingParams::NONE });
        for finished in [3, 4, 5] {
            ring.push(slot(0, finished));
        }
        ring.settle(Time(4 * MS));
        assert_eq!(ring.peak(), (3, Span(4 * MS)));
        ring.forget_peak();
        assert_eq!(ring.peak(), (1, Span::ZERO));
        ring.settle(Time(5 * MS));
        assert_eq!(ring.peak(), (1, Span(5 * MS)));
    }
}
