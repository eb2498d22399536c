//! Means and their 95 % confidence intervals (Student's t, Welch's).

use crate::samples::exact_sum;

/// A mean, and half the width of its 95 % confidence interval; NaN: not known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Spread {
    pub mean: f64,
    pub ci95: f64,
}

/// A number with its 95 % interval; NaN: not known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    fn around(value: f64, half: f64) -> Interval {
        Interval { value, low: value - half, high: value + half }
    }
}

/// Mean and half the width of its interval; NaN values are left out.
///
/// 3, 4, 5: mean 4, s = 1, t(0.975, 2) = 4.303, so ci95 = 4.303 / sqrt(3) = 2.484.
pub fn mean_ci95(values: &[f64]) -> Spread {
    let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    if known.is_empty() {
        return Spread { mean: f64::NAN, ci95: f64::NAN };
    }
    let n = known.len() as f64;
    let mean = exact_sum(known.iter().copied()) / n;
    if known.len() < 2 {
        return Spread { mean, ci95: f64::NAN };
    }
    let variance = exact_sum(known.iter().map(|value| (value - mean) * (value - mean))) / (n - 1.0);
    Spread { mean, ci95: student_t975(known.len() as u64 - 1) * libm::sqrt(variance / n) }
}

/// The mean of repeats with Student's t interval. 3, 4, 5: 4, from 1.516 to 6.484.
pub fn over_repeats(values: &[f64]) -> Interval {
    let Spread { mean, ci95 } = mean_ci95(values);
    Interval::around(mean, ci95)
}

/// after - before of independent repeats: Welch's interval, its degrees of freedom rounded down.
///
/// 1, 2, 3 and 11, 12, 13: 10; both variances 1, so the standard error is sqrt(2/3) and there are 4
/// degrees of freedom: 10 -+ 2.776 * 0.8165.
pub fn welch(before: &[f64], after: &[f64]) -> Interval {
    let mean = |values: &[f64]| exact_sum(values.iter().copied()) / values.len() as f64;
    let (from, to) = (mean(before), mean(after));
    let difference = to - from;
    if before.len().min(after.len()) < 2 {
        return Interval { value: difference, low: f64::NAN, high: f64::NAN };
    }
    let share = |values: &[f64], mean: f64| {
        let squares = exact_sum(values.iter().map(|value| (value - mean) * (value - mean)));
        squares / (values.len() - 1) as f64 / values.len() as f64
    };
    let shares = [share(before, from), share(after, to)];
    let sum = shares[0] + shares[1];
    if sum == 0.0 {
        return Interval::around(difference, 0.0);
    }
    let spread = shares[0] * shares[0] / (before.len() - 1) as f64
        + shares[1] * shares[1] / (after.len() - 1) as f64;
    // At equal variances the quotient is a whole number, except for rounding.
    let freedom = libm::floor(sum * sum / spread + 1e-9).max(1.0);
    Interval::around(difference, student_t975(freedom as u64) * libm::sqrt(sum))
}

/// The 0.975 quantile of Student's t distribution, by bisection of its closed form for whole
/// degrees of freedom (at least one).
pub fn student_t975(degrees: u64) -> f64 {
    // t(0.975, 1) = 12.706 is the largest.
    let (mut low, mut high) = (0.0, 16.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if central(middle, degrees.max(1)) < 0.95 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// P(-t < T < t): Abramowitz and Stegun 26.7.3 (odd degrees of freedom) and 26.7.4 (even).
fn central(t: f64, degrees: u64) -> f64 {
    let angle = libm::atan(t / libm::sqrt(degrees as f64));
    let cosine2 = libm::cos(angle) * libm::cos(angle);
    let odd = degrees % 2;
    let mut term = if odd == 1 { libm::cos(angle) } else { 1.0 };
    let mut total = 0.0;
    let mut k = 1 + odd;
    while k < degrees {
        total += term;
        term *= cosine2 * k as f64 / (k + 1) as f64;
        k += 2;
    }
    if odd == 1 {
        return std::f64::consts::FRAC_2_PI * (angle + libm::sin(angle) * total);
    }
    libm::sin(angle) * total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (degrees, value) in
            [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)]
        {
            assert!((student_t975(degrees) - value).abs() < 6e-4, "{degrees}");
        }
    }

    #[test]
    fn the_interval_of_a_mean_equals_that_computed_by_hand() {
        let computed = mean_ci95(&[3.0, 4.0, f64::NAN, 5.0]);
        assert_eq!(computed.mean, 4.0);
        assert!((computed.ci95 - 2.484).abs() < 5e-4);
        assert!(mean_ci95(&[7.0]).ci95.is_nan() && mean_ci95(&[]).mean.is_nan());
    }

    #[test]
    fn welchs_interval_equals_that_computed_by_hand() {
        let computed = welch(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0]);
        assert_eq!(computed.value, 10.0);
        assert!((computed.high - 10.0 - 2.776 * 0.8165).abs() < 1e-3);
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]).low, 1.0);
        assert!(welch(&[1.0], &[2.0, 3.0]).low.is_nan());
    }
}
