//! A policer before the queue: tc's action police, which drops packets that exceed a rate.
//!
//! A bucket fills with tokens at the rate and has room for the burst. A packet that finds enough
//! tokens takes them and enters the queue. Any other packet is dropped, and the bucket does not
//! change. No packet waits, so a policer adds no delay and keeps no burst back: the bytes that pass
//! in any time t are at most burst + rate · t.
//!
//! Source: tc-police(8); Linux net/sched/act_police.c (6.12) for the arithmetic:
//!
//! - Tokens are ns at the rate (`BytePace`). The burst is a time too, in ticks of 64 ns, rounded
//!   down as tc rounds it.
//! - Tokens are counted when a packet conforms. New tokens accrue for at most the time that
//!   fills the bucket.
//! - A packet larger than `mtu` is dropped, however many tokens there are.
//!
//! Deviations: no peak rate, no average rate, and packets that exceed the rate are dropped, never
//! reclassified. A packet has the size that the link's discipline counts, plus `overhead`.

use serde::{Deserialize, Serialize};
use units::{BytePace, Time};

/// A policer as the scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerParams {
    /// Rate, bit/s; at least a byte a second.
    pub bps: u64,
    /// The room of the bucket, bytes.
    pub burst_bytes: u64,
    /// The largest packet that may pass, bytes.
    pub mtu_bytes: u32,
    /// Added to the discipline's size of a packet, bytes.
    pub overhead_bytes: u32,
}

/// tc's clock, ns.
const TICK: u128 = 64;

/// The bucket, its tokens in ns.
#[derive(Clone, Debug)]
pub struct Policer {
    pace: BytePace,
    room: i64,
    tokens: i64,
    /// The time at which `tokens` were counted.
    counted: Time,
    largest: u32,
    overhead: u32,
}

impl Policer {
    /// A full bucket.
    pub fn new(params: PolicerParams) -> Policer {
        assert!(params.bps >= 8, "a policer has a rate");
        let ns = u128::from(params.burst_bytes) * 1_000_000_000 / u128::from(params.bps / 8);
        let room = i64::try_from(ns / TICK * TICK).unwrap_or(i64::MAX / 2);
        Policer {
            pace: BytePace::new(params.bps),
            room,
            tokens: room,
            counted: Time::ZERO,
            largest: params.mtu_bytes,
            overhead: params.overhead_bytes,
        }
    }

    /// Whether a packet of `bytes`, as the discipline counts them, may pass now. Called in order of
    /// time.
    #[inline]
    pub fn conforms(&mut self, bytes: u32, now: Time) -> bool {
        if bytes > self.largest {
            return false;
        }
        let since = i64::try_from(now.since(self.counted).0).unwrap_or(i64::MAX);
        let new = since.min(self.room);
        let needed = self.pace.time(u64::from(bytes) + u64::from(self.overhead));
        let left = self.room.min(self.tokens + new) - needed;
        if left < 0 {
            return false;
        }
        (self.tokens, self.counted) = (left, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s: a byte takes 1 µs.
    fn policer(burst_bytes: u64) -> Policer {
        let params =
            PolicerParams { bps: 8_000_000, burst_bytes, mtu_bytes: 2040, overhead_bytes: 0 };
        Policer::new(params)
    }

    #[test]
    fn a_full_bucket_passes_its_burst_at_once_and_then_its_rate() {
        let mut p = policer(4800);
        let passed = (0..5).filter(|_| p.conforms(1500, Time::ZERO)).count();
        assert_eq!(passed, 3, "of 4800 bytes 300 are left");
        assert!(!p.conforms(1500, Time(1_199_999)), "1 ns before there are 1200 more");
        assert!(p.conforms(1500, Time(1_200_000)));
    }

    #[test]
    fn dropped_packets_take_no_tokens() {
        let mut p = policer(1600);
        assert!(p.conforms(1600, Time::ZERO));
        for at in 1..1000 {
            assert!(!p.conforms(1500, Time(at * 1000)));
        }
        assert!(p.conforms(1500, Time(1_500_000)));
    }

    #[test]
    fn a_burst_is_whole_ticks_and_an_idle_bucket_has_no_more() {
        // 1500 bytes are 1 500 000 ns: 23 437 ticks of 64 ns, and 32 ns that are not counted.
        let mut p = policer(1500);
        assert!(!p.conforms(1500, Time::ZERO));
        assert!(!p.conforms(1500, Time(1_000_000_000)));
        assert!(p.conforms(1499, Time(1_000_000_000)));
    }

    #[test]
    fn packets_above_the_mtu_never_pass_and_the_overhead_is_charged() {
        let mut p = policer(1_000_000);
        assert!(!p.conforms(2041, Time::ZERO));
        assert!(p.conforms(2040, Time::ZERO));
        let params = PolicerParams {
            bps: 8_000_000,
            burst_bytes: 1600,
            mtu_bytes: 1500,
            overhead_bytes: 100,
        };
        let mut p = Policer::new(params);
        assert!(p.conforms(1500, Time::ZERO), "the size limit does not include the overhead");
        assert!(!p.conforms(1, Time::ZERO), "1600 bytes are taken");
    }
}
