//! Thresholds: checked before the run, evaluated after it.

use std::cmp::Ordering;

use model::names::DeclaredNames;
use model::plan::{Level, ThresholdPlan};
use model::result::{Answer, Counted, Direction, ThresholdResult, TrialResult};
use model::series::{SaidBy, declared};

use crate::judge::beyond::{Beyond, in_words};
use crate::judge::certain;
use crate::judge::expression::{Comparison, Operand, Operator, parse};
use crate::judge::implicit;
use crate::judge::resolution::unresolved;
use crate::names::check_metric::check_metric;
use crate::names::doubt::{Doubt, doubt};
use crate::names::metric::{Metric, metric};
use crate::names::metric_list::{self, Section};
use crate::names::metric_names::{Of, Word, parse as parse_name};
use crate::names::unit::Unit;

/// Whether an expression can be evaluated on a trial of a system that declares this: syntax, names, units.
///
/// # Errors
/// A sentence for people, with the nearest known name.
pub fn check_threshold(expr: &str, declared: Option<&DeclaredNames>) -> Result<(), String> {
    for comparison in parse(expr)? {
        for operand in [&comparison.left, &comparison.right] {
            if let Operand::Name(name) | Operand::ShareOf(_, name) = operand {
                check_metric(name, declared)?;
            }
        }
        let (left, right) = (unit_of(&comparison.left), unit_of(&comparison.right));
        if left == Unit::Text || right == Unit::Text {
            return Err(format!("`{}`: codes are not a number", comparison.text));
        }
        if !comparable(left, right) {
            return Err(format!(
                "`{}` compares {} with {}{}",
                comparison.text,
                unit_word(left),
                unit_word(right),
                unit_hint(left, right)
            ));
        }
        if matches!(
            (&comparison.left, &comparison.right),
            (Operand::Constant(..), Operand::Constant(..))
        ) {
            return Err(format!("`{}` compares two constants", comparison.text));
        }
    }
    Ok(())
}

fn unit_of(operand: &Operand) -> Unit {
    match operand {
        Operand::Constant(_, unit) => *unit,
        // A stage's own name is the rate at which it is reached.
        Operand::Name(name) | Operand::ShareOf(_, name) => {
            parse_name(name).map_or(Unit::PerSecond, |name| name.unit())
        }
    }
}

/// A bare number compares with counts and series; everything else only with its own kind.
fn comparable(left: Unit, right: Unit) -> bool {
    let bare = |unit| matches!(unit, Unit::Number | Unit::Count);
    let series = |a, b| a == Unit::Number && matches!(b, Unit::Bytes | Unit::Ratio);
    left == right || (bare(left) && bare(right)) || series(left, right) || series(right, left)
}

fn unit_word(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "a duration",
        Unit::NsSquared => "a variance",
        Unit::Count => "a bare number",
        Unit::PerSecond => "a rate",
        Unit::Ratio => "a share",
        Unit::Bytes => "a size",
        Unit::Number => "a series",
        Unit::Text => "a text",
    }
}

fn unit_hint(left: Unit, right: Unit) -> &'static str {
    match if left == Unit::Count { right } else { left } {
        Unit::Ns => "; write a duration such as 250ms",
        Unit::PerSecond => "; write a rate such as 50/s",
        Unit::Ratio => "; write a percentage such as 99.9%",
        Unit::Bytes => "; write a size such as 64MiB",
        _ => "",
    }
}

/// Every threshold on one trial, then those that nobody has to write. The audits stand in the trial already: what
/// they void decides nothing.
pub(crate) fn evaluate_all(
    thresholds: &[ThresholdPlan],
    beyond: &Beyond,
    trial: &TrialResult,
) -> Vec<ThresholdResult> {
    let implicit = implicit::promises(thresholds, trial);
    let implicit = implicit.iter().map(|promise| evaluate(promise, beyond, trial));
    let implicit = implicit.map(|result| ThresholdResult { implicit: true, ..result });
    thresholds.iter().map(|threshold| evaluate(threshold, beyond, trial)).chain(implicit).collect()
}

/// Whether a threshold of level `saturated` is broken: declared saturation that came.
pub(crate) fn is_saturated(
    thresholds: &[ThresholdPlan],
    beyond: &Beyond,
    trial: &TrialResult,
) -> bool {
    let declared = thresholds.iter().filter(|threshold| threshold.level == Level::Saturated);
    declared
        .map(|threshold| evaluate(threshold, beyond, trial))
        .any(|it| it.answer == Answer::Failed)
}

fn evaluate(threshold: &ThresholdPlan, beyond: &Beyond, trial: &TrialResult) -> ThresholdResult {
    let mut result = ThresholdResult {
        expr: threshold.expr.clone(),
        level: threshold.level.word().to_owned(),
        confidence: threshold.confidence,
        ..ThresholdResult::default()
    };
    let comparisons = match parse(&threshold.expr) {
        Ok(comparisons) => comparisons,
        Err(detail) => return ThresholdResult { detail, ..result },
    };
    let compared: Vec<Compared> =
        comparisons.iter().map(|it| compare(it, threshold, beyond, trial)).collect();
    // One that failed fails all of them, whatever is not known of the others.
    result.answer = compared.iter().map(|it| it.answer).max().unwrap_or_default();
    let point = |it: &Compared| it.holds;
    result.holds = match compared.iter().any(|it| it.holds == Some(false)) {
        true => Some(false),
        false => compared.iter().map(point).collect::<Option<Vec<_>>>().map(|_| true),
    };
    let texts = compared.iter().map(|it| it.text.as_str()).filter(|text| !text.is_empty());
    result.actual = texts.collect::<Vec<_>>().join(", ");
    let deciding = compared.iter().find(|it| it.answer == result.answer);
    result.detail = deciding.map(|it| it.detail.clone()).unwrap_or_default();
    for it in compared {
        result.counted.extend(it.counted);
        for audit in it.voided_by {
            if !result.voided_by.contains(&audit) {
                result.voided_by.push(audit);
            }
        }
    }
    result
}

/// The answer of one comparison.
#[derive(Default)]
struct Compared {
    answer: Answer,
    /// By the values alone.
    holds: Option<bool>,
    /// The value, printed.
    text: String,
    detail: String,
    counted: Option<Counted>,
    voided_by: Vec<String>,
}

fn compare(
    comparison: &Comparison,
    threshold: &ThresholdPlan,
    beyond: &Beyond,
    trial: &TrialResult,
) -> Compared {
    let values = value_of(&comparison.left, trial)
        .and_then(|left| Ok((left, value_of(&comparison.right, trial)?)));
    let ((left, left_unit), (right, right_unit)) = match values {
        Ok(values) => values,
        Err(detail) => return Compared { detail, ..Compared::default() },
    };
    let decided = beyond.answer(comparison, threshold);
    let holds = match &decided {
        Some((_, counted)) => !counted.is_beyond(),
        None => comparison.operator.holds(left, right),
    };
    let mut text = match comparison.left {
        Operand::Constant(..) => Metric::print(right, right_unit),
        _ => Metric::print(left, left_unit),
    };
    if let Operand::ShareOf(_, name) = &comparison.right {
        let whole = metric(name, trial).map_or(0.0, |metric| metric.value);
        if whole > 0.0 {
            text = format!("{text} ({} of {name})", Metric::print(left / whole, Unit::Ratio));
        }
    }
    let doubts = [&comparison.left, &comparison.right].map(|side| doubt_of(side, trial));
    let error = Error::of_difference(doubts[0].may_be, doubts[1].may_be);
    let [left_doubt, right_doubt] = doubts;
    let mut compared = Compared {
        answer: if holds { Answer::Met } else { Answer::Failed },
        holds: Some(holds),
        text,
        detail: String::new(),
        counted: None,
        voided_by: left_doubt.by.into_iter().chain(right_doubt.by).collect(),
    };
    if !error.leaves(comparison.operator, holds, (left, left_unit), right) {
        (compared.answer, compared.detail) = certain::answer(comparison, threshold, beyond, trial)
            .unwrap_or_else(|| {
                let by = compared.voided_by.join(", ");
                (Answer::Invalid, format!("it depends on a number that is not valid ({by})"))
            });
    } else if let Some((answer, counted)) = &decided {
        compared.answer = *answer;
        compared.detail = in_words(*answer, counted, threshold.confidence);
    } else if let Some((less_own, holds_less_own)) = less_own(comparison, (left, right), trial)
        && holds_less_own != holds
        && threshold.level != Level::Saturated
    {
        compared.answer = Answer::Invalid;
        compared.detail = format!(
            "{} without the instrument's own lag: this machine was late, not the system; use an idle machine",
            Metric::print(less_own, left_unit)
        );
    } else if threshold.level != Level::Saturated
        && (holds || compared.voided_by.is_empty())
        && let Some(why) = unresolved(comparison, holds, trial)
    {
        // What only marks a setting goes by the value: that is where saturation begins, as far as anybody knows. And what
        // is broken a fortiori by a number that is at best too good needs no interval.
        let is_enough = holds && threshold.confidence.is_none();
        compared.answer = if is_enough { Answer::Met } else { Answer::Undecided };
        compared.detail = why;
    } else if !holds {
        compared.detail = about_the_ledger(comparison, &compared.text, trial).unwrap_or_default();
    }
    compared.counted = decided.map(|(_, counted)| counted);
    compared
}

/// The mean response time, if it is what is compared, less the instrument's own lag, and whether the comparison holds of it.
fn less_own(
    comparison: &Comparison,
    (left, right): (f64, f64),
    trial: &TrialResult,
) -> Option<(f64, bool)> {
    let operator = comparison.operator;
    match mean_less_own(&comparison.left, trial) {
        Some(less_own) => Some((less_own, operator.holds(less_own, right))),
        None => mean_less_own(&comparison.right, trial)
            .map(|less_own| (less_own, operator.holds(left, less_own))),
    }
}

/// A side less the instrument's own lag, if it is the mean response time.
fn mean_less_own(side: &Operand, trial: &TrialResult) -> Option<f64> {
    let Operand::Name(name) = side else { return None };
    let crate::names::metric_names::Name::Distribution { of: Of::Due | Of::Committed, word, stage } =
        parse_name(name)?
    else {
        return None;
    };
    let stage = stage.as_deref().unwrap_or(&trial.final_stage);
    let of = trial.latency.iter().find(|it| it.stage == stage && it.refused + it.missing == 0)?;
    of.response.mean_less_own_ns.filter(|_| word == Word::Moment("mean"))
}

/// The sentence of a failed threshold about the ledger: which transactions.
fn about_the_ledger(comparison: &Comparison, text: &str, trial: &TrialResult) -> Option<String> {
    match (&comparison.left, &comparison.right) {
        (Operand::Name(name), Operand::Constant(..))
        | (Operand::Constant(..), Operand::Name(name)) => implicit::sentence(name, text, trial),
        _ => None,
    }
}

fn doubt_of(operand: &Operand, trial: &TrialResult) -> Doubt {
    match operand {
        Operand::Constant(..) => Doubt::default(),
        Operand::Name(name) | Operand::ShareOf(_, name) => doubt(name, trial),
    }
}

/// Which way the left side less the right side may be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Error {
    too_high: bool,
    too_low: bool,
}

impl Error {
    pub(crate) fn of_difference(left: Option<Direction>, right: Option<Direction>) -> Self {
        let is = |side: Option<Direction>, way| {
            side.is_some_and(|it| it == way || it == Direction::Either)
        };
        Self {
            too_high: is(left, Direction::TooHigh) || is(right, Direction::TooLow),
            too_low: is(left, Direction::TooLow) || is(right, Direction::TooHigh),
        }
    }

    /// Whether the answer is the same whatever the numbers are in truth. No number is below zero, and no share of what
    /// was due above one: an equation that is met there cannot be left that way.
    pub(crate) fn leaves(
        self,
        operator: Operator,
        holds: bool,
        (left, unit): (f64, Unit),
        right: f64,
    ) -> bool {
        let is_least = left <= 0.0;
        let is_whole = unit == Unit::Ratio && left >= 1.0;
        match (operator, holds) {
            (Operator::Less | Operator::AtMost, true)
            | (Operator::More | Operator::AtLeast, false) => !self.too_low,
            (Operator::Less | Operator::AtMost, false)
            | (Operator::More | Operator::AtLeast, true) => !self.too_high,
            (Operator::Equal | Operator::NotEqual, _) => match left.partial_cmp(&right) {
                Some(Ordering::Less) => !self.too_low,
                Some(Ordering::Greater) => !self.too_high,
                _ => (!self.too_high || is_least) && (!self.too_low || is_whole),
            },
        }
    }
}

fn value_of(operand: &Operand, trial: &TrialResult) -> Result<(f64, Unit), String> {
    let look_up = |name: &str| {
        metric(name, trial)
            .filter(|metric| !metric.value.is_nan())
            .map(|metric| (metric.value, metric.unit))
            .ok_or_else(|| why_not(name, trial))
    };
    match operand {
        Operand::Constant(value, unit) => Ok((*value, *unit)),
        Operand::Name(name) => look_up(name),
        Operand::ShareOf(share, name) => look_up(name).map(|(value, unit)| (share * value, unit)),
    }
}

fn why_not(name: &str, trial: &TrialResult) -> String {
    let of_the_ledger = metric_list::find(name).is_some_and(|it| it.section == Section::Fates);
    if of_the_ledger && trial.fates.is_none() {
        return format!("`{name}` is unknown: the ledger was not read");
    }
    match parse_name(name) {
        Some(crate::names::metric_names::Name::Resource { key, .. }) => {
            no_series(name, &key, trial)
        }
        Some(crate::names::metric_names::Name::Stage { stage, .. })
            if trial.node_stages.iter().flat_map(|it| &it.stages).any(|it| it.stage == stage) =>
        {
            format!(
                "`{name}` is unknown: no node said so in the whole seconds of the measured window"
            )
        }
        Some(crate::names::metric_names::Name::Plain(entry)) => {
            format!("`{name}` ({}) is unknown: this trial has no such sample", entry.meaning)
        }
        Some(_) => format!("`{name}` is unknown: this trial has no such sample"),
        None => format!("unknown metric `{name}`"),
    }
}

/// Why there is no such series: it was not recorded, or nothing is made of what it says together.
fn no_series(name: &str, key: &str, trial: &TrialResult) -> String {
    if let Some(series) = key.strip_prefix("nodes.sum.")
        && let Some(facts) = declared(&trial.series, series)
    {
        let why = match facts.said_by {
            SaidBy::Undeclared => "it is not declared".to_owned(),
            _ => format!("it is declared as of each node alone ({})", facts.label),
        };
        return format!("`{name}` is unknown: `{series}` does not add up, because {why}");
    }
    format!("`{name}` is unknown: no series `{key}` was recorded")
}

#[cfg(test)]
mod tests {
    use model::Outcome;

    use super::*;
    use crate::testing::{Trial, row};

    fn declared() -> DeclaredNames {
        DeclaredNames {
            stages: vec!["committed".to_owned()],
            node_stages: vec!["raft.send".to_owned(), "stored".to_owned()],
            ..DeclaredNames::default()
        }
    }

    fn on_clean(expr: &str) -> ThresholdResult {
        let mut trial = Trial::clean();
        trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
        trial.result().thresholds.remove(0)
    }

    /// Claim: true and failed thresholds are told apart, with the value that was compared.
    #[test]
    fn evaluation() {
        for (expr, holds) in [
            ("p99 < 1s", true),
            ("p99 < 1ms", false),
            ("success == 100%", true),
            ("committed >= 98% of offered", true),
            ("committed > 110% of offered", false),
            ("p50 < 10ms and success == 100% and offered >= 990/s", true),
            ("p50 < 10ms and success < 100%", false),
            ("1ms < p50", true),
            ("rejected.limited == 0", true),
            ("rejected.bad_request == 0 and rejected.invalid == 0", true),
            ("send_lag.p99 <= 100us", true),
            ("stage.committed.throughput >= 95% of offered", true),
            ("max != min", true),
        ] {
            let result = on_clean(expr);
            assert_eq!(result.holds, Some(holds), "{expr}: {} {}", result.actual, result.detail);
            assert!(!result.actual.is_empty());
            assert_eq!(check_threshold(expr, Some(&declared())), Ok(()), "{expr}");
        }
        assert_eq!(
            on_clean("committed >= 98% of offered").actual,
            "1000.00/s (100.00% of offered)"
        );
        let unread = on_clean("lost == 0");
        assert_eq!(unread.holds, None);
        assert!(unread.detail.contains("the ledger was not read"), "{}", unread.detail);
    }

    /// Claim: p99 < 1s fails when 5 % never answered, however fast the others were.
    #[test]
    fn the_missing_break_promises() {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().step_by(20) {
            *old = row(old.tx, old.due, 30_000_000_000, Outcome::Unknown);
        }
        trial.thresholds = vec![ThresholdPlan::new("p99 < 1s", Level::Fail)];
        let result = trial.result();
        assert_eq!(result.thresholds[0].holds, Some(false));
        assert_eq!(result.thresholds[0].actual, "∞");
    }

    /// Claim: each mistake in an expression is named before the run.
    #[test]
    fn mistakes() {
        for (expr, message) in [
            ("p99 < 1", "compares a duration with a bare number; write a duration such as 250ms"),
            ("success == 99", "write a percentage"),
            ("comitted >= 98% of offered", "did you mean `committed`?"),
            ("committed >= 98% of oferred", "did you mean `offered`?"),
            ("p99", "has no comparison"),
            ("p99 = 1s", "write == to compare"),
            ("p99 < ", "lacks one side"),
            ("1s < p99 < 2s", "compares twice"),
            ("p99 < 1s and ", "lacks a comparison"),
            ("p99 < 1s and  and p50 < 1s", "lacks a comparison"),
            ("p99 < 5parsecs", "is not a number with a unit"),
            ("codes == 200", "codes are not a number"),
            ("1s < 2s", "compares two constants"),
            ("committed < 1s", "compares a rate with a duration; write a rate such as 50/s"),
            ("", "lacks a comparison"),
            ("p99 (x) < 1s", "is not a name"),
            ("p99 < -1s", "is negative"),
            ("p(99)<500", "is k6's way; write p99 < 500ms"),
            ("p(99.9) <= 1s", "is k6's way; write p99.9 <= 1s"),
            ("p(95) < 0.5", "write p95 < 0.5ms"),
            ("http_req_failed == 0", "the other way round here: write success == 100%"),
            ("http_req_duration{expected_response:true} < 1s", "write committed.p99 < 500ms"),
        ] {
            let found = check_threshold(expr, Some(&declared())).unwrap_err();
            assert!(found.contains(message), "{expr}: {found}");
        }
    }
}
