//! A histogram that also knows when its samples fell: what intervals and charts over time need.

use crate::histogram::Histogram;
use crate::interval::{self, Slot};
use crate::layout::rank;
use crate::sparse::SparseHistogram;

/// Samples in three digits over all, and in slots of time of equal length; beside them, those of whom it is known only
/// that they are larger than every sample (transactions that nobody answered).
#[derive(Clone, Debug, Default)]
pub struct TimedHistogram {
    all: Histogram,
    slots: Vec<SparseHistogram>,
    /// By slot; empty where there are none.
    missing: Vec<u64>,
    missing_in_all: u64,
}

/// The 95 % interval of a quantile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuantileInterval {
    /// Lower end; `None` where the samples cannot give it, or where it is infinite.
    pub low: Option<i64>,
    /// So many are missing that even the lower end is infinite.
    pub low_is_infinite: bool,
    /// Upper end; `None` where the samples cannot give a finite one.
    pub high: Option<i64>,
}

impl QuantileInterval {
    /// Of a quantile that is certainly infinite.
    pub const INFINITE: Self = Self { low: None, low_is_infinite: true, high: None };
}

impl TimedHistogram {
    /// An empty one with `slots` slots.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { slots: vec![SparseHistogram::default(); slots], ..Self::default() }
    }

    /// Adds a sample that fell into `slot`; a slot out of range counts in the whole alone.
    #[inline]
    pub fn record(&mut self, slot: usize, value: i64) {
        self.all.record(value);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.record(value);
        }
    }

    /// Adds the samples of another, slot by slot.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        if other.slots.len() > self.slots.len() {
            self.slots.resize_with(other.slots.len(), SparseHistogram::default);
        }
        for (mine, theirs) in self.slots.iter_mut().zip(&other.slots) {
            mine.merge(theirs);
        }
        for (slot, count) in other.missing.iter().enumerate() {
            self.add_missing(slot, *count);
        }
    }

    /// Says that `count` of a slot are larger than every sample.
    pub fn add_missing(&mut self, slot: usize, count: u64) {
        if count == 0 {
            return;
        }
        if slot >= self.missing.len() {
            self.missing.resize(slot + 1, 0);
        }
        self.missing[slot] += count;
        self.missing_in_all += count;
    }

    /// Samples and those that are missing.
    #[must_use]
    pub const fn count_with_missing(&self) -> u64 {
        self.all.count() + self.missing_in_all
    }

    /// How many of all, the missing among them, rank above the quantile's rank.
    #[must_use]
    pub fn beyond_with_missing(&self, q: f64) -> u64 {
        let all = self.count_with_missing();
        if all == 0 { 0 } else { all - rank(q, all) }
    }

    /// All samples.
    #[must_use]
    pub const fn all(&self) -> &Histogram {
        &self.all
    }

    /// The slots.
    #[must_use]
    pub fn slots(&self) -> &[SparseHistogram] {
        &self.slots
    }

    /// The interval of the mean.
    #[must_use]
    pub fn mean_interval(&self) -> Option<(f64, f64)> {
        let half_width = interval::half_width(&self.sums())?;
        Some(interval::mean_ends(self.all.moments().mean()?, half_width))
    }

    /// Intervals of several quantiles, in the order asked; those that are missing count as infinite.
    #[must_use]
    pub fn quantile_intervals(&self, quantiles: &[f64]) -> Vec<QuantileInterval> {
        let of_the_mean = self.effective_by_mean();
        quantiles.iter().map(|q| self.quantile_interval(*q, of_the_mean)).collect()
    }

    fn quantile_interval(&self, q: f64, of_the_mean: f64) -> QuantileInterval {
        let samples = self.effective(q).min(of_the_mean).min(to_f64(self.count_with_missing()));
        let (low, high) = interval::quantile_ranks(q, samples);
        QuantileInterval {
            low: low.and_then(|p| self.at(p)),
            low_is_infinite: low
                .is_some_and(|p| self.count_with_missing() > 0 && self.at(p).is_none()),
            high: high.and_then(|p| self.at(p)),
        }
    }

    /// The quantile of all; `None` where it is infinite, or where there is nothing.
    fn at(&self, q: f64) -> Option<i64> {
        self.all.at_rank(rank(q, self.count_with_missing()))
    }

    fn missing_of(&self, slot: usize) -> f64 {
        to_f64(self.missing.get(slot).copied().unwrap_or(0))
    }

    /// Effective samples by the indicators `x ≤ v` at `q` and below it: the least of them. A trial that met
    /// few excursions shows too little dependence in its own tail, and enough further down.
    fn effective(&self, q: f64) -> f64 {
        let levels = [0.5, 0.75, 0.9, 0.95, 0.99];
        levels
            .into_iter()
            .filter(|level| *level < q)
            .chain([q])
            .filter_map(|level| self.effective_at(level))
            .fold(f64::INFINITY, f64::min)
    }

    fn effective_at(&self, level: f64) -> Option<f64> {
        let value = self.at(level).or(self.all.moments().max())?;
        let slots: Vec<Slot> = self
            .slots
            .iter()
            .enumerate()
            .map(|(index, slot)| Slot {
                count: to_f64(slot.moments().count()) + self.missing_of(index),
                sum: to_f64(slot.at_most(value)),
            })
            .collect();
        let (count, sum) = slots.iter().fold((0.0, 0.0), |(c, s), x| (c + x.count, s + x.sum));
        let share = sum / count;
        let half_width = interval::half_width(&slots)?;
        // All samples at or below the edge: nothing to learn from this level.
        (share < 1.0).then(|| interval::effective_samples(share * (1.0 - share), half_width))
    }

    fn effective_by_mean(&self) -> f64 {
        let half_width = interval::half_width(&self.sums());
        match (half_width, self.all.moments().variance()) {
            (Some(half_width), Some(variance)) if variance > 0.0 => {
                interval::effective_samples(variance, half_width)
            }
            _ => to_f64(self.all.count()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "sums of one slot")]
    fn sums(&self) -> Vec<Slot> {
        self.slots
            .iter()
            .map(|slot| Slot {
                count: to_f64(slot.moments().count()),
                sum: slot.moments().sum() as f64,
            })
            .collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 samples of 1 to 10 ms over 100 slots, and `missing` more that never came, spread evenly.
    fn with_missing(missing: u64) -> TimedHistogram {
        let mut times = TimedHistogram::new(100);
        for n in 0..10_000_usize {
            let jitter = i64::try_from(n).unwrap() * 7_919 % 9_001;
            times.record(n % 100, 1_000_000 + jitter * 1_000);
        }
        (0..missing).for_each(|n| times.add_missing(usize::try_from(n % 100).unwrap(), 1));
        times
    }

    /// Claim: what is missing counts as infinite in intervals too: with few missing both ends are finite and the upper
    /// one lies higher than without, with 1 % the upper end of p99 is open, with a tenth its lower end is infinite.
    #[test]
    fn intervals_count_the_missing() {
        let p99 = |missing| with_missing(missing).quantile_intervals(&[0.99])[0];
        let (none, few, some, many) = (p99(0), p99(10), p99(101), p99(1_000));
        assert!(none.high < few.high, "{none:?} {few:?}");
        assert!(few.high.is_some() && !few.low_is_infinite, "{few:?}");
        assert!(some.low.is_some() && some.high.is_none(), "{some:?}");
        assert!(many.low.is_none() && many.low_is_infinite && many.high.is_none(), "{many:?}");
        assert_eq!(with_missing(101).count_with_missing(), 10_101);
    }

    /// Claim: merging adds samples and what is missing, slot by slot.
    #[test]
    fn merging_is_adding() {
        let mut both = with_missing(40);
        both.merge(&with_missing(40));
        assert_eq!((both.all().count(), both.count_with_missing()), (20_000, 20_080));
        assert_eq!(both.slots()[3].moments().count(), 200);
        let (of_both, of_one) =
            (both.quantile_intervals(&[0.5])[0], with_missing(40).quantile_intervals(&[0.5])[0]);
        assert!(of_both.low >= of_one.low && of_both.high <= of_one.high, "{of_both:?} {of_one:?}");
    }
}
