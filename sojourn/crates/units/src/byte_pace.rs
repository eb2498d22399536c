//! The transmission time of bytes at a rate, in the integers of Linux's token buckets.
//!
//! A product and a shift replace a division per packet. The factor has 32 bits and is the largest
//! one below 10⁹ · 2ⁿ / rate. A packet's time is rounded down to whole ns.
//!
//! Source: Linux net/sched/sch_generic.c (6.12), psched_ratecfg.

/// The time of a byte at a rate.
#[derive(Clone, Copy, Debug)]
pub struct BytePace {
    factor: u64,
    shift: u32,
}

impl BytePace {
    /// The pace of a rate in bit/s. Linux counts whole bytes a second.
    pub fn new(bps: u64) -> BytePace {
        let rate = u128::from((bps / 8).max(1));
        let mut pace = BytePace { factor: 0, shift: 0 };
        loop {
            let scaled = 1_000_000_000u128 << pace.shift;
            pace.factor = (scaled / rate) as u64;
            // Stops when the factor has 32 bits, or when 10⁹ · 2ⁿ fills 64 bits.
            if pace.factor >> 31 & 1 == 1 || scaled >> 63 == 1 {
                return pace;
            }
            pace.shift += 1;
        }
    }

    /// The time of `bytes`, ns.
    #[inline]
    pub fn time(self, bytes: u64) -> i64 {
        ((u128::from(bytes) * u128::from(self.factor)) >> self.shift) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_at_a_rate_is_rounded_as_in_linux() {
        // 1 Mbit/s: 4194304000 >> 19 is 8000 ns a byte.
        let pace = BytePace::new(1_000_000);
        assert_eq!((pace.factor, pace.shift, pace.time(1514)), (4_194_304_000, 19, 12_112_000));
        // 10 Mbit/s and a byte/s more: 799.9994 ns a byte.
        assert_eq!(BytePace::new(10_000_008).time(1514), 1_211_199);
    }

    #[test]
    fn whole_quotients_are_exact_and_others_are_rounded_down() {
        assert_eq!(BytePace::new(8_000_000).time(1500), 1_500_000, "a byte takes a microsecond");
        // 1500 bytes at 10 Gbit/s take 1.2 µs, minus the error of the factor's last bit.
        assert!((1199..=1200).contains(&BytePace::new(10_000_000_000).time(1500)));
        // 3 bit/s are less than a byte a second, and count as one.
        assert_eq!(BytePace::new(3).time(1), 1_000_000_000);
    }
}
