//! Answers that came more than once, or for a transaction that was never submitted. A row counts once whatever comes, so
//! the numbers hold; that no such answer comes is a threshold of every system.

use model::quantity::show_count;
use model::result::FigureUnit;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, warn};

pub(super) const AUDIT: Audit = Audit {
    name: "duplicates",
    question: "Was anything answered more than once, or without having been asked?",
    voids: &[],
    figures: &[
        ("again", FigureUnit::Count),
        ("unasked", FigureUnit::Count),
        ("late", FigureUnit::Count),
    ],
};

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let engine = &evidence.engine;
    let finding = finding(evidence).with("again", engine.duplicate_answers as f64);
    finding.with("unasked", engine.phantom_answers as f64).with("late", engine.late_answers as f64)
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    let engine = &evidence.engine;
    let found = [
        (engine.duplicate_answers, "answers came for a stage that was already reached"),
        (engine.phantom_answers, "answers came for a transaction that was never submitted"),
    ];
    let said: Vec<_> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", show_count(*count)))
        .collect();
    if !said.is_empty() {
        return warn(said.join("; "));
    }
    let late = match engine.late_answers {
        0 => String::new(),
        late => format!("; {} late answers, which count as unknown", show_count(late)),
    };
    if engine.undecided_answers > 0 {
        return warn(format!(
            "no answer is known to have come twice{late}; {} answers came so long after their transactions \
             had ended that it cannot tell whether they were late, repeated, or for no known transaction",
            show_count(engine.undecided_answers)
        ));
    }
    ok(format!("no answer came twice{late}"))
}

#[cfg(test)]
pub(super) mod tests {
    use model::facts::WorkerFacts;
    use model::result::{AuditOutcome, Verdict};

    use crate::audits::guilty::{Guilt, worker};
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("one answer comes twice", |trial| worker(trial).duplicate_answers = 1)];

    /// Claim: a second answer and an answer to no transaction each fail a threshold that nobody has to write, each in its own
    /// words; the numbers hold.
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
            assert_eq!(found.outcome, AuditOutcome::Warn);
            assert!(found.detail.contains(words), "{}", found.detail);
            assert_eq!(result.verdict, Verdict::Fail);
            assert!(result.reason.contains(words), "{}", result.reason);
        }
        let mut trial = Trial::clean();
        let worker = WorkerFacts { wall_ns: 1, undecided_answers: 3, ..WorkerFacts::default() };
        trial.facts.load.workers.push(worker);
        let result = trial.result();
        let found = audit(&result, "duplicates");
        assert_eq!(found.outcome, AuditOutcome::Warn, "nobody is accused: {}", found.detail);
        assert!(found.detail.contains("3 answers came so long after"), "{}", found.detail);
    }
}
