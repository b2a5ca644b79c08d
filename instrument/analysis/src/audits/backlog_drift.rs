//! Does the number outstanding rise through the window? Then the system is saturated, and its latencies are a
//! function of how long one cared to wait, not of the system.

use model::quantity::show_count;
use model::result::{Family, FigureUnit, Voided};
use stats::trend::{mann_kendall_rising, mann_kendall_score, theil_sen};

use crate::flow::BLOCKS;

use super::{Audit, Evidence, Finding, connections, failed, ok, percent, skipped, warn};

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

pub(super) const AUDIT: Audit = Audit {
    name: "backlog_drift",
    question: "Did the backlog grow through the window, so that latencies depend on how long the run is?",
    voids: &[
        // A longer run would only have made them longer, and let more of them miss their timeout.
        Voided::too_low(Family::Response),
        Voided::too_low(Family::Outstanding),
        Voided::too_low(Family::Failures),
        Voided::too_low(Family::NodeStages),
    ],
    figures: &[
        ("first", FigureUnit::Count),
        ("last", FigureUnit::Count),
        ("slope", FigureUnit::PerSecond),
        ("growth", FigureUnit::Count),
        ("share", FigureUnit::Share),
    ],
};

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
    let per_s = growth / evidence.grid.seconds();
    let figures = |finding: Finding| {
        let finding = finding.with("first", first).with("last", last);
        finding.with("slope", per_s).with("growth", growth).with("share", share)
    };
    let is_large = p <= P_MAX && share >= GROWTH_SHARE_MIN && last >= 1.5 * first;
    let is_steady = mann_kendall_score(&means) >= SCORE_MIN && last >= STEADY_RATIO_MIN * first;
    if growth < GROWTH_MIN || !(is_large || is_steady) {
        return figures(ok(format!(
            "outstanding went from {first:.1} to {last:.1} (means of the first and last tenth): no significant growth"
        )));
    }
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
    if evidence.is_saturated || evidence.load_changes() {
        return figures(warn(said));
    }
    if evidence.flow.has_stopped() {
        // Nothing that one could wait for longer: what was not answered is unknown, and counts as such.
        return figures(warn(format!(
            "outstanding rose from {} to {} because nothing was committed any more at the end of the window",
            show_count(whole(first)),
            show_count(whole(last)),
        )));
    }
    figures(failed(format!(
        "{said}; lower the rate, or declare a threshold with level = \"saturated\""
    )))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, for people")]
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::plan::{Level, ThresholdPlan};
    use model::result::{AuditOutcome, Verdict};

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
        let expr = "committed >= 98% of offered";
        declared.thresholds.push(ThresholdPlan::new(expr, Level::Saturated));
        let result = declared.result();
        assert_eq!(audit(&result, "backlog_drift").outcome, AuditOutcome::Warn);
        assert_eq!(result.thresholds[0].holds, Some(false), "{:?}", result.thresholds[0]);
    }

    /// Claim: a system that died has numbers that hold, and no advice to lower the rate: a threshold decides.
    #[test]
    fn the_dead_are_not_saturated() {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().filter(|old| old.due > 3_000_000_000) {
            *old = row(old.tx, old.due, 30_000_000_000, Outcome::Unknown);
        }
        trial.facts.load.drain_end = 40_000_000_000;
        let promised = Trial {
            thresholds: vec![ThresholdPlan::new("p99 < 1s", Level::Fail)],
            ..trial.clone()
        };
        let result = trial.result();
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
        let found = audit(&result, "backlog_drift");
        assert!(found.detail.contains("nothing was committed any more"), "{}", found.detail);
        assert_eq!(promised.result().verdict, Verdict::Fail);
    }

    /// Claim: what a longer run would only make worse is broken a fortiori; what holds so far is not known to hold.
    #[test]
    fn promises_of_the_saturated() {
        let with = |expr: &str| {
            let mut trial = overloaded();
            trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
            trial.result().verdict
        };
        assert_eq!(with("p99 < 1s"), Verdict::Fail);
        assert_eq!(with("p99 < 60s"), Verdict::Invalid);
        assert_eq!(with("success == 100%"), Verdict::Invalid);
        assert_eq!(with("offered >= 990/s"), Verdict::Pass);
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
