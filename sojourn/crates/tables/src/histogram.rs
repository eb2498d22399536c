//! A streaming histogram of times: log-linear buckets, exact mean, minimum and maximum.
//!
//! Below 128 ns a bucket is one nanosecond; above, each power of two is split into 128 buckets, so
//! a bucket is never wider than 0.8 % of its values. Memory covers only the range of the values.

/// Buckets for each power of two.
const PER_OCTAVE_BITS: u32 = 7;

/// Counts of times in ns.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Index of `counts[0]`.
    first: usize,
    counts: Vec<u64>,
    /// Number of values.
    pub count: u64,
    /// Their sum, ns: a thousand packets that wait for a year exceed 2^64.
    pub sum: u128,
    /// The maximum, ns.
    pub max: u64,
    /// The minimum, ns; undefined while `count` is 0.
    pub min: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { first: 0, counts: Vec::new(), count: 0, sum: 0, max: 0, min: u64::MAX }
    }
}

/// The totals of several values of which a histogram has counted only the buckets. Their sum is
/// below 2^64 ns.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// Number of values.
    pub count: u64,
    /// Their sum, ns.
    pub sum: u64,
    /// The maximum, ns.
    pub max: u64,
    /// The minimum, ns.
    pub min: u64,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { count: 0, sum: 0, max: 0, min: u64::MAX }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let mut one = Batch::default();
        self.add_to_batch(&mut one, value);
        self.end_batch(one);
    }

    /// Counts one value of a batch; `end_batch` completes it.
    #[inline(always)]
    pub fn add_to_batch(&mut self, batch: &mut Batch, value: u64) {
        batch.count += 1;
        batch.sum += value;
        batch.max = batch.max.max(value);
        batch.min = batch.min.min(value);
        let index = bucket(value);
        match self.counts.get_mut(index.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.grow_and_count(index),
        }
    }

    /// Adds the totals of a batch.
    #[inline]
    pub fn end_batch(&mut self, batch: Batch) {
        self.count += batch.count;
        self.sum += u128::from(batch.sum);
        // Branches that are rarely taken.
        if batch.max > self.max {
            self.max = batch.max;
        }
        if batch.min < self.min {
            self.min = batch.min;
        }
    }

    /// Removes all values; keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum, self.max, self.min) = (0, 0, 0, u64::MAX);
    }

    /// The buckets with values: (least value, least value of the next bucket, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, &count)| {
            let index = self.first + i;
            (lower(index), lower(index + 1), count)
        })
    }

    #[cold]
    fn grow_and_count(&mut self, index: usize) {
        // The range grows by whole powers of two, so that growth is rare.
        let octave = 1 << PER_OCTAVE_BITS;
        if self.counts.is_empty() {
            self.first = index / octave * octave;
        }
        if index < self.first {
            let first = index / octave * octave;
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - first));
            self.first = first;
        }
        let needed = (index - self.first) / octave * octave + octave;
        if needed > self.counts.len() {
            self.counts.resize(needed, 0);
        }
        self.counts[index - self.first] += 1;
    }
}

/// The number of the bucket of a time in ns.
#[inline]
pub fn bucket(value: u64) -> usize {
    if value < 1 << PER_OCTAVE_BITS {
        return value as usize;
    }
    let exponent = value.ilog2() - PER_OCTAVE_BITS;
    ((u64::from(exponent) << PER_OCTAVE_BITS) + (value >> exponent)) as usize
}

/// The least time of a bucket, ns.
pub fn lower(index: usize) -> u64 {
    let octave = 1usize << PER_OCTAVE_BITS;
    if index < octave {
        return index as u64;
    }
    let exponent = index / octave - 1;
    let mantissa = (index % octave + octave) as u128;
    u64::try_from(mantissa << exponent).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        for value in (0..2000).chain((0..57).map(|e| (1u64 << e) + (1 << e) / 3)).chain([u64::MAX])
        {
            let index = bucket(value);
            assert!(
                lower(index) <= value && (value < lower(index + 1) || value == u64::MAX),
                "{value}"
            );
            let width = lower(index + 1) - lower(index);
            assert!(width <= 1 || width as f64 <= 0.0079 * value as f64, "{value} {width}");
        }
    }

    #[test]
    fn a_batch_is_counted_like_its_single_values() {
        let (mut each, mut batched) = (Histogram::default(), Histogram::default());
        for batch in [&[70_u64, 5_000_000, 12][..], &[], &[1_000_000, 3]] {
            let mut totals = Batch::default();
            for &value in batch {
                each.add(value);
                batched.add_to_batch(&mut totals, value);
            }
            batched.end_batch(totals);
            assert_eq!(format!("{batched:?}"), format!("{each:?}"));
        }
    }

    #[test]
    fn growth_in_both_directions_keeps_the_counts() {
        let mut h = Histogram::default();
        for value in [1_000_000, 50, 2_000_000_000, 1_000_000] {
            h.add(value);
        }
        let counted: Vec<_> =
            h.buckets().map(|(lo, hi, n)| ((lo..hi).contains(&1_000_000), n)).collect();
        assert_eq!(counted, [(false, 1), (true, 2), (false, 1)]);
        assert_eq!((h.count, h.sum, h.min, h.max), (4, 2_002_000_050, 50, 2_000_000_000));
    }
}
