//! The interval of a quantile, by testing at each value that it may have.
//!
//! A value lies in the interval unless the blocks of the window show, *at this value*, that more or fewer samples than
//! the quantile asks for lie at or below it. A test at the estimate alone would carry its own uncertainty to places where
//! it does not hold: where the share of slow samples drifts around 5 %, p95 is one of two values far apart, and the
//! spread at the one says nothing of the other.

use crate::excursions;
use crate::float::{of_count, of_ns};
use crate::interval::{self, Slot};
use crate::level::{BELOW, Level};
use crate::quantile_interval::QuantileInterval;
use crate::sparse::SparseHistogram;
use crate::special::t_quantile;

/// Equal parts of the window that samples are counted in: more than blocks, so that blocks are of nearly equal length.
const PARTS: usize = 120;

/// Steps of the search, by which the odds of a share grow: fine enough that nothing is stepped over, and 60 of them reach
/// from p50 to 0.3 % and from p99 to 1 in 30,000.
const STEP: f64 = 1.1;
const STEPS: i32 = 60;

/// Levels whose dependence counts for every quantile above them: a trial that met few excursions shows too little of it
/// in its own tail, and enough further down.
const LEVELS: [f64; 5] = [0.5, 0.75, 0.9, 0.95, 0.99];

/// Quantiles above this are of the tail: what decides them is seldom.
const TAIL: f64 = 0.9;

/// Excursions vary in size and come in groups, so that a window holds some three times as many as its samples beyond the
/// quantile are worth (M/M/1, D/M/1 and M/H2/1 in `tests/coverage.rs`).
const EXCURSIONS_PER_WORTH: f64 = 3.3;

/// An upper end is moved so much further, on a logarithmic scale: a window that met few excursions has a low quantile, and
/// an end that is low in proportion.
const STRETCH: f64 = 1.25;

/// Values that a quantile may have, with how many samples of each part lie at or below each.
pub(crate) struct Candidates {
    /// Smallest and largest value of each bucket that holds samples, ascending.
    values: Vec<(i64, i64)>,
    /// All samples at or below each value.
    total: Vec<f64>,
    /// By part: bucket (index in `values`) and samples up to its end, of the buckets that the part has.
    parts: Vec<Part>,
    count: f64,
}

struct Part {
    upto: Vec<(usize, f64)>,
    count: f64,
}

impl Candidates {
    /// `None` if there is no sample, or too few of the window's slots.
    pub fn of(slots: &[SparseHistogram], missing: &[u64]) -> Option<Self> {
        let parts = slots.len().min(PARTS);
        let mut all = SparseHistogram::default();
        let merged: Vec<(SparseHistogram, u64)> = (0..parts)
            .map(|part| {
                let range = part * slots.len() / parts..(part + 1) * slots.len() / parts;
                let mut merged = SparseHistogram::default();
                slots[range.clone()].iter().for_each(|slot| merged.merge(slot));
                all.merge(&merged);
                (merged, range.filter_map(|slot| missing.get(slot)).sum())
            })
            .collect();
        let values: Vec<(i64, i64)> = ranked(&all).map(|(low, high, _)| (low, high)).collect();
        if values.is_empty() {
            return None;
        }
        let place = |low: i64| values.partition_point(|(known, _)| *known < low);
        let parts = merged
            .iter()
            .map(|(samples, missing)| {
                let mut sum = 0.0;
                let upto = ranked(samples)
                    .map(|(low, _, count)| {
                        sum += count;
                        (place(low), sum)
                    })
                    .collect();
                Part { upto, count: sum + of_count(*missing) }
            })
            .collect::<Vec<_>>();
        let total = ranked(&all).scan(0.0, |sum, (_, _, count)| {
            *sum += count;
            Some(*sum)
        });
        let total = total.collect();
        let count = parts.iter().map(|part| part.count).sum();
        Some(Self { values, total, parts, count })
    }

    /// The 95 % interval of the quantile `q`.
    pub fn interval(&self, q: f64) -> QuantileInterval {
        let last = self.values.len() - 1;
        let levels = LEVELS.iter().filter(|level| **level < q);
        let bound = levels.map(|level| self.effective(self.at(*level))).fold(self.count, f64::min);
        let samples = |index: usize| self.effective(index).min(bound);
        let is_above =
            |index: usize| interval::is_surely_at_least(self.share(index), samples(index), q);
        let is_below =
            |index: usize| interval::is_surely_below(self.share(index), samples(index), q);
        if is_below(last) {
            return QuantileInterval::INFINITE;
        }
        let high = if q > TAIL {
            self.upper_end_of_a_tail(q)
        } else {
            self.search(q, 1, last, &is_above).map(|index| self.values[index].1)
        };
        // The first value that is not surely below. Where none is, all that is smaller than the smallest may be: nothing
        // lies there, however many lie at the smallest and however they cluster in time.
        let found = self.search(q, -1, 0, &is_below).map(|index| self.values[index + 1].0);
        let smallest = || interval::is_surely_below(0.0, bound, q).then(|| self.values[0].0);
        QuantileInterval { low: found.or_else(smallest), low_is_infinite: false, high }
    }

    /// The value beyond which as few lie as a tail that allows 1 − `q` shows with a chance of 2.5 %: the root of a count of
    /// excursions varies by a half, whatever their number (Bartlett 1936), times Student's t because their size is an
    /// estimate too. `None` where the window holds too few of them.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "times")]
    fn upper_end_of_a_tail(&self, q: f64) -> Option<i64> {
        let own = self.excursion(self.at(q));
        let size = BELOW
            .iter()
            .filter(|(level, _)| *level < q)
            .map(|(level, factor)| factor * self.excursion(self.at(*level)))
            .fold(own, f64::max);
        let excursions = EXCURSIONS_PER_WORTH / (size - 1.0 + EXCURSIONS_PER_WORTH);
        if self.count * excursions < interval::samples_for_upper_end(q) as f64 {
            return None;
        }
        let worth = self.count * (1.0 - q) / size;
        let half_width = t_quantile(0.975, 2.0 * worth) / 2.0;
        let beyond = (1.0 - q) * (1.0 - half_width / worth.sqrt()).max(0.0).powi(2);
        let upto = self.total.partition_point(|upto| *upto < (1.0 - beyond) * self.count);
        let (value, high) = (self.values[self.at(q)].0, self.values.get(upto)?.1);
        if value <= 0 {
            return Some(high);
        }
        Some((value as f64 * (high as f64 / value as f64).max(1.0).powf(STRETCH)) as i64)
    }

    /// The levels below which these shares of the samples lie.
    pub fn levels(&self, shares: &[f64]) -> Vec<Level> {
        let level = |share: &f64| {
            let index = self.at(*share);
            let (beyond, size) = (1.0 - self.share(index), self.excursion(index));
            Level { value: of_ns(self.values[index].1), beyond, size }
        };
        shares.iter().map(level).collect()
    }

    /// How many samples beyond a value come together.
    fn excursion(&self, index: usize) -> f64 {
        let slot = |part: &Part| Slot { count: part.count, sum: part.count - part.upto(index) };
        excursions::size(&self.parts.iter().map(slot).collect::<Vec<_>>())
    }

    /// The nearest value on one side of the quantile of which `is_beyond` holds, as far as `end`.
    fn search(
        &self,
        q: f64,
        way: i32,
        end: usize,
        is_beyond: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut inside = None;
        for step in 0..=STEPS + 1 {
            let index =
                if step > STEPS { end } else { self.at(odds_times(q, STEP.powi(way * step))) };
            if inside == Some(index) {
                continue;
            }
            if !is_beyond(index) {
                inside = Some(index);
                continue;
            }
            // Between the last inside and this one, by halves.
            let Some(mut near) = inside else { return Some(index) };
            let mut far = index;
            while near.abs_diff(far) > 1 {
                let middle = near.midpoint(far);
                if is_beyond(middle) { far = middle } else { near = middle }
            }
            return Some(far);
        }
        None
    }

    /// The place of the smallest value with at least this share at or below it; the last one if there is none.
    fn at(&self, share: f64) -> usize {
        let wanted = share * self.count;
        self.total.partition_point(|upto| *upto < wanted).min(self.values.len() - 1)
    }

    fn share(&self, index: usize) -> f64 {
        self.total[index] / self.count
    }

    /// How many independent samples the share at or below a value is worth.
    fn effective(&self, index: usize) -> f64 {
        let share = self.share(index);
        let slots: Vec<Slot> = self
            .parts
            .iter()
            .map(|part| Slot { count: part.count, sum: part.upto(index) })
            .collect();
        // All samples at or below the value: nothing to learn from it.
        match interval::half_width(&slots) {
            Some(half_width) if share < 1.0 => {
                interval::effective_samples(share * (1.0 - share), half_width)
            }
            _ => f64::INFINITY,
        }
    }
}

impl Part {
    fn upto(&self, index: usize) -> f64 {
        let behind = self.upto.partition_point(|(place, _)| *place <= index);
        behind.checked_sub(1).map_or(0.0, |last| self.upto[last].1)
    }
}

/// Buckets with their smallest and largest value and their count; negative samples are one below all.
fn ranked(of: &SparseHistogram) -> impl Iterator<Item = (i64, i64, f64)> + '_ {
    let below = of
        .moments()
        .min()
        .filter(|min| *min < 0)
        .map(|min| (i64::MIN, min, of_count(of.negative())));
    below
        .into_iter()
        .chain(of.bucket_ranges().map(|(low, high, count)| (low, high, f64::from(count))))
}

fn odds_times(share: f64, factor: f64) -> f64 {
    let odds = share / (1.0 - share) * factor;
    if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 }
}
