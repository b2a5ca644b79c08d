//! A histogram of nanoseconds with three significant digits over the whole range of `i64`, with the exact
//! moments beside it.

use crate::carry::Carry;
use crate::layout::{BUCKETS, THREE_DIGITS, highest_of, index_of, rank};
use crate::moments::Moments;
use crate::percentile_steps::percentile_steps;

/// Counts by bucket (HdrHistogram's layout for three digits), exact count, sum, extremes and variance.
///
/// Negative samples have no bucket there. They are counted apart, rank below all others, and a quantile that
/// falls among them is the smallest sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    negative: u64,
    moments: Moments,
}

impl Histogram {
    /// Adds a sample.
    #[inline]
    pub fn record(&mut self, value: i64) {
        self.moments.add(value);
        self.place(value);
    }

    /// Adds samples: the same as one at a time, for less.
    pub fn record_all(&mut self, values: &[i64]) {
        self.record_with(values, &Moments::of(values));
    }

    /// Adds samples whose moments are known.
    #[inline]
    pub(crate) fn record_with(&mut self, values: &[i64], moments: &Moments) {
        self.moments.merge(moments);
        match (moments.min().map(u64::try_from), moments.max().map(u64::try_from)) {
            (Some(Ok(_)), Some(Ok(max))) => self.place_all(values, max),
            _ => values.iter().for_each(|value| self.place(*value)),
        }
    }

    /// Places samples from 0 to `max`. It grows before, so that the loop looks at nothing but the counts.
    fn place_all(&mut self, values: &[i64], max: u64) {
        let last = index_of(max, THREE_DIGITS);
        if last >= self.counts.len() {
            self.grow(last);
        }
        let counts = self.counts.as_mut_slice();
        for value in values {
            counts[index_of(value.cast_unsigned(), THREE_DIGITS)] += 1;
        }
    }

    #[inline]
    fn place(&mut self, value: i64) {
        let Ok(positive) = u64::try_from(value) else {
            self.negative += 1;
            return;
        };
        let index = index_of(positive, THREE_DIGITS);
        if index >= self.counts.len() {
            self.grow(index);
        }
        self.counts[index] += 1;
    }

    /// Adds a sample that was seen `count` times: what another histogram holds of a bucket.
    pub fn record_n(&mut self, value: i64, count: u64) {
        if count == 0 {
            return;
        }
        self.moments.add_n(value, count);
        let Ok(positive) = u64::try_from(value) else {
            self.negative += count;
            return;
        };
        let index = index_of(positive, THREE_DIGITS);
        if index >= self.counts.len() {
            self.grow(index);
        }
        self.counts[index] += count;
    }

    /// Adds the samples of another.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.negative += other.negative;
        self.moments.merge(&other.moments);
    }

    /// Adds the samples of another, or writes them.
    pub fn carry(&mut self, it: &mut Carry<'_>) {
        it.growing(&mut self.counts, BUCKETS);
        it.sum(&mut self.negative);
        self.moments.carry(it);
    }

    /// Samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Samples below zero.
    #[must_use]
    pub const fn negative(&self) -> u64 {
        self.negative
    }

    /// Exact sums and extremes.
    #[must_use]
    pub const fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The quantile: the smallest recorded value with `count(≤ v) ≥ ceil(q · n)`.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<i64> {
        self.at_rank(rank(q, self.count()))
    }

    /// The value at a rank from 1 to the count.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<i64> {
        if rank == 0 || rank > self.count() {
            return None;
        }
        if rank <= self.negative {
            return self.moments.min();
        }
        let mut seen = self.negative;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                let high = i64::try_from(highest_of(index, THREE_DIGITS)).unwrap_or(i64::MAX);
                return self.moments.max().map(|max| high.min(max));
            }
        }
        self.moments.max()
    }

    /// Points of the percentile curve as HdrHistogram prints them: `ticks` points for each halving of what lies
    /// beyond, from the smallest sample to the largest. Fraction of one and value; ascending.
    #[must_use]
    pub fn curve(&self, ticks: u32) -> Vec<(f64, i64)> {
        let (Some(min), Some(max)) = (self.moments.min(), self.moments.max()) else {
            return Vec::new();
        };
        let total = self.count();
        // Negative samples have no bucket and rank below all others.
        let below = (self.negative > 0).then_some((min, self.negative));
        let slots = below.into_iter().chain(self.buckets());
        let steps = percentile_steps(slots, total, ticks).into_iter();
        let inner = steps.filter(|step| step.q > 0.0 && step.count < total);
        let mut points = vec![(0.0, min)];
        points.extend(inner.map(|step| (step.q, step.value.clamp(min, max))));
        points.push((1.0, max));
        points
    }

    /// Samples that rank above the quantile's rank: `n − ceil(q · n)`.
    #[must_use]
    pub fn beyond(&self, q: f64) -> u64 {
        if self.count() == 0 { 0 } else { self.count() - rank(q, self.count()) }
    }

    /// Buckets that hold samples: largest value of the bucket, count; ascending. Negative samples are not among them.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| {
            (i64::try_from(highest_of(index, THREE_DIGITS)).unwrap_or(i64::MAX), *count)
        })
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        // Whole octaves, so that a rising maximum does not reallocate at each step.
        let octave = 1 << THREE_DIGITS;
        self.counts.resize((index / octave + 1) * octave, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the curve's values are the quantiles at its points, from the smallest sample to the largest, and it
    /// ends where a further point would be the largest sample again.
    #[test]
    fn the_curve_is_the_quantiles() {
        let mut histogram = Histogram::default();
        for value in 1..=100_000_i64 {
            histogram.record(value * value);
        }
        let curve = histogram.curve(5);
        assert_eq!(curve.first(), Some(&(0.0, 1)));
        assert_eq!(curve.last(), Some(&(1.0, 10_000_000_000)));
        assert!(curve.len() > 70 && curve.len() < 120, "{}", curve.len());
        for (q, value) in &curve[1..] {
            assert_eq!(Some(*value), histogram.quantile(*q), "{q}");
        }
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert!(Histogram::default().curve(5).is_empty());
    }

    /// Claim: quantiles of known samples are the samples at the stated rank, within the bucket's width.
    #[test]
    fn known_quantiles() {
        let mut histogram = Histogram::default();
        for value in 1..=10_000_i64 {
            histogram.record(value * 1_000);
        }
        for (q, exact) in [(0.0, 1_000), (0.5, 5_000_000), (0.99, 9_900_000), (0.999, 9_990_000)] {
            let value = histogram.quantile(q).unwrap();
            assert!(value >= exact && value - exact <= exact / 1_000, "q {q}: {value}");
        }
        assert_eq!(histogram.quantile(1.0), Some(10_000_000), "never more than the largest sample");
        assert_eq!(histogram.beyond(0.999), 10);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    /// Claim: negative samples are counted, keep their rank and never become zero.
    #[test]
    fn negative_samples() {
        let mut histogram = Histogram::default();
        for value in [-500_i64, -20, 5, 7] {
            histogram.record(value);
        }
        assert_eq!(histogram.negative(), 2);
        assert_eq!(histogram.quantile(0.25), Some(-500));
        assert_eq!(histogram.quantile(0.75), Some(5));
        assert_eq!(histogram.moments().mean(), Some(-127.0));
    }

    /// Claim: merged histograms equal the histogram of all samples.
    #[test]
    fn merge_is_union() {
        let (mut a, mut b, mut both) = <(Histogram, Histogram, Histogram)>::default();
        for i in 0..5_000_i64 {
            let value = i * i * 37 - 10;
            both.record(value);
            if i % 2 == 0 { a.record(value) } else { b.record(value) }
        }
        a.merge(&b);
        assert_eq!(a.quantile(0.9), both.quantile(0.9));
        assert_eq!(a.moments(), both.moments());
        assert_eq!(a.buckets().collect::<Vec<_>>(), both.buckets().collect::<Vec<_>>());
    }

    /// Claim: indexes are those of HdrHistogram for three digits: the values at which its documentation and
    /// ports place bucket edges (2,048; then steps of 2, 4, 8 …).
    #[test]
    fn hdr_edges() {
        let mut histogram = Histogram::default();
        for value in [2_047_i64, 2_048, 2_049, 2_050, 4_095, 4_096, 4_099, 4_100] {
            histogram.record(value);
        }
        let buckets: Vec<_> = histogram.buckets().collect();
        assert_eq!(
            buckets,
            [(2_047, 1), (2_049, 2), (2_051, 1), (4_095, 1), (4_099, 2), (4_103, 1)]
        );
    }
}
