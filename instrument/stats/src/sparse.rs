//! A histogram for the many: one for every second, kind or code. It keeps pages of buckets only where samples
//! fall, in half the digits of [`crate::Histogram`], so that ten thousand of them fit.

use crate::carry::{Carry, Whole as _};
use crate::layout::{highest_of, index_of, lowest_of, rank};
use crate::moments::Moments;

/// `2^7 = 128` buckets an octave: a value is off by less than 0.8 %.
const HALF_BITS: u32 = 7;
/// One page is one octave.
const PAGE: usize = 1 << HALF_BITS;
/// Pages up to that of the largest value.
const PAGES: usize = index_of(u64::MAX, HALF_BITS) / PAGE + 1;

/// Counts by bucket, kept by octave, with exact moments.
#[derive(Clone, Debug, Default)]
pub struct SparseHistogram {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    negative: u64,
    moments: Moments,
}

impl SparseHistogram {
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
            (Some(Ok(min)), Some(Ok(max))) => self.place_all(values, min, max),
            _ => values.iter().for_each(|value| self.place(*value)),
        }
    }

    /// Places samples from `min` to `max`. Pages are added before, so that the loop looks at nothing but the counts.
    fn place_all(&mut self, values: &[i64], min: u64, max: u64) {
        let page_of = |value: u64| index_of(value, HALF_BITS) / PAGE;
        let between = self.pages.get(page_of(min)..=page_of(max));
        if !between.is_some_and(|pages| pages.iter().all(Option::is_some)) {
            for value in values {
                let page = page_of(value.cast_unsigned());
                if self.pages.get(page).is_none_or(Option::is_none) {
                    self.add_page(page);
                }
            }
        }
        let pages = self.pages.as_mut_slice();
        for value in values {
            let index = index_of(value.cast_unsigned(), HALF_BITS);
            let counts = pages[index / PAGE].as_mut().expect("added above");
            let count = &mut counts[index % PAGE];
            *count = count.saturating_add(1);
        }
    }

    #[inline]
    fn place(&mut self, value: i64) {
        let Ok(positive) = u64::try_from(value) else {
            self.negative += 1;
            return;
        };
        let slot = self.slot(positive);
        *slot = slot.saturating_add(1);
    }

    /// The slot of a value, which there is from now on.
    #[inline]
    fn slot(&mut self, value: u64) -> &mut u32 {
        let index = index_of(value, HALF_BITS);
        let page = index / PAGE;
        if page >= self.pages.len() || self.pages[page].is_none() {
            self.add_page(page);
        }
        let counts = self.pages[page].as_mut().expect("added above");
        &mut counts[index % PAGE]
    }

    /// Adds a sample that was seen `count` times.
    pub fn record_n(&mut self, value: i64, count: u64) {
        if count == 0 {
            return;
        }
        self.moments.add_n(value, count);
        let Ok(positive) = u64::try_from(value) else {
            self.negative += count;
            return;
        };
        let slot = self.slot(positive);
        *slot = slot.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Adds the samples of another.
    pub fn merge(&mut self, other: &Self) {
        for (page, theirs) in other.pages.iter().enumerate() {
            let Some(theirs) = theirs else { continue };
            if page >= self.pages.len() || self.pages[page].is_none() {
                self.add_page(page);
            }
            let mine = self.pages[page].as_mut().expect("added above");
            for (mine, theirs) in mine.iter_mut().zip(theirs.iter()) {
                *mine = mine.saturating_add(*theirs);
            }
        }
        self.negative += other.negative;
        self.moments.merge(&other.moments);
    }

    /// Adds the samples of another, or writes them.
    pub fn carry(&mut self, it: &mut Carry<'_>) {
        let mine = self.pages.iter().enumerate().filter(|(_, page)| page.is_some());
        for page in it.places(mine.map(|(page, _)| page), PAGES) {
            if self.pages.get(page).is_none_or(Option::is_none) {
                self.add_page(page);
            }
            let counts = self.pages[page].as_mut().expect("added above");
            it.each(&mut counts[..], |mine, theirs| Some(mine.plus(theirs).unwrap_or(u32::MAX)));
        }
        it.sum(&mut self.negative);
        self.moments.carry(it);
    }

    /// Exact sums and extremes.
    #[must_use]
    pub const fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The quantile, within 0.8 %; never more than the largest sample, nor less than the smallest.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<i64> {
        let (min, max) = (self.moments.min()?, self.moments.max()?);
        let wanted = rank(q, self.moments.count());
        let mut seen = self.negative;
        if seen >= wanted {
            return Some(min);
        }
        for (index, count) in self.counts() {
            seen += u64::from(count);
            if seen >= wanted {
                let high = i64::try_from(highest_of(index, HALF_BITS)).unwrap_or(i64::MAX);
                return Some(high.clamp(min, max));
            }
        }
        Some(max)
    }

    /// Samples that rank above the quantile's rank: `n − ceil(q · n)`.
    #[must_use]
    pub fn beyond(&self, q: f64) -> u64 {
        let count = self.moments.count();
        if count == 0 { 0 } else { count - rank(q, count) }
    }

    /// Samples at or below the edge of the bucket that holds `value`.
    #[must_use]
    pub fn at_most(&self, value: i64) -> u64 {
        let Ok(positive) = u64::try_from(value) else { return 0 };
        let last = index_of(positive, HALF_BITS);
        let counted: u64 =
            self.counts().take_while(|(i, _)| *i <= last).map(|(_, count)| u64::from(count)).sum();
        self.negative + counted
    }

    /// Buckets that hold samples: largest value of the bucket, count; ascending. Negative samples are not among them.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.counts().filter(|(_, count)| *count > 0).map(|(index, count)| {
            (i64::try_from(highest_of(index, HALF_BITS)).unwrap_or(i64::MAX), count)
        })
    }

    /// The same with the smallest value of the bucket before the largest.
    pub(crate) fn bucket_ranges(&self) -> impl Iterator<Item = (i64, i64, u32)> + '_ {
        let edge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.counts().filter(|(_, count)| *count > 0).map(move |(index, count)| {
            (edge(lowest_of(index, HALF_BITS)), edge(highest_of(index, HALF_BITS)), count)
        })
    }

    /// Samples below zero.
    pub(crate) const fn negative(&self) -> u64 {
        self.negative
    }

    fn counts(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.pages.iter().enumerate().flat_map(|(page, counts)| {
            counts.iter().flat_map(move |counts| {
                counts.iter().enumerate().map(move |(slot, count)| (page * PAGE + slot, *count))
            })
        })
    }

    #[cold]
    fn add_page(&mut self, page: usize) {
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        self.pages[page] = Some(Box::new([0; PAGE]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: quantiles are within 0.8 % of the exact ones, and merging equals recording all.
    #[test]
    fn within_its_precision() {
        let (mut a, mut b, mut both) =
            <(SparseHistogram, SparseHistogram, SparseHistogram)>::default();
        for i in 1..=20_000_i64 {
            both.record(i * 777);
            if i % 2 == 0 { a.record(i * 777) } else { b.record(i * 777) }
        }
        a.merge(&b);
        for q in [0.01, 0.5, 0.9, 0.999] {
            let exact = q * 20_000.0 * 777.0;
            let value = both.quantile(q).unwrap() as f64;
            assert!((value / exact - 1.0).abs() < 0.008, "q {q}: {value} for {exact}");
            assert_eq!(a.quantile(q), both.quantile(q));
        }
        assert_eq!(both.quantile(1.0), Some(20_000 * 777));
        assert_eq!(both.at_most(i64::MAX), 20_000);
        assert_eq!(both.at_most(-1), 0);
    }
}
