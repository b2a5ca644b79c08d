//! A log-linear histogram (the layout of HdrHistogram, <https://hdrhistogram.org>) that is made whole before the load and
//! allocates nothing after that. What is kept of a trial is counted again from its rows; this is for the display, and for
//! what rows do not hold.

/// Counts of nanoseconds, `2^DIGITS` buckets to a power of two. What is negative counts as 0.
pub(crate) struct Buckets<const DIGITS: u32> {
    counts: Box<[u32]>,
    total: u64,
}

impl<const DIGITS: u32> Default for Buckets<DIGITS> {
    fn default() -> Self {
        let count = (65 - DIGITS as usize) << DIGITS;
        Self { counts: vec![0; count].into_boxed_slice(), total: 0 }
    }
}

impl<const DIGITS: u32> Buckets<DIGITS> {
    pub(crate) fn add(&mut self, ns: i64) {
        let ns = u64::try_from(ns).unwrap_or(0);
        // Below two powers of `2^DIGITS` each value has a bucket of its own.
        let exact = (2_u64 << DIGITS) - 1;
        let octave = 63 - DIGITS - (ns | exact).leading_zeros();
        let index = ((octave as usize) << DIGITS) + (ns >> octave) as usize;
        let count = &mut self.counts[index];
        *count = count.saturating_add(1);
        self.total += 1;
    }

    /// The lower edge of the bucket that holds the quantile; 0 without samples.
    pub(crate) fn quantile(&self, percent: u64) -> i64 {
        let wanted = (self.total * percent).div_ceil(100);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted && seen > 0 {
                return Self::edges(index).0;
            }
        }
        0
    }

    /// The largest value of each bucket that holds something, and how many it holds; ascending.
    pub(crate) fn list(&self) -> Vec<(i64, u64)> {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        held.map(|(index, count)| (Self::edges(index).1, u64::from(*count))).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The smallest and the largest value of a bucket.
    fn edges(index: usize) -> (i64, i64) {
        let octave = (index >> DIGITS).saturating_sub(1);
        let first = if octave == 0 { index } else { index % (1 << DIGITS) + (1 << DIGITS) };
        let low = (first as u64) << octave;
        let edge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        (edge(low), edge(low + ((1 << octave) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the display's quantiles are within one bucket, an eighth of a power of two.
    #[test]
    fn buckets_are_an_eighth_wide() {
        let mut buckets = Buckets::<3>::default();
        for ns in 1..=100_000 {
            buckets.add(ns);
        }
        for (percent, exact) in [(50, 50_000), (99, 99_000)] {
            let shown = buckets.quantile(percent);
            assert!((exact * 7 / 8..=exact).contains(&shown), "{percent}: {shown}");
        }
    }

    /// Claim: every value, the largest and what is negative included, lies in a bucket that is at most 0.8 % wide and says
    /// so in its list.
    #[test]
    fn every_value_has_a_bucket() {
        for ns in [-5, 0, 1, 255, 256, 257, 1_000_000, 987_654_321_098, i64::MAX] {
            let mut buckets = Buckets::<7>::default();
            buckets.add(ns);
            let [(high, 1)] = buckets.list()[..] else { panic!("{ns}: {:?}", buckets.list()) };
            let low = buckets.quantile(50);
            assert!((low..=high).contains(&ns.max(0)), "{ns}: {low} to {high}");
            assert!((high - low) / 128 <= low / 128 / 128, "{ns}: {low} to {high}");
        }
    }
}
