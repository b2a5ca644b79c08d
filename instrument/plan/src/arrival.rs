//! The shape of an open loop in time: constant, poisson, burst, ramp, steps, trace. Rates are multiplied out
//! here (`rate_per`), so that a plan holds totals.

use std::time::Duration;

use model::options::Value;
use model::plan::{Arrivals, Schedule, Step};
use model::quantity::Rate;

use crate::shape::{GENERATORS_MAX, Multiplier, Shape, finite, finite_at};
use crate::table::{Reading, Table};
use crate::{keys, steps, trace};

const SHAPES: [&str; 6] = ["constant", "poisson", "burst", "ramp", "steps", "trace"];
/// Shapes that have a key of their own, under which their details stand.
const DETAILED: [&str; 4] = ["burst", "ramp", "steps", "trace"];

/// Reads the shape. `connections` is what `rate_per = "connection"` multiplies by.
pub(crate) fn open(
    table: &mut Table<'_>,
    connections: u32,
    reading: &mut Reading<'_>,
) -> Option<Shape> {
    let shape = which(table, reading);
    let count = multiplier(table, connections, reading);
    let by_rule = matches!(table.given("steps").map(|s| &s.value), Some(Value::Table(_)));
    let has_rate = match shape? {
        "ramp" | "trace" => false,
        "steps" => by_rule,
        _ => true,
    };
    let rate = if has_rate {
        let rate = table.rate("rate", reading);
        table.require("rate", rate, "rate = \"50/s\"", reading)
    } else {
        refuse_rate(table, shape?, reading);
        None
    };
    match shape? {
        "poisson" => {
            let rate = finite(table, rate?.times(count.total), "poisson arrivals", reading)?;
            // A process without events is the same with any gaps.
            let schedule = if rate.is_zero() {
                Schedule::Constant { rate }
            } else {
                Schedule::Poisson { rate }
            };
            Some(Shape::endless(schedule))
        }
        "burst" => burst(table, rate?.times(count.total), reading),
        "ramp" => ramp(table, count.total, reading),
        "steps" => {
            let steps = match by_rule {
                true => steps::rates_by_rule(table, rate?, &count, reading),
                false => steps::rates_listed(table, count.total, reading),
            };
            staircase(table, steps?, reading)
        }
        "trace" => trace::read(table, reading),
        _ => Some(Shape::endless(Schedule::Constant { rate: rate?.times(count.total) })),
    }
}

/// The word of `arrival`, or the one whose details are given, or constant. Two that contradict each other are
/// a mistake.
fn which(table: &mut Table<'_>, reading: &mut Reading<'_>) -> Option<&'static str> {
    let detailed: Vec<&'static str> =
        DETAILED.into_iter().filter(|key| table.given(key).is_some()).collect();
    let fallback = detailed.first().copied().unwrap_or(keys::fixed("load.arrival"));
    let shape = table.one_of_or("arrival", &SHAPES, fallback, reading)?;
    for key in detailed.into_iter().filter(|key| *key != shape) {
        let message = format!("`load.{key}` does not go with {shape} arrivals");
        table.reject(
            key,
            message,
            Some(&format!("remove it, or write arrival = \"{key}\"")),
            reading,
        );
    }
    Some(shape)
}

fn refuse_rate(table: &mut Table<'_>, shape: &str, reading: &mut Reading<'_>) {
    if table.given("rate").is_some() {
        let message =
            format!("`load.rate` does not go with {shape} arrivals, which have their own");
        table.reject("rate", message, Some("remove it"), reading);
    }
}

fn multiplier(table: &mut Table<'_>, connections: u32, reading: &mut Reading<'_>) -> Multiplier {
    let words = ["total", "connection", "generator"];
    let per = table.one_of_or("rate_per", &words, keys::fixed("load.rate_per"), reading);
    let per_generator = per == Some("generator");
    let generators = if per_generator {
        let fixed = keys::fixed_integer("load.generators");
        table.integer_or("generators", 1, GENERATORS_MAX, fixed, reading)
    } else {
        if table.given("generators").is_some() && per.is_some() {
            let message = "`load.generators` multiplies nothing: the rate is not one generator's";
            table.reject("generators", message, Some("write rate_per = \"generator\""), reading);
        }
        1
    };
    let total = match per {
        Some("connection") => u64::from(connections),
        _ => generators,
    };
    Multiplier { total, generators, per_generator }
}

fn burst(table: &mut Table<'_>, rate: Rate, reading: &mut Reading<'_>) -> Option<Shape> {
    let fixed = keys::fixed_duration("load.burst.every");
    let every = match table.given("burst") {
        Some(options) => {
            let mut inner = Table::open(options, "load.burst", reading);
            let every = inner.duration_or("every", fixed, reading);
            if every.is_zero() {
                let message = "`load.burst.every` must be greater than zero";
                inner.reject("every", message, None, reading);
            }
            inner.finish(reading);
            every
        }
        None => table.note_derived(
            "burst.every",
            fixed,
            keys::fixed("load.burst.every").into(),
            reading,
        ),
    };
    let rate = finite(table, rate, "bursts", reading)?;
    let schedule =
        if rate.is_zero() { Schedule::Constant { rate } } else { Schedule::Burst { rate, every } };
    Some(Shape::endless(schedule))
}

fn ramp(table: &mut Table<'_>, count: u64, reading: &mut Reading<'_>) -> Option<Shape> {
    let given = table.given("ramp");
    let example = "ramp = { from = \"10/s\", to = \"100/s\" }";
    let options = table.require("ramp", given, example, reading)?;
    let mut inner = Table::open(options, "load.ramp", reading);
    let mut end = |key: &'static str, example: &str| {
        let rate = inner.rate(key, reading);
        let rate = inner.require(key, rate, example, reading)?;
        finite_at(&inner, key, rate.times(count), reading)
    };
    let (from, to) = (end("from", "from = \"10/s\""), end("to", "to = \"100/s\""));
    if let (Some(from), Some(to)) = (from, to)
        && from.is_zero()
        && to.is_zero()
    {
        inner.reject("to", "a ramp from nothing to nothing sends nothing", None, reading);
    }
    inner.finish(reading);
    Some(Shape::endless(Schedule::Ramp { from: from?, to: to? }))
}

fn staircase(table: &Table<'_>, steps: Vec<Step>, reading: &mut Reading<'_>) -> Option<Shape> {
    if steps.iter().all(|step| step.rate.is_zero()) {
        table.reject("steps", "steps without any rate send nothing", None, reading);
        return None;
    }
    let length = steps::length_of(table, steps.iter().map(|step| step.length), reading)?;
    let schedule = Schedule::Steps { steps };
    Some(Shape { arrivals: Arrivals::Open { schedule }, length: Some(length), exact: true })
}

/// How many transactions fall due in warm-up and measured window; `None` where only the system can tell.
pub(crate) fn planned(arrivals: &Arrivals, warmup: Duration, duration: Duration) -> Option<u64> {
    let Arrivals::Open { schedule } = arrivals else { return None };
    let all = warmup.saturating_add(duration);
    match schedule {
        Schedule::Constant { rate } | Schedule::Poisson { rate } | Schedule::Burst { rate, .. } => {
            (!rate.is_max()).then(|| rate.events_in(all))
        }
        Schedule::Ramp { from, to } => {
            let measured = from.events_in(duration / 2).checked_add(to.events_in(duration / 2));
            Some(measured.unwrap_or(u64::MAX).saturating_add(from.events_in(warmup)))
        }
        Schedule::Steps { steps } => {
            let before = steps.first().map_or(0, |step| step.rate.events_in(warmup));
            let counts = steps.iter().map(|step| step.rate.events_in(step.length));
            Some(counts.fold(before, u64::saturating_add))
        }
        Schedule::Trace { due_ns } => {
            Some(u64::try_from(due_ns.len()).expect("a length fits 64 bits"))
        }
    }
}

/// The highest rate that the plan offers, per second; infinite for `max`, `None` for closed loops.
pub(crate) fn rate_max(arrivals: &Arrivals, all: Duration) -> Option<f64> {
    let Arrivals::Open { schedule } = arrivals else { return None };
    Some(match schedule {
        Schedule::Constant { rate } | Schedule::Poisson { rate } | Schedule::Burst { rate, .. } => {
            rate.as_per_second()
        }
        Schedule::Ramp { from, to } => from.as_per_second().max(to.as_per_second()),
        Schedule::Steps { steps } => {
            steps.iter().map(|step| step.rate.as_per_second()).fold(0.0, f64::max)
        }
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        Schedule::Trace { due_ns } => due_ns.len() as f64 / all.as_secs_f64().max(1e-9),
    })
}
