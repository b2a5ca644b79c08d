//! Answers and entries that came more than once, or for a transaction that nobody submitted: whatever counts
//! answers or entries then counts too many.

use model::quantity::show_count;

use super::{Evidence, Finding, failed, ok, warn};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let engine = &evidence.engine;
    let in_ledger = evidence.result.fates.as_ref().map_or(0, |fates| fates.duplicate);
    let found = [
        (engine.duplicate_answers, "answers came for a stage that was already reached"),
        (engine.phantom_answers, "answers came for a transaction that was never submitted"),
        (in_ledger, "ledger entries repeat an earlier one"),
    ];
    let said: Vec<_> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", show_count(*count)))
        .collect();
    if !said.is_empty() {
        return failed(said.join("; "));
    }
    let late = match engine.late_answers {
        0 => String::new(),
        late => format!("; {} late answers, which count as unknown", show_count(late)),
    };
    if engine.undecided_answers > 0 {
        return warn(format!(
            "no answer and no entry is known to have come twice{late}; {} answers came so long after their transactions \
             had ended that it cannot tell whether they were late, repeated or for nobody",
            show_count(engine.undecided_answers)
        ));
    }
    ok(format!("no answer and no entry came twice{late}"))
}

#[cfg(test)]
mod tests {
    use model::facts::{LedgerEntry, WorkerFacts};
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit};

    /// Claim: a second answer, an answer for nobody and a second entry each fail, each in its own words.
    #[test]
    fn each_kind_of_twice() {
        type Change = fn(&mut WorkerFacts);
        let counters: [(Change, &str); 2] = [
            (|worker| worker.duplicate_answers = 1, "already reached"),
            (|worker| worker.phantom_answers = 2, "never submitted"),
        ];
        for (change, words) in counters {
            let mut trial = Trial::clean();
            trial.facts.load.workers.push(WorkerFacts { wall_ns: 1, ..WorkerFacts::default() });
            change(&mut trial.facts.load.workers[0]);
            let result = trial.result();
            let found = audit(&result, "duplicates");
            assert_eq!(found.outcome, AuditOutcome::Failed);
            assert!(found.detail.contains(words), "{}", found.detail);
        }
        let mut trial = Trial::clean();
        let worker = WorkerFacts { wall_ns: 1, undecided_answers: 3, ..WorkerFacts::default() };
        trial.facts.load.workers.push(worker);
        let result = trial.result();
        let found = audit(&result, "duplicates");
        assert_eq!(found.outcome, AuditOutcome::Warn, "nobody is accused: {}", found.detail);
        assert!(found.detail.contains("3 answers came so long after"), "{}", found.detail);
        let mut trial = Trial::clean();
        let ids = (0..10_000).chain([7]);
        trial.entries = Some(ids.map(|tx| LedgerEntry::new(tx, tx, true)).collect());
        assert!(audit(&trial.result(), "duplicates").detail.contains("repeat an earlier one"));
    }
}
