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

    /// A timeout: what it has lost leaves at once.
    pub fn reset(&mut self, now: Time) {
        self.departure = self.departure.min(now);
    }
}
