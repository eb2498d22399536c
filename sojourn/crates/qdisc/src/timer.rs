//! A periodic timer, and the kernel's timer wheel, which rounds expiry times.
//!
//! A discipline is not woken at an expiry. The expiry is evaluated at the next call of the queue,
//! with the queue unchanged until then.

use units::{Span, Time};

/// A jiffy, ns: HZ is 250 in Debian.
pub(crate) const JIFFY: u64 = 4_000_000;
/// Jiffies in a second.
const HZ: u64 = 1_000_000_000 / JIFFY;
/// Jiffies that the first level of the timer wheel covers.
const LEVEL_JIFFIES: u64 = 63;

/// The jiffy at which a timer of the kernel's wheel expires that is set at jiffy `now` for `ahead`
/// jiffies.
///
/// As in `tcp`'s timer.rs: a timer of the first level expires a jiffy late, and each further level
/// counts in units eight times as long as the one before.
pub(crate) fn expiry(now: u64, ahead: u64) -> u64 {
    let mut step = 1;
    while ahead >= LEVEL_JIFFIES * step {
        step *= 8;
    }
    ((now + ahead) / step + 1) * step
}

/// A timer that restarts when it expires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    next: Time,
    pub(crate) period: Span,
}

impl Timer {
    /// A timer that expires at `next`, and then every `period`.
    pub(crate) fn new(next: Time, period: Span) -> Timer {
        Timer { next, period }
    }

    /// A timer of the kernel's wheel that is set for `seconds` at time 0 and again at each expiry.
    pub(crate) fn of_seconds(seconds: u64) -> Timer {
        let period = Span(expiry(0, seconds * HZ) * JIFFY);
        Timer { next: Time::ZERO + period, period }
    }

    /// The next expiry.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// The number of expiries by `now` since the last call.
    pub(crate) fn expiries(&mut self, now: Time) -> u64 {
        if now < self.next {
            return 0;
        }
        let times = now.since(self.next).0 / self.period.0 + 1;
        self.next += self.period * times;
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_rounds_up_to_the_granularity_of_its_level() {
        assert_eq!(expiry(0, 4), 5);
        assert_eq!(expiry(0, 125), 128);
        // Timers of 1 s, 10 s and a minute that restart at each expiry.
        let seconds = [1, 10, 60].map(|seconds| Timer::of_seconds(seconds).period.0 / 1_000_000);
        assert_eq!(seconds, [1_024, 10_240, 61_440]);
    }

    #[test]
    fn expiries_are_counted_once() {
        let mut timer = Timer::new(Time(5), Span(10));
        assert_eq!([4, 5, 14, 36].map(|at| timer.expiries(Time(at))), [0, 1, 0, 3]);
        assert_eq!(timer.next(), Time(45));
    }
}
