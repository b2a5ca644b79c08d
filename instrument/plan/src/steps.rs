//! Staircases: a list of steps, or a rule that climbs and, if it is asked to, comes down again. Steps of an open loop are
//! rates, those of a closed loop clients.

use std::time::Duration;

use model::options::Options;
use model::plan::{ClientStep, Step};
use model::quantity::Rate;

use crate::keys;
use crate::shape::{CLIENTS_MAX, GENERATORS_MAX, Multiplier, finite, finite_at};
use crate::table::{Reading, Table};

/// The most steps of a staircase.
const STEPS_MAX: usize = 10_000;

/// `steps = [{ rate = "10/s", for = "30s" }, …]`
pub(crate) fn rates_listed(
    table: &mut Table<'_>,
    count: u64,
    reading: &mut Reading<'_>,
) -> Option<Vec<Step>> {
    let example =
        "steps = [{ rate = \"10/s\", for = \"30s\" }, { rate = \"20/s\", for = \"30s\" }]";
    listed(table, example, reading, |step, reading| {
        refuse(step, "clients", "a closed", reading);
        let rate = step.rate("rate", reading);
        let rate = step.require("rate", rate, "rate = \"10/s\"", reading);
        let rate = rate.and_then(|rate| finite_at(step, "rate", rate.times(count), reading));
        let length = length(step, reading);
        Some(Step { rate: rate?, length: length?, generators: 0 })
    })
}

/// `steps = [{ clients = 10, for = "30s" }, …]`
pub(crate) fn clients_listed(
    table: &mut Table<'_>,
    reading: &mut Reading<'_>,
) -> Option<Vec<ClientStep>> {
    let example = "steps = [{ clients = 10, for = \"30s\" }, { clients = 20, for = \"30s\" }]";
    listed(table, example, reading, |step, reading| {
        refuse(step, "rate", "an open", reading);
        let clients = step.integer("clients", 0, CLIENTS_MAX.into(), reading);
        let clients = step.require("clients", clients, "clients = 10", reading);
        let length = length(step, reading);
        let clients = u32::try_from(clients?).expect("at most CLIENTS_MAX");
        Some(ClientStep { clients, length: length? })
    })
}

/// Adds a mistake if a key of the other model is there.
fn refuse(table: &mut Table<'_>, key: &'static str, other: &str, reading: &mut Reading<'_>) {
    if table.given(key).is_some() {
        let message = format!("`{}` belongs to {other} loop", table.full(key));
        table.reject(key, message, Some("remove it"), reading);
    }
}

fn length(step: &mut Table<'_>, reading: &mut Reading<'_>) -> Option<Duration> {
    let length = step.duration("for", reading);
    let length = step.require("for", length, "for = \"30s\"", reading);
    if length.is_some_and(|length| length.is_zero()) {
        step.reject("for", "a step must be greater than zero", None, reading);
    }
    length
}

fn listed<T>(
    table: &mut Table<'_>,
    example: &str,
    reading: &mut Reading<'_>,
    mut read: impl FnMut(&mut Table<'_>, &mut Reading<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let given = table.given("steps");
    table.require("steps", given, example, reading)?;
    let items = table.array("steps", reading)?;
    if items.is_empty() || items.len() > STEPS_MAX {
        let message = format!(
            "`load.steps` must have between 1 and {STEPS_MAX} steps, but has {}",
            items.len()
        );
        table.reject("steps", message, None, reading);
        return None;
    }
    let mut steps = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let mut step = Table::open(item, &format!("load.steps[{index}]"), reading);
        let one = read(&mut step, reading);
        step.finish(reading);
        steps.push(one);
    }
    steps.into_iter().collect()
}

/// `steps = { every = "10s", add = { generators = 1 }, until = { generators = 10 }, leave = true }`
pub(crate) fn rates_by_rule(
    table: &mut Table<'_>,
    rate: Rate,
    count: &Multiplier,
    reading: &mut Reading<'_>,
) -> Option<Vec<Step>> {
    let options = table.given("steps")?;
    let mut inner = Table::open(options, "load.steps", reading);
    let every = every(&mut inner, reading);
    let example = ["add = { rate = \"10/s\" }", "until = { rate = \"100/s\" }"];
    let add = growth(&mut inner, "add", example[0], reading);
    let until = growth(&mut inner, "until", example[1], reading);
    let back = back(&mut inner, every, reading);
    let climbed = match (every, add, until) {
        (Some(_), Some(add), Some(until)) => {
            climb(&inner, table, Climb { rate, add, until }, count, reading)
        }
        _ => None,
    };
    inner.finish(reading);
    let step = |(rate, generators), length| Step { rate, length, generators };
    Some(back?.steps(climbed?, every?, step))
}

/// `steps = { every = "10s", add = { clients = 10 }, until = { clients = 100 }, leave = true }`
pub(crate) fn clients_by_rule(
    table: &mut Table<'_>,
    first: u32,
    reading: &mut Reading<'_>,
) -> Option<Vec<ClientStep>> {
    let options = table.given("steps")?;
    let mut inner = Table::open(options, "load.steps", reading);
    let every = every(&mut inner, reading);
    let mut clients = |key: &'static str, example: &str| {
        let given = inner.given(key);
        let given = inner.require(key, given, example, reading)?;
        let mut by = Table::open(given, &inner.full(key), reading);
        refuse(&mut by, "rate", "an open", reading);
        refuse(&mut by, "generators", "an open", reading);
        let count = by.integer("clients", 1, CLIENTS_MAX.into(), reading);
        let count = by.require("clients", count, "clients = 10", reading);
        by.finish(reading);
        count.map(|count| u32::try_from(count).expect("at most CLIENTS_MAX"))
    };
    let add = clients("add", "add = { clients = 10 }");
    let until = clients("until", "until = { clients = 100 }");
    let back = back(&mut inner, every, reading);
    let climbed = match (add, until) {
        (Some(add), Some(until)) => {
            let step = usize::try_from(add).expect("32 bits fit");
            let steps: Vec<u32> = (first..=until).step_by(step).take(STEPS_MAX + 1).collect();
            is_possible(&inner, steps.len(), reading).then_some(steps)
        }
        _ => None,
    };
    inner.finish(reading);
    Some(back?.steps(climbed?, every?, |clients, length| ClientStep { clients, length }))
}

fn every(inner: &mut Table<'_>, reading: &mut Reading<'_>) -> Option<Duration> {
    let every = inner.duration("every", reading);
    inner.require("every", every, "every = \"10s\"", reading)
}

/// How long the highest step is, and whether it goes down again.
struct Back {
    hold: Duration,
    leave: bool,
}

fn back(inner: &mut Table<'_>, every: Option<Duration>, reading: &mut Reading<'_>) -> Option<Back> {
    let leave = inner.boolean_or("leave", keys::fixed("load.steps.leave") == "true", reading);
    let hold = inner.duration_or("hold", every.unwrap_or_default(), reading);
    if hold.is_zero() && every.is_some_and(|every| !every.is_zero()) {
        inner.reject("hold", "the highest step must be greater than zero", None, reading);
        return None;
    }
    Some(Back { hold, leave })
}

impl Back {
    fn steps<L: Copy, S>(
        &self,
        climbed: Vec<L>,
        every: Duration,
        step: impl Fn(L, Duration) -> S,
    ) -> Vec<S> {
        let top = climbed.len() - 1;
        let up = climbed
            .iter()
            .enumerate()
            .map(|(index, level)| step(*level, if index == top { self.hold } else { every }));
        let down = climbed[..top].iter().rev().filter(|_| self.leave);
        up.chain(down.map(|level| step(*level, every))).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Growth {
    Rate(Rate),
    Generators(u64),
}

/// `{ rate = "10/s" }` or `{ generators = 1 }`.
fn growth(
    inner: &mut Table<'_>,
    key: &'static str,
    example: &str,
    reading: &mut Reading<'_>,
) -> Option<Growth> {
    let given = inner.given(key);
    let options: &Options = inner.require(key, given, example, reading)?;
    let mut by = Table::open(options, &inner.full(key), reading);
    refuse(&mut by, "clients", "a closed", reading);
    let rate = by.rate("rate", reading);
    let generators = by.integer("generators", 1, GENERATORS_MAX, reading);
    let growth = match (rate, generators) {
        (Some(rate), None) => finite_at(&by, "rate", rate, reading).map(Growth::Rate),
        (None, Some(generators)) => Some(Growth::Generators(generators)),
        (Some(_), Some(_)) => {
            let message = format!("`{}` takes a rate or generators, not both", inner.full(key));
            by.reject("generators", message, None, reading);
            None
        }
        (None, None) => {
            if by.given("rate").is_none() && by.given("generators").is_none() {
                let message = format!("`{}` names neither rate nor generators", inner.full(key));
                inner.reject(key, message, Some(&format!("write {example}")), reading);
            }
            None
        }
    };
    by.finish(reading);
    growth
}

#[derive(Clone, Copy)]
struct Climb {
    rate: Rate,
    add: Growth,
    until: Growth,
}

/// The rates of the steps upwards, each with its generators if these are counted: the first is the load's own, each next
/// one is larger by `add`, the last is the largest that is not above `until`.
fn climb(
    inner: &Table<'_>,
    table: &Table<'_>,
    climb: Climb,
    count: &Multiplier,
    reading: &mut Reading<'_>,
) -> Option<Vec<(Rate, u64)>> {
    let rate = finite(table, climb.rate, "steps", reading)?;
    let mut steps = Vec::new();
    match (climb.add, climb.until) {
        (Growth::Generators(add), Growth::Generators(until)) => {
            if !count.per_generator {
                let message = "steps that add generators need a rate of one generator";
                inner.reject("add", message, Some("write rate_per = \"generator\""), reading);
                return None;
            }
            let mut generators = count.generators;
            while generators <= until && steps.len() <= STEPS_MAX {
                steps.push((rate.times(generators), generators));
                generators += add;
            }
        }
        (Growth::Rate(add), Growth::Rate(until)) => {
            if add.is_zero() {
                inner.reject("add", "steps that add nothing never end", None, reading);
                return None;
            }
            for index in 0..=STEPS_MAX {
                let Some(at) = raised(rate, add, index).filter(|at| !above(*at, until)) else {
                    break;
                };
                steps.push((at.times(count.total), 0));
            }
        }
        _ => {
            let message = "`load.steps.until` must name the same thing as `load.steps.add`";
            inner.reject("until", message, None, reading);
            return None;
        }
    }
    is_possible(inner, steps.len(), reading).then_some(steps)
}

/// Whether there are steps, and not too many.
fn is_possible(inner: &Table<'_>, count: usize, reading: &mut Reading<'_>) -> bool {
    if count == 0 {
        let message = "the first step is already above `load.steps.until`";
        inner.reject("until", message, None, reading);
    } else if count > STEPS_MAX {
        inner.reject("until", format!("more than {STEPS_MAX} steps"), None, reading);
    }
    (1..=STEPS_MAX).contains(&count)
}

/// `rate + index × add`, to the thousandth of an event a second that rates are kept to.
fn raised(rate: Rate, add: Rate, index: usize) -> Option<Rate> {
    #[expect(clippy::cast_precision_loss, reason = "at most STEPS_MAX")]
    let per_second = rate.as_per_second() + add.as_per_second() * index as f64;
    Rate::parse(&format!("{per_second:.3}/s")).ok()
}

fn above(rate: Rate, until: Rate) -> bool {
    // Half of a thousandth is rounding, not a step.
    rate.as_per_second() > until.as_per_second() + 0.000_5
}

/// How long steps last together; `None`, and a mistake, if that is nothing or longer than time.
pub(crate) fn length_of(
    table: &Table<'_>,
    mut lengths: impl Iterator<Item = Duration>,
    reading: &mut Reading<'_>,
) -> Option<Duration> {
    let length = lengths.try_fold(Duration::ZERO, |sum, length| sum.checked_add(length));
    let length = length.filter(|length| !length.is_zero());
    if length.is_none() {
        table.reject("steps", "`load.steps` last no time, or longer than time", None, reading);
    }
    length
}
