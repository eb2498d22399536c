//! The ACK filter drops a flow's queued pure ACKs that a newer ACK has made unnecessary.
//!
//! A newer ACK of the same connection makes an ACK unnecessary. It must acknowledge as much and
//! reports a superset of the SACK ranges, or the same ranges with a higher ACK number. An ACK that
//! reports a duplicate (DSACK) stays, and so does the last ACK before ECE changes. The filter drops
//! the oldest unnecessary ACK as soon as there is a second one behind it. The aggressive filter
//! also drops a single one, if it is directly before the newcomer and ECE has not changed.
//!
//! Source: tc-cake(8); Linux 6.12's sch_cake for the behaviour. Deviations: only ACKs trigger the
//! filter (in Linux also data that carries an ACK). Timestamps are not compared; they grow with the
//! ACK number unless packets are reordered before.

use crate::slab::{NONE, Slab};
use crate::{AckView, Body};
use serde::Deserialize;

/// The mode, by cake's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckFilterMode {
    /// Every ACK is sent.
    NoAckFilter,
    /// An ACK is dropped if two are unnecessary.
    AckFilter,
    /// An ACK is dropped if it alone is unnecessary.
    AckFilterAggressive,
}

impl AckFilterMode {
    /// Every mode.
    pub const ALL: [AckFilterMode; 3] =
        [AckFilterMode::NoAckFilter, AckFilterMode::AckFilter, AckFilterMode::AckFilterAggressive];

    /// The mode's name in cake's words.
    pub fn word(self) -> &'static str {
        ["no-ack-filter", "ack-filter", "ack-filter-aggressive"][self as usize]
    }
}

/// The contents of the queued ACKs.
pub(super) struct AckFilter {
    aggressive: bool,
    /// The contents of the next packet to arrive, if it is a pure ACK.
    pub(super) coming: Option<AckView>,
    /// The contents by the packet's place in the slab.
    views: Vec<Option<AckView>>,
}

impl AckFilter {
    pub(super) fn new(mode: AckFilterMode) -> Option<Box<AckFilter>> {
        let aggressive = mode == AckFilterMode::AckFilterAggressive;
        (mode != AckFilterMode::NoAckFilter)
            .then(|| Box::new(AckFilter { aggressive, coming: None, views: Vec::new() }))
    }

    /// A packet has arrived at `tail`, the tail of its flow's queue. Returns the place of the ACK
    /// to drop and the place before it, `NONE` at the head.
    pub(super) fn arrived<B: Body>(
        &mut self,
        slab: &Slab<B>,
        head: u32,
        tail: u32,
    ) -> Option<(u32, u32)> {
        let coming = self.coming.take();
        if self.views.len() <= tail as usize {
            self.views.resize(tail as usize + 1, None);
        }
        self.views[tail as usize] = coming;
        let new = coming?;
        let connection = |place: u32| {
            let packet = slab.get(place);
            packet.body.connection(packet.flow)
        };
        let own = connection(tail);
        // The oldest unnecessary ACK: its place, the one before it, and whether it echoes ECE.
        let mut oldest: Option<(u32, u32, bool)> = None;
        let mut unnecessary = 0;
        let (mut before, mut place) = (NONE, head);
        while place != tail {
            if let Some(view) = self.views[place as usize].filter(|_| connection(place) == own) {
                if oldest.is_some_and(|(.., ece)| ece != view.ece) {
                    oldest = None;
                    unnecessary -= 1;
                }
                if view.is_unnecessary_after(&new) {
                    oldest.get_or_insert((place, before, view.ece));
                    unnecessary += 1;
                    if unnecessary > 1 {
                        break;
                    }
                }
            }
            (before, place) = (place, slab.behind(place));
        }
        let (drop, ahead, ece) = oldest?;
        let alone = slab.behind(drop) == tail && ece == new.ece;
        (unnecessary > 1 || (self.aggressive && alone)).then_some((drop, ahead))
    }
}

impl AckView {
    /// Whether a newer ACK gives the sender all the information of this one.
    fn is_unnecessary_after(&self, newer: &AckView) -> bool {
        let ahead = self.ack.wrapping_sub(newer.ack) as i32;
        match self.reports_more_than(newer) {
            _ if ahead > 0 => false,
            None => false,
            Some(more) => ahead < 0 || more,
        }
    }

    /// Whether the newer ACK reports more ranges. `None`: this ACK reports a duplicate, or ranges
    /// that the newer one does not.
    fn reports_more_than(&self, newer: &AckView) -> Option<bool> {
        let is_before = |one: u32, other: u32| (one.wrapping_sub(other) as i32) < 0;
        let length = |of: &AckView| -> u64 {
            of.ranges().iter().map(|(start, end)| u64::from(end.wrapping_sub(*start))).sum()
        };
        for &(start, end) in self.ranges() {
            let covers = |&(from, to): &(u32, u32)| !is_before(start, from) && !is_before(to, end);
            if is_before(start, self.ack) || !newer.ranges().iter().any(covers) {
                return None;
            }
        }
        Some(length(newer) > length(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cake::tests::{Sent, cake, packet, params};
    use crate::{Cause, Qdisc, Verdict};
    use units::Time;

    fn ack(ack: u32) -> AckView {
        AckView { ack, sacks: [(0, 0); 4], sack_count: 0, ece: false }
    }

    fn sacking(number: u32, ranges: &[(u32, u32)]) -> AckView {
        let mut view = AckView { sack_count: ranges.len() as u8, ..ack(number) };
        view.sacks[..ranges.len()].copy_from_slice(ranges);
        view
    }

    /// The places of the dropped ACKs, in order, if the ACKs arrive in this sequence.
    fn dropped(mode: AckFilterMode, acks: &[Option<AckView>]) -> Vec<u32> {
        let mut cake = cake(&crate::CakeParams { acks: mode, ..params() });
        let mut verdicts = Vec::new();
        for (number, view) in acks.iter().enumerate() {
            let mut packet = packet(1, 0);
            (packet.body.number, packet.size) = (number as u32, 66);
            if let Some(view) = view {
                cake.sees(*view);
            }
            cake.enqueue(packet, Time(number as u64), &mut verdicts);
        }
        assert_eq!(cake.backlog().packets as usize + verdicts.len(), acks.len());
        let number = |verdict: &Verdict<Sent>| match verdict {
            Verdict::Dropped(packet, Cause::AckFilter) => packet.body.number,
            _ => panic!("only the filter drops packets here"),
        };
        verdicts.iter().map(number).collect()
    }

    #[test]
    fn the_filter_drops_the_oldest_of_two_redundant_acks_and_aggressively_a_single_one() {
        let rising: Vec<_> = (1..=5).map(|number| Some(ack(number))).collect();
        assert_eq!(dropped(AckFilterMode::NoAckFilter, &rising), []);
        // The third ACK makes two unnecessary, and so does each later one: two stay.
        assert_eq!(dropped(AckFilterMode::AckFilter, &rising), [0, 1, 2]);
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &rising), [0, 1, 2, 3]);
    }

    #[test]
    fn duplicate_acks_and_other_packets_are_not_filtered() {
        let same: Vec<_> = [7; 4].map(|number| Some(ack(number))).to_vec();
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &same), []);
        // An ACK with a lower number makes none unnecessary.
        let falling = [9, 8, 7].map(|number| Some(ack(number)));
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &falling), []);
        // With data in between, the unnecessary ACK is not directly before the newcomer.
        let apart = [Some(ack(1)), None, Some(ack(2)), Some(ack(3))];
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &apart), [0]);
    }

    #[test]
    fn acks_with_sacks_that_the_newer_one_lacks_are_not_filtered() {
        let aggressive = |acks: &[AckView]| {
            let acks: Vec<_> = acks.iter().copied().map(Some).collect();
            dropped(AckFilterMode::AckFilterAggressive, &acks)
        };
        assert_eq!(aggressive(&[sacking(5, &[(7, 8)]), sacking(5, &[(7, 9)])]), [0], "more");
        assert_eq!(aggressive(&[sacking(5, &[(7, 8)]), sacking(5, &[(7, 8)])]), [], "the same");
        assert_eq!(aggressive(&[sacking(5, &[(7, 8)]), ack(6)]), [], "another range");
        assert_eq!(aggressive(&[ack(5), sacking(5, &[(7, 8)])]), [0], "the first range");
        assert_eq!(aggressive(&[sacking(5, &[(3, 4)]), sacking(6, &[(3, 4)])]), [], "a DSACK");
    }

    #[test]
    fn the_last_ack_before_a_change_of_ece_is_not_filtered() {
        let echo = |number, ece| Some(AckView { ece, ..ack(number) });
        let acks = [echo(1, false), echo(2, true), echo(3, true), echo(4, true)];
        // ACK 1 was the oldest until ACK 2, which echoes ECE, arrived.
        assert_eq!(dropped(AckFilterMode::AckFilter, &acks), [1]);
        let acks = [echo(1, false), echo(2, true)];
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &acks), []);
    }
}
