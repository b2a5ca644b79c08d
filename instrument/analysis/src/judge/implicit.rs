//! Thresholds that nobody has to write: what every system that is read back promises, and what every answer does. A
//! threshold of the experiment that names the same number stands in its place, and so relaxes it.
//!
//! One entry a threshold, and one a promise that is no number.

use model::facts::{LedgerFault, PreflightFinding, TrialFacts};
use model::plan::{Level, ThresholdPlan};
use model::result::{Answer, Fates, ThresholdResult, TrialResult};

use crate::judge::expression::names_in;

/// The promise that a number is zero.
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
            "transaction after one that was sent after it was acknowledged",
            "transactions after one that was sent after they were acknowledged",
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

/// A promise that is no number: what a trial recorded of itself keeps or breaks it.
struct Outright {
    /// As it stands among the thresholds.
    name: &'static str,
    level: Level,
    /// The sentence, if it is broken.
    broken: fn(&TrialFacts) -> Option<String>,
}

const OUTRIGHT: [Outright; 5] = [
    Outright { name: "load goes to its end", level: Level::Fail, broken: ended_early },
    Outright { name: "load can be sent", level: Level::Invalid, broken: could_not_be_sent },
    Outright { name: "preflight", level: Level::Fail, broken: nothing_succeeds },
    Outright { name: "ledger stands its audit", level: Level::Fail, broken: ledger_refused },
    Outright { name: "ledger can be read", level: Level::Invalid, broken: ledger_unreadable },
];

/// The promises that are no numbers, as far as the trial broke them; those that it kept need no words.
pub(crate) fn broken_outright(facts: &TrialFacts) -> Vec<ThresholdResult> {
    let broken = |it: &Outright| {
        Some(ThresholdResult {
            expr: it.name.to_owned(),
            level: it.level.word().to_owned(),
            implicit: true,
            answer: Answer::Failed,
            holds: Some(false),
            detail: (it.broken)(facts)?,
            ..ThresholdResult::default()
        })
    };
    OUTRIGHT.iter().filter_map(broken).collect()
}

/// Kinds named in the sentence.
const KINDS_MAX: usize = 3;

fn nothing_succeeds(facts: &TrialFacts) -> Option<String> {
    if !facts.load.is_withheld {
        return None;
    }
    let tried: Vec<_> = facts.declared.preflight.iter().filter(|it| !it.is_note).collect();
    let said = |it: &&PreflightFinding| format!("{} → {}", it.kind, it.detail);
    let mut named: Vec<String> = tried.iter().take(KINDS_MAX).map(said).collect();
    if tried.len() > KINDS_MAX {
        named.push(format!("{} more", tried.len() - KINDS_MAX));
    }
    let who = match tried.len() {
        1 => "the test request before the load failed".to_owned(),
        count => format!("all {count} test requests before the load failed"),
    };
    let after = "nothing was sent after that; --no-preflight sends the load all the same";
    Some(format!("{who}: {}; {after}", named.join(", ")))
}

fn ended_early(facts: &TrialFacts) -> Option<String> {
    early(facts, false)
}

fn could_not_be_sent(facts: &TrialFacts) -> Option<String> {
    early(facts, true)
}

fn early(facts: &TrialFacts, is_machine: bool) -> Option<String> {
    let ended = facts.load.ended_early.as_ref().filter(|it| it.is_machine == is_machine)?;
    Some(format!("ended early: {}", ended.why))
}

fn ledger_refused(facts: &TrialFacts) -> Option<String> {
    let ledger = &facts.after.ledger;
    (ledger.fault == Some(LedgerFault::Refused)).then(|| ledger.detail.clone())
}

fn ledger_unreadable(facts: &TrialFacts) -> Option<String> {
    let ledger = &facts.after.ledger;
    let goes_without =
        "whether anything was lost is not known; measure.ledger = false goes without it";
    (ledger.fault == Some(LedgerFault::Unreadable))
        .then(|| format!("the ledger could not be read: {}; {goes_without}", ledger.detail))
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
    use model::facts::{LedgerEntry, SecondReading};
    use model::result::{Answer, AuditOutcome, Verdict};

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

    /// Claim: a load that was withheld has failed with the answers, and nothing else of it is judged; a ledger that its own
    /// audit refuses has failed with the audit's sentence, and one that cannot be read is invalid, though nobody wrote a
    /// threshold.
    #[test]
    fn promises_that_are_no_numbers() {
        let mut withheld = Trial::clean();
        withheld.rows.clear();
        withheld.thresholds = vec![ThresholdPlan::new("success == 100%", Level::Fail)];
        withheld.facts.load.is_withheld = true;
        let answer = "500 Internal Server Error";
        withheld.facts.declared.preflight = vec![PreflightFinding::new("GET /", false, answer)];
        let result = withheld.result();
        assert_eq!(result.verdict, Verdict::Fail);
        let said = "the test request before the load failed: GET / → 500 Internal Server Error; nothing was sent \
                    after that; --no-preflight sends the load all the same";
        assert_eq!(result.reason, said);
        let others = result.audits.iter().filter(|it| it.name != "preflight");
        assert!(others.into_iter().all(|it| it.outcome == AuditOutcome::Skipped));
        assert!(result.audits.iter().all(|it| it.voids.is_empty()), "there is no number");
        for (fault, verdict) in
            [(LedgerFault::Refused, Verdict::Fail), (LedgerFault::Unreadable, Verdict::Invalid)]
        {
            let mut trial = Trial::clean();
            trial.facts.after.ledger.fault = Some(fault);
            trial.facts.after.ledger.detail = "number 3 is withheld".to_owned();
            let result = trial.result();
            assert_eq!(result.verdict, verdict, "{}", result.reason);
            assert!(result.reason.contains("number 3 is withheld"), "{}", result.reason);
        }
    }

    /// Claim: what only the second reading of a ledger has was acknowledged early: it is counted, named and told, and is
    /// neither lost nor a failure; a threshold on it decides.
    #[test]
    fn acknowledged_early() {
        for (expr, verdict) in
            [("once == 10000", Verdict::Pass), ("acknowledged_early == 0", Verdict::Fail)]
        {
            let mut trial = Trial::clean();
            trial.entries = Some((0..10_000).map(|tx| LedgerEntry::new(tx, tx, true)).collect());
            let after_ns = 2_000_000_000;
            let early_examples = vec![9_998, 9_999];
            let second = SecondReading { after_ns, early: 2, early_examples };
            trial.facts.after.ledger.second = Some(second);
            trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
            let result = trial.result();
            assert_eq!(result.verdict, verdict, "{expr}: {}", result.reason);
            let fates = result.fates.as_ref().expect("the ledger was read");
            assert_eq!((fates.acknowledged_early, fates.lost), (2, 0));
            let found = crate::testing::audit(&result, "ledger");
            let said = "2 acknowledged early: in the ledger only at its second reading, 2s after the first (tx 9998, tx 9999)";
            assert_eq!((found.outcome, found.detail.as_str()), (AuditOutcome::Warn, said));
        }
    }
}
