//! ets: enhanced transmission selection. Some bands are in strict priority. The bands below them
//! share the remaining capacity by weight. Each band is a pfifo.
//!
//! The bands by weight are served by deficit round robin. Each band with packets is in a list and
//! has a deficit. If the deficit covers the band's oldest packet, the packet is sent and its size
//! subtracted. Otherwise the band gets its quantum and moves to the end of the list. A band that
//! was empty joins the list with one quantum.
//!
//! Source: IEEE 802.1Qaz; Shreedhar and Varghese, "Efficient fair queuing using deficit round
//! robin" (1995); tc-ets(8); Linux net/sched/sch_ets.c (6.12) for the behaviour. A band by weight
//! keeps its deficit while bands in strict priority are served.
//!
//! Deviations: those of prio.

use crate::bands::{Bands, PRIORITIES, listed, priomap};
use crate::{Backlog, Context, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use std::collections::VecDeque;
use units::Time;

/// `ets bands N strict N quanta BYTES... priomap BAND...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtsParams {
    /// The number of bands.
    pub bands: u8,
    /// The number of bands in strict priority; they are the first ones.
    pub strict: u8,
    /// The quantum of each band by weight, bytes, separated by blanks. A band without one has the
    /// largest packet's size.
    #[serde(deserialize_with = "listed")]
    pub quanta: Vec<u32>,
    /// The band of each priority, from priority 0 on, separated by blanks.
    #[serde(deserialize_with = "priomap")]
    pub priomap: [u8; PRIORITIES],
    /// The limit of each band, packets (1000).
    pub limit: u64,
}

/// The deficit and the quantum of a band by weight.
struct Share {
    quantum: u64,
    deficit: u64,
}

/// Bands in strict priority above bands by weight.
pub struct Ets<B> {
    bands: Bands<B>,
    /// The number of bands in strict priority; they are the first ones.
    strict: usize,
    /// The deficits and quanta of the bands by weight.
    shares: Vec<Share>,
    /// Bands by weight that have packets, in the order of their turns.
    line: VecDeque<usize>,
}

impl<B> Ets<B> {
    /// Empty bands. A priority mapped to a missing band uses the last band.
    pub fn new(params: &EtsParams, context: Context) -> Self {
        let bands = Bands::new(params.bands, params.priomap, params.limit);
        let strict = usize::from(params.strict).min(bands.len());
        let given = params.quanta.iter().copied();
        let quanta = given.chain(std::iter::repeat(context.mtu)).take(bands.len() - strict);
        let share = |quantum: u32| Share { quantum: quantum.max(1).into(), deficit: 0 };
        Ets { bands, strict, shares: quanta.map(share).collect(), line: VecDeque::new() }
    }

    /// Removes the next packet of the bands by weight.
    fn by_weight(&mut self) -> Option<Packet<B>> {
        loop {
            let band = *self.line.front()?;
            let share = &mut self.shares[band - self.strict];
            let oldest = self.bands.queue(band).front().expect("a band in line has packets");
            let size = u64::from(oldest.size);
            if size <= share.deficit {
                share.deficit -= size;
                let packet = self.bands.pop(band);
                if self.bands.queue(band).backlog().packets == 0 {
                    self.line.pop_front();
                }
                return packet;
            }
            share.deficit += share.quantum;
            self.line.rotate_left(1);
        }
    }
}

impl<B> Qdisc<B> for Ets<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let Some(band) = self.bands.push(packet, now, verdicts) else {
            return;
        };
        let was_empty = self.bands.queue(band).backlog().packets == 1;
        if was_empty && let Some(place) = band.checked_sub(self.strict) {
            self.shares[place].deficit = self.shares[place].quantum;
            self.line.push_back(band);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.bands.pop_first(self.strict).or_else(|| self.by_weight())
    }

    /// True if the limit leaves room for a packet.
    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.bands.have_room()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bands.backlog()
    }

    fn state(&self, _now: Time) -> State {
        self.bands.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    const LOW_DELAY: DsField = DsField(0x10);
    const THROUGHPUT: DsField = DsField(0x08);
    const BEST_EFFORT: DsField = DsField::BEST_EFFORT;
    const MTU: u32 = 1000;

    fn ets(bands: u8, strict: u8, quanta: &[u32]) -> Ets<()> {
        // Low delay is priority 6, best effort 0, throughput 2.
        let mut priomap = [1; 16];
        (priomap[6], priomap[2]) = (0, 2);
        let quanta = quanta.to_vec();
        let params = EtsParams { bands, strict, quanta, priomap, limit: 1000 };
        let rng = Rng::new(1, "ets");
        Ets::new(&params, Context { rate: None, mtu: MTU, header_bytes: 0, root: true, rng })
    }

    fn send(q: &mut Ets<()>, ds: DsField, size: u32, packets: u32) {
        for _ in 0..packets {
            let packet = Packet { enqueued: Time::ZERO, flow: 0, size, ds, body: () };
            q.enqueue(packet, Time::ZERO, &mut Vec::new());
        }
    }

    /// A letter for each packet: l(ow delay), b(est effort), t(hroughput).
    fn served(q: &mut Ets<()>, packets: usize) -> String {
        let served = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut Vec::new())).take(packets);
        let letter = |packet: Packet<()>| match packet.ds {
            LOW_DELAY => 'l',
            THROUGHPUT => 't',
            _ => 'b',
        };
        served.map(letter).collect()
    }

    #[test]
    fn strict_bands_go_first_and_the_others_by_their_quanta() {
        let mut q = ets(3, 1, &[3000, 1000]);
        send(&mut q, BEST_EFFORT, 1000, 7);
        send(&mut q, THROUGHPUT, 1000, 4);
        send(&mut q, LOW_DELAY, 1000, 2);
        assert_eq!(served(&mut q, 99), "llbbbtbbbtbtt");
        assert_eq!(q.backlog(), Backlog::default());
    }

    #[test]
    fn bytes_are_shared_and_not_packets() {
        let mut q = ets(3, 0, &[1000, 1000, 1000]);
        send(&mut q, BEST_EFFORT, 250, 12);
        send(&mut q, THROUGHPUT, 1000, 3);
        assert_eq!(served(&mut q, 99), "bbbbtbbbbtbbbbt");
    }

    #[test]
    fn a_packet_longer_than_the_quantum_waits_some_rounds() {
        let mut q = ets(3, 0, &[0, 100, 1000]);
        send(&mut q, BEST_EFFORT, 400, 2);
        send(&mut q, THROUGHPUT, 500, 8);
        // The deficit is 100 at first and grows by 100 a round, so it is 400 in the fourth round.
        assert_eq!(served(&mut q, 99), "ttttttbttb");
    }

    #[test]
    fn a_band_that_was_empty_begins_with_one_quantum() {
        let mut q = ets(3, 0, &[1000, 1000, 1000]);
        send(&mut q, BEST_EFFORT, 400, 1);
        assert_eq!(served(&mut q, 1), "b");
        // The remaining deficit of 600 is lost.
        send(&mut q, BEST_EFFORT, 400, 4);
        send(&mut q, THROUGHPUT, 1000, 1);
        assert_eq!(served(&mut q, 99), "bbtbb");
    }

    #[test]
    fn the_default_quantum_is_the_largest_packet() {
        let mut q = ets(3, 1, &[2000]);
        send(&mut q, BEST_EFFORT, 1000, 4);
        send(&mut q, THROUGHPUT, 1000, 2);
        assert_eq!(served(&mut q, 99), "bbtbbt");
    }
}
