//! A histogram that also knows when its samples fell: what intervals and charts over time need.

use crate::candidates::Candidates;
use crate::carry::Carry;
use crate::float::of_count;
use crate::histogram::Histogram;
use crate::interval::{self, Slot};
use crate::layout::rank;
use crate::level::Level;
use crate::moments::Moments;
use crate::quantile_interval::QuantileInterval;
use crate::sparse::SparseHistogram;

/// Samples in three digits over all, and in slots of time of equal length; beside them, those of whom it is known only
/// that they are larger than every sample (transactions without an answer).
#[derive(Clone, Debug, Default)]
pub struct TimedHistogram {
    all: Histogram,
    slots: Vec<SparseHistogram>,
    /// By slot; empty where there are none.
    missing: Vec<u64>,
    missing_in_all: u64,
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

    /// Adds samples that fell into one slot: the same as one at a time, for less.
    pub fn record_all(&mut self, slot: usize, values: &[i64]) {
        let moments = Moments::of(values);
        self.all.record_with(values, &moments);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.record_with(values, &moments);
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

    /// Adds the samples of another with as many slots, or writes them; of those that are missing it says nothing.
    pub fn carry(&mut self, it: &mut Carry<'_>) {
        self.all.carry(it);
        self.slots.iter_mut().for_each(|slot| slot.carry(it));
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

    /// How many of a slot are larger than every sample.
    pub(crate) fn missing_of(&self, slot: usize) -> u64 {
        self.missing.get(slot).copied().unwrap_or(0)
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
        let Some(candidates) = Candidates::of(&self.slots, &self.missing) else {
            return vec![QuantileInterval::default(); quantiles.len()];
        };
        let (min, max) = (self.all.moments().min(), self.all.moments().max());
        let within = |value: i64| value.clamp(min.unwrap_or(value), max.unwrap_or(value));
        let ends = |q: &f64| {
            let ends = candidates.interval(*q);
            QuantileInterval { low: ends.low.map(within), high: ends.high.map(within), ..ends }
        };
        quantiles.iter().map(ends).collect()
    }

    /// The levels below which these shares of all lie, the missing among them; `None` without samples.
    pub(crate) fn levels(&self, shares: &[f64]) -> Option<Vec<Level>> {
        Some(Candidates::of(&self.slots, &self.missing)?.levels(shares))
    }

    #[expect(clippy::cast_precision_loss, reason = "sums of one slot")]
    fn sums(&self) -> Vec<Slot> {
        self.slots
            .iter()
            .map(|slot| Slot {
                count: of_count(slot.moments().count()),
                sum: slot.moments().sum() as f64,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 samples of 1 to 10 ms over 100 slots, and `missing` more that never came, spread evenly.
    fn with_missing(missing: u64) -> TimedHistogram {
        let mut times = TimedHistogram::new(100);
        for n in 0..10_000_usize {
            let jitter =
                i64::from(u32::try_from(n).unwrap().wrapping_mul(2_654_435_761) >> 12) % 9_001;
            times.record(n % 100, 1_000_000 + jitter * 1_000);
        }
        (0..missing).for_each(|n| times.add_missing(usize::try_from(n * 37 % 100).unwrap(), 1));
        times
    }

    /// Claim: what is missing counts as infinite in intervals too: with few missing both ends are finite and the upper
    /// one no lower than without, with 1 % the upper end of p99 is open, with a tenth its lower end is infinite.
    #[test]
    fn intervals_count_the_missing() {
        let p99 = |missing| with_missing(missing).quantile_intervals(&[0.99])[0];
        let (none, few, some, many) = (p99(0), p99(30), p99(101), p99(1_000));
        assert!(none.high <= few.high, "{none:?} {few:?}");
        assert!(few.high.is_some() && !few.low_is_infinite, "{few:?}");
        assert!(some.low.is_some() && some.high.is_none(), "{some:?}");
        assert!(many.low.is_none() && many.low_is_infinite && many.high.is_none(), "{many:?}");
        assert_eq!(with_missing(101).count_with_missing(), 10_101);
    }

    /// Claim: several samples at once are the same as one at a time, negative ones and those of no slot among them.
    #[test]
    fn several_at_once() {
        let (mut one, mut all) = (TimedHistogram::new(3), TimedHistogram::new(3));
        for slot in [0, 2, 7, 0] {
            let values: Vec<i64> = (0..500_i64).map(|n| n * n * n - 1_000).collect();
            values.iter().for_each(|value| one.record(slot, *value));
            all.record_all(slot, &values);
            all.record_all(slot, &[]);
        }
        assert_eq!(one.all(), all.all());
        let slots = |times: &TimedHistogram| -> Vec<_> {
            let of = |slot: &SparseHistogram| {
                (slot.moments().clone(), slot.negative(), slot.buckets().collect::<Vec<_>>())
            };
            times.slots().iter().map(of).collect()
        };
        assert_eq!(slots(&one), slots(&all));
        let mut plain = Histogram::default();
        plain.record_all(&[-5, 7, 7]);
        assert_eq!((plain.count(), plain.negative(), plain.quantile(1.0)), (3, 1, Some(7)));
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

    /// 120 slots of 100 samples of 5 to 7 ms, in each as many of 50 to 52 ms instead as `slow` says.
    fn two_service_times(slow: fn(u32) -> u32) -> TimedHistogram {
        let mut times = TimedHistogram::new(120);
        for n in 0..12_000_u32 {
            let (slot, place) = (n / 100, n % 100);
            let jitter = i64::from(n.wrapping_mul(2_654_435_761) >> 16) * 30;
            let base = if place * 37 % 100 < slow(slot) { 50_000_000 } else { 5_000_000 };
            times.record(slot as usize, base + jitter);
        }
        times
    }

    /// Claim: where the share of slow samples drifts between 2 and 10 %, p95 is a slow one, and nothing between the two is
    /// in its interval: at 7 ms 94 of 100 lie below, surely and whatever the drift does among the slow ones. A spread that
    /// is measured at the estimate alone puts the lower end at 7 ms.
    #[test]
    fn atoms_that_drift() {
        let times = two_service_times(|slot| if slot / 6 % 2 == 0 { 2 } else { 10 });
        let ends = times.quantile_intervals(&[0.9, 0.95]);
        assert!(ends[0].high.is_some_and(|high| high < 8_000_000), "{ends:?}");
        assert!(ends[1].low.is_some_and(|low| low > 49_000_000), "{ends:?}");
        assert!(ends[1].high.is_some_and(|high| high < 53_000_000), "{ends:?}");
    }

    /// Claim: where most samples have the smallest value there is, and in stretches of time none has, the interval of p50
    /// begins at that value and is not open.
    #[test]
    fn the_smallest_value_is_an_end() {
        let mut times = TimedHistogram::new(120);
        for n in 0..12_000_i64 {
            let is_busy = n / 1_000 % 3 == 2;
            times.record(
                usize::try_from(n / 100).unwrap(),
                if is_busy { 9_000_000 + n } else { 4_000_000 },
            );
        }
        let median = times.quantile_intervals(&[0.5])[0];
        assert_eq!(median.low, Some(4_000_000), "{median:?}");
    }

    /// Claim: one freeze of a queue does not stretch the interval of the mean to thousands of times the mean, and leaves
    /// that of the median closed.
    #[test]
    fn a_frozen_queue() {
        let mut times = TimedHistogram::new(100);
        for n in 0..10_000_i64 {
            let is_frozen = (4_000..4_500).contains(&n);
            let time = if is_frozen { (4_500 - n) * 1_000_000 } else { 2_000_000 + n % 97 };
            times.record(usize::try_from(n / 100).unwrap(), time);
        }
        let mean = times.all().moments().mean().unwrap();
        let (low, high) = times.mean_interval().unwrap();
        assert!(low < mean && high > 2.0 * mean && high < 15.0 * mean, "{low} {mean} {high}");
        let median = times.quantile_intervals(&[0.5])[0];
        assert!(
            median.low.is_some() && median.high.is_some_and(|high| high < 3_000_000),
            "{median:?}"
        );
    }
}
