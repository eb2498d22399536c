//! The lengths of segments if some are shorter than the MSS: a congestion control makes them so
//! (Prague at low rates), or the application writes less (`application`). A segment keeps its
//! length when it is retransmitted.

use super::Sender;
use std::collections::VecDeque;
use units::Time;

/// At least this many short segments are remembered, and always those outstanding.
const REMEMBERED: usize = 1 << 12;

/// The bytes by which segments are shorter than the MSS.
#[derive(Debug)]
pub(super) struct Lengths {
    mss: u32,
    /// The segments shorter than the MSS, ascending. Each has the sum of missing bytes up to and
    /// including itself.
    short: VecDeque<(u32, u64)>,
    /// The sum of missing bytes up to the last segment dropped from `short`.
    forgotten: u64,
    /// Bytes that the application has produced and that have not left; `None` if it always has
    /// more.
    left: Option<u64>,
}

/// Ends of the data, one past the last segment.
pub(super) struct Ends {
    /// The data that the application has produced.
    pub data: u32,
    /// The whole transfer.
    pub transfer: u32,
}

impl Lengths {
    pub fn new(mss: u32, bytes: Option<u64>) -> Lengths {
        Lengths { mss, short: VecDeque::new(), forgotten: 0, left: bytes }
    }

    /// Sets the number of bytes that the application has produced and that have not left.
    pub fn set_left(&mut self, left: u64) {
        self.left = Some(left);
    }

    /// The length of a segment that leaves for the first time, at most `payload`. SND.UNA is `una`.
    fn send(&mut self, seq: u32, payload: u32, una: u32) -> u32 {
        let most = payload.min(self.mss);
        let len = self.left.map_or(most, |left| left.min(most.into()) as u32);
        self.left = self.left.map(|left| left - u64::from(len));
        if len < self.mss {
            let before = self.short.back().map_or(self.forgotten, |&(_, lacks)| lacks);
            self.short.push_back((seq, before + u64::from(self.mss - len)));
            while self.short.len() > REMEMBERED
                && let Some(&(oldest, lacks)) = self.short.front()
                && oldest < una
            {
                self.short.pop_front();
                self.forgotten = lacks;
            }
        }
        len
    }

    /// The bytes missing in the segments before this one.
    fn lacking(&self, seq: u32) -> u64 {
        match self.short.partition_point(|&(short, _)| short < seq) {
            0 => self.forgotten,
            later => self.short[later - 1].1,
        }
    }

    /// The position of a segment's first byte.
    fn first_byte(&self, seq: u32) -> u64 {
        u64::from(seq) * u64::from(self.mss) - self.lacking(seq)
    }

    /// The length of a segment that has left before.
    fn of(&self, seq: u32) -> u32 {
        (self.first_byte(seq + 1) - self.first_byte(seq)) as u32
    }
}

impl Sender {
    /// The position in the stream of a segment's first byte. For a segment acknowledged long ago,
    /// all short segments dropped from the record count as earlier ones.
    pub fn first_byte(&self, seq: u32) -> u64 {
        match &self.cold.lengths {
            Some(lengths) => lengths.first_byte(seq),
            None => u64::from(seq) * u64::from(self.settings.mss),
        }
    }

    /// Payload of the segments that leave now, bytes.
    pub fn payload(&self) -> u32 {
        match self.settings.control.shorter_segments {
            true => self.control.payload().min(self.settings.mss),
            false => self.settings.mss,
        }
    }

    /// The payload of a segment that leaves.
    #[cold]
    pub(super) fn length(&mut self, seq: u32, retransmit: bool, now: Time) -> u32 {
        let payload = self.payload();
        let Some(lengths) = &mut self.cold.lengths else { return payload };
        if retransmit {
            let len = lengths.of(seq);
            self.data_sent(None, now);
            return len;
        }
        let len = lengths.send(seq, payload, self.una);
        let endless = lengths.left.is_none();
        self.data_sent(Some(seq), now);
        if !endless {
            // A short segment leaves more bytes for later segments, so the end of the data may
            // move.
            let ends = self.ends();
            self.end = ends.transfer;
            if self.writer.end() != ends.data {
                self.writer.end_at(ends.data);
                self.update_limits();
            }
        }
        len
    }

    /// The ends of the data, if all bytes that have not left make full segments.
    pub(super) fn ends(&self) -> Ends {
        let left = self.cold.lengths.as_ref().and_then(|lengths| lengths.left);
        let end = |bytes: Option<u64>| {
            let segments = bytes.map(|bytes| bytes.div_ceil(self.settings.mss.into()));
            segments
                .and_then(|segments| u32::try_from(segments).ok())
                .map_or(u32::MAX, |segments| self.nxt.saturating_add(segments))
        };
        let unproduced = self.usage.as_ref().map_or(Some(0), |usage| usage.unproduced());
        let whole = left.zip(unproduced).map(|(left, rest)| left.saturating_add(rest));
        Ends { data: end(left), transfer: end(whole) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_transfer_is_that_of_its_segments() {
        let mut lengths = Lengths::new(1000, Some(3500));
        let sent = [1000, 700, 200, 1000, 1000].map(|payload| (payload, 0));
        let lens: Vec<u32> =
            (0..).zip(sent).map(|(seq, (p, una))| lengths.send(seq, p, una)).collect();
        assert_eq!(lens, [1000, 700, 200, 1000, 600]);
        assert_eq!(lengths.left, Some(0));
        assert_eq!((0..5).map(|seq| lengths.of(seq)).collect::<Vec<_>>(), lens);
        assert_eq!([0, 2, 3, 4, 5].map(|seq| lengths.first_byte(seq)), [0, 1700, 1900, 2900, 3500]);
    }

    #[test]
    fn removing_acknowledged_ranges_changes_no_other_position() {
        let mut lengths = Lengths::new(1000, None);
        let most = 3 * REMEMBERED as u32;
        (0..most).for_each(|seq| assert_eq!(lengths.send(seq, 400, seq.saturating_sub(10)), 400));
        assert_eq!(lengths.short.len(), REMEMBERED);
        for seq in most - 10..most {
            assert_eq!((lengths.of(seq), lengths.first_byte(seq)), (400, u64::from(seq) * 400));
        }
    }
}
