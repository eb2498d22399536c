//! The expiry of timers: at a tick of their clock, as in Linux's timer wheel.
//!
//! The wheel's first level has a slot for each tick (jiffy), the next level one for every eighth
//! tick, and so on, with 64 slots each. So a timer expires late, by at most an eighth of its
//! length, and never early. With ticks of 4 ms a timer of 40 ms is up to 4 ms late, and one of 300
//! ms up to 32 ms.
//!
//! Source: Linux kernel/time/timer.c (calc_wheel_index); tcp_output.c and tcp_timer.c for a
//! sender's single retransmission timer.

use units::{Span, Time};

/// The range of the first level, ticks (LVL_SIZE - 1).
const LEVEL_TICKS: u64 = 63;

/// The timer wheel.
#[derive(Clone, Copy, Debug)]
pub struct TimerWheel {
    /// Length of a tick (jiffy), ns; 1: timers are exact.
    tick: u64,
}

impl TimerWheel {
    /// A wheel with ticks of this length.
    pub fn new(tick_ns: u64) -> TimerWheel {
        TimerWheel { tick: tick_ns.max(1) }
    }

    /// The expiry of a timer that was set to `at`, about `span` ahead.
    pub fn expiry(&self, at: Time, span: Span) -> Time {
        if self.tick == 1 || at == Time::NEVER {
            return at;
        }
        let mut step = self.tick;
        while span.0 >= LEVEL_TICKS * step {
            step *= 8;
        }
        Time(at.0.div_ceil(step) * step)
    }

    /// The expiry of a timer armed at `now` for `span`, both rounded to whole ticks. While a timer
    /// expires, the wheel has already advanced to the next tick (base->clk of __run_timers). A
    /// timer armed then counts as one tick less ahead when its level is chosen.
    fn expiry_of_jiffies(&self, now: Time, span: Span, as_one_expires: bool) -> Time {
        if self.tick == 1 {
            return now + span;
        }
        let ahead = span.0.div_ceil(self.tick);
        let delta = ahead - u64::from(as_one_expires).min(ahead);
        let mut step = 1;
        while delta >= LEVEL_TICKS * step {
            step *= 8;
        }
        Time(((now.0 / self.tick + ahead) / step + 1) * step * self.tick)
    }

    /// Whether a timer set to `at` has expired. If `at` lies between two ticks and is reached, it
    /// becomes the timer's tick.
    pub fn has_expired(&self, at: &mut Time, span: Span, now: Time) -> bool {
        if *at > now {
            return false;
        }
        *at = self.expiry(*at, span);
        *at <= now
    }
}

/// The event for which a sender's timer is armed (icsk_pending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// ICSK_TIME_RETRANS: the retransmission timeout.
    Retrans,
    /// ICSK_TIME_LOSS_PROBE: the tail loss probe (RFC 8985 §7).
    LossProbe,
    /// ICSK_TIME_REO_TIMEOUT: RACK's reordering window (RFC 8985 §6.3).
    ReoTimeout,
}

/// A sender's only timer (icsk_retransmit_timer), armed for one event at a time.
#[derive(Clone, Copy, Debug)]
pub struct RetransmitTimer {
    wheel: TimerWheel,
    pending: Pending,
    at: Time,
    armed_at: Time,
    /// The time of its last expiry.
    expired_at: Time,
    /// `at` is the tick at which the timer expires, no longer the time it was armed for.
    rounded: bool,
}

impl RetransmitTimer {
    /// A timer that is not armed.
    pub fn new(wheel: TimerWheel) -> RetransmitTimer {
        RetransmitTimer {
            wheel,
            pending: Pending::Retrans,
            at: Time::NEVER,
            armed_at: Time::ZERO,
            expired_at: Time::NEVER,
            rounded: true,
        }
    }

    /// Arms the timer. It replaces any earlier event.
    #[inline]
    pub fn arm(&mut self, pending: Pending, now: Time, span: Span) {
        *self = RetransmitTimer { pending, at: now + span, armed_at: now, rounded: false, ..*self };
    }

    /// Disarms the timer.
    #[inline]
    pub fn stop(&mut self) {
        self.at = Time::NEVER;
    }

    /// Whether the timer is armed.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.at != Time::NEVER
    }

    /// The latest time for the next call of `has_expired`.
    #[inline]
    pub fn at(&self) -> Time {
        self.at
    }

    /// The event for which the timer was last armed, even if it is not armed now.
    #[inline]
    pub fn pending(&self) -> Pending {
        self.pending
    }

    /// The event for which the timer has expired, if it has. If its time lies between two ticks and
    /// is reached, it becomes the timer's tick.
    pub fn has_expired(&mut self, now: Time) -> Option<Pending> {
        if self.at > now {
            return None;
        }
        if !self.rounded {
            self.rounded = true;
            let (armed_at, span) = (self.armed_at, self.at.since(self.armed_at));
            let as_one_expires = armed_at == self.expired_at;
            self.at = self.wheel.expiry_of_jiffies(armed_at, span, as_one_expires);
        }
        if self.at > now {
            return None;
        }
        self.expired_at = now;
        Some(self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn expiries_further_ahead_are_coarser() {
        // HZ 250. Linux's LVL_START: 63 ticks are 252 ms, 504 are 2016.
        let wheel = TimerWheel::new(4_000_000);
        for (at, span, expiry) in [
            (1041, 40, 1044),
            (1040, 40, 1040),
            (1250, 251, 1252),
            (1252, 252, 1280),
            (3001, 2000, 3008),
            (3001, 2016, 3072),
        ] {
            assert_eq!(wheel.expiry(ms(at), Span::from_millis(span)), ms(expiry), "{at}, {span}");
        }
    }

    #[test]
    fn a_clock_with_ticks_of_a_nanosecond_is_exact() {
        assert_eq!(TimerWheel::new(1).expiry(Time(12_345), Span::from_secs(9)), Time(12_345));
    }

    #[test]
    fn work_between_ticks_waits_for_the_next_tick() {
        let wheel = TimerWheel::new(4_000_000);
        let mut at = ms(41);
        assert!(!wheel.has_expired(&mut at, Span::from_millis(40), ms(40)));
        assert_eq!(at, ms(41));
        assert!(!wheel.has_expired(&mut at, Span::from_millis(40), ms(41)));
        assert_eq!(at, ms(44));
        assert!(wheel.has_expired(&mut at, Span::from_millis(40), ms(44)));
        let mut never = Time::NEVER;
        assert!(!wheel.has_expired(&mut never, Span::ZERO, ms(44)));
    }

    #[test]
    fn a_timer_expires_a_tick_after_the_whole_ticks_of_its_delay() {
        for (set, span, expiry) in
            [(1, 40, 44), (3, 38, 44), (4, 40, 48), (5, 300, 320), (8, 444, 480)]
        {
            let mut timer = RetransmitTimer::new(TimerWheel::new(4_000_000));
            timer.arm(Pending::LossProbe, ms(set), Span::from_millis(span));
            assert_eq!(timer.has_expired(ms(set + span)), None, "{set}, {span}");
            assert_eq!(timer.at(), ms(expiry), "{set}, {span}");
            assert_eq!(timer.has_expired(ms(expiry)), Some(Pending::LossProbe));
        }
    }

    #[test]
    fn a_timer_set_while_another_expires_is_a_tick_less_ahead() {
        // 2016 ms are 504 ticks: from there on the wheel's steps are 256 ms, and from 4032 ticks on
        // 2048 ms.
        for (set, span, from_outside, from_within) in [
            (3968, 2016, 6144, 6016),
            (3968, 2012, 5984, 5984),
            (3968, 2020, 6144, 6144),
            (22_016, 16_128, 38_912, 38_400),
        ] {
            for (within, expiry) in [(false, from_outside), (true, from_within)] {
                let mut timer = RetransmitTimer::new(TimerWheel::new(4_000_000));
                if within {
                    timer.arm(Pending::Retrans, ms(set - 8), Span::from_millis(4));
                    assert_eq!(timer.has_expired(ms(set)), Some(Pending::Retrans));
                }
                timer.arm(Pending::Retrans, ms(set), Span::from_millis(span));
                assert_eq!(timer.has_expired(ms(set + span)), None);
                assert_eq!(timer.at(), ms(expiry), "{set}, {span}, {within}");
            }
        }
    }

    #[test]
    fn the_timer_has_one_purpose_at_a_time() {
        let mut timer = RetransmitTimer::new(TimerWheel::new(1));
        assert!(!timer.is_armed());
        timer.arm(Pending::Retrans, ms(0), Span::from_millis(10));
        timer.arm(Pending::ReoTimeout, ms(1), Span::from_millis(20));
        assert_eq!(
            (timer.has_expired(ms(20)), timer.has_expired(ms(21))),
            (None, Some(Pending::ReoTimeout))
        );
        timer.stop();
        assert_eq!(
            (timer.is_armed(), timer.has_expired(ms(1000)), timer.pending()),
            (false, None, Pending::ReoTimeout)
        );
    }
}
