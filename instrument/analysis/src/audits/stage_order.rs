//! due ≤ ready ≤ sent ≤ marks, rising ≤ end, and a final mark exactly where the outcome says committed.

use model::quantity::show_count;
use model::result::{Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok};

pub(super) const AUDIT: Audit = Audit {
    name: "stage_order",
    question: "Does every row stand in order: due ≤ ready ≤ sent ≤ marks ≤ end?",
    voids: &[
        Voided::either(Family::Response),
        Voided::either(Family::Service),
        Voided::either(Family::SendLag),
        Voided::either(Family::Committed),
        Voided::either(Family::Failures),
        Voided::either(Family::Timeouts),
        Voided::either(Family::Outstanding),
    ],
    figures: &[("violations", FigureUnit::Count), ("contradictions", FigureUnit::Count)],
};

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let order = &evidence.figures.order;
    let example = |tx: Option<u64>| tx.unwrap_or_default();
    let mut said = Vec::new();
    if order.violations > 0 {
        said.push(format!(
            "{} transactions have stages out of order (the first is {})",
            show_count(order.violations),
            example(order.example)
        ));
    }
    if order.contradictions > 0 {
        said.push(format!(
            "{} transactions contradict themselves: committed without a final mark, or marked without being sent (the first is {})",
            show_count(order.contradictions),
            example(order.contradiction_example)
        ));
    }
    let finding = if said.is_empty() {
        ok("due, ready, sent, marks and end stand in order in every row")
    } else {
        failed(said.join("; "))
    };
    let finding = finding.with("violations", order.violations as f64);
    finding.with("contradictions", order.contradictions as f64)
}

#[cfg(test)]
pub(super) mod tests {
    use model::result::AuditOutcome;
    use model::{NO_STAMP, Outcome};

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("a mark before its send", |trial| {
        for old in trial.rows.iter_mut().step_by(7) {
            old.marks[0] = old.due - 5_000;
        }
    })];

    /// Claim: a mark before sending, falling marks and a commit without its mark each fail.
    #[test]
    fn out_of_order() {
        let changes: [fn(&mut model::Row); 4] = [
            |row| row.sent = row.marks[0] + 1,
            |row| row.marks[1] = row.marks[0] - 1,
            |row| row.marks[0] = NO_STAMP,
            |row| row.outcome = Outcome::Unknown,
        ];
        for change in changes {
            let mut trial = Trial::clean();
            change(&mut trial.rows[9]);
            let result = trial.result();
            let found = audit(&result, "stage_order");
            assert_eq!(found.outcome, AuditOutcome::Failed, "{}", found.detail);
            assert!(found.detail.contains("the first is 9"), "{}", found.detail);
        }
    }
}
