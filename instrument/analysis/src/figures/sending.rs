//! How transactions left: how often each was sent, from the rows, and what left together, from the engine's counts.

use model::facts::{BatchFacts, WorkerFacts};
use model::plan::LoadPlan;
use model::result::{AttemptsResult, BatchesResult};

use crate::figures::tally::Tally;

/// How often the transactions of a tally were sent.
pub(crate) fn attempts(tally: &Tally, load: &LoadPlan) -> AttemptsResult {
    let (total, max) = tally.attempts();
    let sent = tally.sent();
    AttemptsResult {
        allowed: load.resend.as_ref().map_or(1, |resend| u64::from(resend.attempts_max)),
        sent,
        resent: tally.resent(),
        total,
        mean: mean(total, sent),
        max: u64::from(max),
    }
}

/// The batches of all threads; `None` where the load has no batches.
pub(crate) fn batches(workers: &[WorkerFacts], load: &LoadPlan) -> Option<BatchesResult> {
    load.batch.as_ref()?;
    let all = workers.iter().map(|worker| &worker.batches);
    let sum = |count: fn(&BatchFacts) -> u64| {
        all.clone().fold(0_u64, |sum, batches| sum.saturating_add(count(batches)))
    };
    let count = sum(|of| of.count);
    let transactions = sum(|of| of.transactions);
    Some(BatchesResult {
        count,
        transactions,
        size_mean: mean(transactions, count),
        size_max: all.clone().map(|of| of.size_max).max().filter(|size| *size > 0),
        full: sum(|of| of.full),
        completion: sum(|of| of.completion),
        delay: sum(|of| of.delay),
        drain: sum(|of| of.drain),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a mean of counts")]
fn mean(total: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| total as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::plan::{BatchPlan, ResendPlan};
    use model::result::TrialResult;
    use model::{NO_STAMP, Outcome};

    use super::*;
    use crate::names::metric::metric;
    use crate::testing::{Trial, row};

    fn value(result: &TrialResult, name: &str) -> f64 {
        metric(name, result).unwrap_or_else(|| panic!("{name} has no value")).value
    }

    /// Claim: what was sent more than once is counted among what fell due in the window, with the mean and the most;
    /// what was shed was never sent, and a record that does not say how often a row was sent counts as once.
    #[test]
    fn attempts_of_the_window() {
        let mut trial = Trial::clean();
        trial.facts.declared.measure_start = 1_000_000_000;
        trial.setting.load.resend =
            Some(ResendPlan { attempts_max: 5, after: Duration::from_secs(1) });
        // The warm-up's and the window's first.
        trial.rows[0].attempts = 5;
        trial.rows[1_000].attempts = 3;
        trial.rows[1_001].attempts = 2;
        trial.rows[1_002].attempts = 0;
        trial.rows[1_003] = row(1_003, trial.rows[1_003].due, 1_000_000, Outcome::Shed);
        assert_eq!(trial.rows[1_003].sent, NO_STAMP);
        let result = trial.result();
        let attempts = &result.attempts;
        assert_eq!((attempts.allowed, attempts.sent, attempts.total), (5, 8_999, 9_002));
        assert_eq!(value(&result, "resent"), 2.0);
        assert_eq!(value(&result, "attempts.max"), 3.0);
        assert_eq!(value(&result, "attempts.mean"), 9_002.0 / 8_999.0);
        let once = Trial::clean().result();
        assert_eq!((once.attempts.allowed, value(&once, "resent")), (1, 0.0));
        assert_eq!(value(&once, "attempts.max"), 1.0);
    }

    /// Claim: batches of all threads are added, the largest is the largest of any, reasons are shares of their number,
    /// and a load without batches has none of these numbers.
    #[test]
    fn batches_of_all_threads() {
        let mut trial = Trial::clean();
        trial.setting.load.batch =
            Some(BatchPlan { size_max: 40, delay_max: Duration::ZERO, in_flight_max: 1 });
        trial.consistent = false;
        let worker = |batches| WorkerFacts { batches, ..WorkerFacts::default() };
        trial.facts.load.workers = vec![
            worker(BatchFacts {
                count: 3,
                transactions: 90,
                size_max: 40,
                full: 1,
                completion: 2,
                ..BatchFacts::default()
            }),
            worker(BatchFacts {
                count: 5,
                transactions: 10,
                size_max: 3,
                delay: 4,
                drain: 1,
                ..BatchFacts::default()
            }),
        ];
        let result = trial.result();
        let names = ["count", "size.mean", "size.max", "full", "completion", "delay", "drain"];
        let found = names.map(|name| value(&result, &format!("batches.{name}")));
        assert_eq!(found, [8.0, 12.5, 40.0, 0.125, 0.25, 0.5, 0.125]);
        let none = Trial::clean().result();
        assert!(none.batches.is_none() && metric("batches.count", &none).is_none());
    }
}
