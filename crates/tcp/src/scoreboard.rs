//! The scoreboard: which segments between `una` and `nxt` are SACKed, lost and retransmitted, as ranges and two marks.
//!
//! RFC 6675 retransmits lost segments in order, so two marks say it all: below `lost_below` every segment not SACKed is lost,
//! and below `resent_below` every lost one has been sent again. What is in flight ("pipe") is then
//! `nxt - una - sacked - missing`, where `missing` counts the lost segments not sent again. While nothing is lost
//! nothing here is touched.
//!
//! Source: RFC 6675 §§2-5.
//! Deviations: sets are kept per segment, not per byte, as all segments but a transfer's last are of one size. `resent_below`
//! moves over a segment once, so a lost retransmission is found by the timer only (RFC 6675 §5.1).

/// Duplicate ACKs, or segments SACKed above, that make a segment count as lost (RFC 5681, RFC 6675).
pub const DUP_THRESH: u32 = 3;

/// What the sender knows of the segments beyond `una`.
#[derive(Debug, Default)]
pub struct Scoreboard {
    /// Half-open ranges of SACKed segments, in order, neither touching nor overlapping, all beyond `una`.
    ranges: Vec<(u32, u32)>,
    sacked: u32,
    lost_below: u32,
    resent_below: u32,
    missing: u32,
}

impl Scoreboard {
    /// Segments SACKed.
    #[inline]
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments lost and not sent again.
    #[inline]
    pub fn missing(&self) -> u32 {
        self.missing
    }

    /// One past the highest SACKed segment; 0 without any.
    pub fn highest(&self) -> u32 {
        self.ranges.last().map_or(0, |r| r.1)
    }

    /// Takes in a SACK block, clipped to what is outstanding; how many segments it newly covers.
    pub fn sack(&mut self, block: (u32, u32), una: u32, nxt: u32) -> u32 {
        let (start, end) = (block.0.max(una), block.1.min(nxt));
        if start >= end {
            return 0;
        }
        // The ranges that it touches: from the first that ends at or after its start to the last that starts at or before its end.
        let from = self.ranges.partition_point(|r| r.1 < start);
        let mut merged = (start, end);
        let mut to = from;
        let mut covered = 0;
        while let Some(&(s, e)) = self.ranges.get(to)
            && s <= end
        {
            merged = (merged.0.min(s), merged.1.max(e));
            covered += e - s;
            to += 1;
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
        self.resent_below = self.resent_below.max(una);
        self.recount();
    }

    /// Marks as lost what RFC 6675's IsLost says: segments with DupThresh SACKed above them. True if there are any.
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
        self.resent_below = self.resent_below.max(una);
        self.recount();
    }

    /// A timeout: everything outstanding is lost, whatever was sent again is lost too.
    pub fn mark_all_lost(&mut self, una: u32, nxt: u32) {
        self.lost_below = nxt;
        self.resent_below = una;
        self.recount();
    }

    /// Forgets all SACKs (ns-2's Sack1 does at a timeout, as RFC 2018 §8 allows).
    pub fn forget_sacks(&mut self) {
        self.ranges.clear();
        self.sacked = 0;
        self.recount();
    }

    /// The next lost segment to send again, if any: RFC 6675's NextSeg rule 1.
    #[inline]
    pub fn next_missing(&self) -> Option<u32> {
        if self.missing == 0 {
            return None;
        }
        Some(self.skip_sacked(self.resent_below))
    }

    /// The first segment neither SACKed nor lost that has SACKed ones above: RFC 6675's NextSeg rule 3. To be asked when
    /// nothing is missing.
    pub fn next_doubtful(&self, una: u32) -> Option<u32> {
        let seq = self.skip_sacked(self.resent_below.max(self.lost_below).max(una));
        (seq < self.highest()).then_some(seq)
    }

    /// The segment was sent again.
    pub fn resent(&mut self, seq: u32) {
        self.resent_below = seq + 1;
        self.missing -= 1;
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
        let index = self.ranges.partition_point(|r| r.1 <= seq);
        match self.ranges.get(index) {
            Some(&(start, end)) if start <= seq => end,
            _ => seq,
        }
    }

    /// `missing` anew: segments of [resent_below, lost_below) that are not SACKed.
    fn recount(&mut self) {
        let (from, to) = (self.resent_below, self.lost_below);
        if from >= to {
            self.missing = 0;
            return;
        }
        let first = self.ranges.partition_point(|r| r.1 <= from);
        let inside = self.ranges[first..].iter().take_while(|r| r.0 < to);
        self.missing = to - from - inside.map(|&(s, e)| e.min(to) - s.max(from)).sum::<u32>();
    }

    /// After SACKs were taken in.
    pub fn sacks_taken(&mut self) {
        self.recount();
    }
}
