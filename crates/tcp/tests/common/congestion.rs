//! Every congestion control, for the laws of this crate and of `sim`.

use proptest::prelude::*;
use tcp::CongestionKind;

/// Any of them.
pub fn any() -> impl Strategy<Value = CongestionKind> {
    prop::sample::select(CongestionKind::ALL)
}
