//! A token bucket below the discipline: tc's htb with one class.
//!
//! Tokens are bytes. They come at the rate and are capped at the burst. A packet may leave while
//! tokens >= 0 and is charged after, so tokens become negative and the next packet waits until they
//! are 0 again. In any time t at most burst + rate · t bytes pass, and the one packet that makes
//! tokens negative.
//!
//! Source: M. Devera, "HTB Linux queuing discipline manual, user guide" (2002), and tc-htb(8).
//! Deviations: `ceil` is `rate` and `cburst` is `burst` (tc's own `cburst` would stay at 1600 bytes
//! and make a larger `burst` alone useless); the arithmetic is exact where Linux rounds each
//! packet's time to a fixed-point fraction.

use serde::{Deserialize, Serialize};
use units::{Rate, Time};

use crate::framing::Framing;

/// A shaper as the scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ShaperParams {
    /// Rate, bit/s; above zero.
    pub bps: u64,
    /// The most tokens, bytes.
    pub burst_bytes: u64,
    /// Added to what the discipline counts (`overhead`), bytes.
    pub overhead_bytes: u32,
    /// Least that a packet is charged, before cells (`mpu`), bytes.
    pub minimum_bytes: u32,
    /// `linklayer atm` charges whole cells.
    pub cells: crate::Cells,
}

/// One token (a byte) in the unit in which tokens are kept, bit·ns/s: so a rate in bit/s times ns
/// is exact.
const TOKEN: i128 = 8_000_000_000;

/// The bucket.
#[derive(Clone, Debug)]
pub struct Shaper {
    rate: Rate,
    burst: i128,
    charge: Framing,
    tokens: i128,
    /// When `tokens` were counted.
    counted: Time,
}

impl Shaper {
    /// A full bucket.
    pub fn new(params: ShaperParams) -> Shaper {
        assert!(params.bps > 0, "a shaper has a rate");
        let burst = i128::from(params.burst_bytes) * TOKEN;
        let charge = Framing {
            header_bytes: 0,
            overhead_bytes: params.overhead_bytes,
            minimum_bytes: params.minimum_bytes,
            cells: params.cells,
        };
        Shaper { rate: Rate(params.bps), burst, charge, tokens: burst, counted: Time::ZERO }
    }

    /// The rate, bit/s.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The time from which a packet may leave: past, or when tokens will be 0 again.
    #[inline]
    pub fn ready_at(&self) -> Time {
        if self.tokens >= 0 {
            return self.counted;
        }
        let wait = self.tokens.unsigned_abs().div_ceil(u128::from(self.rate.0));
        self.counted + units::Span(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// A packet of `bytes` as the discipline counts them leaves at `now`.
    #[inline]
    pub fn charge(&mut self, bytes: u32, now: Time) {
        debug_assert!(now >= self.ready_at(), "a packet left while the shaper was in debt");
        let come = i128::from(self.rate.0) * i128::from(now.since(self.counted).0);
        let cost = i128::from(self.charge.wire_bytes(bytes)) * TOKEN;
        self.tokens = self.burst.min(self.tokens + come) - cost;
        self.counted = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cells;

    const MS: u64 = 1_000_000;

    /// 1 Mbit/s: 1000 bytes take 8 ms.
    fn shaper(burst_bytes: u64) -> Shaper {
        let plain = ShaperParams {
            bps: 1_000_000,
            burst_bytes,
            overhead_bytes: 0,
            minimum_bytes: 0,
            cells: Cells::None,
        };
        Shaper::new(plain)
    }

    #[test]
    fn a_packet_that_takes_the_bucket_into_debt_leaves_and_the_next_one_waits_until_it_is_paid() {
        let mut s = shaper(1600);
        s.charge(1000, Time::ZERO);
        assert_eq!(s.ready_at(), Time::ZERO, "600 tokens are left");
        s.charge(1000, Time::ZERO);
        assert_eq!(s.ready_at(), Time(400 * 8_000), "a debt of 400 bytes takes 3.2 ms");
        s.charge(1000, Time(400 * 8_000));
        assert_eq!(s.ready_at(), Time(1400 * 8_000));
    }

    #[test]
    fn a_rested_bucket_holds_the_burst_and_no_more() {
        let mut s = shaper(1600);
        s.charge(1600, Time::ZERO);
        s.charge(1600, Time(1000 * MS));
        assert_eq!(s.ready_at(), Time(1000 * MS), "full again after a second");
        s.charge(1, Time(1000 * MS));
        assert_eq!(s.ready_at(), Time(1000 * MS + 8_000), "and then empty");
    }

    #[test]
    fn a_rate_that_divides_nothing_wakes_at_the_first_nanosecond_without_debt() {
        let mut s = Shaper::new(ShaperParams {
            bps: 3,
            burst_bytes: 0,
            overhead_bytes: 0,
            minimum_bytes: 0,
            cells: Cells::None,
        });
        s.charge(1, Time::ZERO);
        assert_eq!(s.ready_at(), Time(2_666_666_667), "8 bits at 3 bit/s");
    }

    #[test]
    fn overhead_mpu_and_cells_are_charged() {
        let mut s = Shaper::new(ShaperParams {
            bps: 8_000,
            burst_bytes: 0,
            overhead_bytes: 10,
            minimum_bytes: 0,
            cells: Cells::Atm,
        });
        s.charge(40, Time::ZERO);
        assert_eq!(s.ready_at(), Time(106 * MS), "50 bytes are two cells, at a byte a millisecond");
    }
}
