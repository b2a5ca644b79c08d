//! Do response times stay what they are from the start of the window to its end? A mean, a median and a quantile of all
//! of it say what none of its parts is like where they do not; a leak, a table that fills and a cache that runs out begin
//! so. Their numbers hold, and are of a mixture: it warns.
//!
//! Looked at are the medians of twenty blocks of the window, by when transactions were due: a median is moved by no
//! burst. The backlog's growth is [`super::backlog_drift`]'s to tell, and the start's being unlike the rest
//! [`super::warm_up`]'s; both ask here whether the whole window moves.

use model::quantity::show_ns;
use model::result::{AuditOutcome, FigureUnit};
use stats::SparseHistogram;
use stats::change::{Change, Shape, change};

use super::{Audit, Evidence, Finding, backlog_drift, ok, skipped, warn};

/// Blocks of the window.
const BLOCKS: usize = 20;
/// Fewer samples than this have no median worth the name.
const SAMPLES_MIN: u64 = 10;

pub(super) const AUDIT: Audit = Audit {
    name: "latency_drift",
    question: "Do response times stay at one level through the window?",
    voids: &[],
    figures: &[("first", FigureUnit::Ns), ("last", FigureUnit::Ns)],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    if let Some(reason) = moves_by_plan(evidence) {
        return skipped(reason);
    }
    let Some(medians) = medians(evidence) else {
        return skipped(
            "too few transactions to see a trend: each twentieth of the window needs ten",
        );
    };
    let (first, last) = (medians[0], medians[BLOCKS - 1]);
    let finding = match change(&medians) {
        None => ok(format!(
            "p50 {} in the first twentieth of the window, {} in the last: neither a drift nor a step",
            shown(first),
            shown(last)
        )),
        Some(_) if backlog_drift::audit(evidence).outcome == AuditOutcome::Failed => {
            skipped("response times grow with the backlog: see backlog_drift")
        }
        Some(found) => warn(told(evidence, &found)),
    };
    finding.with("first", first).with("last", last)
}

/// How the response times of a load that stays the same change through the window, if they do.
pub(super) fn found(evidence: &Evidence<'_>) -> Option<Change> {
    match moves_by_plan(evidence) {
        Some(_) => None,
        None => change(&medians(evidence)?),
    }
}

/// A change in a few words: `p50 rises from 127 ms to 419 ms through the window`.
pub(super) fn in_words(evidence: &Evidence<'_>, found: &Change) -> String {
    let verb = match (found.shape, found.to > found.from) {
        (Shape::Drift, true) => "rises steadily",
        (Shape::Drift, false) => "falls steadily",
        (Shape::Step(_), true) => "steps up",
        (Shape::Step(_), false) => "steps down",
    };
    let levels = format!("p50 {verb} from {} to {}", shown(found.from), shown(found.to));
    match found.shape {
        Shape::Drift => format!("{levels} through the window"),
        Shape::Step(block) => {
            let at = evidence.grid.length() / BLOCKS as i64 * block as i64;
            format!("{levels} about {} into the window, and stays there", show_ns(at))
        }
    }
}

fn told(evidence: &Evidence<'_>, found: &Change) -> String {
    let mixed = "quantiles of the whole window are of no one state";
    let lacking = without_interval(evidence);
    let lacking = match lacking.len() {
        0 => String::new(),
        _ => format!(", and the interval of {} is open for that reason", lacking.join(", ")),
    };
    format!(
        "{}: {mixed}{lacking}; look for what fills up or runs out in the system, and read the picture over time",
        in_words(evidence, found)
    )
}

/// Printed quantiles whose interval has no upper end.
fn without_interval(evidence: &Evidence<'_>) -> Vec<String> {
    let latency = evidence.result.latency.get(evidence.final_stage);
    let quantiles = latency.map_or(&[][..], |latency| &latency.response.quantiles);
    let open = quantiles.iter().filter(|it| it.high_ns.is_none());
    open.map(|it| it.name.clone()).collect()
}

fn moves_by_plan(evidence: &Evidence<'_>) -> Option<&'static str> {
    if evidence.load_changes() {
        return Some("the plan changes the load during the window");
    }
    if !evidence.setting.faults.is_empty() {
        return Some("the plan injects faults during the window");
    }
    evidence.is_saturated.then_some("the load is declared to be more than the system serves")
}

/// The median of each block, ns; `None` where a block has too few samples.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
fn medians(evidence: &Evidence<'_>) -> Option<Vec<f64>> {
    let slots = evidence.response.map_or(&[][..], |times| times.slots());
    let median = |block: usize| {
        let mut times = SparseHistogram::default();
        let range = block * slots.len() / BLOCKS..(block + 1) * slots.len() / BLOCKS;
        slots[range].iter().for_each(|slot| times.merge(slot));
        (times.moments().count() >= SAMPLES_MIN).then(|| times.quantile(0.5))?
    };
    (0..BLOCKS).map(|block| median(block).map(|ns| ns as f64)).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a time, for people")]
fn shown(ns: f64) -> String {
    show_ns(ns as i64)
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::result::{AuditOutcome, TrialResult, Verdict};

    use crate::testing::{Trial, audit, row};

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
