//! Did everything that was outstanding after the load come to an end, or was waiting given up?

use model::NO_STAMP;
use model::quantity::{show_count, show_duration, show_ns};
use model::result::{Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};
use crate::figures::share::{percent, share};

/// A larger share than this given up before its timeout biases every quantile of the tail.
const LEFT_SHARE_MAX: f64 = 0.001;

pub(super) const AUDIT: Audit = Audit {
    name: "drain",
    question: "Did everything outstanding come to an end after the load?",
    voids: &[
        // Each was waited for too shortly, and might have been answered.
        Voided::too_high(Family::Response),
        Voided::too_high(Family::Timeouts),
        Voided::too_low(Family::Committed),
    ],
    figures: &[("left", FigureUnit::Count), ("share", FigureUnit::Share)],
};

#[expect(clippy::cast_precision_loss, reason = "a count below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let left = evidence.trial.facts.load.drain_left;
    let finding = finding(evidence).with("left", left as f64);
    finding.with("share", share(left, evidence.figures.all.due()))
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    let facts = evidence.trial.facts;
    if facts.load.drain_end == NO_STAMP {
        return if evidence.is_cut() {
            skipped("the trial was cut off before its drain ended")
        } else {
            failed("the end of the drain was not recorded, though the trial was not interrupted")
        };
    }
    let took = show_ns(facts.load.drain_end.saturating_sub(facts.measure_end()).max(0));
    if facts.load.drain_left == 0 {
        return ok(format!("nothing was outstanding {took} after the load"));
    }
    let load = &evidence.trial.setting.load;
    let share = share(facts.load.drain_left, evidence.figures.all.due());
    let said = format!(
        "{} transactions ({}) were still outstanding when the drain of {} ended",
        show_count(facts.load.drain_left),
        percent(share),
        show_duration(load.drain_max),
    );
    if load.drain_max >= load.timeout {
        return warn(format!(
            "{said}: each had been due for its timeout of {} and counts as unknown; a backlog was still being sent",
            show_duration(load.timeout)
        ));
    }
    let said = format!(
        "{said}; they were given up before their timeout of {} and count as unknown; set load.drain to at least the \
         timeout",
        show_duration(load.timeout)
    );
    if share > LEFT_SHARE_MAX && !evidence.is_saturated { failed(said) } else { warn(said) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use model::NO_STAMP;
    use model::plan::{Level, ThresholdPlan};
    use model::result::AuditOutcome;

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("the drain gives up on 500", |trial| {
        trial.facts.load.drain_left = 500;
        trial.setting.load.drain_max = Duration::from_secs(1);
    })];

    fn left(left: u64, drain_s: u64) -> Trial {
        let mut trial = Trial::clean();
        trial.facts.load.drain_left = left;
        trial.setting.load.drain_max = std::time::Duration::from_secs(drain_s);
        trial
    }

    /// Claim: what is left after a drain as long as the timeout has timed out, and nothing is void; a shorter drain is
    /// told what would help.
    #[test]
    fn whose_patience_it_was() {
        let result = left(5_000, 30).result();
        let found = audit(&result, "drain");
        assert_eq!(found.outcome, AuditOutcome::Warn, "{}", found.detail);
        assert!(found.detail.contains("a backlog was still being sent"), "{}", found.detail);
        let result = left(5, 1).result();
        let found = audit(&result, "drain");
        assert!(
            found.detail.ends_with("set load.drain to at least the timeout"),
            "{}",
            found.detail
        );
    }

    /// Claim: declared saturation that came is not condemned for what the drain left.
    #[test]
    fn saturated() {
        let mut trial = left(5_000, 1);
        trial.thresholds = vec![ThresholdPlan::new("p99 < 1ms", Level::Saturated)];
        assert_eq!(audit(&trial.result(), "drain").outcome, AuditOutcome::Warn);
        let mut trial = left(5_000, 1);
        trial.thresholds = vec![ThresholdPlan::new("p99 < 1s", Level::Saturated)];
        assert_eq!(audit(&trial.result(), "drain").outcome, AuditOutcome::Failed, "it held");
    }

    /// Claim: a drain that reached zero passes, one that left a few warns, one that left many or never ended fails.
    #[test]
    fn reached_zero_or_counted() {
        for (count, outcome) in
            [(0, AuditOutcome::Ok), (5, AuditOutcome::Warn), (50, AuditOutcome::Failed)]
        {
            assert_eq!(audit(&left(count, 1).result(), "drain").outcome, outcome);
        }
        let mut trial = Trial::clean();
        trial.facts.load.drain_end = NO_STAMP;
        assert_eq!(audit(&trial.result(), "drain").outcome, AuditOutcome::Failed);
    }
}
