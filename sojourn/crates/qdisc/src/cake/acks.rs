//! The ACK filter: of a flow's queued pure ACKs those that a newer one makes needless are dropped.
//!
//! An ACK may go if a newer one of its connection acknowledges as much, and reports the same SACK
//! ranges and more, or the same ones with a higher ACK number. What reports a duplicate (DSACK)
//! stays, and so does the last ACK before ECE changes. The filter drops the oldest such ACK as soon
//! as there is a second one behind it. The aggressive filter also drops the only one, if it lies
//! directly before the newcomer and ECE has not changed.
//!
//! Source: tc-cake(8); Linux 6.12's sch_cake for the behaviour. Deviations: ACKs alone set the filter
//! going (in Linux data that carries an ACK, too), and timestamps are not compared, which grow with
//! the ACK number unless packets are reordered before.

use crate::slab::{NONE, Slab};
use crate::{AckView, Body};
use serde::Deserialize;

/// cake's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckFilterMode {
    /// Every ACK is sent.
    NoAckFilter,
    /// Two needless ACKs are needed for one to be dropped.
    AckFilter,
    /// One is enough.
    AckFilterAggressive,
}

impl AckFilterMode {
    /// Every mode.
    pub const ALL: [AckFilterMode; 3] =
        [AckFilterMode::NoAckFilter, AckFilterMode::AckFilter, AckFilterMode::AckFilterAggressive];

    /// cake's word for it.
    pub fn word(self) -> &'static str {
        ["no-ack-filter", "ack-filter", "ack-filter-aggressive"][self as usize]
    }
}

/// What is known of the queued ACKs.
pub(super) struct AckFilter {
    aggressive: bool,
    /// Of the packet that comes next, if it is a pure ACK.
    pub(super) coming: Option<AckView>,
    /// By the packet's place in the slab.
    views: Vec<Option<AckView>>,
}

impl AckFilter {
    pub(super) fn new(mode: AckFilterMode) -> Option<Box<AckFilter>> {
        let aggressive = mode == AckFilterMode::AckFilterAggressive;
        (mode != AckFilterMode::NoAckFilter)
            .then(|| Box::new(AckFilter { aggressive, coming: None, views: Vec::new() }))
    }

    /// The packet that came lies at the tail of its flow's queue, in this place. Which one is
    /// needless now: its place and the one before it, `NONE` at the head.
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
        // The oldest needless one: its place, the one before it, whether it echoes ECE.
        let mut oldest: Option<(u32, u32, bool)> = None;
        let mut found = 0;
        let (mut before, mut place) = (NONE, head);
        while place != tail {
            if let Some(view) = self.views[place as usize].filter(|_| connection(place) == own) {
                if oldest.is_some_and(|(.., ece)| ece != view.ece) {
                    oldest = None;
                    found -= 1;
                }
                if view.is_needless_beside(&new) {
                    oldest.get_or_insert((place, before, view.ece));
                    found += 1;
                    if found > 1 {
                        break;
                    }
                }
            }
            (before, place) = (place, slab.behind(place));
        }
        let (drop, ahead, ece) = oldest?;
        let alone = slab.behind(drop) == tail && ece == new.ece;
        (found > 1 || (self.aggressive && alone)).then_some((drop, ahead))
    }
}

impl AckView {
    /// Whether the sender learns all that it tells from a newer one.
    fn is_needless_beside(&self, newer: &AckView) -> bool {
        let ahead = self.ack.wrapping_sub(newer.ack) as i32;
        match self.sacked_beside(newer) {
            _ if ahead > 0 => false,
            None => false,
            Some(more) => ahead < 0 || more,
        }
    }

    /// `None`: it reports a duplicate, or ranges that the newer one doesn't. Else whether the newer
    /// one reports more.
    fn sacked_beside(&self, newer: &AckView) -> Option<bool> {
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

    /// The places, in their order, of the ACKs that were dropped, when they come one after another.
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
            _ => panic!("only the filter drops here"),
        };
        verdicts.iter().map(number).collect()
    }

    #[test]
    fn the_oldest_goes_when_two_are_needless_and_the_aggressive_filter_waits_for_no_second() {
        let rising: Vec<_> = (1..=5).map(|number| Some(ack(number))).collect();
        assert_eq!(dropped(AckFilterMode::NoAckFilter, &rising), []);
        // The third makes two needless, and so does each that follows: two stay.
        assert_eq!(dropped(AckFilterMode::AckFilter, &rising), [0, 1, 2]);
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &rising), [0, 1, 2, 3]);
    }

    #[test]
    fn duplicates_stay_and_what_is_no_ack_is_left_alone() {
        let same: Vec<_> = [7; 4].map(|number| Some(ack(number))).to_vec();
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &same), []);
        // One that acknowledges less than those before it makes none needless.
        let falling = [9, 8, 7].map(|number| Some(ack(number)));
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &falling), []);
        // Data in between: the needless ACK does not lie directly before the newcomer.
        let apart = [Some(ack(1)), None, Some(ack(2)), Some(ack(3))];
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &apart), [0]);
    }

    #[test]
    fn sacks_that_the_newer_one_does_not_report_stay() {
        let aggressive = |acks: &[AckView]| {
            let acks: Vec<_> = acks.iter().copied().map(Some).collect();
            dropped(AckFilterMode::AckFilterAggressive, &acks)
        };
        assert_eq!(aggressive(&[sacking(5, &[(7, 8)]), sacking(5, &[(7, 9)])]), [0], "more");
        assert_eq!(aggressive(&[sacking(5, &[(7, 8)]), sacking(5, &[(7, 8)])]), [], "as much");
        assert_eq!(aggressive(&[sacking(5, &[(7, 8)]), ack(6)]), [], "another range");
        assert_eq!(aggressive(&[ack(5), sacking(5, &[(7, 8)])]), [0], "the first range");
        assert_eq!(aggressive(&[sacking(5, &[(3, 4)]), sacking(6, &[(3, 4)])]), [], "a DSACK");
    }

    #[test]
    fn the_last_ack_before_ece_changes_stays() {
        let echo = |number, ece| Some(AckView { ece, ..ack(number) });
        let acks = [echo(1, false), echo(2, true), echo(3, true), echo(4, true)];
        // 1 was the oldest until 2, which echoes, came.
        assert_eq!(dropped(AckFilterMode::AckFilter, &acks), [1]);
        let acks = [echo(1, false), echo(2, true)];
        assert_eq!(dropped(AckFilterMode::AckFilterAggressive, &acks), []);
    }
}
