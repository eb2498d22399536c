//! Pacing: segments leave one by one, at a rate that follows cwnd and SRTT (sk_pacing_rate).

use units::{Span, Time};

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Its earliest departure (tcp_wstamp_ns).
    departure: Time,
    /// A segment could leave but for that.
    blocks: bool,
}

impl Pacer {
    /// Whether nothing may leave yet.
    #[inline]
    pub fn blocks(&mut self, now: Time) -> bool {
        self.blocks |= now < self.departure;
        now < self.departure
    }

    /// When a blocked segment may leave; NEVER: none is blocked.
    #[inline]
    pub fn deadline(&self) -> Time {
        if self.blocks { self.departure } else { Time::NEVER }
    }

    /// The deadline may be reached.
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

    /// A segment leaves of a congestion control that says at which rate, so that the next one leaves
    /// a `gap` later. What this one was late is made good, up to half a gap (tcp_update_skb_after_send).
    pub fn sent_at_rate(&mut self, gap: Span, now: Time) {
        let departure = self.departure.max(now);
        let late = departure.since(self.departure);
        self.departure = departure + Span(gap.0 - late.min(gap / 2).0);
    }

    /// A timeout: what it has lost leaves at once.
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
}
