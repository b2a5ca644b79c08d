//! How many values lie above another, to three digits: all that is kept where neither moments nor quantiles are asked for.

use crate::carry::Carry;
use crate::layout::{BUCKETS, THREE_DIGITS, index_of};

/// Counts by bucket, in HdrHistogram's layout for three digits. What is negative counts as 0.
#[derive(Clone, Debug, Default)]
pub struct BucketCounts {
    counts: Vec<u64>,
}

impl BucketCounts {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: i64) {
        let index = bucket(value);
        if index >= self.counts.len() {
            self.grow(index);
        }
        self.counts[index] += 1;
    }

    /// Values in the bucket of `value` and above it.
    #[must_use]
    pub fn at_least(&self, value: i64) -> u64 {
        self.counts.iter().skip(bucket(value)).sum()
    }

    /// Values in buckets above that of `value`.
    #[must_use]
    pub fn above(&self, value: i64) -> u64 {
        self.counts.iter().skip(bucket(value) + 1).sum()
    }

    /// Adds the values of another, or writes them.
    pub fn carry(&mut self, it: &mut Carry<'_>) {
        it.growing(&mut self.counts, BUCKETS);
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        let octave = 1 << THREE_DIGITS;
        self.counts.resize((index / octave + 1) * octave, 0);
    }
}

#[inline]
fn bucket(value: i64) -> usize {
    index_of(u64::try_from(value).unwrap_or(0), THREE_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what lies above a value is counted to within its bucket, which counts in the one and not in the other.
    #[test]
    fn counts_above() {
        let mut counts = BucketCounts::default();
        (1..=10_000_i64).for_each(|value| counts.record(value * 1_000));
        assert_eq!((counts.at_least(0), counts.at_least(-1)), (10_000, 10_000));
        let (at_least, above) = (counts.at_least(9_990_000), counts.above(9_990_000));
        assert!((11..=19).contains(&at_least) && (2..=10).contains(&above), "{at_least} {above}");
        assert_eq!((counts.at_least(20_000_000), counts.above(20_000_000)), (0, 0));
    }
}
