//! Numbers from tables: pure functions, and the numbers of a seed.
//!
//! All numbers leave the warm-up out: an engine's totals and histograms already do, time lines are
//! cut here. T is the rest, duration minus warm-up. Rates are fractions (0..1), times ms, goodput
//! Mbit/s (10^6). A number without a value (no sample, no rate limit) is NaN.
//!
//! | number | meaning |
//! |---|---|
//! | utilisation | bits on the wire / bits the link could have carried in T |
//! | goodput | bytes handed to the receiving application in T, times 8, / T |
//! | sojourn | mean: sum / packets. p50, p95, p99: from the histogram, linear inside a bin |
//! | drop_rate | dropped / arrived packets, at the queue |
//! | loss_rate | lost / (lost + received) packets: packets in flight at the end do not count |
//! | jain | (sum x)^2 / (n sum x^2) over the goodput x of the endless TCP flows (Jain, Chiu, Hawe 1984) |
//! | late_rate | datagrams that arrived later than `LATE_MS` after they were sent, or never / all datagrams |
//! | mean, ci95 | over seeds: mean, and half the width of its 95 % confidence interval (Student's t) |

mod encoding;
mod intervals;
mod samples;
mod seed;
mod value;
mod voice;

pub use intervals::{Interval, Spread, mean_ci95, over_repeats, student_t975, welch};
pub use samples::{
    Distribution, LATE_MS, QUANTILES, distribution, exact_sum, histogram_quantile, late_rate,
    quantile,
};
pub use seed::{About, FlowAbout, LinkAbout, Seed, Tables, of_seed};
pub use value::{Value, over_seeds};

/// part / whole; NaN if the whole is 0.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { f64::NAN } else { part / whole }
}

/// Bits on the wire over the bits the link could have carried; NaN for a link without a rate limit,
/// and for bytes that were not counted.
///
/// A packet counts when its transmission begins, so the last one may extend beyond the end: up to
/// one packet more than the link could have carried is 1. A greater share is due to a shaper, which
/// lets its burst pass, and framing that it does not charge, on top of its rate.
pub fn utilisation(wire_bytes: f64, capacity_bits: Option<f64>) -> f64 {
    match capacity_bits {
        // `min` would return its other operand for a NaN.
        _ if wire_bytes.is_nan() => f64::NAN,
        None | Some(0.0) => f64::NAN,
        Some(capacity) if wire_bytes * 8.0 <= capacity + 8.0 * LONGEST_PACKET => {
            (wire_bytes * 8.0 / capacity).min(1.0)
        }
        Some(capacity) => wire_bytes * 8.0 / capacity,
    }
}

/// The longest IP packet, bytes.
const LONGEST_PACKET: f64 = 65_535.0;

/// Application bytes as Mbit/s (10^6).
pub fn goodput_mbps(delivered_bytes: f64, measured_s: f64) -> f64 {
    ratio(delivered_bytes * 8.0 / 1e6, measured_s)
}

/// Jain's fairness index: 1 if all shares are equal, 1/n if one has everything; NaN without any
/// share.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) =
        shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    ratio(sum * sum, shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_s_index_is_a_quarter_if_one_of_four_flows_has_everything() {
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[3.0, 3.0]), 1.0);
        assert!(jain(&[]).is_nan());
    }

    #[test]
    fn utilisation_is_at_most_1_unless_the_shaper_undercharges_and_nan_without_a_rate() {
        assert_eq!(utilisation(500.0, Some(8000.0)), 0.5);
        // The last packet extends beyond the end.
        assert_eq!(utilisation(1500.0, Some(8000.0)), 1.0);
        // 1.06 Mbyte in cells of 53 bytes, of which a shaper at 8 Mbit/s charged 48.
        assert_eq!(utilisation(1_380_000.0, Some(8e6)), 1.38);
        assert!(utilisation(1500.0, None).is_nan());
        assert!(utilisation(f64::NAN, Some(8000.0)).is_nan());
    }
}
