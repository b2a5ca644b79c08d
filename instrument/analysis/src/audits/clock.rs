//! Times that cannot be: something before it was due, or a wall clock that was set during the trial.

use model::quantity::{show_count, show_ns};
use model::result::{Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, warn};

/// Stamps come from the monotonic line, so a step of the wall clock moves no latency; it misplaces the
/// system's own times (block headers, logs). Slewing stays below this in an hour (500 ppm).
const WALL_STEP_WARN_NS: u64 = 50_000_000;
/// From here on, nothing that the system itself dates can be compared with the trial.
const WALL_STEP_MAX_NS: u64 = 2_000_000_000;
const DATED_BY_THE_SYSTEM: [Voided; 2] =
    [Voided::either(Family::Stated), Voided::either(Family::NodeStages)];

pub(super) const AUDIT: Audit = Audit {
    name: "clock",
    question: "Are there times that cannot be?",
    voids: &[
        Voided::either(Family::Response),
        Voided::either(Family::Service),
        Voided::either(Family::SendLag),
        Voided::either(Family::Outstanding),
        Voided::either(Family::Committed),
    ],
    figures: &[("negative", FigureUnit::Count), ("wall_step", FigureUnit::Ns)],
};

#[expect(clippy::cast_precision_loss, reason = "counts and times below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let finding = finding(evidence).with("negative", evidence.figures.order.negative as f64);
    finding.with("wall_step", evidence.trial.facts.load.wall_step_ns.unsigned_abs() as f64)
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    let order = &evidence.figures.order;
    let step = evidence.trial.facts.load.wall_step_ns;
    if order.negative > 0 {
        return failed(format!(
            "{} transactions have a time before they were due (the first is {}): times run backwards, nothing was clamped",
            show_count(order.negative),
            order.negative_example.unwrap_or_default()
        ));
    }
    let way = if step < 0 { "back" } else { "ahead" };
    let by = show_ns(step.saturating_abs());
    let said = format!("the wall clock moved {way} by {by} against the monotonic one");
    match step.unsigned_abs() {
        ns if ns > WALL_STEP_MAX_NS => failed(format!(
            "{said}: it was set during the trial, and the system's own times cannot be placed"
        ))
        .voiding(DATED_BY_THE_SYSTEM),
        ns if ns > WALL_STEP_WARN_NS => warn(format!("{said}; latencies are not affected")),
        _ => ok(format!("no negative time; {said}")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use model::result::AuditOutcome;

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("one is sent before it was due", |trial| {
        let middle = trial.rows.len() / 2;
        trial.rows[middle].sent = trial.rows[middle].due - 5;
    })];

    /// Claim: a negative time fails with its count and example; a stepped wall clock warns, a set one fails.
    #[test]
    fn impossible_times() {
        let mut trial = Trial::clean();
        let due = trial.rows[17].due;
        trial.rows[17].sent = due - 5;
        let result = trial.result();
        let found = audit(&result, "clock");
        assert_eq!(found.outcome, AuditOutcome::Failed);
        assert!(found.detail.contains("the first is 17"), "{}", found.detail);
        for (step, outcome) in [
            (100_000_000, AuditOutcome::Warn),
            (-3_000_000_000, AuditOutcome::Failed),
            (9, AuditOutcome::Ok),
        ] {
            let mut trial = Trial::clean();
            trial.facts.load.wall_step_ns = step;
            assert_eq!(audit(&trial.result(), "clock").outcome, outcome);
        }
    }
}
