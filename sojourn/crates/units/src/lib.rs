//! The quantities of all crates: Time, Span, Rate; `Rng`, the seeded generator; a packet's memory
//! in a host (`memory`), the time of bytes at a rate (`BytePace`), and the ECN field (`Ecn`).
//! `forward!` writes the methods of an enum of implementations.
//!
//! A `Time` is a point on the run's clock, a `Span` a length of it; both are u64 nanoseconds and
//! never wrap (584 years). A `Rate` is bit/s. Arithmetic that mixes them is here once, with its
//! rounding documented.

mod byte_pace;
mod ecn;
mod forward;
pub mod memory;
mod rng;

pub use byte_pace::BytePace;
pub use ecn::Ecn;
pub use rng::Rng;

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

/// A data rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every event.
    pub const NEVER: Time = Time(u64::MAX);

    /// Time passed since `earlier`; zero if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This time in seconds, for real-valued arithmetic (CUBIC's cubic, an EWMA).
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Span {
        Span(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * 1_000_000_000)
    }

    /// The nearest nanosecond to `s` seconds; negative numbers and NaN return zero.
    #[inline]
    pub fn from_secs_f64(s: f64) -> Span {
        Span((s * 1e9 + 0.5) as u64)
    }

    /// This span in seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// `self - other`, or zero if `other` is longer.
    #[inline]
    pub fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

/// The whole part of a number from 0 to 2^63. The processor converts it in one instruction, where
/// `as u64` takes ten. A smaller number returns 0, a greater one 2^63 - 1.
#[inline(always)]
pub fn whole(number: f64) -> u64 {
    (number as i64).max(0) as u64
}

impl Rate {
    /// `mbit` million bits a second.
    pub const fn from_mbit(mbit: u64) -> Rate {
        Rate(mbit * 1_000_000)
    }

    /// The time of `bytes` on a link of this rate, rounded up to the next nanosecond so that a link
    /// never carries more than its rate. For example, 1500 bytes at 20 Mbit/s take 600 µs. `None`:
    /// the rate is zero.
    #[inline]
    pub fn time_for(self, bytes: u64) -> Option<Span> {
        if self.0 == 0 {
            return None;
        }
        // 64 bits suffice below 2.3 GB; above that (never a packet) 128 bits do.
        match bytes.checked_mul(8_000_000_000) {
            Some(scaled) => Some(Span(scaled.div_ceil(self.0))),
            None => Some(Span((bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128) as u64)),
        }
    }

    /// The whole bytes that a link of this rate carries in a time. 20 Mbit/s carry 2500 bytes in 1
    /// ms.
    pub fn bytes_in(self, time: Span) -> u64 {
        (u128::from(self.0) * u128::from(time.0) / 8_000_000_000) as u64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}ms", self.0 as f64 * 1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_1500_bytes_takes_600_us_at_20_mbit() {
        assert_eq!(Rate::from_mbit(20).time_for(1500), Some(Span::from_micros(600)));
    }

    #[test]
    fn transmission_time_rounds_up_so_a_link_never_exceeds_its_rate() {
        // 1 byte at 3 bit/s takes 2.67 s.
        assert_eq!(Rate(3).time_for(1), Some(Span(2_666_666_667)));
        assert_eq!(Rate(0).time_for(1), None);
    }

    #[test]
    fn huge_transfers_do_not_overflow() {
        assert_eq!(Rate(8).time_for(1 << 32), Some(Span((1u64 << 32) * 1_000_000_000)));
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::NEVER + Span(1), Time::NEVER);
        assert_eq!(Time(5).since(Time(9)), Span::ZERO);
    }
}
