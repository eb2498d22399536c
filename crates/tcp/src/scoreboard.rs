//! The scoreboard: which segments between `una` and `nxt` are SACKed, lost and retransmitted, as
//! ranges and two marks.
//!
//! RFC 6675 retransmits lost segments in order, so two marks say it all: below `lost_below` every
//! segment not SACKed is lost, and below `resent_below` every lost one has been sent again. What is
//! in flight ("pipe") is then `nxt - una - sacked - missing`, where `missing` counts the lost
//! segments not sent again. While nothing is lost nothing here is touched.
//!
//! RACK judges by the time of sending. Originals left in order, so what it finds lost of them is a
//! prefix too; copies are queued in the order in which they left, and those of them that are lost
//! are missing once more, ahead of the rest.
//!
//! Sources: RFC 6675 §§2-5, RFC 8985 §6. Deviations: sets are kept per segment, not per byte, as
//! all segments but a transfer's last are of one size. Without RACK a lost retransmission is found
//! by the timer only (RFC 6675 §5.1). What NextSeg's rules 3 and 4 send again is in flight once,
//! not twice.

use crate::rack::Verdict;
use std::collections::VecDeque;
use units::Span;

/// Duplicate ACKs, or segments SACKed above, that make a segment count as lost (RFC 5681, RFC
/// 6675).
pub const DUP_THRESH: u32 = 3;

/// What the sender knows of the segments beyond `una`.
#[derive(Debug, Default)]
pub struct Scoreboard {
    /// Half-open ranges of SACKed segments, in order, neither touching nor overlapping, all beyond
    /// `una`.
    ranges: Vec<(u32, u32)>,
    sacked: u32,
    lost_below: u32,
    resent_below: u32,
    missing: u32,
    /// Copies on their way, in the order in which they left; those below `una` or SACKed have
    /// arrived.
    copies: VecDeque<u32>,
    /// Segments below `resent_below` whose copies are lost too, ascending.
    again: Vec<u32>,
}

/// What a look for losses found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Copies newly lost.
    pub copies: bool,
    /// The longest that a segment has still to wait for its verdict.
    pub wait: Span,
}

impl Scoreboard {
    /// Segments SACKed.
    #[inline]
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments SACKed right behind another SACKed one.
    #[inline]
    pub fn merged(&self) -> u32 {
        self.sacked - self.ranges.len() as u32
    }

    /// Segments lost and not sent again.
    #[inline]
    pub fn missing(&self) -> u32 {
        self.missing
    }

    /// Segments lost, sent again or not.
    pub fn lost(&self, una: u32) -> u32 {
        let below = self.lost_below.max(una);
        below - una - self.sacked_below(below)
    }

    /// One past the highest SACKed segment; 0 without any.
    pub fn highest(&self) -> u32 {
        self.ranges.last().map_or(0, |r| r.1)
    }

    /// Takes in a SACK block, clipped to what is outstanding; `each` is told the ranges it newly
    /// covers. Gives how many segments they hold.
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
        // The ranges that it touches: from the first that ends at or after its start to the last
        // that starts at or before its end.
        let from = self.ranges.partition_point(|r| r.1 < start);
        let mut merged = (start, end);
        let mut to = from;
        let mut covered = 0;
        let mut fresh = start;
        while let Some(&(s, e)) = self.ranges.get(to)
            && s <= end
        {
            merged = (merged.0.min(s), merged.1.max(e));
            covered += e - s;
            to += 1;
            if fresh < s {
                each(fresh, s);
            }
            fresh = fresh.max(e);
        }
        if fresh < end {
            each(fresh, end);
        }
        if to == from {
            self.ranges.insert(from, merged);
        } else {
            self.ranges[from] = merged;
            self.ranges.drain(from + 1..to);
        }
        let new = (merged.1 - merged.0) - covered;
        self.sacked += new;
        new
    }

    /// SACKed segments below `seq`.
    pub fn sacked_below(&self, seq: u32) -> u32 {
        self.ranges.iter().take_while(|r| r.0 < seq).map(|&(s, e)| e.min(seq) - s).sum()
    }

    /// Tells `each` the ranges below `seq`, from `una` on, that are not SACKed.
    pub fn unsacked_below(&self, seq: u32, una: u32, mut each: impl FnMut(u32, u32)) {
        let mut from = una;
        let first = self.ranges.partition_point(|r| r.1 <= una);
        for &(start, end) in self.ranges[first..].iter().take_while(|r| r.0 < seq) {
            if from < start {
                each(from, start);
            }
            from = end;
        }
        if from < seq {
            each(from, seq);
        }
    }

    /// Segments sent again and on their way.
    pub fn resent(&self, una: u32) -> u32 {
        let below = self.resent_below.max(una);
        below - una - self.sacked_below(below) - self.again.len() as u32
    }

    /// Nothing was lost after all; what was sent again is on its way twice, and judged by its copy
    /// (RACK).
    pub fn trust<T: Ord>(&mut self, una: u32, sent: impl Fn(u32) -> T) {
        self.resent_below = self.resent_below.max(una);
        self.lost_below = self.resent_below;
        self.again.sort_unstable_by_key(|&seq| sent(seq));
        for seq in self.again.drain(..).rev() {
            self.copies.push_front(seq);
        }
        self.missing = 0;
    }

    /// Nothing was lost after all; what was sent again counts as any segment (RFC 6675).
    pub fn unmark(&mut self, una: u32) {
        self.lost_below = una;
        self.resent_below = una;
        self.copies.clear();
        self.again.clear();
        self.missing = 0;
    }

    /// Everything below `una` is acknowledged.
    #[inline]
    pub fn advance(&mut self, una: u32) {
        if self.ranges.is_empty() && self.lost_below <= una {
            self.missing = 0;
            return;
        }
        self.advance_slow(una);
    }

    fn advance_slow(&mut self, una: u32) {
        let gone = self.ranges.partition_point(|r| r.1 <= una);
        self.sacked -= self.ranges.drain(..gone).map(|(s, e)| e - s).sum::<u32>();
        if let Some(first) = self.ranges.first_mut()
            && first.0 < una
        {
            self.sacked -= una - first.0;
            first.0 = una;
        }
        self.recount(una);
    }

    /// Marks as lost what RFC 6675's IsLost says: segments with DupThresh SACKed above them. True
    /// if there are any.
    pub fn mark_lost(&mut self, una: u32) -> bool {
        let mut above = 0;
        for &(start, end) in self.ranges.iter().rev() {
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
        self.recount(una);
    }

    /// A timeout: everything outstanding is lost, whatever was sent again is lost too.
    pub fn mark_all_lost(&mut self, una: u32, nxt: u32) {
        self.lost_below = nxt;
        self.resent_below = una;
        self.copies.clear();
        self.again.clear();
        self.recount(una);
    }

    /// A timeout under RACK: the first segment is lost, and what `is_old` of the others.
    pub fn mark_old_lost(&mut self, una: u32, nxt: u32, is_old: impl Fn(u32) -> bool) {
        let old = |seq| if seq == una || is_old(seq) { Verdict::Lost } else { Verdict::Unknown };
        self.judge(una, nxt, old);
        // The copy of the first may have left after others that are not old.
        if self.resent_below > una && !self.again.contains(&una) {
            self.copies.retain(|&seq| seq != una);
            self.again.insert(0, una);
        }
        self.recount(una);
    }

    /// RACK: marks what `verdict` says is lost, originals and copies alike, each in the order in
    /// which they left.
    pub fn judge(&mut self, una: u32, nxt: u32, verdict: impl Fn(u32) -> Verdict) -> Found {
        let mut found = Found::default();
        let mut waiting = false;
        let mut seq = self.lost_below.max(una);
        while seq < nxt {
            if let Some(end) = self.sacked_to(seq) {
                seq = end;
                continue;
            }
            match verdict(seq) {
                Verdict::Lost if !waiting => self.lost_below = seq + 1,
                Verdict::Lost => {}
                Verdict::Wait(wait) => {
                    waiting = true;
                    found.wait = found.wait.max(wait);
                }
                Verdict::Unknown => break,
            }
            seq += 1;
        }
        let mut index = 0;
        while let Some(&seq) = self.copies.get(index) {
            let arrived = seq < una || self.sacked_to(seq).is_some();
            let verdict = if arrived { Verdict::Lost } else { verdict(seq) };
            match verdict {
                Verdict::Lost if index == 0 => {
                    self.copies.pop_front();
                    if !arrived {
                        found.copies = true;
                        let at = self.again.partition_point(|&other| other < seq);
                        self.again.insert(at, seq);
                    }
                    continue;
                }
                Verdict::Lost => {}
                Verdict::Wait(wait) => found.wait = found.wait.max(wait),
                Verdict::Unknown => break,
            }
            index += 1;
        }
        self.recount(una);
        found
    }

    /// Forgets all SACKs, at a timeout (ns-2's Sack1, as RFC 2018 §8 allows).
    pub fn forget_sacks(&mut self) {
        self.ranges.clear();
        self.sacked = 0;
    }

    /// The next lost segment to send again, if any: RFC 6675's NextSeg rule 1.
    #[inline]
    pub fn next_missing(&self) -> Option<u32> {
        if self.missing == 0 {
            return None;
        }
        Some(self.again.first().copied().unwrap_or_else(|| self.skip_sacked(self.resent_below)))
    }

    /// The first segment neither SACKed nor lost that has SACKed ones above: RFC 6675's NextSeg
    /// rule 3. To be asked when nothing is missing.
    pub fn next_doubtful(&self, una: u32) -> Option<u32> {
        let seq = self.skip_sacked(self.resent_below.max(self.lost_below).max(una));
        (seq < self.highest()).then_some(seq)
    }

    /// The segment is sent again.
    pub fn send_again(&mut self, seq: u32) {
        if seq < self.resent_below {
            self.again.remove(0);
        }
        self.resent_below = self.resent_below.max(seq + 1);
        self.missing -= 1;
        self.copies.push_back(seq);
    }

    /// The last segment below `nxt` that is not SACKed: RFC 6675's rescue retransmission.
    pub fn last_unsacked(&self, una: u32, nxt: u32) -> Option<u32> {
        let mut seq = nxt.checked_sub(1)?;
        for &(start, end) in self.ranges.iter().rev() {
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

    /// The end of the SACKed range that holds the segment, if one does.
    fn sacked_to(&self, seq: u32) -> Option<u32> {
        range_end(&self.ranges, seq)
    }

    /// `missing` anew: segments of [resent_below, lost_below) that are not SACKed. Where `advance`
    /// had nothing to do the marks have stayed behind `una`.
    fn recount(&mut self, una: u32) {
        self.resent_below = self.resent_below.max(una);
        if !self.again.is_empty() {
            let ranges = &self.ranges;
            self.again.retain(|&seq| seq >= una && range_end(ranges, seq).is_none());
        }
        while self.copies.front().is_some_and(|&seq| seq < una) {
            self.copies.pop_front();
        }
        self.missing = self.again.len() as u32;
        let (from, to) = (self.resent_below, self.lost_below);
        if from >= to {
            return;
        }
        let first = self.ranges.partition_point(|r| r.1 <= from);
        let inside = self.ranges[first..].iter().take_while(|r| r.0 < to);
        self.missing += to - from - inside.map(|&(s, e)| e.min(to) - s.max(from)).sum::<u32>();
    }

    /// After SACKs were taken in.
    pub fn sacks_taken(&mut self, una: u32) {
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
        Doubt,
        Timeout { forget: bool },
        Unmark,
        Judge { recent: u32 },
        Expire { recent: u32 },
        Trust,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (1..12u32).prop_map(|segments| Step::Send { segments }),
            6 => (0..40u32, 1..6u32).prop_map(|(from, segments)| Step::Sack { from, segments }),
            3 => (1..15u32).prop_map(|segments| Step::Advance { segments }),
            3 => Just(Step::MarkLost),
            1 => Just(Step::MarkFirstLost),
            4 => Just(Step::Resend),
            1 => Just(Step::Doubt),
            1 => any::<bool>().prop_map(|forget| Step::Timeout { forget }),
            1 => Just(Step::Unmark),
            3 => (0..30u32).prop_map(|recent| Step::Judge { recent }),
            1 => (0..30u32).prop_map(|recent| Step::Expire { recent }),
            1 => Just(Step::Trust),
        ]
    }

    /// A segment in a table of all that were sent.
    #[derive(Clone, Copy, Default)]
    struct Entry {
        sacked: bool,
        lost: bool,
        resent: bool,
        /// The order of sending.
        sent: u32,
    }

    impl Entry {
        fn lose(&mut self) {
            (self.lost, self.resent) = (!self.sacked, false);
        }

        fn in_flight(&self) -> bool {
            !self.sacked && (!self.lost || self.resent)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn ranges_and_two_marks_say_what_a_table_of_segments_says(
            steps in prop::collection::vec(step(), 1..120), by_time in any::<bool>()
        ) {
            let mut board = Scoreboard::default();
            let mut table: Vec<Entry> = Vec::new();
            let mut una = 0;
            let mut clock = 0;
            for step in steps {
                // Losses are found by counting or by time.
                let timed = matches!(step, Step::Judge { .. } | Step::Expire { .. } | Step::Trust);
                let either = matches!(step, Step::Send { .. } | Step::Sack { .. } | Step::Advance { .. } | Step::Resend);
                if !either && timed != by_time {
                    continue;
                }
                let nxt = table.len() as u32;
                let resend = |table: &mut [Entry]| table.iter().position(|e| !e.sacked && e.lost && !e.resent);
                match step {
                    Step::Send { segments } => {
                        for _ in 0..segments {
                            table.push(Entry { sent: clock, ..Entry::default() });
                            clock += 1;
                        }
                    }
                    Step::Sack { from, segments } => {
                        // Never `una` itself: that would have been acknowledged.
                        let block = (una + 1 + from, una + 1 + from + segments);
                        let mut told = Vec::new();
                        let new = board.sack(block, una, nxt, |from, to| told.extend(from..to));
                        board.sacks_taken(una);
                        let outstanding = block.0.min(nxt)..block.1.min(nxt);
                        let fresh: Vec<u32> = outstanding.filter(|&seq| !table[seq as usize].sacked).collect();
                        prop_assert_eq!(told, fresh);
                        let covered = table.iter_mut().take(block.1 as usize).skip(block.0 as usize);
                        let found = covered.map(|e| u32::from(!std::mem::replace(&mut e.sacked, true))).sum::<u32>();
                        prop_assert_eq!(new, found);
                    }
                    Step::Advance { segments } => {
                        una = nxt.min(una + segments);
                        // The first not acknowledged is not SACKed either.
                        while una < nxt && table[una as usize].sacked {
                            una += 1;
                        }
                        let below = table[..una as usize].iter().filter(|e| e.sacked).count();
                        let gone = table[..una as usize].iter_mut();
                        gone.for_each(|e| *e = Entry { sacked: false, lost: true, resent: true, sent: 0 });
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
                        prop_assert_eq!(board.next_missing(), next.map(|i| i as u32));
                        if let Some(next) = next {
                            board.send_again(next as u32);
                            table[next].resent = true;
                            table[next].sent = clock;
                            clock += 1;
                        }
                    }
                    Step::Doubt if board.missing() == 0 => {
                        let top = table.iter().rposition(|e| e.sacked).unwrap_or(0);
                        let doubtful = table[..top].iter().position(|e| !e.sacked && !e.lost);
                        prop_assert_eq!(board.next_doubtful(una), doubtful.map(|i| i as u32));
                        let last = table[una as usize..].iter().rposition(|e| !e.sacked);
                        prop_assert_eq!(board.last_unsacked(una, nxt), last.map(|i| una + i as u32));
                    }
                    Step::Timeout { forget } => {
                        if forget {
                            board.forget_sacks();
                        }
                        board.mark_all_lost(una, nxt);
                        for entry in &mut table[una as usize..] {
                            entry.sacked &= !forget;
                            entry.lose();
                        }
                    }
                    Step::Unmark => {
                        board.unmark(una);
                        table[una as usize..].iter_mut().for_each(|e| (e.lost, e.resent) = (false, false));
                    }
                    Step::Judge { recent } => {
                        let old = |sent: u32| sent + recent < clock;
                        let verdict = |seq: u32| match old(table[seq as usize].sent) {
                            true => Verdict::Lost,
                            false => Verdict::Unknown,
                        };
                        let found = board.judge(una, nxt, verdict);
                        let lost = table[una as usize..].iter_mut().filter(|e| e.in_flight() && old(e.sent));
                        let copies = lost.map(|e| (e.resent, e.lose()).0).fold(false, |any, copy| any | copy);
                        prop_assert_eq!(found.copies, copies);
                    }
                    Step::Expire { recent } if una < nxt => {
                        let old = |sent: u32| sent + recent < clock;
                        board.mark_old_lost(una, nxt, |seq| old(table[seq as usize].sent));
                        table[una as usize].lose();
                        let out = table[una as usize..].iter_mut().filter(|e| e.in_flight());
                        out.filter(|e| old(e.sent)).for_each(Entry::lose);
                    }
                    Step::Trust => {
                        board.trust(una, |seq| table[seq as usize].sent);
                        let copied = board.resent_below;
                        for (seq, entry) in table.iter_mut().enumerate().filter(|(_, e)| e.lost && !e.sacked) {
                            // What was sent again before is on its way as that copy.
                            entry.lost = (seq as u32) < copied;
                            entry.resent = entry.lost;
                        }
                    }
                    Step::MarkFirstLost | Step::Doubt | Step::Expire { .. } => {}
                }
                prop_assert_eq!(board.sacked(), table.iter().filter(|e| e.sacked).count() as u32);
                let missing = table.iter().filter(|e| !e.sacked && e.lost && !e.resent).count();
                prop_assert_eq!(board.missing(), missing as u32);
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
        // 0, 1 and 2 have three above; 5 and 6 have one.
        assert_eq!((board.sacked(), board.missing(), board.next_missing()), (3, 3, Some(0)));
    }

    #[test]
    fn old_marks_do_not_count_below_what_is_acknowledged() {
        // A timeout marks 0 to 9; the ACK of them all leaves the marks where they are; a SACK must
        // not count from there.
        let mut board = Scoreboard::default();
        board.mark_all_lost(0, 10);
        board.send_again(0);
        board.advance(10);
        board.sack((12, 13), 10, 20, |_, _| ());
        board.sacks_taken(10);
        assert_eq!(board.missing(), 0);
    }
}
