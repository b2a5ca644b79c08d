//! Was the load that the plan asks for really offered?

use model::plan::Schedule;

use super::{Evidence, Finding, failed, ok, percent, skipped};

/// A deterministic schedule keeps its rate; one percent is a transaction or two at the edges.
const OFF_MAX: f64 = 0.01;
/// A Poisson count scatters by its square root; this many standard deviations are not chance.
const SIGMAS: f64 = 4.0;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let rates = &evidence.result.rates;
    let Some(planned) = rates.planned_per_s else {
        return skipped("the plan asks for no rate (closed loop or max)");
    };
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let seconds = evidence.result.window_ns as f64 / 1e9;
    let count = planned * seconds;
    if planned == 0.0 {
        return if rates.offered_per_s == 0.0 {
            ok("no load was planned, none was offered")
        } else {
            failed(format!("no load was planned, {:.1}/s was offered", rates.offered_per_s))
        };
    }
    if evidence.is_cut() && evidence.load_changes() {
        return skipped("the trial was cut off, and its load changes over time");
    }
    let scatter = match evidence.schedule() {
        Some(Schedule::Poisson { .. }) => SIGMAS / count.sqrt(),
        // One transaction more or less at an edge, one period's burst for bursts.
        Some(Schedule::Burst { every, .. }) => every.as_secs_f64() / seconds,
        _ => 1.0 / count,
    };
    let offered = relative(rates.offered_per_s, planned);
    let sent = relative(rates.sent_per_s, planned);
    let said = format!(
        "planned {planned:.1}/s, due {:.1}/s ({}), sent {:.1}/s ({})",
        rates.offered_per_s,
        signed(offered),
        rates.sent_per_s,
        signed(sent)
    );
    if offered.abs() > OFF_MAX + scatter {
        return failed(format!("{said}: the planned load was not offered"));
    }
    if sent < -(OFF_MAX + scatter) {
        return failed(format!(
            "{said}: part of the load never left this client ({} shed); raise connections_max, or lower the rate",
            evidence.result.counts.shed
        ));
    }
    ok(said)
}

fn relative(value: f64, planned: f64) -> f64 {
    value / planned - 1.0
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::plan::{Arrivals, Schedule};
    use model::quantity::Rate;
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit, row};

    /// Claim: 3 % too few fail for a constant rate and for a Poisson rate of this size; 0.5 % do not.
    #[test]
    fn planned_and_offered() {
        for (poisson, keep, outcome) in [
            (false, 9_700, AuditOutcome::Failed),
            (false, 9_950, AuditOutcome::Ok),
            (true, 9_700, AuditOutcome::Ok),
            (true, 9_400, AuditOutcome::Failed),
        ] {
            let mut trial = Trial::clean();
            if poisson {
                let rate = Rate::per_second(1_000);
                trial.setting.load.arrivals =
                    Arrivals::Open { schedule: Schedule::Poisson { rate } };
            }
            trial.rows.truncate(keep);
            let result = trial.result();
            let found = audit(&result, "offered_rate");
            assert_eq!(found.outcome, outcome, "{}", found.detail);
        }
    }

    /// Claim: load that was due and shed was not offered to the system, and that fails.
    #[test]
    fn shed_load() {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().step_by(10) {
            *old = row(old.tx, old.due, 1_000, Outcome::Shed);
        }
        let result = trial.result();
        let found = audit(&result, "offered_rate");
        assert_eq!(found.outcome, AuditOutcome::Failed);
        assert!(found.detail.contains("1000 shed"), "{}", found.detail);
    }
}
