//! `[load]` of one setting, read in full: every default filled in, every pair of keys that contradict each
//! other named. It knows nothing of the other tables and opens no connection.

use std::time::Duration;

use model::options::{Options, Value};
use model::plan::{Affinity, Arrivals, Hopeless, LoadPlan, Pacing, ResendPlan, Schedule};
use model::quantity::{show_count, show_duration};

use crate::arrival;
use crate::input::TRANSACTIONS_MAX;
use crate::layer::{CLOSED_KEYS, OPEN_KEYS};
use crate::shape::{CLIENTS_MAX, Shape};
use crate::table::{Reading, Table};
use crate::{batch, keys, steps};

/// The most connections: what one host's ports and descriptors carry with room to spare.
pub(crate) const CONNECTIONS_MAX: u32 = 20_000;
/// The most engine threads: a row's worker is kept in eight bits.
const THREADS_MAX: u32 = 255;
/// The longest trial: a year, so that stamps in nanoseconds stay far from their end.
const TRIAL_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Reads `[load]`. Whatever it returns counts only if no problem was added.
pub(crate) fn read(options: &Options, reading: &mut Reading<'_>) -> Option<LoadPlan> {
    let mut table = Table::open(options, "load", reading);
    let model = table.one_of_or("model", &["open", "closed"], keys::fixed("load.model"), reading);
    let timeout = table.duration_or("timeout", keys::fixed_duration("load.timeout"), reading);
    if timeout.is_zero() {
        table.reject("timeout", "`load.timeout` must be greater than zero", None, reading);
    }
    // A word that is none leaves the keys to say which was meant, so that their own mistakes are told, too.
    let model = model.or_else(|| {
        let opens = OPEN_KEYS.into_iter().any(|key| table.given(key).is_some());
        let closes = CLOSED_KEYS.into_iter().any(|key| table.given(key).is_some());
        (opens != closes).then_some(if opens { "open" } else { "closed" })
    });
    let (shape, connections) = match model {
        Some("closed") => {
            refuse(&mut table, &OPEN_KEYS, "an open", reading);
            closed(&mut table, reading)
        }
        Some(_) => {
            refuse(&mut table, &CLOSED_KEYS, "a closed", reading);
            let connections = open_connections(&mut table, reading);
            (arrival::open(&mut table, connections, reading), connections)
        }
        None => {
            // Which of these belong here is not known, so nothing is said about them.
            for key in OPEN_KEYS.into_iter().chain(CLOSED_KEYS) {
                let _ = table.given(key);
            }
            (None, open_connections(&mut table, reading))
        }
    };
    let grows = grows(&mut table, shape.as_ref());
    let connections_max = connections_max(&mut table, connections, grows, reading);
    let threads = threads(&mut table, connections, reading);
    let drain_max = drain(&mut table, timeout, reading);
    let backlog_max = table.integer_or(
        "backlog_max",
        0,
        1_000_000_000,
        keys::fixed_integer("load.backlog_max"),
        reading,
    );
    let lookahead =
        table.count_or("lookahead", 1, 1 << 20, keys::fixed_count("load.lookahead"), reading);
    let pacing = pacing(&mut table, reading);
    let batch = batch::read(&mut table, connections, connections_max, timeout, reading);
    let transactions_max = table.integer_or(
        "transactions_max",
        0,
        TRANSACTIONS_MAX,
        keys::fixed_integer("load.transactions_max"),
        reading,
    );
    let affinity = affinity(&mut table, connections < connections_max, shape.as_ref(), reading);
    let resend = resend(&mut table, timeout, reading);
    let until = until(&mut table, reading);
    let words = ["end", "go_on"];
    let hopeless = match table.one_of_or("hopeless", &words, keys::fixed("load.hopeless"), reading)
    {
        Some("go_on") => Hopeless::GoOn,
        _ => Hopeless::End,
    };
    let (warmup, duration) = window(&mut table, shape.as_ref(), reading);
    let shape = shape.map(|shape| shape.cut(warmup + duration));
    if let Some(shape) = &shape {
        check_count(&table, shape, warmup, duration, transactions_max, reading);
    }
    table.finish(reading);
    Some(LoadPlan {
        arrivals: shape?.arrivals,
        connections,
        connections_max,
        threads,
        warmup,
        duration,
        drain_max,
        timeout,
        backlog_max,
        lookahead,
        pacing,
        batch,
        transactions_max,
        affinity,
        resend,
        until,
        hopeless,
    })
}

/// The final stage of a stream, from its own table; empty: the trial's.
pub(crate) fn until(table: &mut Table<'_>, reading: &mut Reading<'_>) -> String {
    match table.string("until", reading) {
        Some(until) => until.to_owned(),
        None => table.note_derived("until", String::new(), "as measure.until".to_owned(), reading),
    }
}

/// Whether clients stay on their connections, and what does not go with that.
fn affinity(
    table: &mut Table<'_>,
    grows: bool,
    shape: Option<&Shape>,
    reading: &mut Reading<'_>,
) -> Affinity {
    let word =
        table.one_of_or("affinity", &["any", "client"], keys::fixed("load.affinity"), reading);
    if word != Some("client") {
        return Affinity::Any;
    }
    if grows {
        let message = "`load.affinity = \"client\"` needs a fixed number of connections, for a client's is always the same";
        let help = "remove connections_max, and write connections as high as is needed";
        table.reject("affinity", message, Some(help), reading);
    }
    let is_max = |shape: &Shape| match &shape.arrivals {
        Arrivals::Open { schedule: Schedule::Constant { rate } } => rate.is_max(),
        _ => false,
    };
    if shape.is_some_and(is_max) {
        let message = "`load.affinity = \"client\"` does not go with `rate = \"max\"`: the next transaction goes to any free connection, so affinity cannot be kept";
        table.reject(
            "affinity",
            message,
            Some("write a rate, or model = \"closed\" with clients"),
            reading,
        );
    }
    Affinity::Client
}

/// The resends.
fn resend(
    table: &mut Table<'_>,
    timeout: Duration,
    reading: &mut Reading<'_>,
) -> Option<ResendPlan> {
    let given = table.given("resend")?;
    let mut inner = Table::open(given, "load.resend", reading);
    let fixed = keys::fixed_count("load.resend.attempts_max");
    let attempts_max = inner.count_or("attempts_max", 2, 255, fixed, reading);
    let after = inner.duration_or("after", timeout, reading);
    if after.is_zero() || after > timeout {
        let message = format!(
            "`load.resend.after` is {}; it must be greater than zero and at most the timeout, {}",
            show_duration(after),
            show_duration(timeout)
        );
        let help = "after `load.timeout` a transaction is given up, however often it was sent";
        inner.reject("after", message, Some(help), reading);
    }
    inner.finish(reading);
    let attempts_max = u8::try_from(attempts_max).expect("at most 255");
    Some(ResendPlan { attempts_max, after })
}

/// Connections of an open loop: enough that an answer of one second allows 64/s with one request a connection.
const OPEN_CONNECTIONS: u32 = 64;

fn open_connections(table: &mut Table<'_>, reading: &mut Reading<'_>) -> u32 {
    table.count_or("connections", 1, CONNECTIONS_MAX, OPEN_CONNECTIONS, reading)
}

/// Adds a mistake for each of `keys` that is there: they belong to the other model.
fn refuse(table: &mut Table<'_>, keys: &[&'static str], other: &str, reading: &mut Reading<'_>) {
    let own = if other == "an open" { "closed" } else { "open" };
    let word = other.rsplit(' ').next().unwrap_or_default();
    for key in keys {
        if table.given(key).is_some() {
            let full = table.full(key);
            let message = format!("`{full}` belongs to {other} loop, but this one is {own}");
            let help = format!("remove it, or write model = \"{word}\"");
            table.reject(key, message, Some(&help), reading);
        }
    }
}

fn closed(table: &mut Table<'_>, reading: &mut Reading<'_>) -> (Option<Shape>, u32) {
    let think = table.duration_or("think", keys::fixed_duration("load.think"), reading);
    let poll = table.duration_or("poll", keys::fixed_duration("load.poll"), reading);
    let window = table.count_or("window", 0, 1_000_000, keys::fixed_count("load.window"), reading);
    if window > 0 && !think.is_zero() {
        let message = "`load.think` does not go with `load.window`: a window has no pauses";
        table.reject("think", message, Some("remove one of the two"), reading);
    }
    let clients = table
        .integer("clients", 1, CLIENTS_MAX.into(), reading)
        .map(|clients| u32::try_from(clients).expect("at most CLIENTS_MAX"));
    let is_list = table.given("steps").map(|given| matches!(given.value, Value::Array(_)));
    let steps = match is_list {
        None => Some(Vec::new()),
        Some(true) => {
            if clients.is_some() {
                let message = "`load.clients` does not go with a list of steps, each of which says how many there are";
                table.reject("clients", message, Some("remove it"), reading);
            }
            steps::clients_listed(table, reading)
        }
        Some(false) => table
            .require("clients", clients, "clients = 64", reading)
            .and_then(|first| steps::clients_by_rule(table, first, reading)),
    };
    let most = steps.iter().flatten().map(|step| step.clients).max().or(clients);
    let connections = match (window, most) {
        (0, Some(clients)) => clients.clamp(1, CONNECTIONS_MAX),
        _ => 1,
    };
    let connections = table.count_or("connections", 1, CONNECTIONS_MAX, connections, reading);
    let clients = match most {
        None if is_list.is_none() && window == 0 => {
            table.require("clients", None, "clients = 64", reading)
        }
        None if is_list.is_none() => {
            let product = window.saturating_mul(connections).min(CLIENTS_MAX);
            Some(table.note_derived("clients", product, product.to_string(), reading))
        }
        most => most,
    };
    let shape = match (clients, steps) {
        (Some(clients), Some(steps)) => {
            closed_shape(table, Arrivals::Closed { clients, think, window, poll, steps }, reading)
        }
        _ => None,
    };
    (shape, connections)
}

/// Clients that are there all the time, or come and go in steps.
fn closed_shape(table: &Table<'_>, arrivals: Arrivals, reading: &mut Reading<'_>) -> Option<Shape> {
    let Arrivals::Closed { clients, steps, .. } = &arrivals else { return None };
    if *clients == 0 {
        table.reject("steps", "steps without any client send nothing", None, reading);
        return None;
    }
    let length = match steps.is_empty() {
        true => None,
        false => Some(steps::length_of(table, steps.iter().map(|step| step.length), reading)?),
    };
    Some(Shape { length, exact: length.is_some(), arrivals })
}

/// The bound of an open loop's connections where none is written: at 300 ms a request it lets 3,400/s be outstanding,
/// and a server that closes its doors at a few thousand clients has room beside it.
const GROWN_CONNECTIONS: u32 = 1_024;

/// Whether more connections are opened when all are busy, unless the file says otherwise. Clients of a closed loop,
/// connections with queues or clients of their own, and a load that is as much as the connections take have as many
/// as they have.
fn grows(table: &mut Table<'_>, shape: Option<&Shape>) -> bool {
    let is_rate = shape.is_some_and(|shape| match &shape.arrivals {
        Arrivals::Open { schedule: Schedule::Constant { rate } } => !rate.is_max(),
        Arrivals::Open { .. } => true,
        Arrivals::Closed { .. } => false,
    });
    let is_clients =
        |given: &Options| matches!(&given.value, Value::String(word) if word == "client");
    is_rate && table.given("batch").is_none() && !table.given("affinity").is_some_and(is_clients)
}

/// A number, `"fixed"` (as many as `load.connections`), or what holds without either.
fn connections_max(
    table: &mut Table<'_>,
    connections: u32,
    grows: bool,
    reading: &mut Reading<'_>,
) -> u32 {
    let is_fixed = |given: &Options| matches!(&given.value, Value::String(word) if word == "fixed");
    if table.given("connections_max").is_some_and(is_fixed) {
        table.note("connections_max", Some(connections.to_string()), reading);
        return connections;
    }
    let otherwise = if grows { connections.max(GROWN_CONNECTIONS) } else { connections };
    let most = table.count_or("connections_max", 1, CONNECTIONS_MAX, otherwise, reading);
    if most < connections {
        let message = format!(
            "`load.connections_max` is {most}, fewer than the {connections} of `load.connections`"
        );
        table.reject("connections_max", message, None, reading);
    }
    most
}

fn threads(table: &mut Table<'_>, connections: u32, reading: &mut Reading<'_>) -> u32 {
    let threads =
        table.count_or("threads", 1, THREADS_MAX, keys::fixed_count("load.threads"), reading);
    if threads > connections {
        let message = format!(
            "{threads} threads cannot share {connections} connections: each needs one of its own"
        );
        table.reject("threads", message, Some("lower threads or raise connections"), reading);
    }
    threads
}

/// A duration, or `{ until = "…", max = "5m" }`.
fn drain(table: &mut Table<'_>, timeout: Duration, reading: &mut Reading<'_>) -> Duration {
    let Some(given) = table.given("drain").filter(|g| matches!(g.value, Value::Table(_))) else {
        return table.duration_or("drain", timeout, reading);
    };
    let mut drain = Table::open(given, "load.drain", reading);
    drain.refuse_unbuilt("until", "draining until a metric says so", reading);
    let most = drain.duration_or("max", timeout, reading);
    drain.finish(reading);
    most
}

fn pacing(table: &mut Table<'_>, reading: &mut Reading<'_>) -> Pacing {
    let words = ["exact", "balanced", "coalesced"];
    match table.one_of_or("pacing", &words, keys::fixed("load.pacing"), reading) {
        Some("exact") => Pacing::Exact,
        Some("coalesced") => Pacing::Coalesced,
        _ => Pacing::Balanced,
    }
}

/// Warm-up and measured window.
fn window(
    table: &mut Table<'_>,
    shape: Option<&Shape>,
    reading: &mut Reading<'_>,
) -> (Duration, Duration) {
    let length = shape.and_then(|shape| shape.length);
    let is_trace = shape.is_some_and(Shape::is_trace);
    let warmup_given = table.duration("warmup", reading);
    let fallback = match length {
        Some(length) if is_trace => length.saturating_sub(warmup_given.unwrap_or_default()),
        Some(length) => length,
        None => DURATION,
    };
    let duration = table.duration_or("duration", fallback, reading);
    if duration.is_zero() {
        let message = "`load.duration` must be greater than zero: it is the measured window";
        table.reject("duration", message, None, reading);
    }
    if let (Some(length), true) = (length, shape.is_some_and(|shape| shape.exact))
        && duration != length
    {
        let message = format!(
            "`load.duration` is {}, but the steps last {} in all",
            show_duration(duration),
            show_duration(length)
        );
        table.reject("duration", message, Some("remove it: the steps give it"), reading);
    }
    let warmup = warmup_given.unwrap_or_else(|| {
        let rule = if is_trace { Duration::ZERO } else { WARMUP.min(duration / 10) };
        table.note_derived("warmup", rule, show_duration(rule), reading)
    });
    if duration.checked_add(warmup).is_none_or(|all| all > TRIAL_MAX) {
        let message = "warm-up and measured window are longer than a year together";
        table.reject("duration", message, None, reading);
        return (Duration::ZERO, DURATION);
    }
    (warmup, duration)
}

/// Without `load.duration`: what a first look needs, and 1,500 samples at 50/s.
const DURATION: Duration = Duration::from_secs(30);
/// Without `load.warmup`: connections, caches and branch predictors have settled after it on any system that
/// does not move data; what needs longer must say so, and the warm-up audit tells.
const WARMUP: Duration = Duration::from_secs(2);

fn check_count(
    table: &Table<'_>,
    shape: &Shape,
    warmup: Duration,
    duration: Duration,
    transactions_max: u64,
    reading: &mut Reading<'_>,
) {
    let planned = arrival::planned(&shape.arrivals, warmup, duration);
    if let Some(count) = planned.filter(|count| *count > TRANSACTIONS_MAX) {
        let bounded = transactions_max > 0 && transactions_max <= TRANSACTIONS_MAX;
        if !bounded {
            let message = format!(
                "{} transactions in one trial are too many; at most {}",
                if count == u64::MAX { "2^64".to_owned() } else { show_count(count) },
                show_count(TRANSACTIONS_MAX)
            );
            let help = "lower the rate or the duration, or set transactions_max";
            table.reject("rate", message, Some(help), reading);
        }
    }
}
