//! A histogram that also knows when its samples fell: what intervals and charts over time need.

use crate::histogram::Histogram;
use crate::interval::{self, Slot};
use crate::sparse::SparseHistogram;

/// Samples in three digits over all, and in slots of time of equal length.
#[derive(Clone, Debug, Default)]
pub struct TimedHistogram {
    all: Histogram,
    slots: Vec<SparseHistogram>,
}

impl TimedHistogram {
    /// An empty one with `slots` slots.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { all: Histogram::default(), slots: vec![SparseHistogram::default(); slots] }
    }

    /// Adds a sample that fell into `slot`; a slot out of range counts in the whole alone.
    #[inline]
    pub fn record(&mut self, slot: usize, value: i64) {
        self.all.record(value);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.record(value);
        }
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

    /// Intervals of several quantiles, in the order asked.
    #[must_use]
    pub fn quantile_intervals(&self, quantiles: &[f64]) -> Vec<(Option<i64>, Option<i64>)> {
        let of_the_mean = self.effective_by_mean();
        quantiles.iter().map(|q| self.quantile_interval(*q, of_the_mean)).collect()
    }

    fn quantile_interval(&self, q: f64, of_the_mean: f64) -> (Option<i64>, Option<i64>) {
        let samples = self.effective(q).min(of_the_mean).min(to_f64(self.all.count()));
        let (low, high) = interval::quantile_ranks(q, samples);
        (low.and_then(|p| self.all.quantile(p)), high.and_then(|p| self.all.quantile(p)))
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
        let value = self.all.quantile(level)?;
        let slots: Vec<Slot> = self
            .slots
            .iter()
            .map(|slot| Slot {
                count: to_f64(slot.moments().count()),
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
