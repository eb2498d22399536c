//! RACK: a segment is lost if one that left later has arrived and it itself has had time enough.
//!
//! What counts is when segments left, not how they are numbered, so the loss of a copy is found as
//! that of an original is. Time enough is the RTT of what arrived last and a window for reordering:
//! nothing of it while no reordering was seen and three are SACKed or a recovery is going on, else
//! a quarter of the least RTT. DSACKs widen it, by a quarter each round trip that brings one, up to
//! the smoothed RTT; sixteen recoveries without an undo narrow it again.
//!
//! Source: RFC 8985 §6.2, as Linux has it (tcp_recovery.c). Deviations from Linux: by RFC 8985's
//! advice the stamp too tells whether a copy or the original was acknowledged, or a timeout undone
//! would be done again by RACK; its clock has µs here ns; the round trip in which a DSACK is
//! counted once is RFC 8985's. What makes Linux raise DupThresh makes no difference here: once
//! reordering was seen it plays no part.

use units::{Span, Time};

/// Recoveries for which a widened window stays (RFC 8985 §6.2 step 4).
const PERSISTENCE: u8 = 16;

/// What RACK knows.
pub struct Rack {
    /// Of the segment delivered last.
    rtt: Span,
    /// When the one sent last of those delivered left, and its number.
    newest: (Time, u32),
    /// Something has arrived since losses were last looked for.
    pub advanced: bool,
    /// An original arrived below one that was SACKed before.
    pub reordering_seen: bool,
    /// Quarters of the least RTT in the reordering window.
    steps: u32,
    /// Recoveries until `steps` is one again.
    persist: u8,
    /// DSACKs do not count until this is acknowledged.
    round_end: Option<u32>,
}

/// What time says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Lost,
    /// Lost when so much time has passed.
    Wait(Span),
    /// Nothing sent after it has arrived.
    Unknown,
}

impl Rack {
    /// Nothing has arrived.
    pub fn new() -> Rack {
        Rack {
            rtt: Span::ZERO,
            newest: (Time::ZERO, 0),
            advanced: false,
            reordering_seen: false,
            steps: 1,
            persist: 0,
            round_end: None,
        }
    }

    /// A segment is newly acknowledged or SACKed, which left last at `sent`, and not for the first
    /// time if `again`.
    pub fn arrived(&mut self, seq: u32, sent: Time, again: bool, min_rtt: Option<Span>, now: Time) {
        let rtt = now.since(sent);
        if again && min_rtt.is_some_and(|least| rtt < least) {
            // Too soon for the copy: it was the original that arrived (RFC 8985 §6.2 step 2).
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((sent, seq));
    }

    /// A DSACK of something that no probe sent.
    pub fn duplicate(&mut self, una: u32, nxt: u32) {
        if self.reordering_seen && self.round_end.is_none_or(|end| una >= end) {
            self.round_end = Some(nxt);
            self.steps = (self.steps + 1).min(255);
            self.persist = PERSISTENCE;
        }
    }

    /// A recovery has ended, and not by an undo.
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// The reordering window. `sure`: a recovery, or DupThresh segments SACKed.
    pub fn window(&self, sure: bool, min_rtt: Option<Span>, srtt: Option<Span>) -> Span {
        if sure && !self.reordering_seen {
            return Span::ZERO;
        }
        // Before the first sample of an ACK that advances there is what SACKs measured.
        let (min_rtt, srtt) = (min_rtt.unwrap_or(self.rtt), srtt.unwrap_or(self.rtt));
        (min_rtt / 4 * u64::from(self.steps)).min(srtt)
    }

    /// Judges a segment that is out, and left last at `sent`. What left at one time left in order,
    /// copies before new ones (RACK_sent_after).
    pub fn judge(&self, seq: u32, sent: Time, window: Span, now: Time) -> Verdict {
        if (sent, seq) >= self.newest {
            return Verdict::Unknown;
        }
        let due = sent + self.rtt + window;
        if due <= now { Verdict::Lost } else { Verdict::Wait(due.since(now)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Time {
        Time(ms * MS)
    }

    /// Segment 5, sent at 10 ms, arrives at 110 ms.
    fn rack() -> Rack {
        let mut rack = Rack::new();
        rack.arrived(5, at(10), false, None, at(110));
        rack
    }

    #[test]
    fn what_left_before_is_lost_once_it_had_an_rtt_and_the_window() {
        let rack = rack();
        let judge =
            |seq, sent, window, now| rack.judge(seq, at(sent), Span::from_millis(window), at(now));
        assert_eq!(judge(4, 10, 0, 110), Verdict::Lost);
        assert_eq!(judge(4, 10, 25, 110), Verdict::Wait(Span::from_millis(25)));
        assert_eq!(judge(4, 10, 25, 135), Verdict::Lost);
        assert_eq!(judge(6, 10, 0, 200), Verdict::Unknown);
        assert_eq!(judge(1, 11, 0, 200), Verdict::Unknown);
    }

    #[test]
    fn an_answer_too_soon_for_the_copy_is_not_the_copys() {
        let mut rack = rack();
        rack.advanced = false;
        rack.arrived(1, at(105), true, Some(Span::from_millis(100)), at(120));
        assert!(!rack.advanced);
        assert_eq!(rack.judge(6, at(20), Span::ZERO, at(130)), Verdict::Unknown);
    }

    #[test]
    fn duplicates_widen_the_window_once_a_round_and_recoveries_narrow_it() {
        let mut rack = rack();
        let (least, smooth) = (Some(Span::from_millis(40)), Some(Span::from_millis(45)));
        assert_eq!(rack.window(true, least, smooth), Span::ZERO);
        assert_eq!(rack.window(false, least, smooth), Span::from_millis(10));
        rack.duplicate(0, 10);
        assert_eq!(rack.window(false, least, smooth), Span::from_millis(10), "no reordering seen");
        rack.reordering_seen = true;
        for (una, window) in [(0, 20), (5, 20), (10, 30), (20, 40), (30, 45)] {
            rack.duplicate(una, una + 10);
            assert_eq!(rack.window(true, least, smooth), Span::from_millis(window));
        }
        for _ in 0..16 {
            assert_eq!(rack.window(true, least, smooth), Span::from_millis(45));
            rack.recovered();
        }
        assert_eq!(rack.window(true, least, smooth), Span::from_millis(10));
    }
}
