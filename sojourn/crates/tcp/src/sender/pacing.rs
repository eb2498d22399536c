//! Pacing: segments leave one by one, at a rate that follows cwnd and SRTT (sk_pacing_rate).

use units::{Span, Time};

/// The earliest departure of the next segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// The earliest departure of the next segment (tcp_wstamp_ns).
    departure: Time,
    /// Only the departure time keeps a segment from leaving.
    blocks: bool,
    burst: Burst,
}

/// Segments that leave at one instant, as if the card had cut them from one (TSO).
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    at: Time,
    /// The number of further segments that may leave at that instant.
    left: u32,
    /// The part of the burst's lateness that is not made up yet.
    late: Span,
}

impl Pacer {
    /// Whether no segment may leave yet.
    #[inline]
    pub fn blocks(&mut self, now: Time) -> bool {
        let in_burst = self.burst.left > 0 && self.burst.at == now;
        let blocks = now < self.departure && !in_burst;
        self.blocks |= blocks;
        blocks
    }

    /// The departure of a blocked segment; NEVER if none is blocked.
    #[inline]
    pub fn deadline(&self) -> Time {
        if self.blocks { self.departure } else { Time::NEVER }
    }

    /// Unblocks the segment if its departure is reached.
    pub fn on_deadline(&mut self, now: Time) {
        self.blocks &= self.departure > now;
    }

    /// A segment leaves; the next one leaves a `gap` later.
    pub fn sent(&mut self, gap: Span, now: Time) {
        self.departure = self.departure.max(now) + gap;
    }

    /// The earliest departure of the next segment.
    pub fn departure(&self) -> Time {
        self.departure
    }

    /// A segment leaves at the congestion control's rate. The next one leaves a `gap` later, or at
    /// once if fewer than `burst` have left at this instant: then the gaps add up. A late burst
    /// makes up its lateness, up to half of its gaps (tcp_update_skb_after_send).
    #[inline]
    pub fn sent_at_rate(&mut self, gap: Span, burst: u32, now: Time) {
        if self.burst.left > 0 && self.burst.at == now {
            self.burst.left -= 1;
        } else {
            let departure = self.departure.max(now);
            let late = departure.since(self.departure);
            self.burst = Burst { at: now, left: burst - 1, late };
            self.departure = departure;
        }
        let spared = self.burst.late.min(gap / 2);
        self.burst.late = Span(self.burst.late.0 - spared.0);
        self.departure += Span(gap.0 - spared.0);
    }

    /// A timeout: the segments that it marks as lost leave at once.
    pub fn reset(&mut self, now: Time) {
        self.departure = self.departure.min(now);
        self.blocks = false;
    }
}

#[cfg(test)]
mod tests {
    use super::Pacer;
    use units::{Span, Time};

    #[test]
    fn after_a_timeout_no_segment_waits_for_its_departure() {
        let mut pacer = Pacer::default();
        pacer.sent(Span(10), Time::ZERO);
        assert!(pacer.blocks(Time(5)));
        assert_eq!(pacer.deadline(), Time(10));
        pacer.reset(Time(5));
        assert_eq!(pacer.deadline(), Time::NEVER);
        assert!(!pacer.blocks(Time(5)));
    }

    #[test]
    fn a_burst_leaves_at_one_instant_and_the_next_one_after_its_time_at_the_rate() {
        let mut pacer = Pacer { departure: Time(100), ..Pacer::default() };
        for _ in 0..3 {
            assert!(!pacer.blocks(Time(100)));
            pacer.sent_at_rate(Span(10), 3, Time(100));
        }
        assert!(pacer.blocks(Time(100)));
        assert_eq!(pacer.deadline(), Time(130));
        // A burst that ends early waits only for the segments that left.
        pacer.sent_at_rate(Span(10), 3, Time(130));
        assert!(pacer.blocks(Time(135)));
        assert_eq!(pacer.deadline(), Time(140));
    }

    /// The burst counts as one packet. It is 12 late and makes up all of that, since half of 3 · 10
    /// is 15. Or it is 40 late and makes up 15.
    #[test]
    fn a_late_burst_makes_up_for_at_most_half_of_its_time() {
        for (late, next) in [(12, 112 + 30 - 12), (40, 140 + 30 - 15)] {
            let mut pacer = Pacer { departure: Time(100), ..Pacer::default() };
            (0..3).for_each(|_| pacer.sent_at_rate(Span(10), 3, Time(100 + late)));
            assert_eq!(pacer.departure(), Time(next));
        }
    }
}
