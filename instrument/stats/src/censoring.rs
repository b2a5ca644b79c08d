//! Samples that did not end: a transaction without an answer took *at least* as long as it was waited for.
//! Leaving it out makes a system look faster the more it loses.

use crate::histogram::Histogram;
use crate::layout::rank;

/// A quantile over all, ended or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconditional {
    /// The value.
    Finite(i64),
    /// More than 1 − q did not end.
    Infinite,
}

/// The quantile over all `due`, of which `ended` holds those that ended and the others count as infinitely long.
#[must_use]
pub fn unconditional_quantile(ended: &Histogram, due: u64, q: f64) -> Option<Unconditional> {
    if due == 0 {
        return None;
    }
    Some(ended.at_rank(rank(q, due)).map_or(Unconditional::Infinite, Unconditional::Finite))
}

/// The mean of min(x, τ) over all `due`, where those that did not end count as τ: finite whatever was lost.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a mean")]
pub fn restricted_mean(ended: &Histogram, due: u64, tau: i64) -> Option<f64> {
    if due == 0 {
        return None;
    }
    let within = ended.moments().max().is_none_or(|max| max <= tau);
    let ended_sum = if within {
        ended.moments().sum() as f64
    } else {
        ended.buckets().map(|(value, count)| value.min(tau) as f64 * count as f64).sum()
    };
    let missing = due.saturating_sub(ended.count()) as f64;
    Some((ended_sum + missing * tau as f64) / due as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Iterator<Item = i64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.for_each(|value| histogram.record(value));
        histogram
    }

    /// Claim: the quantile becomes infinite exactly when the share without an end exceeds 1 − q.
    #[test]
    fn infinite_share() {
        let ended = of((1..=95).map(|i| i * 10));
        assert_eq!(unconditional_quantile(&ended, 100, 0.95), Some(Unconditional::Finite(950)));
        assert_eq!(unconditional_quantile(&ended, 100, 0.96), Some(Unconditional::Infinite));
        assert_eq!(unconditional_quantile(&ended, 100, 0.50), Some(Unconditional::Finite(500)));
        assert_eq!(unconditional_quantile(&ended, 0, 0.5), None);
    }

    /// Claim: the restricted mean counts what is missing as τ and what is longer as τ.
    #[test]
    fn restricted() {
        let ended = of([10, 20, 30].into_iter());
        assert_eq!(restricted_mean(&ended, 4, 100), Some(40.0));
        assert_eq!(restricted_mean(&ended, 3, 25), Some(55.0 / 3.0));
        assert_eq!(restricted_mean(&of(std::iter::empty()), 2, 7), Some(7.0));
    }
}
