//! A token bucket below the discipline: tc's htb with one class.
//!
//! Tokens are ns at the rate. They are capped at the burst. A packet may leave while tokens >= 0
//! and is charged afterwards, so tokens become negative and the next packet waits until they are 0
//! again. In any time t at most burst + rate · t bytes pass, plus the one packet that makes tokens
//! negative. Rounding adds a little: a packet's time is rounded down to whole ns
//! (`units::BytePace`), and the burst's time to the ticks in which tc passes it to the kernel.
//!
//! Source: M. Devera, "HTB Linux queuing discipline manual, user guide" (2002), and tc-htb(8); Linux
//! 6.12's sch_htb and iproute2 6.1 for the arithmetic. Deviation: `ceil` is `rate` and `cburst` is
//! `burst` (tc's own `cburst` would stay at 1600 bytes, which makes a larger `burst` alone
//! useless).

use serde::{Deserialize, Serialize};
use units::{BytePace, Rate, Span, Time};

use crate::framing::Framing;

/// A shaper as the scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ShaperParams {
    /// Rate, bit/s; above zero.
    pub bps: u64,
    /// The most tokens, bytes.
    pub burst_bytes: u64,
    /// Added to the discipline's size of a packet (`overhead`), bytes.
    pub overhead_bytes: u32,
    /// Least bytes that a packet is charged, before cells (`mpu`).
    pub minimum_bytes: u32,
    /// `linklayer atm` charges whole cells.
    pub cells: crate::Cells,
}

/// The greatest debt of a class, and the longest time for which tokens are added, ns (htb's
/// mbuffer).
const MOST: i64 = 60_000_000_000;

/// The time of a burst as tc passes it to the kernel: whole microseconds in ticks of 64 ns, in ns.
fn burst_ns(burst_bytes: u64, bps: u64) -> i64 {
    let bytes_a_second = u128::from((bps / 8).max(1));
    let micros = u128::from(burst_bytes) * 1_000_000 / bytes_a_second;
    i64::try_from(micros * 1_000 / 64 * 64).unwrap_or(i64::MAX)
}

/// The bucket.
#[derive(Clone, Debug)]
pub struct Shaper {
    rate: Rate,
    pace: BytePace,
    burst: i64,
    charge: Framing,
    tokens: i64,
    /// The time at which `tokens` were counted.
    counted: Time,
}

impl Shaper {
    /// A full bucket.
    pub fn new(params: ShaperParams) -> Shaper {
        assert!(params.bps > 0, "a shaper has a rate");
        let burst = burst_ns(params.burst_bytes, params.bps);
        let charge = Framing {
            header_bytes: 0,
            overhead_bytes: params.overhead_bytes,
            minimum_bytes: params.minimum_bytes,
            cells: params.cells,
        };
        let (rate, pace) = (Rate(params.bps), BytePace::new(params.bps));
        Shaper { rate, pace, burst, charge, tokens: burst, counted: Time::ZERO }
    }

    /// The rate, bit/s.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The earliest time at which a packet may leave: in the past, or the time at which tokens will
    /// be 0 again.
    #[inline]
    pub fn ready_at(&self) -> Time {
        self.counted + Span(self.tokens.min(0).unsigned_abs())
    }

    /// A packet of `bytes`, as the discipline counts them, leaves at `now`.
    #[inline]
    pub fn charge(&mut self, bytes: u32, now: Time) {
        debug_assert!(now >= self.ready_at(), "a packet left while the shaper was in debt");
        let new = i64::try_from(now.since(self.counted).0).unwrap_or(MOST).min(MOST);
        let cost = self.pace.time(self.charge.wire_bytes(bytes));
        self.tokens = (self.burst.min(self.tokens + new) - cost).max(1 - MOST);
        self.counted = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cells;

    const MS: u64 = 1_000_000;

    const PLAIN: ShaperParams = ShaperParams {
        bps: 1_000_000,
        burst_bytes: 1600,
        overhead_bytes: 0,
        minimum_bytes: 0,
        cells: Cells::None,
    };

    /// 1 Mbit/s: 1000 bytes take 8 ms.
    fn shaper(burst_bytes: u64) -> Shaper {
        Shaper::new(ShaperParams { burst_bytes, ..PLAIN })
    }

    #[test]
    fn a_packet_may_overdraw_the_bucket_and_the_next_one_waits_until_the_debt_is_paid() {
        let mut s = shaper(1600);
        s.charge(1000, Time::ZERO);
        assert_eq!(s.ready_at(), Time::ZERO, "600 tokens are left");
        s.charge(1000, Time::ZERO);
        assert_eq!(s.ready_at(), Time(400 * 8_000), "a debt of 400 bytes takes 3.2 ms");
        s.charge(1000, Time(400 * 8_000));
        assert_eq!(s.ready_at(), Time(1400 * 8_000));
    }

    #[test]
    fn an_idle_bucket_fills_to_the_burst_and_no_further() {
        let mut s = shaper(1600);
        s.charge(1600, Time::ZERO);
        s.charge(1600, Time(1000 * MS));
        assert_eq!(s.ready_at(), Time(1000 * MS), "full again after a second");
        s.charge(1, Time(1000 * MS));
        assert_eq!(s.ready_at(), Time(1000 * MS + 8_000), "and then empty");
    }

    #[test]
    fn a_rate_without_an_exact_quotient_is_rounded_as_in_linux() {
        let odd = |bps, burst_bytes| Shaper::new(ShaperParams { bps, burst_bytes, ..PLAIN });
        let mut s = odd(1_817_003, 0);
        // 1514 bytes at 227 125 B/s take 6 665 932.86 ns, and in Linux always a whole ns less.
        for packets in 1..=1000 {
            let now = s.ready_at();
            assert_eq!(now, Time((packets - 1) * 6_665_932));
            s.charge(1514, now);
        }
        // 1600 bytes take 7044.58 us: tc passes 7044, in ticks of 64 ns.
        assert_eq!(odd(1_817_003, 1600).burst, 7_043_968);
    }

    #[test]
    fn no_bucket_owes_more_than_a_minute() {
        let mut s = Shaper::new(ShaperParams { bps: 100, burst_bytes: 0, ..PLAIN });
        s.charge(1500, Time::ZERO);
        assert_eq!(s.ready_at(), Time(60_000 * MS - 1), "1500 bytes take 125 s");
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
