//! The largest value of a sliding window, in constant space.
//!
//! Three candidates are stored: the largest, the largest after it, and the largest after that. When
//! the first leaves the window, the second replaces it. If no larger value follows, the second and
//! third are renewed after a quarter and a half of the window, so that not all candidates are old.
//!
//! Source: Kathleen Nichols' algorithm, as in Linux's lib/win_minmax.c. The results are the same.

/// A value and its time, in rounds or in any other unit of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    at: u32,
    value: u64,
}

/// The largest value of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax([Sample; 3]);

impl WindowedMax {
    /// The largest value.
    pub fn get(&self) -> u64 {
        self.0[0].value
    }

    /// Adds `value` at the time `at`, and drops values that are more than `window` older.
    pub fn update(&mut self, value: u64, at: u32, window: u32) {
        let new = Sample { at, value };
        let [first, second, third] = &mut self.0;
        if value >= first.value || at - third.at > window {
            self.0 = [new; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        self.age(new, window);
    }

    fn age(&mut self, new: Sample, window: u32) {
        let [first, second, third] = self.0;
        let passed = new.at - first.at;
        if passed > window {
            self.0 = [second, third, new];
            if new.at - second.at > window {
                self.0 = [third, new, new];
            }
        } else if second.at == first.at && passed > window / 4 {
            self.0 = [first, new, new];
        } else if third.at == second.at && passed > window / 2 {
            self.0[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(values: &[(u32, u64)]) -> Vec<u64> {
        let mut max = WindowedMax::default();
        values
            .iter()
            .map(|&(at, value)| {
                max.update(value, at, 10);
                max.get()
            })
            .collect()
    }

    #[test]
    fn the_maximum_expires_after_the_window() {
        let mut values: Vec<(u32, u64)> = (0..=14).map(|at| (at, 50)).collect();
        (values[0].1, values[3].1) = (100, 90);
        // 100 is the largest up to round 10, then 90 up to round 13.
        assert_eq!(after(&values)[9..], [100, 100, 90, 90, 90, 50]);
    }

    #[test]
    fn no_value_within_the_window_exceeds_the_maximum_and_a_pause_resets_it() {
        let mut rng = units::Rng::new(1, "max");
        let values: Vec<(u32, u64)> = (0..500).map(|at| (at, rng.below(1000))).collect();
        let of_window = |end: usize| {
            values[end.saturating_sub(10)..=end].iter().map(|&(_, value)| value).max().unwrap()
        };
        let maxima = after(&values);
        // Three candidates are not exact: their result is never above the largest value, and never
        // below the newest.
        for (end, &largest) in maxima.iter().enumerate() {
            assert!(largest <= of_window(end) && largest >= values[end].1, "round {end}");
        }
        assert_eq!(after(&[(0, 100), (11, 5)]), [100, 5]);
    }
}
