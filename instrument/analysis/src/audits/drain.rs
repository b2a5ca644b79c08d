//! Did everything that was outstanding after the load come to an end, or was waiting given up?

use model::NO_STAMP;
use model::quantity::{show_count, show_duration, show_ns};

use super::{Evidence, Finding, failed, ok, percent, share, skipped, warn};

/// A larger share than this given up before its timeout biases every quantile of the tail.
const LEFT_SHARE_MAX: f64 = 0.001;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let facts = evidence.facts;
    if facts.load.drain_end == NO_STAMP {
        return if evidence.is_cut() {
            skipped("the trial was cut off before its drain ended")
        } else {
            failed("the end of the drain was not recorded, though the trial was not interrupted")
        };
    }
    let took = show_ns(facts.load.drain_end.saturating_sub(facts.measure_end()).max(0));
    if facts.load.drain_left == 0 {
        return ok(format!("reached zero outstanding after {took}"));
    }
    let due = evidence.all.due();
    let load = &evidence.setting.load;
    let advice = if load.drain_max < load.timeout {
        "set load.drain to at least the timeout"
    } else {
        "a backlog was still being sent in the drain: set load.drain to the timeout and the time that the backlog takes"
    };
    let said = format!(
        "{} transactions ({}) were still outstanding when the drain of {} ended; they were given up before their \
         timeout of {} and count as unknown; {advice}",
        show_count(facts.load.drain_left),
        percent(share(facts.load.drain_left, due)),
        show_duration(load.drain_max),
        show_duration(load.timeout),
    );
    if share(facts.load.drain_left, due) > LEFT_SHARE_MAX { failed(said) } else { warn(said) }
}

#[cfg(test)]
mod tests {
    use model::NO_STAMP;
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit};

    /// Claim: the advice is one that helps: a longer drain where it was shorter than the timeout, and otherwise one
    /// that has room for the backlog.
    #[test]
    fn advice_that_helps() {
        let detail = |drain_s: u64| {
            let mut trial = Trial::clean();
            trial.facts.load.drain_left = 5;
            trial.setting.load.drain_max = std::time::Duration::from_secs(drain_s);
            audit(&trial.result(), "drain").detail.clone()
        };
        assert!(detail(1).ends_with("set load.drain to at least the timeout"), "{}", detail(1));
        assert!(detail(30).contains("a backlog was still being sent"), "{}", detail(30));
    }

    /// Claim: a drain that reached zero passes, one that left a few warns, one that left many or never ended fails.
    #[test]
    fn reached_zero_or_counted() {
        for (left, outcome) in
            [(0, AuditOutcome::Ok), (5, AuditOutcome::Warn), (50, AuditOutcome::Failed)]
        {
            let mut trial = Trial::clean();
            trial.facts.load.drain_left = left;
            assert_eq!(audit(&trial.result(), "drain").outcome, outcome);
        }
        let mut trial = Trial::clean();
        trial.facts.load.drain_end = NO_STAMP;
        assert_eq!(audit(&trial.result(), "drain").outcome, AuditOutcome::Failed);
    }
}
