//! Do response times stay what they are from the start of the window to its end? A mean, a median and a quantile of all
//! of it say what none of its parts is like where they do not; a leak, a table that fills and a cache that runs out begin
//! so. Their numbers hold, and are of a mixture: it warns.
//!
//! It looks at the medians of twenty blocks of the window, by when transactions were due: no burst moves a median. The
//! growth of the backlog is [`super::backlog_drift`]'s to tell, and a start that is unlike the rest
//! [`super::warm_up`]'s; both ask [`Evidence::change`] whether the whole window moves.

use model::result::{AuditOutcome, FigureUnit};

use super::backlog_drift;
use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, skipped, warn};
use crate::figures::levels::{Change, Levels, shown};

pub(super) const AUDIT: Audit = Audit {
    name: "latency_drift",
    question: "Do response times stay at one level through the window?",
    voids: &[],
    figures: &[("first", FigureUnit::Ns), ("last", FigureUnit::Ns)],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    if let Some(reason) = evidence.moves_by_plan() {
        return skipped(reason);
    }
    let Some(levels) = Levels::of(evidence.response) else {
        return skipped(
            "too few transactions to see a trend: each twentieth of the window needs ten",
        );
    };
    let (first, last) = (levels.first(), levels.last());
    let finding = match levels.change() {
        None => ok(format!(
            "p50 {} in the first twentieth of the window, {} in the last: neither a drift nor a step",
            shown(first),
            shown(last)
        )),
        Some(_) if backlog_drift::audit(evidence).outcome == AuditOutcome::Failed => {
            skipped("response times grow with the backlog: see backlog_drift")
        }
        Some(change) => warn(told(evidence, &change)),
    };
    finding.with("first", first).with("last", last)
}

fn told(evidence: &Evidence<'_>, change: &Change) -> String {
    let mixed = "quantiles of the whole window describe none of its levels";
    let lacking = without_interval(evidence);
    let lacking = match lacking.len() {
        0 => String::new(),
        _ => format!(", and the interval of {} is open for that reason", lacking.join(", ")),
    };
    format!(
        "{}: {mixed}{lacking}; look for what fills up or runs out in the system, and read the picture over time",
        change.in_words(evidence.trial.grid.length())
    )
}

/// Printed quantiles whose interval has no upper end.
fn without_interval(evidence: &Evidence<'_>) -> Vec<String> {
    let latency = evidence.result.latency.get(evidence.trial.final_stage);
    let quantiles = latency.map_or(&[][..], |latency| &latency.response.quantiles);
    let open = quantiles.iter().filter(|it| it.high_ns.is_none());
    open.map(|it| it.name.clone()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use model::Outcome;
    use model::result::{AuditOutcome, TrialResult, Verdict};

    use crate::audits::guilty::{Guilt, WARM_UP_NS};
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[
        ("from 4 ms to 8 ms through the window", |trial| {
            let window = trial.facts.measure_end() - WARM_UP_NS;
            for old in &mut trial.rows {
                let more = (old.due - WARM_UP_NS).max(0) * 4 / (window / MS);
                *old = row(old.tx, old.due, old.end - old.due + more, Outcome::Committed);
            }
        }),
        ("a half slower from the middle on", |trial| {
            let middle = (trial.facts.measure_end() + WARM_UP_NS) / 2;
            for old in &mut trial.rows {
                let more = if old.due < middle { 0 } else { 2 * MS };
                *old = row(old.tx, old.due, old.end - old.due + more, Outcome::Committed);
            }
        }),
    ];

    const MS: i64 = 1_000_000;

    fn with(time: fn(i64) -> i64) -> TrialResult {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            let noise = old.end - old.due - 2 * MS;
            *old = row(old.tx, old.due, time(old.due) + noise, Outcome::Committed);
        }
        trial.result()
    }

    /// Claim: response times that climb from 127 to 419 ms, or step from 5 to 8, are told with their figures, and nothing
    /// says beside it that there is no trend or no growth; the numbers hold.
    #[test]
    fn drifts_and_steps() {
        let drift = with(|due| 50 * MS + due / 1_000 * 8);
        let found = audit(&drift, "latency_drift");
        assert_eq!(found.outcome, AuditOutcome::Warn, "{}", found.detail);
        assert!(found.detail.contains("p50 rises steadily from"), "{}", found.detail);
        for other in ["warm_up", "backlog_drift"] {
            let detail = &audit(&drift, other).detail;
            assert!(!detail.contains("no trend") && !detail.contains("no significant"), "{detail}");
            assert!(detail.contains("latency_drift"), "{other}: {detail}");
        }
        assert_eq!(drift.verdict, Verdict::Pass, "{}", drift.reason);
        let step = with(|due| if due < 6_000 * MS { 5 * MS } else { 8 * MS });
        let found = audit(&step, "latency_drift");
        assert_eq!(found.outcome, AuditOutcome::Warn, "{}", found.detail);
        assert!(found.detail.starts_with("p50 steps up from 5.5"), "{}", found.detail);
        assert!(found.detail.contains("about 6.00 s into the window"), "{}", found.detail);
    }

    /// Claim: a freeze in the middle is neither, and a backlog that grows is told once.
    #[test]
    fn a_freeze_is_neither() {
        let freeze = with(|due| {
            let is_frozen = (5_000 * MS..6_000 * MS).contains(&due);
            2 * MS + if is_frozen { 6_000 * MS - due } else { 0 }
        });
        assert_eq!(audit(&freeze, "latency_drift").outcome, AuditOutcome::Ok);
        let grows = with(|due| 2 * MS + due / 5);
        assert_eq!(audit(&grows, "backlog_drift").outcome, AuditOutcome::Failed);
        assert_eq!(audit(&grows, "latency_drift").outcome, AuditOutcome::Skipped);
    }
}
