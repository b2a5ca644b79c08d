//! The measured stream minute by minute, judged by the setting's thresholds, and the promise of a series of loads.
//!
//! A mean over a trial hides a bad minute, and a promised rate is promised for each. A minute is one of due times; its
//! response times are of all that were due in it, as everywhere.

use model::plan::{Level, ThresholdPlan};
use model::quantity::show_ns;
use model::result::{
    BorneResult, Direction, MinuteResult, MinutesResult, SettingResult, TrialResult,
};
use model::{Outcome, Row, Stamp};
use stats::SparseHistogram;
use stats::carry::Carry;

use crate::audits::PREFLIGHT;
use crate::figures::float::to_f64;
use crate::figures::grid::{Cells, SECOND};
use crate::figures::known::Known;
use crate::figures::latency::{is_answer, percentile_name};
use crate::figures::left_out::LeftOut;
use crate::figures::part::Part;
use crate::judge::expression::{Comparison, Operator, parse};
use crate::names::doubt::doubt_without;
use crate::names::metric::Metric;
use crate::names::metric_names::{Name, Of, Word, parse as parse_name};
use crate::names::unit::Unit;

const MINUTE: i64 = 60 * SECOND;

/// Counts the whole minutes of a window.
#[derive(Clone, Debug)]
pub(crate) struct Minutes {
    judged: Vec<Judged>,
    quantile: f64,
    left_out: LeftOut,
    final_stage: usize,
    cells: Cells,
    minutes: Vec<Minute>,
    start: Stamp,
}

#[derive(Clone, Debug, Default)]
struct Minute {
    due: u64,
    committed: u64,
    /// Response times of those that were answered, a refusal by the time to it.
    answered: SparseHistogram,
}

/// A comparison that can be told of a minute.
#[derive(Clone, Debug)]
struct Judged {
    number: Number,
    operator: Operator,
    bound: f64,
    text: String,
    /// The number's name in the result.
    name: String,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Success,
    Quantile(f64),
}

impl Judged {
    /// A comparison of one number with a constant, the number on the left.
    fn of(comparison: &Comparison, final_stage: &str) -> Option<Self> {
        let (name, operator, bound) = comparison.with_constant()?;
        let is_final = |stage: &Option<String>| stage.as_ref().is_none_or(|it| it == final_stage);
        let number = match parse_name(name)? {
            Name::Plain(entry) if entry.name == "success" => Number::Success,
            Name::Distribution { of: Of::Due, word, stage } if is_final(&stage) => match word {
                Word::Percentile(q) => Number::Quantile(q),
                Word::Moment("max") => Number::Quantile(1.0),
                Word::Moment(_) => return None,
            },
            _ => return None,
        };
        Some(Self { number, operator, bound, text: comparison.text.clone(), name: name.to_owned() })
    }

    fn holds(&self, minute: &Minute) -> bool {
        let value = match self.number {
            Number::Success => ratio(minute.committed, minute.due),
            Number::Quantile(q) => minute.quantile(q).map_or(f64::INFINITY, to_f64),
        };
        self.operator.holds(value, self.bound)
    }

    /// Whether a number that may be wrong this way still keeps what it keeps.
    fn bears(&self, may_be: Direction) -> bool {
        match (self.operator, may_be) {
            (Operator::Less | Operator::AtMost, Direction::TooHigh)
            | (Operator::More | Operator::AtLeast, Direction::TooLow) => true,
            // A share has no more than all.
            (Operator::Equal, Direction::TooLow) => self.bound >= 1.0,
            _ => false,
        }
    }
}

impl Minute {
    /// Of all that were due; `None` = infinite.
    fn quantile(&self, q: f64) -> Option<i64> {
        let (answered, rank) = (self.answered.moments().count(), stats::rank(q, self.due));
        if self.committed == 0 || rank > answered {
            return None;
        }
        // Between two ranks, so that what rounding does to the share cannot reach the next.
        self.answered.quantile((to_f64(rank) - 0.5) / to_f64(answered))
    }
}

impl Part for Option<Minutes> {
    fn of_trial(trial: &Known<'_>) -> Self {
        Minutes::new(trial)
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        if let Some(minutes) = self {
            rows.iter().for_each(|row| minutes.row(row));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        for minute in self.iter_mut().flat_map(|minutes| &mut minutes.minutes) {
            it.sum(&mut minute.due);
            it.sum(&mut minute.committed);
            minute.answered.carry(it);
        }
    }

    fn add_to(&mut self, _trial: &Known<'_>, result: &mut TrialResult) {
        result.minutes = self.as_ref().map(Minutes::result);
    }
}

impl Minutes {
    /// `None` where the window has no whole minute, or no threshold can be told of one.
    fn new(trial: &Known<'_>) -> Option<Self> {
        let count = usize::try_from(trial.grid.length() / MINUTE).unwrap_or(0);
        let judged = judged(trial.thresholds, &trial.stage_name(trial.final_stage));
        if count == 0 || judged.is_empty() {
            return None;
        }
        Some(Self {
            quantile: quantile_of(&judged),
            judged,
            left_out: LeftOut::new(&trial.facts.declared),
            final_stage: trial.final_stage,
            cells: Cells::new(trial.grid.start, MINUTE),
            minutes: vec![Minute::default(); count],
            start: trial.grid.start,
        })
    }

    /// Adds a row of the measured stream that was due in the window.
    #[inline]
    fn row(&mut self, row: &Row) {
        // A part of a minute at the end is left out.
        let minute = self.cells.index(row.due).and_then(|index| self.minutes.get_mut(index));
        let Some(minute) = minute.filter(|_| !self.left_out.has(row)) else { return };
        minute.due += 1;
        minute.committed += u64::from(row.outcome == Outcome::Committed);
        if let Some(ns) = row.response_ns(self.final_stage) {
            minute.answered.record(ns);
        } else if row.outcome != Outcome::Committed && is_answer(row.outcome) {
            minute.answered.record(row.end - row.due);
        }
    }

    fn result(&self) -> MinutesResult {
        let starts = (0..).map(|index: i64| self.start + index * MINUTE);
        let of = |(minute, start_ns): (&Minute, Stamp)| MinuteResult {
            start_ns,
            due: minute.due,
            committed: minute.committed,
            quantile_ns: minute.quantile(self.quantile),
            holds: self.judged.iter().all(|it| it.holds(minute)),
        };
        MinutesResult {
            judged: self.judged.iter().map(|it| it.text.clone()).collect(),
            left_out: self.left_out.names().to_vec(),
            quantile: percentile_name(self.quantile),
            minutes: self.minutes.iter().zip(starts).filter(|it| it.0.due > 0).map(of).collect(),
        }
    }
}

/// A threshold of level warn is a wish, and no promise.
fn judged(thresholds: &[ThresholdPlan], final_stage: &str) -> Vec<Judged> {
    let decide = thresholds.iter().filter(|it| it.level != Level::Warn);
    let comparisons = decide.flat_map(|it| parse(&it.expr).unwrap_or_default());
    comparisons.filter_map(|it| Judged::of(&it, final_stage)).collect()
}

/// The highest quantile that is compared.
fn quantile_of(judged: &[Judged]) -> f64 {
    let named = judged.iter().filter_map(|it| match it.number {
        Number::Quantile(q) => Some(q),
        Number::Success => None,
    });
    named.reduce(f64::max).unwrap_or(0.99)
}

/// The minutes of a setting's trials together, without words.
pub(crate) fn borne(thresholds: &[ThresholdPlan], setting: &SettingResult) -> Option<BorneResult> {
    let mut all = BorneResult { success_min: 1.0, worst_ns: Some(0), ..BorneResult::default() };
    for trial in &setting.trials {
        let Some(minutes) = &trial.minutes else { continue };
        all.quantile.clone_from(&minutes.quantile);
        for minute in &minutes.minutes {
            all.minutes += 1;
            all.held += u64::from(minute.holds);
            all.worst_ns = all.worst_ns.zip(minute.quantile_ns).map(|(a, b)| a.max(b));
            all.success_min = all.success_min.min(ratio(minute.committed, minute.due));
        }
        // Kinds that the preflight objects to are not counted.
        let except = if minutes.left_out.is_empty() { "" } else { PREFLIGHT };
        for it in judged(thresholds, &trial.final_stage) {
            let doubt = doubt_without(except, &it.name, trial);
            if doubt.may_be.is_some_and(|may_be| !it.bears(may_be)) {
                all.in_doubt.extend(doubt.by);
            }
        }
    }
    all.in_doubt.sort();
    all.in_doubt.dedup();
    (all.minutes > 0).then_some(all)
}

/// A load of a series, in ascending order.
pub(crate) struct Load<'a> {
    pub per_s: f64,
    pub setting: &'a SettingResult,
}

/// The promise of a series of loads, with the key of the setting that it is about: the highest load up to which
/// every minute of each holds. `group` is what the series share, in words. A load alone makes no series.
pub(crate) fn promised(group: &str, loads: &[Load<'_>]) -> Option<(String, String)> {
    let loads: Vec<(&Load<'_>, &BorneResult)> =
        loads.iter().filter_map(|load| Some((load, load.setting.borne.as_ref()?))).collect();
    if loads.len() < 2 {
        return None;
    }
    let bears = |it: &BorneResult| it.held == it.minutes && it.in_doubt.is_empty();
    let first_bad = loads.iter().position(|(_, it)| !bears(it)).unwrap_or(loads.len());
    let group = if group.is_empty() { String::new() } else { format!("{group}: ") };
    let beyond = loads.get(first_bad).map(|(load, it)| {
        let minutes = format!("{} of {} minutes hold", it.held, it.minutes);
        match it.in_doubt.is_empty() {
            true => format!("at {} {minutes}", per_s(load.per_s)),
            false => {
                let audits = it.in_doubt.join(", ");
                format!("at {} {minutes}, by numbers that do not ({audits})", per_s(load.per_s))
            }
        }
    });
    let Some((load, it)) = first_bad.checked_sub(1).map(|last| loads[last]) else {
        let (lowest, _) = loads.first()?;
        let words = format!("{group}no load that was tried can be promised: {}", beyond?);
        return Some((lowest.setting.key.clone(), words));
    };
    let minutes = load.setting.trials.iter().find_map(|trial| trial.minutes.as_ref())?;
    let time = it.worst_ns.map_or_else(|| "∞".to_owned(), |ns| show_ns(rounded_up(ns)));
    let mut words = format!(
        "{group}at {}: {} ≤ {time} and success ≥ {} in {} of {} minutes (judged by {})",
        per_s(load.per_s),
        it.quantile,
        Metric::print(it.success_min, Unit::Ratio),
        it.held,
        it.minutes,
        minutes.judged.join(", "),
    );
    if !minutes.left_out.is_empty() {
        let left_out = minutes.left_out.join(", ");
        words.push_str(&format!("; without what cannot succeed at any load ({left_out})"));
    }
    match beyond {
        Some(beyond) => words.push_str(&format!("; {beyond}")),
        None => words.push_str("; no higher load was tried"),
    }
    Some((load.setting.key.clone(), words))
}

/// Three digits, upwards: what is said to be enough has to be.
fn rounded_up(ns: i64) -> i64 {
    let mut unit = 1;
    while ns / unit >= 1_000 {
        unit *= 10;
    }
    (ns + unit - 1) / unit * unit
}

fn per_s(rate: f64) -> String {
    if rate.fract() == 0.0 { format!("{rate}/s") } else { Metric::print(rate, Unit::PerSecond) }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { to_f64(part) / to_f64(whole) }
}

#[cfg(test)]
#[path = "minutes_tests.rs"]
mod tests;
