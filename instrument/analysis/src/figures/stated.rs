//! Latency as the ledger itself states it: recorded − submitted, both times the ledger's own. It is the published
//! report tools' definition, kept so that our figures can be held against theirs: over what stands in the ledger
//! and nothing else, duplicates counted again, the warm-up included.
//!
//! It must never be read as the response time: what was refused, lost or never sent is not in it, and its two
//! times may be of two clocks. Memory is bounded: exact moments, and a histogram for the quantiles.

use model::facts::{LedgerEntry, TrialFacts};
use model::result::{StatedLatency, TrialResult};
use stats::Histogram;
use stats::carry::Carry;

use crate::figures::known::Known;
use crate::figures::part::Part;

/// The entries so far.
#[derive(Clone, Default)]
pub(crate) struct Stated {
    latencies: Histogram,
    without_time: u64,
    duplicates: u64,
    /// Whether any entry says when it was submitted: without one, there is nothing to state.
    says_anything: bool,
}

impl Part for Stated {
    fn of_trial(_: &Known<'_>) -> Self {
        Self::default()
    }

    /// It is of entries alone.
    fn carry(&mut self, _: &mut Carry<'_>) {}

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        if trial.facts.after.ledger.read {
            result.stated = self.result(trial.facts);
        }
    }
}

impl Stated {
    /// Adds an entry; `is_duplicate`: the transaction stood in the ledger before.
    pub fn entry(&mut self, entry: &LedgerEntry, is_duplicate: bool) {
        if !entry.ours || entry.is_waiting {
            return;
        }
        self.says_anything |= entry.submitted.is_some();
        let Some((submitted, recorded)) = entry.submitted.zip(entry.recorded) else {
            self.without_time += 1;
            return;
        };
        let latency_ns = recorded.unix_ns().saturating_sub(submitted.unix_ns());
        self.latencies.record(latency_ns);
        self.duplicates += u64::from(is_duplicate);
    }

    /// `None` where no entry says when it was submitted.
    pub fn result(&self, facts: &TrialFacts) -> Option<StatedLatency> {
        if !self.says_anything {
            return None;
        }
        let moments = self.latencies.moments();
        Some(StatedLatency {
            count: moments.count(),
            without_time: self.without_time,
            duplicates: self.duplicates,
            negative: self.latencies.negative(),
            min_ns: moments.min(),
            max_ns: moments.max(),
            mean_ns: moments.mean(),
            stddev_ns: moments.variance().map(f64::sqrt),
            p50_ns: self.latencies.quantile(0.5),
            p99_ns: self.latencies.quantile(0.99),
            clocks: facts.declared.clocks,
        })
    }
}

#[cfg(test)]
mod tests {
    use clock::WallTime;
    use model::facts::ClockRelation;

    use super::*;
    use crate::testing::Trial;

    fn entry(tx: u64, submitted_ns: Option<i64>, recorded_ns: Option<i64>) -> LedgerEntry {
        LedgerEntry {
            submitted: submitted_ns.map(WallTime::from_unix_ns),
            recorded: recorded_ns.map(WallTime::from_unix_ns),
            ..LedgerEntry::new(tx, tx, true)
        }
    }

    /// Claim: entries that are ours and have both times count, duplicates again, negative ones with their sign;
    /// the moments are those of the list; an entry of no transaction or without a time is left out, the latter counted.
    #[test]
    fn known_latencies() {
        let mut trial = Trial::clean();
        let mut entries = vec![
            entry(1, Some(1_000), Some(5_000)),
            entry(2, Some(1_000), Some(7_000)),
            entry(1, Some(1_000), Some(9_000)),
            entry(3, Some(9_000), Some(8_000)),
            entry(4, Some(9_000), None),
            LedgerEntry { ours: false, ..entry(5, Some(0), Some(1 << 40)) },
        ];
        for (place, entry) in (0..).zip(&mut entries) {
            entry.position = place;
        }
        trial.entries = Some(entries);
        trial.facts.declared.clocks = ClockRelation::OneHost;
        let stated = trial.result().stated.unwrap();
        assert_eq!((stated.count, stated.without_time, stated.duplicates), (4, 1, 1));
        assert_eq!((stated.negative, stated.min_ns, stated.max_ns), (1, Some(-1_000), Some(8_000)));
        // 4000, 6000, 8000, −1000: deviations from 4250 squared are 44.75 million together.
        assert_eq!(stated.mean_ns, Some(4_250.0));
        let deviation = (44_750_000.0_f64 / 3.0).sqrt();
        assert!((stated.stddev_ns.unwrap() - deviation).abs() < 1e-6, "{:?}", stated.stddev_ns);
        assert_eq!(stated.clocks, ClockRelation::OneHost);
    }

    /// Claim: a ledger that knows no times states nothing.
    #[test]
    fn nothing_stated() {
        let mut trial = Trial::clean();
        trial.entries = Some(vec![entry(1, None, Some(5))]);
        assert!(trial.result().stated.is_none());
    }
}
