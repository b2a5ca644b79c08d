//! A log-linear histogram (the layout of HdrHistogram, <https://hdrhistogram.org>) that is made whole before the load and
//! allocates nothing after that. What is kept of a trial is counted again from its rows; this is for the display.

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
                return Self::low(index);
            }
        }
        0
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The smallest value of a bucket.
    fn low(index: usize) -> i64 {
        let octave = (index >> DIGITS).saturating_sub(1);
        let first = if octave == 0 { index } else { index % (1 << DIGITS) + (1 << DIGITS) };
        i64::try_from((first as u64) << octave).unwrap_or(i64::MAX)
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
}
