//! Was the load that the plan asks for really offered?

use model::Class;
use model::plan::Schedule;
use model::result::FigureUnit;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, NOT_AS_ASKED, failed, ok, skipped, warn};
use crate::figures::share::percent;

/// A deterministic schedule keeps its rate; one percent is a transaction or two at the edges.
const OFF_MAX: f64 = 0.01;
/// A Poisson count scatters by its square root; this many standard deviations are not chance.
const SIGMAS: f64 = 4.0;

pub(super) const AUDIT: Audit = Audit {
    name: "offered_rate",
    question: "Was the planned load really offered?",
    voids: NOT_AS_ASKED,
    figures: &[("due", FigureUnit::Share), ("sent", FigureUnit::Share)],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let finding = finding(evidence);
    match evidence.result.rates.planned_per_s {
        Some(planned) if planned > 0.0 => finding
            .with("due", relative(offered_per_s(evidence), planned))
            .with("sent", relative(sent_per_s(evidence), planned)),
        _ => finding,
    }
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    let rates = &evidence.result.rates;
    let Some(planned) = rates.planned_per_s else {
        return skipped("the plan asks for no rate (closed loop or max)");
    };
    if planned == 0.0 {
        return if offered_per_s(evidence) == 0.0 {
            ok("no load was planned, none was offered")
        } else {
            failed(format!("no load was planned, {:.1}/s was offered", offered_per_s(evidence)))
        };
    }
    if evidence.is_cut() && evidence.load_changes() {
        return skipped("the trial was cut off, and its load changes over time");
    }
    let scatter = scatter(evidence, planned);
    let due_per_s = offered_per_s(evidence);
    let offered = relative(due_per_s, planned);
    let sent_per_s = sent_per_s(evidence);
    let sent = relative(sent_per_s, planned);
    let said = format!(
        "planned {planned:.1}/s, due {:.1}/s ({}), sent {:.1}/s ({})",
        due_per_s,
        signed(offered),
        sent_per_s,
        signed(sent)
    );
    if offered.abs() > OFF_MAX + scatter {
        return failed(format!("{said}: the planned load was not offered"));
    }
    if sent >= -(OFF_MAX + scatter) {
        return ok(said);
    }
    let shed = evidence.result.counts.shed;
    if is_the_systems(evidence) {
        return warn(format!(
            "{said}: the system did not answer, or could not be reached, so that not all was sent ({shed} shed)"
        ));
    }
    if evidence.is_saturated {
        return warn(format!("{said}: {shed} were shed, as saturation that is declared may"));
    }
    failed(format!(
        "{said}: part of the load never left this client ({shed} shed); raise connections_max, or lower the rate"
    ))
}

/// Transactions that the schedule made due, per second of the window. Whatever follows an answer is due by that: no plan says how much of it
/// there is.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn offered_per_s(evidence: &Evidence<'_>) -> f64 {
    match &evidence.result.flows {
        Some(flows) => flows.begun as f64 / (evidence.result.window_ns as f64 / 1e9),
        None => evidence.result.rates.offered_per_s,
    }
}

/// Transactions that were due in the window and sent at all, per second of it. Those of the drain are in it: it was sent late,
/// and the backlog tells of that.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn sent_per_s(evidence: &Evidence<'_>) -> f64 {
    let counts = evidence.result.background.as_ref().unwrap_or(&evidence.result.counts);
    let sent = evidence.result.flows.as_ref().map_or(counts.sent, |flows| flows.begun_sent);
    sent as f64 / (evidence.result.window_ns as f64 / 1e9)
}

/// By how much of the planned count chance and rounding move what is due.
fn scatter(evidence: &Evidence<'_>, planned: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let seconds = evidence.result.window_ns as f64 / 1e9;
    let count = planned * seconds;
    match evidence.schedule() {
        Some(Schedule::Poisson { .. }) => SIGMAS / count.sqrt(),
        // One transaction more or less at an edge, one period's burst for bursts.
        Some(Schedule::Burst { every, .. }) => every.as_secs_f64() / seconds,
        // Each step has an edge of its own: it begins with an arrival.
        #[expect(clippy::cast_precision_loss, reason = "a number of steps")]
        Some(Schedule::Steps { steps }) => steps.len().max(1) as f64 / count,
        _ => 1.0 / count,
    }
}

/// Whether what was not sent waited for a system that did not answer most of what it was sent, or that could not be
/// reached: with more connections more would have gone unanswered.
fn is_the_systems(evidence: &Evidence<'_>) -> bool {
    let counts = &evidence.result.counts;
    let by_class = |class: Class| counts.rejected_by_class.get(class.word()).copied().unwrap_or(0);
    let no_answers = by_class(Class::Client) + by_class(Class::Transport);
    let answered = counts.committed + counts.rejected.saturating_sub(no_answers);
    answered.saturating_mul(2) <= counts.sent || evidence.engine.connect_failures > 0
}

fn relative(value: f64, planned: f64) -> f64 {
    value / planned - 1.0
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use model::Outcome;
    use model::plan::{Arrivals, Level, Schedule, Step, ThresholdPlan};
    use model::quantity::Rate;
    use model::result::{AuditOutcome, Verdict};

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit, row, setting};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("a fifth is never sent", |trial| {
        for old in trial.rows.iter_mut().step_by(5) {
            *old = row(old.tx, old.due, 1_000, Outcome::Shed);
        }
    })];

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

    /// Claim: six steps of half a second, each of which begins with an arrival, are what was planned.
    #[test]
    fn steps_round() {
        let mut trial = Trial::clean();
        let length = Duration::from_millis(500);
        let steps: Vec<Step> = (0..6)
            .map(|n| Step { rate: Rate::per_second(7 + 2 * n), length, generators: 0 })
            .collect();
        trial.setting = setting(Rate::per_second(1), 6 * length);
        trial.facts.declared.measure_end = 3_000_000_000;
        trial.rows.clear();
        for (n, step) in steps.iter().enumerate() {
            let start = i64::try_from(n).unwrap() * 500_000_000;
            let gap = 1e9 / step.rate.as_per_second();
            for k in 0..(5e8 / gap).ceil() as i64 {
                let tx = u64::try_from(trial.rows.len()).unwrap();
                let due = start + (k as f64 * gap) as i64;
                trial.rows.push(row(tx, due, 1_000_000, Outcome::Committed));
            }
        }
        assert_eq!(trial.rows.len(), 39, "36 were planned");
        trial.setting.load.arrivals = Arrivals::Open { schedule: Schedule::Steps { steps } };
        let result = trial.result();
        let found = audit(&result, "offered_rate");
        assert_eq!(found.outcome, AuditOutcome::Ok, "{}", found.detail);
    }

    /// Claim: what waited for a system that answers nothing is the system's fault, and a threshold decides; declared
    /// saturation that came is not condemned for what was shed, and one that did not come is.
    #[test]
    fn shed_by_whom() {
        let with = |answers: bool, limit: &str, level: Level| {
            let mut trial = Trial::clean();
            for (n, old) in trial.rows.iter_mut().enumerate() {
                *old = match (n % 2, answers) {
                    (0, _) => row(old.tx, old.due, 1_000, Outcome::Shed),
                    (_, true) => row(old.tx, old.due, 2_000_000, Outcome::Committed),
                    (_, false) => row(old.tx, old.due, 30_000_000_000, Outcome::Unknown),
                };
            }
            trial.thresholds = vec![ThresholdPlan::new(limit, level)];
            let result = trial.result();
            (audit(&result, "offered_rate").outcome, result.verdict)
        };
        let promise = "success >= 99%";
        assert_eq!(with(false, promise, Level::Fail), (AuditOutcome::Warn, Verdict::Fail));
        assert_eq!(with(true, promise, Level::Fail), (AuditOutcome::Failed, Verdict::Invalid));
        assert_eq!(with(true, promise, Level::Saturated), (AuditOutcome::Warn, Verdict::Pass));
        let kept = "success >= 1%";
        assert_eq!(with(true, kept, Level::Saturated), (AuditOutcome::Failed, Verdict::Invalid));
    }
}
