//! The common words for bands and classes of prio, ets, drr and gred.

use super::refused;
use crate::error::TcError;
use crate::grammar::Value;

/// The largest number of bands (TCQ_PRIO_BANDS, TCQ_ETS_MAX_BANDS).
pub(super) const MOST_BANDS: u64 = 16;
/// The limit of each band, packets: the device's txqueuelen.
pub(super) const USUAL_LIMIT: u64 = 1_000;
/// The number of priorities.
pub(super) const PRIORITIES: usize = 16;

/// Numbers as a list that the simulator reads.
pub(super) fn written<T: ToString>(numbers: &[T]) -> Value {
    let written: Vec<String> = numbers.iter().map(T::to_string).collect();
    Value::Text(written.join(" ").into())
}

/// Refuses a priomap that tc or Linux refuses.
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
