//! When timers go off: with a tick of their clock.
//!
//! Linux keeps timers in wheels of 64 places. The first one has a place for each tick, the next for
//! every eighth, and so on: the further ahead a timer is set, the later it may go off, by an eighth
//! at most, and never early. With ticks of 4 ms a timer of 40 ms is up to 4 ms late, one of 300 ms
//! up to 32.
//!
//! Source: Linux kernel/time/timer.c (calc_index), and tcp_output.c, tcp_timer.c for the one timer
//! that a sender has.

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

    /// When a timer goes off that is set at `now` to a time `span` ahead: both are in whole ticks.
    fn expires(&self, now: Time, span: Span) -> Time {
        if self.tick == 1 {
            return now + span;
        }
        let ahead = span.0.div_ceil(self.tick);
        let mut step = 1;
        while ahead >= REACH * step {
            step *= 8;
        }
        Time(((now.0 / self.tick + ahead) / step + 1) * step * self.tick)
    }

    /// Whether a timer set to `at` goes off by now. One whose time has come between two ticks is
    /// set to the next.
    pub fn has_come(&self, at: &mut Time, span: Span, now: Time) -> bool {
        if *at > now {
            return false;
        }
        *at = self.goes_off(*at, span);
        *at <= now
    }
}

/// What a sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// To send all again.
    Timeout,
    /// To probe for a lost tail.
    Probe,
    /// To judge segments that had not waited for long enough (RACK).
    Judge,
}

/// A sender's one timer: it is set for one thing at a time.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    clock: Clock,
    due: Due,
    at: Time,
    set: Time,
    /// `at` is the tick with which it goes off, no longer the time it was set to.
    settled: bool,
}

impl Alarm {
    /// One that is off.
    pub fn new(clock: Clock) -> Alarm {
        Alarm { clock, due: Due::Timeout, at: Time::NEVER, set: Time::ZERO, settled: true }
    }

    /// Set now, in place of whatever it was set to.
    #[inline]
    pub fn set(&mut self, due: Due, now: Time, span: Span) {
        *self = Alarm { due, at: now + span, set: now, settled: false, ..*self };
    }

    /// Not set.
    #[inline]
    pub fn off(&mut self) {
        self.at = Time::NEVER;
    }

    /// Whether it is set.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.at != Time::NEVER
    }

    /// When to look at it next, at the latest.
    #[inline]
    pub fn at(&self) -> Time {
        self.at
    }

    /// What it was last set to, be it on or off.
    #[inline]
    pub fn due(&self) -> Due {
        self.due
    }

    /// What it goes off for by now. One whose time has come between two ticks is set to the next.
    pub fn has_come(&mut self, now: Time) -> Option<Due> {
        if self.at > now {
            return None;
        }
        if !self.settled {
            self.settled = true;
            self.at = self.clock.expires(self.set, self.at.since(self.set));
        }
        (self.at <= now).then_some(self.due)
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
            assert_eq!(
                clock.goes_off(ms(at), Span::from_millis(span)),
                ms(goes_off),
                "{at}, {span}"
            );
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

    #[test]
    fn an_alarm_counts_whole_ticks_and_one() {
        for (set, span, goes_off) in
            [(1, 40, 44), (3, 38, 44), (4, 40, 48), (5, 300, 320), (8, 444, 480)]
        {
            let mut alarm = Alarm::new(Clock::new(4_000_000));
            alarm.set(Due::Probe, ms(set), Span::from_millis(span));
            assert_eq!(alarm.has_come(ms(set + span)), None, "{set}, {span}");
            assert_eq!(alarm.at(), ms(goes_off), "{set}, {span}");
            assert_eq!(alarm.has_come(ms(goes_off)), Some(Due::Probe));
        }
    }

    #[test]
    fn an_alarm_is_set_for_one_thing_at_a_time() {
        let mut alarm = Alarm::new(Clock::new(1));
        assert!(!alarm.is_on());
        alarm.set(Due::Timeout, ms(0), Span::from_millis(10));
        alarm.set(Due::Judge, ms(1), Span::from_millis(20));
        assert_eq!((alarm.has_come(ms(20)), alarm.has_come(ms(21))), (None, Some(Due::Judge)));
        alarm.off();
        assert_eq!(
            (alarm.is_on(), alarm.has_come(ms(1000)), alarm.due()),
            (false, None, Due::Judge)
        );
    }
}
