//! How late packets were, as counts by size: enough for a median, a p99 and the largest of one link, in a kilobyte,
//! so that every link can have its own. It never averages, and what it gives is never less than what was added.

/// Values of one power of two are told apart in this many steps, so a quantile is at most 6.3 % too large.
const STEPS: u64 = 16;
/// Powers of two from 2⁴ ns (below it a nanosecond is a bucket) to 2³⁶ ns, over a minute: later than that is a
/// stopped machine.
const POWERS: u64 = 32;
const BUCKETS: usize = ((POWERS + 1) * STEPS) as usize;

/// Nanoseconds, counted.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    counts: Vec<u32>,
    added: u64,
    most: u64,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], added: 0, most: 0 }
    }

    pub(crate) fn add(&mut self, ns: u64) {
        let count = &mut self.counts[bucket(ns)];
        *count = count.saturating_add(1);
        self.added += 1;
        self.most = self.most.max(ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.added += other.added;
        self.most = self.most.max(other.most);
    }

    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    /// The value that `per_mille` of a thousand do not exceed, nanoseconds; 0 of none.
    pub(crate) fn quantile(&self, per_mille: u64) -> u64 {
        let rank = u128::from(self.added) * u128::from(per_mille);
        let rank = u64::try_from(rank.div_ceil(1_000)).expect("at most what was added").max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return largest(index).min(self.most);
            }
        }
        self.most
    }
}

fn bucket(ns: u64) -> usize {
    if ns < STEPS {
        return usize::try_from(ns).expect("less than sixteen");
    }
    let power = u64::from(ns.ilog2()) - u64::from(STEPS.ilog2());
    let step = (ns >> power) - STEPS;
    let index = (power + 1) * STEPS + step;
    usize::try_from(index).expect("at most a thousand").min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn largest(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let power = index / STEPS - 1;
    ((index % STEPS + STEPS + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Lateness, bucket, largest};

    /// Claim: each value lies in the bucket whose largest value is the first that is not below it, and buckets are
    /// at most a sixteenth wide.
    #[test]
    fn buckets_are_narrow() {
        for power in 0..36 {
            for near in [0, 1, 7] {
                let ns = (1_u64 << power) + near * (1_u64 << power) / 9;
                let upper = largest(bucket(ns));
                assert!(upper >= ns && upper - ns <= ns / 16, "{ns}: {upper}");
                assert!(bucket(upper) == bucket(ns) && bucket(upper + 1) != bucket(ns), "{ns}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    /// Claim: quantiles of a known row of values, the largest, and two histograms added.
    #[test]
    fn known_quantiles() {
        let mut all = Lateness::new();
        assert_eq!((all.quantile(990), all.most()), (0, 0));
        let mut other = Lateness::new();
        for us in 1..=500_u64 {
            all.add(us * 1_000);
            other.add((us + 500) * 1_000);
        }
        all.merge(&other);
        let close = |got: u64, right: u64| got >= right && got <= right + right / 16;
        assert!(close(all.quantile(500), 500_000), "{}", all.quantile(500));
        assert!(close(all.quantile(990), 990_000), "{}", all.quantile(990));
        assert_eq!(all.quantile(1_000), 1_000_000);
        assert_eq!(all.most(), 1_000_000);
    }
}
