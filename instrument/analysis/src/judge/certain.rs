//! The answer of a threshold that is certain though an audit voids its number: a late machine makes timeouts, no error 500.
//! A system that is bad by its failures alone is bad, and one whose timeouts decide cannot be told.
//!
//! It must never count a failure of time (`Outcome::is_of_time`), nor say anything where an audit voids failures themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Class;
use model::plan::ThresholdPlan;
use model::result::{Answer, Direction, Family, FlowResult, TrialResult};

use crate::figures::float::to_f64;
use crate::judge::beyond::{Beyond, in_words};
use crate::judge::expression::{Comparison, Operand, Operator};
use crate::judge::thresholds::Error;
use crate::names::doubt::is_void;
use crate::names::unit::Unit;

/// Said of an answer that this gave.
const WHOEVER_WAS_LATE: &str = "whoever was late";

/// The answer of a comparison that does not depend on failures of time, with its words; `None`: it does.
pub(crate) fn answer(
    comparison: &Comparison,
    threshold: &ThresholdPlan,
    beyond: &Beyond,
    trial: &TrialResult,
) -> Option<(Answer, String)> {
    if is_void(Family::Failures, trial) {
        return None;
    }
    if let Some((answer, counted)) = beyond.certain(comparison, threshold) {
        let words = in_words(answer, &counted, threshold.confidence);
        return (answer == Answer::Failed)
            .then(|| (answer, format!("{words}, {WHOEVER_WAS_LATE}")));
    }
    let share = || share_of_offered(comparison, trial);
    let (name, operator, limit) = comparison.with_constant().or_else(share)?;
    let (value, unit, may_be) = bound(name, trial)?;
    let holds = operator.holds(value, limit);
    let is_certain =
        Error::of_difference(Some(may_be), None).leaves(operator, holds, (value, unit), limit);
    let answer = if holds { Answer::Met } else { Answer::Failed };
    is_certain.then(|| (answer, WHOEVER_WAS_LATE.to_owned()))
}

/// A rate with the share of the offered one that it is compared with, if that is known.
fn share_of_offered<'a>(
    comparison: &'a Comparison,
    trial: &TrialResult,
) -> Option<(&'a str, Operator, f64)> {
    match (&comparison.left, &comparison.right) {
        (Operand::Name(name), Operand::ShareOf(share, whole))
            if whole == "offered" && !is_void(Family::Offered, trial) =>
        {
            Some((name, comparison.operator, share * trial.rates.offered_per_s))
        }
        _ => None,
    }
}

/// The number as it would be had every failure of time been committed, and which way it errs by that. Of the numbers that are
/// made of failures.
fn bound(name: &str, trial: &TrialResult) -> Option<(f64, Unit, Direction)> {
    let failures = failures(&trial.counts.rejected_by_class);
    let share = |failures: u64, all: u64| {
        let share = (all > 0).then(|| 1.0 - to_f64(failures) / to_f64(all))?;
        Some((share, Unit::Ratio, Direction::TooHigh))
    };
    let count = |count: u64| Some((to_f64(count), Unit::Count, Direction::TooLow));
    // Had more been offered, there might be more.
    let rest = |failures: u64, all: u64| {
        let is_all = !is_void(Family::Offered, trial);
        is_all.then(|| (to_f64(all.saturating_sub(failures)), Unit::Count, Direction::TooHigh))
    };
    // A rate is at most what came through of those due in the window. Beside a probe the rates are the load's, the counts are not.
    let rate = |failures: u64, all: u64| {
        let (left, _, errs) = rest(failures, all).filter(|_| trial.background.is_none())?;
        let seconds = Duration::from_nanos(u64::try_from(trial.window_ns).ok()?).as_secs_f64();
        (seconds > 0.0).then(|| (left / seconds, Unit::PerSecond, errs))
    };
    let flows = || trial.flows.as_ref().map(|flows| &flows.all);
    let of_flows = |all: &FlowResult| self::failures(&all.rejected_by_class);
    match name {
        "success" => share(failures, trial.counts.due),
        "committed.count" => rest(failures, trial.counts.due),
        "committed" | "goodput" => rate(failures, trial.counts.due),
        "flow.rate" => flows().and_then(|all| rate(of_flows(all), all.begun)),
        "flow.success" => flows().and_then(|all| share(of_flows(all), all.begun)),
        "flow.completed" => flows().and_then(|all| rest(of_flows(all), all.begun)),
        "rejected" | "inf" => count(failures),
        "errors" => {
            let all = trial.errors.iter().filter(|error| is_certain(&error.class));
            count(all.map(|error| error.count).sum())
        }
        _ => None,
    }
}

/// Those that are of no time.
fn failures(by_class: &BTreeMap<String, u64>) -> u64 {
    by_class.iter().filter(|(class, _)| is_certain(class)).map(|(_, count)| count).sum()
}

fn is_certain(class: &str) -> bool {
    Class::from_word(class).is_some_and(|class| !class.is_of_time())
}

#[cfg(test)]
mod tests {
    use model::facts::MetricSample;
    use model::plan::{Level, ThresholdPlan};
    use model::result::{Answer, AuditOutcome, TrialResult, Verdict};
    use model::{Class, Outcome};

    use crate::testing::{Trial, audit, row};

    const SERVER: Outcome = Outcome::Rejected(Class::Server);
    const OVERLOADED: Outcome = Outcome::Rejected(Class::Overloaded);

    /// A trial of 10,000 of which the hypervisor took a third; each of the outcomes stands for so many of each hundred.
    fn stolen(expr: &str, outcomes: &[(u64, Outcome)]) -> TrialResult {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            let mut left = old.tx % 100;
            for (count, outcome) in outcomes {
                if left < *count {
                    *old = row(old.tx, old.due, 2_000_000, *outcome);
                    break;
                }
                left -= count;
            }
        }
        let (source, name) = ("host".to_owned(), "steal_share".to_owned());
        trial.metrics.push(MetricSample { at: 5, source, name, value: 0.3 });
        trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
        let result = trial.result();
        assert_eq!(audit(&result, "host").outcome, AuditOutcome::Failed);
        result
    }

    /// Claim: where a hypervisor took a third of the time, answered failures that break a threshold alone fail it, as
    /// refused connections do; where timeouts, overloads or failures of this client decide it is invalid.
    #[test]
    fn a_stolen_host_makes_no_error_500() {
        let all = [(100, SERVER)];
        let refused = [(100, Outcome::Rejected(Class::Transport))];
        let silent = [(100, Outcome::Unknown)];
        let some = [(5, SERVER), (5, Outcome::Unknown)];
        let (failed, invalid) = (Answer::Failed, Answer::Invalid);
        for (expr, outcomes, expected) in [
            ("success == 100%", &all[..], failed),
            ("success >= 99%", &all[..], failed),
            ("success > 99%", &all[..], failed),
            ("p99 < 1s", &all[..], failed),
            ("rejected == 0", &all[..], failed),
            ("rejected.server == 0", &all[..], failed),
            ("inf < 10", &all[..], failed),
            ("success >= 99%", &refused[..], failed),
            ("success >= 99%", &silent[..], invalid),
            ("p99 < 1s", &silent[..], invalid),
            ("unknown == 0", &silent[..], invalid),
            ("success >= 99%", &[(5, OVERLOADED)], invalid),
            ("success >= 99%", &[(5, Outcome::Rejected(Class::Expired))], invalid),
            ("success >= 99%", &[(5, Outcome::Rejected(Class::Limited))], invalid),
            ("success >= 99%", &[(5, Outcome::Rejected(Class::Client))], invalid),
            ("rejected.overloaded == 0", &[(5, OVERLOADED)], invalid),
            ("success >= 96%", &some[..], failed),
            ("success >= 92%", &some[..], invalid),
            ("success >= 90%", &some[..], Answer::Met),
            ("inf <= 499", &some[..], failed),
            ("inf <= 500", &some[..], invalid),
            ("rejected <= 500", &some[..], Answer::Met),
            ("success < 96%", &some[..], Answer::Met),
            ("success < 92%", &some[..], invalid),
            ("success == 93%", &some[..], invalid),
            ("success == 50%", &some[..], failed),
            ("goodput > 990/s", &all[..], failed),
            ("goodput > 960/s", &some[..], failed),
            ("goodput > 940/s", &some[..], invalid),
            ("goodput >= 96% of offered", &some[..], failed),
            ("committed >= 94% of offered", &some[..], invalid),
            ("committed >= 98% of offered", &silent[..], invalid),
            ("95% of offered <= goodput", &all[..], invalid),
            ("committed.count > 9600", &some[..], failed),
            ("committed.count > 9200", &some[..], invalid),
        ] {
            let found = stolen(expr, outcomes);
            let told = &found.thresholds[0];
            assert_eq!(told.answer, expected, "{expr} {outcomes:?}: {told:?}");
        }
    }

    /// Claim: the run of a server that answers 500 to everything fails though the host is stolen, in words that say how many.
    #[test]
    fn the_words() {
        let found = stolen("success == 100%", &[(100, SERVER)]);
        assert_eq!(found.verdict, Verdict::Fail, "{}", found.reason);
        assert_eq!(
            found.reason,
            "`success == 100%` failed: 0.00%, 10,000 of 10,000 failed, 0 allowed, whoever was late"
        );
        let found = stolen("success == 100%", &[(100, Outcome::Unknown)]);
        assert_eq!(found.verdict, Verdict::Invalid, "{}", found.reason);
        assert!(found.reason.contains("the hypervisor took"), "{}", found.reason);
    }

    /// Claim: an audit that voids failures themselves leaves nothing certain of them.
    #[test]
    fn a_broken_protocol_leaves_nothing() {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            *old = row(old.tx, old.due, 2_000_000, SERVER);
        }
        let worker = &mut trial.facts.load.workers;
        worker.resize_with(1, Default::default);
        worker[0].connections.life_over(trial.rows.len() as u64, false);
        worker[0].protocol_errors = 3;
        worker[0].connections.doubtful = trial.rows.len() as u64 / 20;
        trial.thresholds = vec![ThresholdPlan::new("success == 100%", Level::Fail)];
        let result = trial.result();
        assert_eq!(audit(&result, "protocol").outcome, AuditOutcome::Failed);
        assert_eq!(result.thresholds[0].answer, Answer::Invalid, "{:?}", result.thresholds[0]);
    }
}
