//! A timer that is set again as it goes off, and the kernel's timer wheel, which rounds its times.
//!
//! A discipline is not woken for it: it is evaluated when the queue is called next, with the queue
//! as it was.

use units::{Span, Time};

/// Length of a jiffy, ns: HZ 250, Debian's.
pub(crate) const JIFFY: u64 = 4_000_000;
/// Jiffies in a second.
const HZ: u64 = 1_000_000_000 / JIFFY;
/// Jiffies that the timer wheel's first level reaches ahead.
const LEVEL_JIFFIES: u64 = 63;

/// The jiffy at which the kernel's wheel lets a timer go off that is set at jiffy `now` for so many
/// ahead.
///
/// As `tcp`'s timer.rs has it: one of the first level goes off a jiffy late, and each further level
/// counts in eights of the one before.
pub(crate) fn expiry(now: u64, ahead: u64) -> u64 {
    let mut step = 1;
    while ahead >= LEVEL_JIFFIES * step {
        step *= 8;
    }
    ((now + ahead) / step + 1) * step
}

/// When something is due that is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    next: Time,
    pub(crate) period: Span,
}

impl Timer {
    /// One that goes off at `next`, and then each `period`.
    pub(crate) fn new(next: Time, period: Span) -> Timer {
        Timer { next, period }
    }

    /// The kernel's, set for so many seconds at time 0 and again each time that it goes off.
    pub(crate) fn of_seconds(seconds: u64) -> Timer {
        let period = Span(expiry(0, seconds * HZ) * JIFFY);
        Timer { next: Time::ZERO + period, period }
    }

    /// When it goes off next.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// How often it has gone off by `now` since it was last asked.
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
    fn the_wheel_rounds_up_by_what_its_levels_count_in() {
        assert_eq!(expiry(0, 4), 5);
        assert_eq!(expiry(0, 125), 128);
        // 1 s, 10 s and a minute, again and again.
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
