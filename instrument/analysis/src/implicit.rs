//! Thresholds that nobody has to write: what every system that is read back promises, and what every answer does. A
//! threshold of the experiment that names the same number stands in its place, and so relaxes it.
//!
//! One entry a threshold.

use model::plan::{Level, ThresholdPlan};
use model::result::{Fates, TrialResult};

use crate::thresholds::names_in;

/// What is promised: that a number is zero.
struct Promise {
    metric: &'static str,
    /// The sentence when it is not: before the count, after a one, and after any other count.
    words: [&'static str; 3],
    /// The fate whose transactions are named.
    fate: Option<&'static str>,
}

const PROMISES: [Promise; 7] = [
    Promise {
        metric: "lost",
        words: ["lost", "acknowledged transaction", "acknowledged transactions"],
        fate: Some("lost"),
    },
    Promise {
        metric: "duplicates",
        words: ["stored", "transaction again", "transactions again"],
        fate: Some("duplicate"),
    },
    Promise {
        metric: "phantom",
        words: [
            "invented",
            "transaction that was never submitted",
            "transactions that were never submitted",
        ],
        fate: Some("phantom"),
    },
    Promise {
        metric: "refused_yet_present",
        words: ["stored", "transaction that it had refused", "transactions that it had refused"],
        fate: Some("refused_yet_present"),
    },
    Promise {
        metric: "reordered",
        words: [
            "placed",
            "transaction behind one that was sent after it was acknowledged",
            "transactions behind one that was sent after they were acknowledged",
        ],
        fate: Some("reordered"),
    },
    Promise {
        metric: "audit.duplicates.again",
        words: [
            "gave",
            "answer for a stage that was already reached",
            "answers for a stage that was already reached",
        ],
        fate: None,
    },
    Promise {
        metric: "audit.duplicates.unasked",
        words: [
            "gave",
            "answer for a transaction that was never submitted",
            "answers for a transaction that was never submitted",
        ],
        fate: None,
    },
];

/// Ids named in the sentence; the result lists up to a hundred.
const NAMED_MAX: usize = 3;

/// The thresholds that a trial makes beside those that are written.
pub(crate) fn promises(written: &[ThresholdPlan], trial: &TrialResult) -> Vec<ThresholdPlan> {
    let named: Vec<String> = written.iter().flat_map(|it| names_in(&it.expr)).collect();
    let applies = |promise: &&Promise| promise.fate.is_none() || trial.fates.is_some();
    PROMISES
        .iter()
        .filter(applies)
        .filter(|promise| !named.iter().any(|name| name == promise.metric))
        .map(|promise| ThresholdPlan::new(format!("{} == 0", promise.metric), Level::Fail))
        .collect()
}

/// The sentence of a failed threshold about the number called `metric`: `lost 6 acknowledged transactions: tx 10, …`;
/// `None` for other numbers.
pub(crate) fn sentence(metric: &str, count: &str, trial: &TrialResult) -> Option<String> {
    let promise = PROMISES.iter().find(|promise| promise.metric == metric)?;
    let [verb, one, many] = promise.words;
    let what = if count == "1" { one } else { many };
    let ids = promise.fate.zip(trial.fates.as_ref()).map(|(fate, fates)| ids(fates, fate));
    let ids = ids.filter(|ids| !ids.is_empty()).map(|ids| format!(": {ids}"));
    Some(format!("{verb} {count} {what}{}", ids.unwrap_or_default()))
}

fn ids(fates: &Fates, fate: &str) -> String {
    let ids = fates.examples.get(fate).map_or(&[][..], Vec::as_slice);
    let mut named: Vec<_> = ids.iter().take(NAMED_MAX).map(|id| format!("tx {id}")).collect();
    if ids.len() > NAMED_MAX {
        named.push("…".to_owned());
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use model::facts::LedgerEntry;
    use model::result::{Answer, Verdict};

    use super::*;
    use crate::testing::Trial;

    fn liar() -> Trial {
        let mut trial = Trial::clean();
        let kept = (0..10_000_u64).filter(|tx| tx % 2_000 != 10);
        trial.entries = Some(kept.map(|tx| LedgerEntry::new(tx, tx, true)).collect());
        trial
    }

    /// Claim: a ledger that lost what it acknowledged has failed, with ids, though nobody wrote a threshold; a threshold on
    /// the same number stands in its place, whether it is kept or broken; an honest ledger passes, and one that was not
    /// read promises nothing.
    #[test]
    fn a_liar_has_failed() {
        let result = liar().result();
        assert_eq!(result.verdict, Verdict::Fail);
        let said = "lost 5 acknowledged transactions: tx 10, tx 2010, tx 4010, …";
        assert_eq!(result.reason, said);
        for (expr, verdict) in [("lost <= 5", Verdict::Pass), ("lost < 5", Verdict::Fail)] {
            let mut trial = liar();
            trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
            let result = trial.result();
            assert_eq!(result.verdict, verdict, "{expr}: {}", result.reason);
            assert!(!result.thresholds.iter().any(|it| it.expr == "lost == 0"));
        }
        let mut honest = Trial::clean();
        honest.entries = Some((0..10_000).map(|tx| LedgerEntry::new(tx, tx, true)).collect());
        let result = honest.result();
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
        let implicit = result.thresholds.iter().filter(|it| it.implicit);
        assert_eq!(implicit.filter(|it| it.answer == Answer::Met).count(), 7);
        assert!(!Trial::clean().result().thresholds.iter().any(|it| it.expr == "lost == 0"));
    }
}
