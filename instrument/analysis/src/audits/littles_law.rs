//! Little's law: the mean number outstanding is the arrival rate times the mean time outstanding. It holds for
//! any stable system whatever its distributions, so a gap means that the window was not stable.
//!
//! Both sides come from the same rows: what is missing in them is missing on both sides, and cannot be found here. And
//! one stall of the system makes a gap or none by where it falls in the window. So it never condemns.

use model::quantity::show_ns;
use model::result::FigureUnit;
use stats::queue::littles_law_gap;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, skipped, warn};
use crate::figures::share::percent;

/// Fewer transactions than this say nothing.
const SAMPLES_MIN: u64 = 100;
/// The edges of the window cut some transactions; below this gap that is all there is to see.
const GAP_WARN: f64 = 0.10;

pub(super) const AUDIT: Audit = Audit {
    name: "littles_law",
    question: "Do rate, time and number outstanding agree? Little's law: outstanding = rate × time",
    voids: &[],
    figures: &[
        ("gap", FigureUnit::Share),
        ("outstanding", FigureUnit::Count),
        ("time", FigureUnit::Ns),
    ],
};

#[expect(clippy::cast_precision_loss, reason = "areas of time")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let flow = &evidence.figures.flow;
    if evidence.is_cut() || flow.due_in_window < SAMPLES_MIN {
        return skipped("the window was cut short, or holds fewer than 100 transactions");
    }
    if evidence.load_changes() {
        return skipped("the plan changes the load during the window");
    }
    let window = evidence.trial.grid.length() as f64;
    let due = flow.due_in_window as f64;
    let (mean_outstanding, mean_time_ns) =
        (flow.area_ns as f64 / window, flow.time_ns as f64 / due);
    let rate_per_s = due / evidence.trial.grid.seconds();
    let gap = littles_law_gap(mean_outstanding, rate_per_s, mean_time_ns / 1e9);
    let said = format!(
        "{mean_outstanding:.2} outstanding on average, rate × time in the system = {:.2} ({rate_per_s:.1}/s × {}): {} apart",
        rate_per_s * mean_time_ns / 1e9,
        show_ns(mean_time_ns as i64),
        percent(gap)
    );
    let finding = if gap > GAP_WARN {
        warn(format!("{said}: the window was not stable, or its edges cut much"))
    } else {
        ok(said)
    };
    finding.with("gap", gap).with("outstanding", mean_outstanding).with("time", mean_time_ns)
}

#[cfg(test)]
pub(super) mod tests {
    use model::Outcome;
    use model::result::AuditOutcome;

    use crate::audits::guilty::{Guilt, MS, WARM_UP_NS, slowed};
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("overload by a half", |trial| {
        slowed(trial, |old| 2 * MS + (old - WARM_UP_NS).max(0) / 2);
    })];

    /// Claim: overload by a half is told, a constant latency of half a second is not; neither is condemned, nor is a stall
    /// of a second for where it falls.
    #[test]
    fn stable_and_not() {
        let with = |length: fn(i64) -> i64| {
            let mut trial = Trial::clean();
            for old in &mut trial.rows {
                *old = row(old.tx, old.due, length(old.due), Outcome::Committed);
            }
            trial.facts.load.drain_end = 40_000_000_000;
            let result = trial.result();
            audit(&result, "littles_law").clone()
        };
        let overload = with(|due| 2_000_000 + due / 2);
        assert_eq!(overload.outcome, AuditOutcome::Warn, "{}", overload.detail);
        let slow = with(|_| 500_000_000);
        assert_eq!(slow.outcome, AuditOutcome::Ok, "{}", slow.detail);
        let at_the_end =
            with(|due| 2_000_000 + if due > 9_500_000_000 { 10_500_000_000 - due } else { 0 });
        assert_eq!(at_the_end.outcome, AuditOutcome::Warn, "{}", at_the_end.detail);
    }
}
