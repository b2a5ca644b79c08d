//! Latencies are of those that reached the final stage. Where many did not, a quantile of the others flatters. That is
//! how a bad system looks: the numbers hold for what they say they are, thresholds compare those over all that were due,
//! and a reader is told.

use model::quantity::show_count;
use model::result::FigureUnit;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, skipped, warn};
use crate::figures::latency::BEYOND_MIN;
use crate::figures::share::{percent, share};

pub(super) const AUDIT: Audit = Audit {
    name: "survivorship",
    question: "Are the latencies those of a minority that got an answer?",
    voids: &[],
    figures: &[("missing", FigureUnit::Count), ("share", FigureUnit::Share)],
};

#[expect(clippy::cast_precision_loss, reason = "a count below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let counts = &evidence.result.counts;
    let missing = counts.due - counts.committed;
    let finding = finding(evidence).with("missing", missing as f64);
    finding.with("share", share(missing, counts.due))
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    let counts = &evidence.result.counts;
    if counts.due == 0 {
        return skipped("nothing was due in the measured window");
    }
    let missing = counts.due - counts.committed;
    let said = format!(
        "{} of {} ({}) never reached {}",
        show_count(missing),
        show_count(counts.due),
        percent(share(missing, counts.due)),
        evidence.result.final_stage
    );
    if counts.committed == 0 {
        return warn(format!("{said}: there is no latency to speak of"));
    }
    if missing > counts.committed {
        return warn(format!("{said}: the latencies are of the minority that survived"));
    }
    let final_latency = evidence.result.latency.get(evidence.trial.final_stage);
    let quantiles = final_latency.map_or(&[][..], |latency| &latency.response.quantiles);
    let infinite: Vec<_> = quantiles
        .iter()
        .filter(|q| q.unconditional_ns.is_none())
        .map(|q| q.name.as_str())
        .collect();
    let thin: Vec<_> =
        quantiles.iter().filter(|q| q.beyond < BEYOND_MIN).map(|q| q.name.as_str()).collect();
    if !infinite.is_empty() {
        return warn(format!(
            "{said}: over all that were due, {} is infinite",
            infinite.join(", ")
        ));
    }
    if thin.is_empty() {
        ok(said)
    } else {
        ok(format!(
            "{said}; fewer than {BEYOND_MIN} samples lie beyond {}, greyed",
            thin.join(", ")
        ))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use model::plan::{Level, ThresholdPlan};
    use model::result::{AuditOutcome, Verdict};
    use model::{Class, Outcome};

    use crate::audits::guilty::{Guilt, MS};
    use crate::testing::{Trial, audit, row};
    use model::NO_STAMP;

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("nothing is committed", |trial| {
        for old in &mut trial.rows {
            *old = row(old.tx, old.due, MS, Outcome::Unknown);
            old.marks[0] = NO_STAMP;
        }
    })];

    const LIMITED: Outcome = Outcome::Rejected(Class::Limited);

    /// Claim: a dead system and one that refuses most are told of and never invalid, with a threshold or without; when p99
    /// alone would be infinite it is said; a few failures pass.
    #[test]
    fn survivors() {
        for (lost, how, outcome) in [
            (10_000, LIMITED, AuditOutcome::Warn),
            (6_600, LIMITED, AuditOutcome::Warn),
            (200, Outcome::Unknown, AuditOutcome::Warn),
            (50, LIMITED, AuditOutcome::Ok),
        ] {
            let mut trial = Trial::clean();
            for old in trial.rows.iter_mut().rev().take(lost) {
                *old = row(old.tx, old.due, 1_000_000, how);
            }
            let promise = ThresholdPlan::new("success >= 99%", Level::Fail);
            let promised = Trial { thresholds: vec![promise], ..trial.clone() }.result();
            let result = trial.result();
            let found = audit(&result, "survivorship");
            assert_eq!(found.outcome, outcome, "{}", found.detail);
            assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
            let broken = if lost > 100 { Verdict::Fail } else { Verdict::Pass };
            assert_eq!(promised.verdict, broken, "{}", promised.reason);
        }
    }
}
