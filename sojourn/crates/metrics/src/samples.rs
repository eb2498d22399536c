//! Samples and histograms of them: quantiles, means, sums.

use crate::ratio;

/// A longer one-way delay than this is late. Up to here a call is hardly impaired (ITU-T G.114,
/// 2003).
pub const LATE_MS: f64 = 150.0;
/// The reported quantiles and their names.
pub const QUANTILES: [(&str, f64); 3] = [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)];

/// The distribution of samples; NaN without a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Distribution {
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// min, mean, p50, p95, p99 and max of samples.
pub fn distribution(values: &[f64]) -> Distribution {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let [p50, p95, p99] = QUANTILES.map(|(_, q)| quantile(&sorted, q));
    let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
    let mean =
        if values.is_empty() { f64::NAN } else { pairwise_sum(values) / values.len() as f64 };
    Distribution { min: end(sorted.first()), mean, p50, p95, p99, max: end(sorted.last()) }
}

/// The q-quantile of ascending samples, linear between them; NaN without a sample.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q * last as f64;
    let below = libm::floor(place) as usize;
    let (low, high) = (sorted[below.min(last)], sorted[(below + 1).min(last)]);
    let part = place - below as f64;
    // From the nearer end, so that a quantile of equal samples is that sample.
    if part >= 0.5 { high - (high - low) * (1.0 - part) } else { low + (high - low) * part }
}

/// The q-quantile of a histogram (start of a bin, start of the next bin, count), linear inside a
/// bin; NaN if it is empty.
///
/// Two bins, 0..10 and 10..30 ns, with 3 and 1 samples: 2 of the 4 lie below the median 0 + 10 *
/// 2/3.
pub fn histogram_quantile(bins: &[(u64, u64, u64)], q: f64) -> f64 {
    let mut filled: Vec<_> = bins.iter().copied().filter(|bin| bin.2 > 0).collect();
    filled.sort_unstable_by_key(|bin| bin.0);
    let total: f64 = filled.iter().map(|bin| bin.2 as f64).sum();
    let wanted = q * total;
    let mut below = 0.0;
    for (lower, upper, count) in filled {
        let count = count as f64;
        if below + count >= wanted {
            let (low, high) = (lower as f64, upper as f64);
            return low + (high - low) * ((wanted - below) / count);
        }
        below += count;
    }
    f64::NAN
}

/// The share of packets that took longer than the bound, linear inside a bin, or were lost; NaN
/// without a packet. For example, with a bound of 150 ms, 90 packets that took 100 to 200 ms and 10
/// that were lost give 45 + 10 late packets: 0.55.
pub fn late_rate(bins: &[(u64, u64, u64)], lost: f64, bound_ms: f64) -> f64 {
    let bound = bound_ms * 1e6;
    let received: f64 = bins.iter().map(|bin| bin.2 as f64).sum();
    let late: Vec<f64> = bins
        .iter()
        .map(|&(lower, upper, count)| {
            let above = (upper as f64 - bound) / (upper - lower) as f64;
            count as f64 * above.clamp(0.0, 1.0)
        })
        .collect();
    ratio(pairwise_sum(&late) + lost, received + lost)
}

/// A sum whose error grows with the logarithm of the number of values. Halves are summed
/// separately, and blocks of up to 128 in eight strands (as in NumPy, bit for bit).
pub(crate) fn pairwise_sum(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 8 {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if n <= 128 {
        let mut strands: [f64; 8] = values[..8].try_into().expect("eight of them");
        let blocks = values[8..].chunks_exact(8);
        let rest = blocks.remainder();
        for block in blocks {
            strands.iter_mut().zip(block).for_each(|(strand, value)| *strand += value);
        }
        let [a, b, c, d, e, f, g, h] = strands;
        return rest
            .iter()
            .fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, value| sum + value);
    }
    let half = n / 2 - n / 2 % 8;
    pairwise_sum(&values[..half]) + pairwise_sum(&values[half..])
}

/// The sum, rounded once: Shewchuk (1997), "Adaptive precision floating-point arithmetic", section
/// 2.4. With a NaN or an infinity among the values the sum is one, too.
pub fn exact_sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut parts: Vec<f64> = Vec::new();
    let mut special = 0.0;
    for mut x in values {
        if !x.is_finite() {
            special += x;
            continue;
        }
        let mut count = 0;
        for at in 0..parts.len() {
            let mut y = parts[at];
            if x.abs() < y.abs() {
                (x, y) = (y, x);
            }
            let high = x + y;
            let low = y - (high - x);
            if low != 0.0 {
                parts[count] = low;
                count += 1;
            }
            x = high;
        }
        parts.truncate(count);
        parts.push(x);
    }
    if special != 0.0 {
        return special;
    }
    let Some(mut high) = parts.pop() else { return 0.0 };
    // Adds from the largest part down until bits are lost. If the lost bits are exactly half of the
    // last place, the sign of the remaining parts decides how it is rounded.
    let mut low = 0.0;
    while let Some(part) = parts.pop() {
        let before = high;
        high = before + part;
        low = part - (high - before);
        if low != 0.0 {
            break;
        }
    }
    if let Some(&next) = parts.last()
        && ((low < 0.0 && next < 0.0) || (low > 0.0 && next > 0.0))
    {
        let twice = low * 2.0;
        let further = high + twice;
        if twice == further - high {
            high = further;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_samples_in_proportion() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[5.0], 0.99), 5.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_histograms_median_lies_inside_a_bin() {
        let bins = [(10, 30, 1), (0, 10, 3)];
        assert_eq!(histogram_quantile(&bins, 0.5), 10.0 * (2.0 / 3.0));
        assert!(histogram_quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_quantile_at_the_end_of_a_bin_is_that_end_and_not_where_the_next_bin_begins() {
        // Half of the samples are below 10; no sample is between 10 and 20.
        let bins = [(0, 10, 2), (20, 30, 2)];
        assert_eq!(histogram_quantile(&bins, 0.5), 10.0);
        assert_eq!(histogram_quantile(&bins, 1.0), 30.0);
    }

    #[test]
    fn lost_packets_count_as_late() {
        assert_eq!(late_rate(&[(100_000_000, 200_000_000, 90)], 10.0, LATE_MS), 0.55);
        assert!(late_rate(&[], 0.0, LATE_MS).is_nan());
    }

    #[test]
    fn an_exact_sum_has_no_rounding_error() {
        assert_eq!(exact_sum([1e16, 1.0, -1e16]), 1.0);
        assert_eq!(exact_sum([0.1; 10]), 1.0);
        assert!(exact_sum([1.0, f64::NAN]).is_nan());
        assert_eq!(exact_sum([]), 0.0);
    }
}
