//! The largest value of a sliding window, in constant space.
//!
//! Three candidates are kept: the largest, the largest after it, and the largest after that. When
//! the first leaves the window, the second takes its place. Where nothing better comes, the second
//! and third are renewed after a quarter and a half of the window, so that they are not all old.
//!
//! Source: Kathleen Nichols' algorithm, as in Linux's lib/win_minmax.c, whose results it has.

/// A value, and when it was seen: in rounds or in time, as the user counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    at: u32,
    value: u64,
}

/// The largest of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax([Seen; 3]);

impl WindowedMax {
    /// The largest.
    pub fn get(&self) -> u64 {
        self.0[0].value
    }

    /// Takes in `value`, seen at `at`, and forgets what was seen more than `window` before.
    pub fn update(&mut self, value: u64, at: u32, window: u32) {
        let new = Seen { at, value };
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

    fn age(&mut self, new: Seen, window: u32) {
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
    fn the_largest_leaves_after_the_window() {
        let mut values: Vec<(u32, u64)> = (0..=14).map(|at| (at, 50)).collect();
        (values[0].1, values[3].1) = (100, 90);
        // 100 counts up to round 10, then 90 up to 13.
        assert_eq!(after(&values)[9..], [100, 100, 90, 90, 90, 50]);
    }

    #[test]
    fn no_value_within_the_window_is_exceeded_and_a_pause_forgets_all() {
        let mut rng = units::Rng::new(1, "max");
        let values: Vec<(u32, u64)> = (0..500).map(|at| (at, rng.below(1000))).collect();
        let of_window = |end: usize| {
            values[end.saturating_sub(10)..=end].iter().map(|&(_, value)| value).max().unwrap()
        };
        let found = after(&values);
        // Three candidates can't tell all: what they give is never above the largest, and the newest
        // value is never above it.
        for (end, &largest) in found.iter().enumerate() {
            assert!(largest <= of_window(end) && largest >= values[end].1, "round {end}");
        }
        assert_eq!(after(&[(0, 100), (11, 5)]), [100, 5]);
    }
}
