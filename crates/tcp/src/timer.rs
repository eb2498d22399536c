//! When timers go off: with a tick of their clock.
//!
//! Linux keeps timers in wheels of 64 places. The first one has a place for each tick, the next for every eighth, and so on:
//! the further ahead a timer is set, the later it may go off, by an eighth at most, and never early. With ticks of 4 ms a
//! timer of 40 ms is up to 4 ms late, one of 300 ms up to 32.
//!
//! Source: Linux kernel/time/timer.c. Deviation: a tick is lost in rounding there, so ours may be one earlier.

use units::{Span, Time};

/// Ticks that the first wheel reaches ahead.
const REACH: u64 = 63;

/// A clock of timers.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// ns; 1: its timers are exact.
    tick: u64,
}

impl Clock {
    /// With a tick every so many ns.
    pub fn new(tick_ns: u64) -> Clock {
        Clock { tick: tick_ns.max(1) }
    }

    /// When a timer goes off that was set to `at`, about `span` ahead.
    pub fn goes_off(&self, at: Time, span: Span) -> Time {
        if self.tick == 1 || at == Time::NEVER {
            return at;
        }
        let mut step = self.tick;
        while span.0 >= REACH * step {
            step *= 8;
        }
        Time(at.0.div_ceil(step) * step)
    }

    /// Whether a timer set to `at` goes off by now. One whose time has come between two ticks is set to the next.
    pub fn has_come(&self, at: &mut Time, span: Span, now: Time) -> bool {
        if *at > now {
            return false;
        }
        *at = self.goes_off(*at, span);
        *at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn the_further_ahead_the_coarser() {
        // HZ 250. Linux's LVL_START: 63 ticks are 252 ms, 504 are 2016.
        let clock = Clock::new(4_000_000);
        for (at, span, goes_off) in [
            (1041, 40, 1044),
            (1040, 40, 1040),
            (1250, 251, 1252),
            (1252, 252, 1280),
            (3001, 2000, 3008),
            (3001, 2016, 3072),
        ] {
            assert_eq!(clock.goes_off(ms(at), Span::from_millis(span)), ms(goes_off), "{at}, {span}");
        }
    }

    #[test]
    fn a_clock_of_nanoseconds_is_exact() {
        assert_eq!(Clock::new(1).goes_off(Time(12_345), Span::from_secs(9)), Time(12_345));
    }

    #[test]
    fn what_comes_between_two_ticks_waits_for_the_next() {
        let clock = Clock::new(4_000_000);
        let mut at = ms(41);
        assert!(!clock.has_come(&mut at, Span::from_millis(40), ms(40)));
        assert_eq!(at, ms(41));
        assert!(!clock.has_come(&mut at, Span::from_millis(40), ms(41)));
        assert_eq!(at, ms(44));
        assert!(clock.has_come(&mut at, Span::from_millis(40), ms(44)));
        let mut never = Time::NEVER;
        assert!(!clock.has_come(&mut never, Span::ZERO, ms(44)));
    }
}
