//! Little's law: the mean number outstanding is the arrival rate times the mean time outstanding. It holds for
//! any stable system whatever its distributions, so a gap means that the window was not stable, or that rows
//! are missing.

use model::quantity::show_ns;
use stats::queue::littles_law_gap;

use super::{Evidence, Finding, failed, ok, percent, skipped, warn};

/// Fewer transactions than this say nothing.
const SAMPLES_MIN: u64 = 100;
/// The edges of the window cut some transactions; below this gap that is all there is to see.
const GAP_WARN: f64 = 0.10;
/// A stable system with a window of ten times its response time stays below this.
const GAP_MAX: f64 = 0.15;
/// Where the mean time outstanding is more than this share of the window, the edges weigh too much to condemn.
const EDGE_SHARE: f64 = 0.10;
/// Beyond this the edges are no excuse.
const GAP_ABSURD: f64 = 0.30;

#[expect(clippy::cast_precision_loss, reason = "areas of time")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let flow = evidence.flow;
    if evidence.is_cut() || flow.due_in_window < SAMPLES_MIN {
        return skipped("the window was cut short, or holds fewer than 100 transactions");
    }
    if evidence.load_changes() {
        return skipped("the plan changes the load during the window");
    }
    let window = evidence.grid.length() as f64;
    let due = flow.due_in_window as f64;
    let (mean_outstanding, mean_time_ns) =
        (flow.area_ns as f64 / window, flow.time_ns as f64 / due);
    let rate_per_s = due / evidence.grid.seconds();
    let gap = littles_law_gap(mean_outstanding, rate_per_s, mean_time_ns / 1e9);
    let said = format!(
        "{mean_outstanding:.2} outstanding on average, rate × time in the system = {:.2} ({rate_per_s:.1}/s × {}): {} apart",
        rate_per_s * mean_time_ns / 1e9,
        show_ns(mean_time_ns as i64),
        percent(gap)
    );
    let edges_weigh = mean_time_ns > EDGE_SHARE * window;
    if gap > GAP_ABSURD || (gap > GAP_MAX && !edges_weigh) {
        let said = format!("{said}; the window was not stable");
        return if evidence.saturation_is_declared() { warn(said) } else { failed(said) };
    }
    if gap > GAP_WARN { warn(said) } else { ok(said) }
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit, row};

    /// Claim: overload by a half breaks the law, a constant latency of half a second does not.
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
        assert_eq!(overload.outcome, AuditOutcome::Failed, "{}", overload.detail);
        let slow = with(|_| 500_000_000);
        assert_eq!(slow.outcome, AuditOutcome::Ok, "{}", slow.detail);
    }
}
