//! Latencies are of those that reached the final stage. Where many did not, a quantile of the others flatters.

use model::quantity::show_count;

use super::{Evidence, Finding, failed, ok, percent, share, skipped, warn};
use crate::latency::BEYOND_MIN;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
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
        return failed(format!("{said}: there is no latency to speak of"));
    }
    if missing > counts.committed {
        return failed(format!("{said}: the latencies are of the minority that survived"));
    }
    let final_latency = evidence.result.latency.get(evidence.facts.declared.final_stage);
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
            "{said}: over all that were due, {} is infinite; the value shown is of the others",
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
mod tests {
    use model::Outcome;
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit, row};

    /// Claim: when most are lost the latencies do not hold; when p99 alone would be infinite it is said; a few failures pass.
    #[test]
    fn survivors() {
        for (lost, outcome) in [
            (10_000, AuditOutcome::Failed),
            (6_000, AuditOutcome::Failed),
            (200, AuditOutcome::Warn),
            (50, AuditOutcome::Ok),
        ] {
            let mut trial = Trial::clean();
            for old in trial.rows.iter_mut().rev().take(lost) {
                *old = row(old.tx, old.due, 1_000_000, Outcome::Unknown);
            }
            let result = trial.result();
            let found = audit(&result, "survivorship");
            assert_eq!(found.outcome, outcome, "{}", found.detail);
        }
    }
}
