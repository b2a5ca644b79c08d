//! Did everything that was outstanding after the load come to an end, or was waiting given up?

use model::NO_STAMP;
use model::quantity::{show_count, show_duration, show_ns};

use super::{Evidence, Finding, failed, ok, percent, share, skipped, warn};

/// A larger share than this given up before its timeout biases every quantile of the tail.
const LEFT_SHARE_MAX: f64 = 0.001;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let facts = evidence.facts;
    if facts.drain_end == NO_STAMP {
        return if evidence.is_cut() {
            skipped("the trial was cut off before its drain ended")
        } else {
            failed("the end of the drain was not recorded, though the trial was not interrupted")
        };
    }
    let took = show_ns(facts.drain_end.saturating_sub(facts.measure_end).max(0));
    if facts.drain_left == 0 {
        return ok(format!("reached zero outstanding after {took}"));
    }
    let due = evidence.all.due();
    let said = format!(
        "{} transactions ({}) were still outstanding when the drain of {} ended; they were given up before their \
         timeout of {} and count as unknown; set load.drain to at least the timeout",
        show_count(facts.drain_left),
        percent(share(facts.drain_left, due)),
        show_duration(evidence.setting.load.drain_max),
        show_duration(evidence.setting.load.timeout),
    );
    if share(facts.drain_left, due) > LEFT_SHARE_MAX { failed(said) } else { warn(said) }
}

#[cfg(test)]
mod tests {
    use model::NO_STAMP;
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit};

    /// Claim: a drain that reached zero passes, one that left a few warns, one that left many or never ended fails.
    #[test]
    fn reached_zero_or_counted() {
        for (left, outcome) in
            [(0, AuditOutcome::Ok), (5, AuditOutcome::Warn), (50, AuditOutcome::Failed)]
        {
            let mut trial = Trial::clean();
            trial.facts.drain_left = left;
            assert_eq!(audit(&trial.result(), "drain").outcome, outcome);
        }
        let mut trial = Trial::clean();
        trial.facts.drain_end = NO_STAMP;
        assert_eq!(audit(&trial.result(), "drain").outcome, AuditOutcome::Failed);
    }
}
