//! What prio, ets, drr and gred say of their bands or classes.

use super::refused;
use crate::error::TcError;
use crate::grammar::Value;

/// The most that they take (TCQ_PRIO_BANDS, TCQ_ETS_MAX_BANDS).
pub(super) const MOST_BANDS: u64 = 16;
/// Packets of each band: the device's txqueuelen.
pub(super) const USUAL_LIMIT: u64 = 1_000;
/// What a packet's priority can be.
pub(super) const PRIORITIES: usize = 16;

/// Numbers as the simulator reads a list.
pub(super) fn written<T: ToString>(numbers: &[T]) -> Value {
    let written: Vec<String> = numbers.iter().map(T::to_string).collect();
    Value::Text(written.join(" ").into())
}

/// What tc and Linux refuse of a priomap.
pub(super) fn check_map(kind: &str, map: &[u64], bands: u64, hint: &str) -> Result<(), TcError> {
    if map.len() > PRIORITIES {
        let problem =
            format!("{kind}: priomap has {} bands, and there are 16 priorities", map.len());
        return refused(problem, "give 16 bands at most");
    }
    let Some((priority, band)) = map.iter().enumerate().find(|(_, band)| **band >= bands) else {
        return Ok(());
    };
    let problem = format!(
        "{kind}: priority {priority} has band {band} in the priomap, and there are bands 0 to {}",
        bands - 1
    );
    refused(problem, hint)
}
