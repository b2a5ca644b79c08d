//! Response times less the instrument's own lag: what the quantiles would be if it had sent everything in time.
//!
//! Rows whose lag is small beside their response time are left as they are: on the path of a row this must cost no more
//! than a comparison where the machine was idle.

use std::collections::BTreeMap;

use model::Row;

use crate::figures::known::Known;
use crate::figures::part::Part;
use stats::Histogram;
use stats::carry::Carry;

/// A lag of less than one part in this many of a response time moves no quantile by more than that part, which is far
/// less than what is judged.
const PARTS: i64 = 32;
/// From this share of a printed quantile on, the report says what the lag makes of it.
pub(crate) const SHARE_WARN: f64 = 0.10;

/// The rows that were moved by their lag: from where, and to where.
#[derive(Clone, Debug, Default)]
pub(crate) struct WithoutLag {
    final_stage: usize,
    from: Histogram,
    to: Histogram,
}

impl Part for WithoutLag {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self { final_stage: trial.final_stage, ..Self::default() }
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        for row in rows {
            if let (Some(ns), Some(lag)) = (row.response_ns(self.final_stage), row.own_lag_ns()) {
                self.row(ns, lag);
            }
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.from.carry(it);
        self.to.carry(it);
    }
}

impl WithoutLag {
    #[inline]
    pub fn row(&mut self, response_ns: i64, own_lag_ns: i64) {
        if own_lag_ns > response_ns / PARTS {
            self.from.record(response_ns);
            self.to.record(response_ns - own_lag_ns);
        }
    }

    /// How much smaller the mean of `count` response times would be if no row had a lag.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    pub fn of_mean(&self, count: u64) -> f64 {
        let sum = |of: &Histogram| of.moments().mean().unwrap_or(0.0) * of.count() as f64;
        (sum(&self.from) - sum(&self.to)) / count.max(1) as f64
    }

    /// `all` as it would be if no row had a lag.
    pub fn of(&self, all: &Histogram) -> Histogram {
        let mut counts: BTreeMap<i64, u64> = all.buckets().collect();
        for (value, count) in self.from.buckets() {
            // Both are in buckets of the same layout, and every row that was moved is in `all`.
            let left = counts.entry(value).or_default();
            *left = left.saturating_sub(count);
        }
        let mut without = Histogram::default();
        for (value, count) in counts.into_iter().chain(self.to.buckets()) {
            if count > 0 {
                without.record_n(value, count);
            }
        }
        without
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the quantiles are those of the rows without their lag, to the three digits of a histogram and the part that
    /// is left as it is.
    #[test]
    fn quantiles_without_lag() {
        let (mut all, mut without) = (Histogram::default(), WithoutLag::default());
        let mut exact = Vec::new();
        for n in 0..10_000_i64 {
            let time = 1_000_000 + n * 100;
            let lag = if n % 20 == 0 { 5_000_000 } else { 1_000 };
            all.record(time + lag);
            without.row(time + lag, lag);
            exact.push(time);
        }
        exact.sort_unstable();
        let without = without.of(&all);
        for (q, exact) in [(0.5, exact[4_999]), (0.99, exact[9_899])] {
            let found = without.quantile(q).unwrap();
            assert!((found - exact).abs() * 100 < exact, "{found} {exact}");
        }
        assert!(all.quantile(0.99).unwrap() > 6_000_000);
    }
}
