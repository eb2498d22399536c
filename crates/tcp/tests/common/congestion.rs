//! Every congestion control, for the laws of this crate and of `sim`.

use proptest::prelude::*;
use tcp::CongestionKind::{self, Cubic, Ledbat, Reno, Vegas};

const ALL: [CongestionKind; 4] = [Reno, Cubic, Vegas, Ledbat];

/// Any of them.
pub fn any() -> impl Strategy<Value = CongestionKind> {
    prop::sample::select(ALL.as_slice())
}

/// Compiles while every kind has an arm: a new one gets its own here, and its place in `ALL`.
const _: fn(CongestionKind) = |kind| match kind {
    Reno | Cubic | Vegas | Ledbat => {}
};
