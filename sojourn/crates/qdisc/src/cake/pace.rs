//! The bytes that a packet is charged, and the time that they take: cake's shaper without its
//! clocks.
//!
//! The time of a packet in ns is `rate_ns * bytes >> shift`. `rate_ns` is the time of a byte times
//! 2^shift, with the largest shift up to 34 for which it has at most 34 bits.

use super::{CakeCells, CakeParams};

/// A rate, as the time of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    rate_ns: u64,
    shift: u32,
}

/// Linux's least rate, bytes/s.
const LEAST_RATE: u64 = 64;
const BITS: u32 = 34;

impl Pace {
    /// The pace of a rate in bytes/s; 0: unlimited.
    pub(super) fn new(rate: u64) -> Pace {
        if rate == 0 {
            return Pace { rate_ns: 0, shift: 0 };
        }
        let per_byte = (1_000_000_000u64 << BITS) / rate.max(LEAST_RATE);
        let surplus = (u64::BITS - BITS).saturating_sub(per_byte.leading_zeros());
        Pace { rate_ns: per_byte >> surplus, shift: BITS - surplus }
    }

    pub(super) fn is_unlimited(self) -> bool {
        self.rate_ns == 0
    }

    /// The time that these bytes take, ns.
    #[inline]
    pub(super) fn time(self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.rate_ns) >> self.shift
    }
}

/// The conversion from a packet's size to the bytes that it is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The bytes added to a packet's size. Unless `raw`, the link's header is subtracted.
    added: i64,
    least: i64,
    cells: CakeCells,
}

impl Sizes {
    pub(super) fn new(params: &CakeParams, header: u32) -> Sizes {
        let CakeParams { raw, overhead, mpu, cells, .. } = *params;
        let counted = if raw { 0 } else { i64::from(header) };
        Sizes { added: overhead - counted, least: i64::from(mpu), cells }
    }

    /// The bytes that a packet is charged.
    #[inline]
    pub(super) fn adjusted(self, size: u32) -> u32 {
        let bytes = (i64::from(size) + self.added).max(self.least).max(0) as u32;
        match self.cells {
            CakeCells::Noatm => bytes,
            CakeCells::Atm => bytes.div_ceil(48) * 53,
            CakeCells::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}
