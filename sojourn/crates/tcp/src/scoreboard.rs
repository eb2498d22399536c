//! The scoreboard: which segments between SND.UNA and SND.NXT are SACKed, lost and retransmitted,
//! as ranges and two marks.
//!
//! RFC 6675 retransmits lost segments in order, so two marks are enough. Below `lost_below` every
//! segment not SACKed is lost; below `retransmitted_below` every lost segment was retransmitted.
//! With the kernel's names for the counts:
//!
//! ```text
//! to_retransmit = lost_out - retrans_out
//! pipe = nxt - una - sacked_out - to_retransmit
//! ```
//!
//! While nothing is lost, this file's state does not change.
//!
//! RACK compares times of sending. Originals left in order, so the originals that RACK marks as
//! lost are a prefix too. Retransmissions are queued in the order in which they left. A lost
//! retransmission counts in `to_retransmit` again, and is retransmitted before the other lost
//! segments.
//!
//! An undo under RACK moves the marks back. Two kinds of segments then remain below `lost_below`
//! that are neither SACKed nor lost (`Cleared`). A segment that RACK marked as lost and that was
//! not retransmitted is in flight. RACK does not check it again: RACK removes a segment from its
//! list when it marks the segment as lost (tsorted_sent_queue), and only a retransmission adds it
//! again. A retransmitted segment is in flight twice, as original and as retransmission, so
//! `to_retransmit` counts it as -1.
//!
//! Sources: RFC 6675 §§2-5, RFC 8985 §6. Deviations: sets of segments, not of bytes, since all
//! segments but a transfer's last have one size. Without RACK only the timer detects a lost
//! retransmission (RFC 6675 §5.1). A segment that NextSeg's rules 3 and 4 retransmit is in flight
//! once, not twice.

use crate::MAX_SACK_BLOCKS;
use crate::rack::{DUP_THRESH, Decision};
use std::collections::VecDeque;
use units::Span;

/// The sender's knowledge of the segments beyond SND.UNA.
#[derive(Debug, Default)]
pub struct Scoreboard {
    sacked_out: u32,
    lost_below: u32,
    retransmitted_below: u32,
    to_retransmit: i32,
    lists: Box<Lists>,
}

/// The segments marked as lost at one moment.
#[derive(Debug, Default)]
pub struct Marks {
    lost_below: u32,
    lost_retransmissions: Vec<u32>,
}

/// Lists that are empty while nothing is lost.
#[derive(Debug, Default)]
struct Lists {
    /// Half-open ranges of SACKed segments, in order, neither touching nor overlapping, all beyond
    /// `una`.
    ranges: Vec<(u32, u32)>,
    /// Segments below `retransmitted_below` that RACK checks, in the order in which they left.
    /// Those below SND.UNA or SACKed have arrived. Segments that a timeout marked as lost stay in
    /// the list.
    retransmissions: VecDeque<u32>,
    /// Lost segments below `retransmitted_below` that wait for retransmission, ascending: their
    /// first retransmissions are lost too.
    lost_retransmissions: Vec<u32>,
    /// Ranges of originals that timeouts marked as lost. RACK checks them again after an undo.
    timed_out: Vec<(u32, u32)>,
    /// The segments that an undo has cleared, ascending.
    cleared: Vec<Cleared>,
    /// How often an original or a retransmission was marked as lost (tp->lost).
    lost: u32,
}

/// A segment below `lost_below` that an undo has cleared of loss.
#[derive(Clone, Copy, Debug)]
struct Cleared {
    seq: u32,
    /// The segment was retransmitted: original and retransmission are in flight.
    twice: bool,
}

/// The result of RACK's loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// A retransmission was lost (FLAG_LOST_RETRANS).
    pub lost_retransmission: bool,
    /// The longest time until a segment counts as lost; 0 if no segment waits.
    pub reo_timeout: Span,
}

impl Scoreboard {
    /// Segments SACKed (sacked_out).
    #[inline]
    pub fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    /// SACKed segments that directly follow another SACKed segment.
    #[inline]
    pub fn merged(&self) -> u32 {
        if self.sacked_out == 0 { 0 } else { self.sacked_out - self.lists.ranges.len() as u32 }
    }

    /// Lost segments that wait for retransmission: lost_out - retrans_out. The number is negative
    /// if both originals and their retransmissions are in flight.
    #[inline]
    pub fn to_retransmit(&self) -> i32 {
        self.to_retransmit
    }

    /// How often an original or a retransmission was marked as lost since the start.
    pub fn lost(&self) -> u32 {
        self.lists.lost
    }

    /// The segments marked as lost now, for `newly_lost`.
    pub fn marks(&self) -> Marks {
        Marks {
            lost_below: self.lost_below,
            lost_retransmissions: self.lists.lost_retransmissions.clone(),
        }
    }

    /// The segments marked as lost since `before`: first originals, then retransmissions, each
    /// ascending.
    pub fn newly_lost(&self, before: &Marks, una: u32) -> Vec<u32> {
        let mut newly = Vec::new();
        let from = before.lost_below.max(una);
        if from < self.lost_below {
            self.unsacked_below(self.lost_below, from, |start, end| newly.extend(start..end));
        }
        let again = self.lists.lost_retransmissions.iter();
        newly.extend(again.filter(|seq| !before.lost_retransmissions.contains(seq)));
        newly
    }

    /// Segments lost, retransmitted or not (lost_out).
    pub fn lost_out(&self, una: u32) -> u32 {
        let below = self.lost_below.max(una);
        let cleared = self.cleared_from(una).filter(|it| self.sacked_to(it.seq).is_none());
        below - una - self.sacked_below(below) - cleared.count() as u32
    }

    /// The segments from `una` on that an undo has cleared.
    fn cleared_from(&self, una: u32) -> impl Iterator<Item = &Cleared> {
        let from = self.lists.cleared.partition_point(|it| it.seq < una);
        self.lists.cleared[from..].iter()
    }

    /// One past the highest SACKed segment; 0 without any (tcp_highest_sack_seq).
    pub fn highest_sacked(&self) -> u32 {
        self.lists.ranges.last().map_or(0, |r| r.1)
    }

    /// Records a SACK block, clipped to the outstanding segments. Passes each newly covered range
    /// to `each` and returns the number of segments in these ranges.
    pub fn sack(
        &mut self,
        block: (u32, u32),
        una: u32,
        nxt: u32,
        mut each: impl FnMut(u32, u32),
    ) -> u32 {
        let (start, end) = (block.0.max(una), block.1.min(nxt));
        if start >= end {
            return 0;
        }
        // The block touches the ranges from the first that ends at or after its start to the last
        // that starts at or before its end.
        let from = self.lists.ranges.partition_point(|r| r.1 < start);
        let mut merged = (start, end);
        let mut to = from;
        let mut covered = 0;
        let mut uncovered = start;
        while let Some(&(s, e)) = self.lists.ranges.get(to)
            && s <= end
        {
            merged = (merged.0.min(s), merged.1.max(e));
            covered += e - s;
            to += 1;
            if uncovered < s {
                each(uncovered, s);
            }
            uncovered = uncovered.max(e);
        }
        if uncovered < end {
            each(uncovered, end);
        }
        if to == from {
            self.lists.ranges.insert(from, merged);
        } else {
            self.lists.ranges[from] = merged;
            self.lists.ranges.drain(from + 1..to);
        }
        let new = (merged.1 - merged.0) - covered;
        self.sacked_out += new;
        new
    }

    /// SACKed segments below `seq`.
    pub fn sacked_below(&self, seq: u32) -> u32 {
        self.lists.ranges.iter().take_while(|r| r.0 < seq).map(|&(s, e)| e.min(seq) - s).sum()
    }

    /// Passes to `each` the ranges from `una` to `seq` that are not SACKed.
    pub fn unsacked_below(&self, seq: u32, una: u32, mut each: impl FnMut(u32, u32)) {
        let mut from = una;
        let first = self.lists.ranges.partition_point(|r| r.1 <= una);
        for &(start, end) in self.lists.ranges[first..].iter().take_while(|r| r.0 < seq) {
            if from < start {
                each(from, start);
            }
            from = end;
        }
        if from < seq {
            each(from, seq);
        }
    }

    /// Passes to `each` the ranges between `una` and `nxt` that an ACK with these SACK blocks is
    /// the first to acknowledge or SACK. As in Linux, SACKed segments precede acknowledged ones
    /// (tcp_sacktag_one, tcp_clean_rtx_queue).
    pub fn newly_delivered(
        &self,
        ack: u32,
        sacks: &[(u32, u32)],
        (una, nxt): (u32, u32),
        mut each: impl FnMut(u32, u32),
    ) {
        let mut blocks = [(0, 0); MAX_SACK_BLOCKS];
        let blocks = &mut blocks[..sacks.len()];
        blocks.copy_from_slice(sacks);
        blocks.sort_unstable();
        for &mut (from, to) in blocks {
            self.unsacked_below(to.min(nxt), from.max(ack), &mut each);
        }
        self.unsacked_below(ack, una, &mut each);
    }

    /// Retransmitted segments in flight (retrans_out).
    pub fn retrans_out(&self, una: u32) -> u32 {
        (self.lost_out(una) as i32 - self.to_retransmit) as u32
    }

    /// Undo under RACK: no segment is lost.
    pub fn unmark_lost_rack<T: Ord>(&mut self, una: u32, sent: impl Fn(u32) -> T) {
        let (copied, below) = (self.retransmitted_below.max(una), self.lost_below.max(una));
        let timed_out = std::mem::take(&mut self.lists.timed_out);
        let timed_out = |seq| seq >= copied && timed_out.iter().any(|r| r.0 <= seq && seq < r.1);
        let mut unsacked = Vec::new();
        self.unsacked_below(below, una, |start, end| unsacked.extend(start..end));
        // The last segments that RACK still checks, none of them retransmitted, return to the
        // unmarked state.
        while unsacked.pop_if(|&mut last| timed_out(last)).is_some() {}
        let lists = &mut *self.lists;
        let still_cleared = std::mem::take(&mut lists.cleared);
        for &seq in &unsacked {
            let lost_again = lists.lost_retransmissions.binary_search(&seq).is_ok();
            let twice = match still_cleared.binary_search_by_key(&seq, |it| it.seq) {
                Ok(at) => still_cleared[at].twice,
                Err(_) => seq < copied && !lost_again,
            };
            lists.cleared.push(Cleared { seq, twice });
            if timed_out(seq) {
                lists.retransmissions.push_back(seq);
            }
        }
        lists.cleared.extend(
            still_cleared.iter().filter(|it| {
                it.twice && it.seq >= una && range_end(&lists.ranges, it.seq).is_some()
            }),
        );
        lists.cleared.sort_unstable_by_key(|it| it.seq);
        lists.lost_retransmissions.clear();
        lists.retransmissions.make_contiguous().sort_by_key(|&seq| sent(seq));
        self.lost_below = unsacked.last().map_or(copied, |last| last + 1).max(copied);
        self.retransmitted_below = self.lost_below;
        self.recount(una);
    }

    /// Undo without RACK: no segment is lost or retransmitted.
    pub fn unmark_lost(&mut self, una: u32) {
        self.lost_below = una;
        self.retransmitted_below = una;
        self.lists.retransmissions.clear();
        self.lists.lost_retransmissions.clear();
        self.to_retransmit = 0;
    }

    /// A DSACK reports that a retransmission has arrived after its original: one of the two in
    /// flight remains.
    pub fn on_dsack(&mut self, seq: u32, una: u32) {
        if let Ok(at) = self.lists.cleared.binary_search_by_key(&seq, |it| it.seq)
            && self.lists.cleared[at].twice
        {
            self.lists.cleared[at].twice = false;
            self.recount(una);
        }
    }

    /// All segments below `una` are acknowledged.
    #[inline]
    pub fn advance(&mut self, una: u32) {
        if self.sacked_out > 0 || self.lost_below > una || self.to_retransmit != 0 {
            self.advance_slow(una);
        }
    }

    fn advance_slow(&mut self, una: u32) {
        let gone = self.lists.ranges.partition_point(|r| r.1 <= una);
        self.sacked_out -= self.lists.ranges.drain(..gone).map(|(s, e)| e - s).sum::<u32>();
        if let Some(first) = self.lists.ranges.first_mut()
            && first.0 < una
        {
            self.sacked_out -= una - first.0;
            first.0 = una;
        }
        self.recount(una);
    }

    /// RFC 6675's IsLost: marks the segments with DupThresh segments SACKed above them. Returns
    /// true if any is lost.
    pub fn mark_lost(&mut self, una: u32) -> bool {
        let mut above = 0;
        for &(start, end) in self.lists.ranges.iter().rev() {
            above += end - start;
            if above >= DUP_THRESH {
                self.mark_lost_below(start, una);
                break;
            }
        }
        self.lost_below > una
    }

    /// Marks every segment below `mark` that is not SACKed as lost.
    pub fn mark_lost_below(&mut self, mark: u32, una: u32) {
        if mark <= self.lost_below {
            return;
        }
        self.lost_below = mark;
        self.recount_lost(una);
    }

    /// A timeout: all outstanding segments are lost, retransmissions too (tcp_timeout_mark_lost).
    pub fn timeout_mark_lost(&mut self, una: u32, nxt: u32) {
        self.lost_below = nxt;
        self.retransmitted_below = una;
        self.lists.retransmissions.clear();
        self.lists.lost_retransmissions.clear();
        self.recount_lost(una);
    }

    /// A timeout under RACK: the first segment and all for which `is_old` is true are lost. RACK
    /// continues to check them.
    pub fn timeout_mark_lost_rack(&mut self, una: u32, nxt: u32, is_old: impl Fn(u32) -> bool) {
        let is_lost = |seq| seq == una || is_old(seq);
        let from = self.lost_below.max(una);
        let mut seq = from;
        while seq < nxt {
            if let Some(end) = self.sacked_to(seq) {
                seq = end;
            } else if is_lost(seq) {
                seq += 1;
                self.lost_below = seq;
            } else {
                break;
            }
        }
        self.lists.timed_out.retain(|range| range.1 > una);
        self.lists.timed_out.push((from, self.lost_below));
        let mut again = Vec::new();
        self.unsacked_below(self.retransmitted_below, una, |start, end| again.extend(start..end));
        for seq in again.into_iter().filter(|&seq| is_lost(seq)) {
            self.lose_again(seq, seq == una);
        }
        self.recount_lost(una);
    }

    /// Marks a segment below `retransmitted_below` as lost (tcp_mark_skb_lost). If both the
    /// original and its retransmission were in flight, the retransmission remains in flight. But a
    /// timeout retransmits the `first` segment at once. Returns true if the lost segment was a
    /// retransmission.
    fn lose_again(&mut self, seq: u32, first: bool) -> bool {
        let Err(place) = self.lists.lost_retransmissions.binary_search(&seq) else { return false };
        let cleared = self.lists.cleared.binary_search_by_key(&seq, |it| it.seq);
        let cleared = cleared.ok().map(|at| self.lists.cleared.remove(at));
        if cleared.is_none_or(|it| !it.twice || first) {
            self.lists.lost_retransmissions.insert(place, seq);
        }
        cleared.is_none()
    }

    /// RACK_detect_loss: marks the segments that `decision` finds lost. Originals and
    /// retransmissions are checked separately. Each is in the order of departure, and the check
    /// ends at the first segment that left after all delivered ones.
    pub fn detect_loss(
        &mut self,
        una: u32,
        nxt: u32,
        decision: impl Fn(u32) -> Decision,
    ) -> Detected {
        let mut detected = Detected::default();
        let mut waiting = false;
        let mut seq = self.lost_below.max(una);
        while seq < nxt {
            if let Some(end) = self.sacked_to(seq) {
                seq = end;
                continue;
            }
            match decision(seq) {
                Decision::Lost if !waiting => self.lost_below = seq + 1,
                Decision::Lost => {}
                Decision::Wait(wait) => {
                    waiting = true;
                    detected.reo_timeout = detected.reo_timeout.max(wait);
                }
                Decision::Unknown => break,
            }
            seq += 1;
        }
        let mut index = 0;
        while let Some(&seq) = self.lists.retransmissions.get(index) {
            if seq < una || self.sacked_to(seq).is_some() {
                self.lists.retransmissions.remove(index);
                continue;
            }
            if self.lists.lost_retransmissions.binary_search(&seq).is_ok() {
                index += 1;
                continue;
            }
            match decision(seq) {
                Decision::Lost => {
                    self.lists.retransmissions.remove(index);
                    detected.lost_retransmission |= self.lose_again(seq, false);
                }
                Decision::Wait(wait) => {
                    detected.reo_timeout = detected.reo_timeout.max(wait);
                    index += 1;
                }
                Decision::Unknown => break,
            }
        }
        self.recount_lost(una);
        detected
    }

    /// Clears all SACKs at a timeout (ns-2's Sack1, as RFC 2018 §8 allows).
    pub fn forget_sacks(&mut self) {
        self.lists.ranges.clear();
        self.sacked_out = 0;
    }

    /// NextSeg rule 1 (RFC 6675 §4): the next lost segment to retransmit, if any.
    #[inline]
    pub fn next_to_retransmit(&self) -> Option<u32> {
        if self.to_retransmit <= 0 {
            return None;
        }
        Some(
            self.lists
                .lost_retransmissions
                .first()
                .copied()
                .unwrap_or_else(|| self.skip_sacked(self.retransmitted_below)),
        )
    }

    /// NextSeg rule 3: the first segment neither SACKed nor lost with SACKed segments above it.
    /// Only valid while `to_retransmit` is 0.
    pub fn next_seg_rule_3(&self, una: u32) -> Option<u32> {
        let seq = self.skip_sacked(self.retransmitted_below.max(self.lost_below).max(una));
        (seq < self.highest_sacked()).then_some(seq)
    }

    /// The segment is retransmitted.
    pub fn on_retransmit(&mut self, seq: u32) {
        if seq < self.retransmitted_below {
            self.lists.lost_retransmissions.remove(0);
            self.lists.retransmissions.retain(|&listed| listed != seq);
        }
        self.retransmitted_below = self.retransmitted_below.max(seq + 1);
        self.to_retransmit -= 1;
        self.lists.retransmissions.push_back(seq);
    }

    /// NextSeg rule 4: the last segment below `nxt` that is not SACKed, for the rescue
    /// retransmission.
    pub fn last_unsacked(&self, una: u32, nxt: u32) -> Option<u32> {
        let mut seq = nxt.checked_sub(1)?;
        for &(start, end) in self.lists.ranges.iter().rev() {
            if end <= seq {
                break;
            }
            seq = start.checked_sub(1)?;
        }
        (seq >= una).then_some(seq)
    }

    fn skip_sacked(&self, seq: u32) -> u32 {
        self.sacked_to(seq).unwrap_or(seq)
    }

    /// Whether the segment is SACKed.
    pub fn is_sacked(&self, seq: u32) -> bool {
        self.sacked_to(seq).is_some()
    }

    /// The end of the SACKed range that contains the segment, if any.
    fn sacked_to(&self, seq: u32) -> Option<u32> {
        range_end(&self.lists.ranges, seq)
    }

    /// Recomputes `to_retransmit`: the segments of [retransmitted_below, lost_below) that are not
    /// SACKed. If `advance` did nothing, the marks are still below `una`.
    fn recount(&mut self, una: u32) {
        self.retransmitted_below = self.retransmitted_below.max(una);
        if !self.lists.lost_retransmissions.is_empty() {
            let ranges = &self.lists.ranges;
            self.lists
                .lost_retransmissions
                .retain(|&seq| seq >= una && range_end(ranges, seq).is_none());
        }
        while self.lists.retransmissions.front().is_some_and(|&seq| seq < una) {
            self.lists.retransmissions.pop_front();
        }
        if !self.lists.cleared.is_empty() {
            let ranges = &self.lists.ranges;
            // A retransmission stays in flight when its original is SACKed.
            self.lists
                .cleared
                .retain(|it| it.seq >= una && (it.twice || range_end(ranges, it.seq).is_none()));
        }
        self.to_retransmit = self.lists.lost_retransmissions.len() as i32;
        self.to_retransmit -= self.lists.cleared.iter().filter(|it| it.twice).count() as i32;
        let (from, to) = (self.retransmitted_below, self.lost_below);
        if from >= to {
            return;
        }
        let first = self.lists.ranges.partition_point(|r| r.1 <= from);
        let inside = self.lists.ranges[first..].iter().take_while(|r| r.0 < to);
        let sacked = inside.map(|&(s, e)| e.min(to) - s.max(from)).sum::<u32>();
        self.to_retransmit += (to - from - sacked) as i32;
    }

    /// Recomputes the count after segments were marked as lost, and counts the new losses.
    fn recount_lost(&mut self, una: u32) {
        let before = self.to_retransmit;
        self.recount(una);
        self.lists.lost += (self.to_retransmit - before).max(0) as u32;
    }

    /// Updates the counts after new SACKs.
    pub fn on_sacks(&mut self, una: u32) {
        self.recount(una);
    }
}

fn range_end(ranges: &[(u32, u32)], seq: u32) -> Option<u32> {
    let index = ranges.partition_point(|r| r.1 <= seq);
    ranges.get(index).filter(|r| r.0 <= seq).map(|r| r.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Send { segments: u32 },
        Sack { from: u32, segments: u32 },
        Advance { segments: u32 },
        MarkLost,
        MarkFirstLost,
        Resend,
        NextSegRule3,
        Timeout { forget: bool },
        UnmarkLost,
        DetectLoss { recent: u32 },
        TimeoutRack { recent: u32 },
        UnmarkRack,
        Dsack { from: u32 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (1..12u32).prop_map(|segments| Step::Send { segments }),
            6 => (0..40u32, 1..6u32).prop_map(|(from, segments)| Step::Sack { from, segments }),
            3 => (1..15u32).prop_map(|segments| Step::Advance { segments }),
            3 => Just(Step::MarkLost),
            1 => Just(Step::MarkFirstLost),
            4 => Just(Step::Resend),
            1 => Just(Step::NextSegRule3),
            1 => any::<bool>().prop_map(|forget| Step::Timeout { forget }),
            1 => Just(Step::UnmarkLost),
            3 => (0..30u32).prop_map(|recent| Step::DetectLoss { recent }),
            1 => (0..30u32).prop_map(|recent| Step::TimeoutRack { recent }),
            1 => Just(Step::UnmarkRack),
            1 => (0..20u32).prop_map(|from| Step::Dsack { from }),
        ]
    }

    /// A segment in the reference table of all segments sent, with Linux's three tags.
    #[derive(Clone, Copy, Default)]
    struct Entry {
        sacked: bool,
        lost: bool,
        /// Its retransmission is in flight.
        resent: bool,
        /// RACK checks the segment.
        listed: bool,
        /// The order of sending.
        sent: u32,
    }

    impl Entry {
        fn sack(&mut self) {
            if self.lost {
                (self.lost, self.resent) = (false, false);
            }
            (self.sacked, self.listed) = (true, false);
        }

        /// Marks the segment as lost. Returns true if its retransmission was lost.
        fn lose(&mut self) -> bool {
            let again = !self.sacked && self.lost && self.resent;
            self.resent &= !again;
            self.lost = !self.sacked;
            again
        }

        fn to_retransmit(self) -> i32 {
            i32::from(self.lost) - i32::from(self.resent)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_scoreboard_equals_a_table_of_segments(
            steps in prop::collection::vec(step(), 1..120), by_time in any::<bool>()
        ) {
            let mut board = Scoreboard::default();
            let mut table: Vec<Entry> = Vec::new();
            let mut una = 0;
            let mut clock = 0;
            for step in steps {
                // Each run detects losses either by counting or by time.
                let timed = matches!(
                    step,
                    Step::DetectLoss { .. } | Step::TimeoutRack { .. } | Step::UnmarkRack | Step::Dsack { .. }
                );
                let either = matches!(step, Step::Send { .. } | Step::Sack { .. } | Step::Advance { .. } | Step::Resend);
                if !either && timed != by_time {
                    continue;
                }
                let nxt = table.len() as u32;
                let resend = |table: &mut [Entry]| {
                    let any = table.iter().map(|e| e.to_retransmit()).sum::<i32>() > 0;
                    table.iter().position(|e| any && e.lost && !e.resent)
                };
                match step {
                    Step::Send { segments } => {
                        for _ in 0..segments {
                            table.push(Entry { sent: clock, listed: true, ..Entry::default() });
                            clock += 1;
                        }
                    }
                    Step::Sack { from, segments } => {
                        // Never `una` itself: a receiver that has it acknowledges it.
                        let block = (una + 1 + from, una + 1 + from + segments);
                        let mut newly_covered = Vec::new();
                        let new = board.sack(block, una, nxt, |from, to| newly_covered.extend(from..to));
                        board.on_sacks(una);
                        let outstanding = block.0.min(nxt)..block.1.min(nxt);
                        let uncovered: Vec<u32> = outstanding.filter(|&seq| !table[seq as usize].sacked).collect();
                        prop_assert_eq!(newly_covered, uncovered);
                        let covered = table.iter_mut().take(block.1 as usize).skip(block.0 as usize);
                        let newly_sacked = covered.filter(|e| !e.sacked).map(Entry::sack).count();
                        prop_assert_eq!(new, newly_sacked as u32);
                    }
                    Step::Advance { segments } => {
                        una = nxt.min(una + segments);
                        // The first unacknowledged segment is not SACKed either.
                        while una < nxt && table[una as usize].sacked {
                            una += 1;
                        }
                        let below = table[..una as usize].iter().filter(|e| e.sacked).count();
                        let gone = table[..una as usize].iter_mut();
                        gone.for_each(|e| *e = Entry::default());
                        prop_assert_eq!(board.sacked_below(una), below as u32);
                        board.advance(una);
                    }
                    Step::MarkLost => {
                        let mut above = 0;
                        for entry in table[una as usize..].iter_mut().rev() {
                            above += u32::from(entry.sacked);
                            entry.lost |= !entry.sacked && above >= DUP_THRESH;
                        }
                        let lost = table[una as usize..].iter().any(|e| e.lost && !e.sacked);
                        prop_assert_eq!(board.mark_lost(una), lost);
                    }
                    Step::MarkFirstLost if una < nxt => {
                        board.mark_lost_below(una + 1, una);
                        table[una as usize].lost = true;
                    }
                    Step::Resend => {
                        let next = resend(&mut table);
                        prop_assert_eq!(board.next_to_retransmit(), next.map(|i| i as u32));
                        if let Some(next) = next {
                            board.on_retransmit(next as u32);
                            (table[next].resent, table[next].listed) = (true, true);
                            table[next].sent = clock;
                            clock += 1;
                        }
                    }
                    Step::NextSegRule3 if board.to_retransmit() == 0 => {
                        let top = table.iter().rposition(|e| e.sacked).unwrap_or(0);
                        let first = una as usize;
                        let doubtful = table[first.min(top)..top].iter().position(|e| !e.sacked && !e.lost);
                        prop_assert_eq!(board.next_seg_rule_3(una), doubtful.map(|i| una + i as u32));
                        let last = table[una as usize..].iter().rposition(|e| !e.sacked);
                        prop_assert_eq!(board.last_unsacked(una, nxt), last.map(|i| una + i as u32));
                    }
                    Step::Timeout { forget } => {
                        if forget {
                            board.forget_sacks();
                        }
                        board.timeout_mark_lost(una, nxt);
                        for entry in &mut table[una as usize..] {
                            entry.sacked &= !forget;
                            (entry.lost, entry.resent) = (!entry.sacked, false);
                        }
                    }
                    Step::UnmarkLost => {
                        board.unmark_lost(una);
                        table[una as usize..].iter_mut().for_each(|e| (e.lost, e.resent) = (false, false));
                    }
                    Step::DetectLoss { recent } => {
                        let old = |sent: u32| sent + recent < clock;
                        let decision = |seq: u32| match old(table[seq as usize].sent) {
                            true => Decision::Lost,
                            false => Decision::Unknown,
                        };
                        let detected = board.detect_loss(una, nxt, decision);
                        let lost = table[una as usize..]
                            .iter_mut()
                            .filter(|e| e.listed && (!e.lost || e.resent) && old(e.sent));
                        let retransmissions = lost.map(|e| (e.lose(), e.listed = false).0);
                        let retransmissions = retransmissions.fold(false, |any, copy| any | copy);
                        prop_assert_eq!(detected.lost_retransmission, retransmissions);
                    }
                    Step::TimeoutRack { recent } if una < nxt => {
                        let old = |sent: u32| sent + recent < clock;
                        board.timeout_mark_lost_rack(una, nxt, |seq| old(table[seq as usize].sent));
                        let head = &mut table[una as usize];
                        (head.lost, head.resent) = (true, false);
                        for entry in table[una as usize..].iter_mut().filter(|e| !e.sacked && old(e.sent)) {
                            entry.lose();
                        }
                    }
                    Step::UnmarkRack => {
                        board.unmark_lost_rack(una, |seq| table[seq as usize].sent);
                        table.iter_mut().for_each(|e| e.lost = false);
                    }
                    Step::Dsack { from } => {
                        let seq = una + from;
                        board.on_dsack(seq, una);
                        if let Some(entry) = table.get_mut(seq as usize) {
                            // For a lost segment the block is a SACK as well.
                            entry.resent &= entry.lost;
                        }
                    }
                    Step::MarkFirstLost | Step::NextSegRule3 | Step::TimeoutRack { .. } => {}
                }
                prop_assert_eq!(board.sacked_out(), table.iter().filter(|e| e.sacked).count() as u32);
                let to_retransmit = table.iter().map(|e| e.to_retransmit()).sum::<i32>();
                prop_assert_eq!(board.to_retransmit(), to_retransmit);
                prop_assert_eq!(board.retrans_out(una), table.iter().filter(|e| e.resent).count() as u32);
                if timed {
                    prop_assert_eq!(board.lost_out(una), table.iter().filter(|e| e.lost).count() as u32);
                }
            }
        }
    }

    #[test]
    fn a_segment_is_lost_when_three_above_it_are_sacked_in_one_block_or_three() {
        let mut board = Scoreboard::default();
        board.sack((3, 5), 0, 20, |_, _| ());
        assert!(!board.mark_lost(0));
        board.sack((7, 8), 0, 20, |_, _| ());
        assert!(board.mark_lost(0));
        // 0, 1 and 2 have three segments SACKed above; 5 and 6 have one.
        assert_eq!(
            (board.sacked_out(), board.to_retransmit(), board.next_to_retransmit()),
            (3, 3, Some(0))
        );
    }

    #[test]
    fn marks_below_the_cumulative_ack_do_not_count() {
        // A timeout marks 0 to 9 as lost. The ACK of all of them leaves the marks in place, so a
        // SACK must not count from there.
        let mut board = Scoreboard::default();
        board.timeout_mark_lost(0, 10);
        board.on_retransmit(0);
        board.advance(10);
        board.sack((12, 13), 10, 20, |_, _| ());
        board.on_sacks(10);
        assert_eq!(board.to_retransmit(), 0);
    }
}
