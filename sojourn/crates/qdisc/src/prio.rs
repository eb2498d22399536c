//! prio: bands in strict priority, each a pfifo. A band is served only while all bands before it
//! are empty.
//!
//! With the default map each packet enters the same band as in pfifo_fast. The limit of each
//! band is the txqueuelen of the device.
//!
//! Source: tc-prio(8); Linux net/sched/sch_prio.c (6.12) for the behaviour. Unlike pfifo_fast it
//! has no TCQ_F_CAN_BYPASS, and a full band has room as soon as one of its packets has left.
//!
//! Deviations: the bands' children are the pfifos that prio creates; other children are not
//! supported. The priority always follows from the TOS byte.

use crate::bands::{Bands, PRIORITIES, priomap};
use crate::{Backlog, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::Time;

/// `prio bands N priomap BAND...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrioParams {
    /// The number of bands (3).
    pub bands: u8,
    /// The band of each priority, from priority 0 on, separated by blanks (1 2 2 2 1 2 0 0, then
    /// eight times 1).
    #[serde(deserialize_with = "priomap")]
    pub priomap: [u8; PRIORITIES],
    /// The limit of each band, packets (1000).
    pub limit: u64,
}

/// Bands in strict priority.
pub struct Prio<B> {
    bands: Bands<B>,
}

impl<B> Prio<B> {
    /// Empty bands. A priority mapped to a missing band uses the last band.
    pub fn new(params: &PrioParams) -> Self {
        Prio { bands: Bands::new(params.bands, params.priomap, params.limit) }
    }
}

impl<B> Qdisc<B> for Prio<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.bands.push(packet, now, verdicts);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.bands.pop_first(self.bands.len())
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

    const LOW_DELAY: DsField = DsField(0x10);
    const THROUGHPUT: DsField = DsField(0x08);
    const BEST_EFFORT: DsField = DsField::BEST_EFFORT;
    const USUAL: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

    /// The codepoints of the departing packets, and the number of drops.
    fn pass(bands: u8, priomap: [u8; 16], arrivals: &[DsField]) -> (Vec<DsField>, usize) {
        let mut q = Prio::new(&PrioParams { bands, priomap, limit: 2 });
        let mut verdicts = Vec::new();
        for ds in arrivals {
            let packet = Packet { enqueued: Time::ZERO, flow: 0, size: 100, ds: *ds, body: () };
            q.enqueue(packet, Time::ZERO, &mut verdicts);
        }
        let served = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut Vec::new()));
        let served = served.map(|packet| packet.ds).collect();
        assert_eq!(Qdisc::<()>::backlog(&q), Backlog::default());
        (served, verdicts.len())
    }

    #[test]
    fn bands_are_served_in_their_order_and_each_has_a_limit() {
        let arrivals = [THROUGHPUT, THROUGHPUT, THROUGHPUT, BEST_EFFORT, LOW_DELAY];
        let (served, dropped) = pass(3, USUAL, &arrivals);
        assert_eq!(served, [LOW_DELAY, BEST_EFFORT, THROUGHPUT, THROUGHPUT]);
        assert_eq!(dropped, 1);
    }

    #[test]
    fn the_priomap_gives_the_band_of_a_priority() {
        // Bulk is priority 2 and interactive is priority 6. This map reverses their order.
        let mut priomap = [1; 16];
        (priomap[2], priomap[6]) = (0, 3);
        let arrivals = [LOW_DELAY, BEST_EFFORT, THROUGHPUT];
        assert_eq!(pass(4, priomap, &arrivals).0, [THROUGHPUT, BEST_EFFORT, LOW_DELAY]);
        assert_eq!(pass(4, [0; 16], &arrivals[..2]).0, arrivals[..2]);
    }
}
