//! Does the number outstanding rise through the window? Then the system is saturated, and its latencies are a
//! function of how long one cared to wait, not of the system.

use model::quantity::show_count;
use stats::trend::{mann_kendall_rising, mann_kendall_score, theil_sen};

use crate::flow::BLOCKS;

use super::{Evidence, Finding, connections, failed, ok, percent, skipped, warn};

/// A rise must be this sure.
const P_MAX: f64 = 0.005;
/// A rise must leave this many transactions outstanding: less is noise of any queue.
const GROWTH_MIN: f64 = 10.0;
/// A rise that is only likely must be of at least this share of what was due.
const GROWTH_SHARE_MIN: f64 = 0.02;
/// A smaller one must be steady: of the 45 pairs of blocks all but one rise …
const SCORE_MIN: i64 = 43;
/// … and the last block must be so many times the first. A busy stable queue rises as steadily now and then, and hardly
/// ever as far: the false alarms and the power of the rule are in docs/theory.md.
const STEADY_RATIO_MIN: f64 = 3.0;

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    if evidence.schedule().is_none() {
        return skipped("a closed loop bounds what is outstanding");
    }
    let Some(means) = evidence.flow.outstanding_by_block() else {
        return skipped("the measured window is too short to see a trend");
    };
    let (Some(slope), Some(p)) = (theil_sen(&means), mann_kendall_rising(&means)) else {
        return skipped("the measured window is too short to see a trend");
    };
    let growth = slope * BLOCKS as f64;
    let share = growth / (evidence.flow.due_in_window.max(1)) as f64;
    let (first, last) = (means[0], means[BLOCKS - 1]);
    let is_large = p <= P_MAX && share >= GROWTH_SHARE_MIN && last >= 1.5 * first;
    let is_steady = mann_kendall_score(&means) >= SCORE_MIN && last >= STEADY_RATIO_MIN * first;
    if growth < GROWTH_MIN || !(is_large || is_steady) {
        return ok(format!(
            "outstanding went from {first:.1} to {last:.1} (means of the first and last tenth): no rise that counts"
        ));
    }
    let per_s = growth / evidence.grid.seconds();
    // Whose limit it is: what waits for a connection that the client does not open is outstanding, too.
    let who =
        if connections::are_the_limit(evidence) { "this client's pool" } else { "the system" };
    let said = format!(
        "outstanding rose by {per_s:.1}/s through the window, from {} to {} ({} of what was due): \
         {who} is saturated, and its latencies depend on the length of the run",
        show_count(whole(first)),
        show_count(whole(last)),
        percent(share)
    );
    if evidence.saturation_is_declared() || evidence.load_changes() {
        return warn(said);
    }
    failed(format!("{said}; lower the rate, or declare a threshold with level = \"saturated\""))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, for people")]
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::Outcome;
    use model::plan::{Level, ThresholdPlan};
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit, row};

    fn overloaded() -> Trial {
        let mut trial = Trial::clean();
        // D/D/1 at 1.2 times its capacity: the n-th waits n × 0.2 ms.
        for (n, old) in trial.rows.iter_mut().enumerate() {
            let wait = i64::try_from(n).unwrap() * 200_000;
            *old = row(old.tx, old.due, 2_000_000 + wait, Outcome::Committed);
        }
        trial.facts.load.drain_end = 20_000_000_000;
        trial
    }

    /// Claim: a queue that grows fails, with the slope in words; declared saturation only warns.
    #[test]
    fn growth_fails_unless_declared() {
        let result = overloaded().result();
        let found = audit(&result, "backlog_drift");
        assert_eq!(found.outcome, AuditOutcome::Failed, "{}", found.detail);
        assert!(found.detail.contains("saturated"), "{}", found.detail);
        let mut declared = overloaded();
        declared.thresholds.push(ThresholdPlan {
            expr: "committed >= 98% of offered".into(),
            at: BTreeMap::new(),
            level: Level::Saturated,
        });
        let result = declared.result();
        assert_eq!(audit(&result, "backlog_drift").outcome, AuditOutcome::Warn);
        assert_eq!(result.thresholds[0].holds, Some(false), "{:?}", result.thresholds[0]);
    }

    /// Claim: one freeze from which the system recovers is not saturation.
    #[test]
    fn one_freeze_is_no_drift() {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            if (4_000_000_000..5_000_000_000).contains(&old.due) {
                *old = row(old.tx, old.due, 5_002_000_000 - old.due, Outcome::Committed);
            }
        }
        let result = trial.result();
        let found = audit(&result, "backlog_drift");
        assert_eq!(found.outcome, AuditOutcome::Ok, "{}", found.detail);
    }
}
