//! pfifo_fast: three FIFOs in strict priority, chosen by the old TOS bits; for two decades the
//! default queue of every Linux interface.
//!
//! A packet's TOS bits give its priority, and the priority its band. Band 1 is served only while
//! band 0 is empty, band 2 only while bands 0 and 1 are. Best effort is in band 1. So a program
//! that asks for throughput (as scp does) yields to all others at this queue, including pings. One
//! that asks for low delay (interactive ssh) overtakes all others.
//!
//! Source: tc-pfifo_fast(8); tc-prio(8) for the two tables; Linux net/sched/sch_generic.c. tc has
//! no parameter for it: the limit is the device's txqueuelen (`ip link set DEV txqueuelen 1000`),
//! written `limit` here as for pfifo.
//!
//! | | linux | shared |
//! |---|---|---|
//! | in Linux | since 4.16 (2018) | before |
//! | `limit` packets | in each band | in the three together |
//!
//! The difference matters: in `shared`, bulk in band 2 that has filled the queue keeps packets out
//! of bands 0 and 1 too. The manual page describes `linux`, and did so while Linux had `shared`.
//!
//! The discipline reads these four bits only, and DSCPs were defined later. So DSCPs are in bands
//! that nobody chose: EF (0xb8) in band 1, AF11 (0x28) in band 2, AF12 (0x30) in band 0. The lowest
//! of the four bits now belongs to ECT(0) and has no effect: ECN moves no packet to another band
//! (it did before Linux 2.6.39).
//!
//! Since 4.16 a band is a ring of `limit` places (skb_array). The consumer frees the places of
//! departed packets in batches of sixteen, two cache lines of pointers (`__ptr_ring_discard_one`).
//! Until then they count as taken. So a full band has up to 15 packets less than its limit. After
//! its first drop it drops until the next sixteen places are freed. A ring of fewer than 32 places
//! frees each at once.
//!
//! A packet that finds all bands empty takes no place at all (see `bypass`). The discipline has no
//! lock (TCQ_F_NOLOCK), so Linux knows that it is empty only after a dequeue has returned nothing.
//!
//! Deviations: the priority always follows from the TOS byte, as for forwarded packets and programs
//! that set IP_TOS; SO_PRIORITY has no counterpart. Nothing here runs concurrently, so no packet is
//! overtaken in its own band.

use crate::bypass::Bypass;
use crate::{Backlog, Cause, DsField, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::Time;

/// The scope of the limit: see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PfifoFastVariant {
    /// Linux since 4.16: each band has a limit of its own.
    Linux,
    /// Linux before 4.16: the bands share one limit.
    Shared,
}

/// `pfifo_fast limit PACKETS`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PfifoFastParams {
    /// The version of Linux.
    pub variant: PfifoFastVariant,
    /// The device's txqueuelen, packets (1000).
    pub limit: u64,
}

/// Linux's priorities that TOS bits can select (tc-prio(8), column "Linux Priority").
mod priority {
    pub const BEST_EFFORT: u8 = 0;
    pub const BULK: u8 = 2;
    pub const INTERACTIVE_BULK: u8 = 4;
    pub const INTERACTIVE: u8 = 6;
}

/// The bits of the byte that are read: 0x10 low delay, 0x08 throughput, 0x04 reliability, 0x02 low
/// cost.
const TOS_BITS: u8 = 0x1e;

/// The priority by the TOS bits, read as a number from 0 to 15.
#[rustfmt::skip]
const PRIORITY_OF_TOS: [u8; 16] = {
    use priority::*;
    [
        BEST_EFFORT,      BEST_EFFORT,      BEST_EFFORT,      BEST_EFFORT,
        BULK,             BULK,             BULK,             BULK,
        INTERACTIVE,      INTERACTIVE,      INTERACTIVE,      INTERACTIVE,
        INTERACTIVE_BULK, INTERACTIVE_BULK, INTERACTIVE_BULK, INTERACTIVE_BULK,
    ]
};

/// The band by priority: tc-prio(8)'s default priomap.
const BAND_OF_PRIORITY: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// The kernel's priority of a packet with this DS field.
#[inline]
pub fn priority_of(ds: DsField) -> u8 {
    PRIORITY_OF_TOS[usize::from((ds.0 & TOS_BITS) >> 1)]
}

/// The band of a packet with this DS field; 0 is served first.
#[inline]
fn band(ds: DsField) -> usize {
    usize::from(BAND_OF_PRIORITY[usize::from(priority_of(ds))])
}

/// The pointers in two cache lines. Places are freed in batches of this size.
const BATCH: u64 = 16;

/// Places of a band's ring that packets have left and that are not yet free.
#[derive(Clone, Copy, Debug, Default)]
struct Vacated {
    places: u64,
    /// The place in the ring of the next packet to leave. At the ring's end all places are freed.
    next: u64,
}

impl Vacated {
    /// A packet leaves its place (__ptr_ring_discard_one).
    #[inline]
    fn add(&mut self, limit: u64) {
        self.places += 1;
        self.next += 1;
        let batch = if BATCH > limit / 2 { 1 } else { BATCH };
        if self.places >= batch || self.next >= limit {
            self.places = 0;
        }
        if self.next >= limit {
            self.next = 0;
        }
    }
}

/// `pfifo_fast limit PACKETS`: three bands, the first served first.
pub struct PfifoFast<B> {
    variant: PfifoFastVariant,
    limit: u64,
    bands: [Fifo<B>; 3],
    vacated: [Vacated; 3],
    bypass: Bypass<B>,
    /// The last dequeue returned nothing. The discipline has no lock, so Linux has no other way to
    /// know that the queue is empty (nolock_qdisc_is_empty).
    known_empty: bool,
}

impl<B> PfifoFast<B> {
    /// Three empty bands. `root`: see `Context`.
    pub fn new(params: &PfifoFastParams, root: bool) -> Self {
        let bands = [Fifo::default(), Fifo::default(), Fifo::default()];
        PfifoFast {
            variant: params.variant,
            limit: params.limit,
            bands,
            vacated: Default::default(),
            bypass: Bypass::new(
                params.variant == PfifoFastVariant::Linux && root && params.limit > 0,
            ),
            known_empty: true,
        }
    }

    fn in_bands(&self) -> Backlog {
        let [first, middle, last] = [0, 1, 2].map(|band| self.bands[band].backlog());
        Backlog {
            packets: first.packets + middle.packets + last.packets,
            bytes: first.bytes + middle.bytes + last.bytes,
        }
    }
}

impl<B> Qdisc<B> for PfifoFast<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        if self.known_empty {
            match self.bypass.take_past(packet, self.in_bands(), now) {
                None => return,
                Some(back) => packet = back,
            }
        }
        let band = band(packet.ds);
        let taken = match self.variant {
            PfifoFastVariant::Linux => {
                u64::from(self.bands[band].backlog().packets) + self.vacated[band].places
            }
            PfifoFastVariant::Shared => u64::from(self.backlog().packets),
        };
        if taken < self.limit {
            self.known_empty = false;
            self.bands[band].push(packet, now);
        } else {
            verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        if let Some(packet) = self.bypass.take_out() {
            // A packet that had to wait was requeued. Until the next dequeue that returns nothing,
            // the queue is not known to be empty.
            self.known_empty &= packet.enqueued == now;
            return Some(packet);
        }
        let first =
            self.bands.iter_mut().enumerate().find_map(|(band, queue)| Some((band, queue.pop()?)));
        let Some((band, packet)) = first else {
            self.known_empty = true;
            return None;
        };
        if self.variant == PfifoFastVariant::Linux {
            self.vacated[band].add(self.limit);
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bypass.backlog(self.in_bands())
    }

    fn state(&self, _now: Time) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    const LOW_DELAY: DsField = DsField(0x10);
    const THROUGHPUT: DsField = DsField(0x08);

    fn packet(body: u32, ds: DsField) -> Packet<u32> {
        Packet { enqueued: Time::ZERO, flow: 0, size: 100, ds, body }
    }

    fn pfifo_fast(variant: PfifoFastVariant, limit: u64) -> PfifoFast<u32> {
        PfifoFast::new(&PfifoFastParams { variant, limit }, false)
    }

    /// Enqueues packets in this order, numbered by their bodies. Returns the dropped packets, then
    /// the departed ones.
    fn pass(mut q: PfifoFast<u32>, arrivals: &[DsField]) -> (Vec<u32>, Vec<u32>) {
        let mut verdicts = Vec::new();
        for (body, ds) in (0..).zip(arrivals) {
            q.enqueue(packet(body, *ds), Time::ZERO, &mut verdicts);
        }
        let dropped = verdicts.iter().map(|verdict| match verdict {
            Verdict::Dropped(packet, Cause::Limit) => packet.body,
            other => panic!("{other:?}"),
        });
        let dropped = dropped.collect();
        let served = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut Vec::new())).map(|p| p.body);
        (dropped, served.collect())
    }

    #[test]
    fn the_bands_are_those_of_the_manual_page() {
        // tc-prio(8): sixteen rows of TOS and band.
        let table = [1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1];
        for (row, want) in (0u8..).zip(table) {
            assert_eq!(band(DsField(row << 1)), want, "TOS {:#04x}", row << 1);
        }
    }

    #[test]
    fn precedence_is_not_read() {
        // CS, AFx1 to AFx3, EF, VA, LE: only the bits 0x18 of the byte matter.
        let dscp = |codepoint: u8| band(DsField(codepoint << 2));
        assert!((0..8).all(|class| dscp(class << 3) == 1));
        assert!((1..5).all(|class| [2, 4, 6].map(|drop| dscp(class << 3 | drop)) == [2, 0, 1]));
        assert_eq!([46, 44, 1].map(dscp), [1, 0, 1]);
    }

    #[test]
    fn ecn_moves_no_packet_to_another_band() {
        for byte in 0..=255 {
            for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ce] {
                assert_eq!(band(DsField(byte)), band(DsField(byte).with_ecn(ecn)));
            }
        }
    }

    #[test]
    fn a_lower_band_waits_until_the_higher_are_empty() {
        let arrivals =
            [THROUGHPUT, DsField::BEST_EFFORT, LOW_DELAY, THROUGHPUT, DsField::BEST_EFFORT];
        for variant in [PfifoFastVariant::Linux, PfifoFastVariant::Shared] {
            let (dropped, served) = pass(pfifo_fast(variant, 5), &arrivals);
            assert_eq!((dropped, served), (vec![], vec![2, 1, 4, 0, 3]), "{variant:?}");
        }
    }

    #[test]
    fn a_full_band_refuses_only_its_own_packets() {
        let arrivals = [THROUGHPUT, THROUGHPUT, THROUGHPUT, DsField::BEST_EFFORT, LOW_DELAY];
        let (dropped, served) = pass(pfifo_fast(PfifoFastVariant::Linux, 2), &arrivals);
        assert_eq!((dropped, served), (vec![2], vec![4, 3, 0, 1]));
    }

    #[test]
    fn a_packet_that_finds_all_bands_empty_takes_no_slot() {
        let mut q =
            PfifoFast::new(&PfifoFastParams { variant: PfifoFastVariant::Linux, limit: 2 }, true);
        let mut verdicts = Vec::new();
        let arrive = |q: &mut PfifoFast<u32>, at: u64, verdicts: &mut Vec<_>| {
            q.enqueue(packet(0, THROUGHPUT), Time(at), verdicts);
            q.backlog().packets
        };
        // One packet bypasses the queue, two find places, the fourth none.
        let grown = [(); 4].map(|()| arrive(&mut q, 0, &mut verdicts));
        assert_eq!((grown, verdicts.len()), ([1, 2, 3, 3], 1));
        while q.backlog().packets > 0 {
            q.dequeue(Time(9), &mut verdicts);
        }
        // The queue is empty, but no dequeue has returned nothing yet: there are two places, and no
        // bypass.
        verdicts.clear();
        let grown = [(); 3].map(|()| arrive(&mut q, 10, &mut verdicts));
        assert_eq!((grown, verdicts.len()), ([1, 2, 2], 1));
        while q.dequeue(Time(11), &mut verdicts).is_some() {}
        let grown = [(); 3].map(|()| arrive(&mut q, 12, &mut verdicts));
        assert_eq!(grown, [1, 2, 3]);
    }

    #[test]
    fn with_a_shared_limit_bulk_packets_fill_the_other_bands_slots() {
        let arrivals = [THROUGHPUT, THROUGHPUT, DsField::BEST_EFFORT, LOW_DELAY];
        let (dropped, served) = pass(pfifo_fast(PfifoFastVariant::Shared, 2), &arrivals);
        assert_eq!((dropped, served), (vec![2, 3], vec![0, 1]));
    }

    /// Fills the queue, sends `sent` packets and refills the queue after each. Returns the number
    /// of packets that entered each time.
    fn refill(variant: PfifoFastVariant, limit: u32, sent: u32) -> Vec<u32> {
        let mut q = pfifo_fast(variant, u64::from(limit));
        let mut verdicts = Vec::new();
        for body in 0..limit {
            q.enqueue(packet(body, THROUGHPUT), Time::ZERO, &mut verdicts);
        }
        let mut entered = Vec::new();
        for _ in 0..sent {
            q.dequeue(Time::ZERO, &mut verdicts);
            let before = q.backlog().packets;
            while verdicts.is_empty() {
                q.enqueue(packet(0, THROUGHPUT), Time::ZERO, &mut verdicts);
            }
            verdicts.clear();
            entered.push(q.backlog().packets - before);
        }
        entered
    }

    #[test]
    fn slots_are_freed_sixteen_at_a_time_and_at_the_end_of_the_ring() {
        let entered = refill(PfifoFastVariant::Linux, 40, 56);
        // Places are freed at the 16th, the 32nd and the last of the 40 departures; then the ring
        // begins again.
        let want = |sent| match sent {
            16 | 32 | 56 => 16,
            40 => 8,
            _ => 0,
        };
        assert_eq!(entered, (1..=56).map(want).collect::<Vec<_>>());
    }

    #[test]
    fn small_rings_and_old_kernels_free_each_slot_at_once() {
        assert_eq!(refill(PfifoFastVariant::Linux, 31, 70), [1; 70]);
        assert_eq!(refill(PfifoFastVariant::Shared, 40, 70), [1; 70]);
    }
}
