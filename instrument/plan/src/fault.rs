//! `[[fault]]` of one setting: what is done to which nodes, when, and for how long.
//!
//! A fault is one thing, so its verbs exclude each other. It must never take a key that the verb has no use for.

use std::time::Duration;

use model::options::{Options, Value};
use model::plan::{CLIENT, CutWay, FaultKind, FaultPlan, LinksPlan};
use model::quantity::show_duration;

use crate::links::{self, check_pattern};
use crate::table::{Reading, Table, not_a_list};

/// The most faults of a setting.
const FAULTS_MAX: usize = 1_000;
/// The most cycles of a rotation.
const CYCLES_MAX: u32 = 1_000_000;

/// The verbs, each with its lines as an example.
const VERBS: [&str; 6] = ["pause", "kill", "restart", "rotate", "partition", "link"];

/// Faults of the design that the testbed cannot inject yet, by their key.
const UNBUILT: [(&str, &str); 4] = [
    ("every", "a fault that comes again"),
    ("disk", "a slow disk"),
    ("outage", "an outage"),
    ("limiter", "a rate limiter"),
];

/// What a fault is read against.
pub(crate) struct Beside<'a> {
    /// The measured window, if the load could be read.
    pub duration: Option<Duration>,
    /// The network, if there is one.
    pub links: Option<&'a LinksPlan>,
}

/// Reads the list. Whatever it returns counts only if no problem was added.
pub(crate) fn read(
    root: &Options,
    beside: &Beside<'_>,
    reading: &mut Reading<'_>,
) -> Vec<FaultPlan> {
    let Some(options) = root.get("fault") else { return Vec::new() };
    let Value::Array(items) = &options.value else {
        not_a_list(options, "fault", reading);
        return Vec::new();
    };
    if items.len() > FAULTS_MAX {
        let message = format!("{} faults; at most {FAULTS_MAX} are taken", items.len());
        reading.problems.add(options.span, message, None);
        return Vec::new();
    }
    let faults = items.iter().enumerate();
    faults.filter_map(|(index, item)| fault(item, index, beside, reading)).collect()
}

fn fault(
    item: &Options,
    index: usize,
    beside: &Beside<'_>,
    reading: &mut Reading<'_>,
) -> Option<FaultPlan> {
    let before = reading.problems.list.len();
    let mut table = Table::open(item, &format!("fault[{index}]"), reading);
    for (key, what) in UNBUILT {
        table.refuse_unbuilt(key, what, reading);
    }
    let is_built = reading.problems.list.len() == before;
    let at = table.duration("at", reading);
    let length = table.duration("for", reading);
    let verbs: Vec<&str> = VERBS.into_iter().filter(|verb| table.given(verb).is_some()).collect();
    let kind = match verbs.as_slice() {
        [verb] => kind(verb, &mut table, beside, reading),
        _ => {
            for key in ["cycles", "one_way", "client"] {
                let _ = table.given(key);
            }
            if is_built {
                not_one_verb(&verbs, &table, reading);
            }
            None
        }
    };
    if is_built {
        table.require("at", at, "at = \"10s\"", reading);
        if let [verb] = verbs.as_slice() {
            check_length(verb, &mut table, length, reading);
        }
        check_at(&table, at, beside.duration, reading);
    }
    table.finish(reading);
    Some(FaultPlan { at: at?, length: length.unwrap_or_default(), kind: kind? })
}

fn not_one_verb(verbs: &[&str], table: &Table<'_>, reading: &mut Reading<'_>) {
    match verbs {
        [first, .., last] => {
            let message = format!("one fault is one thing, but here are `{first}` and `{last}`");
            table.reject(last, message, Some("write a [[fault]] for each"), reading);
        }
        _ => {
            let message = "this fault does not say what is done";
            let help = format!("add one of {}, such as pause = \"node0\"", VERBS.join(", "));
            table.reject("", message, Some(&help), reading);
        }
    }
}

/// What is done, to whom; and mistakes for keys that belong to other verbs.
fn kind(
    verb: &str,
    table: &mut Table<'_>,
    beside: &Beside<'_>,
    reading: &mut Reading<'_>,
) -> Option<FaultKind> {
    for (key, of) in [("cycles", "rotate"), ("one_way", "partition"), ("client", "partition")] {
        if of != verb && table.given(key).is_some() {
            let message = format!("`{}` belongs to {of}, but this is {verb}", table.full(key));
            table.reject(key, message, Some("remove it"), reading);
        }
    }
    match verb {
        "pause" => Some(FaultKind::Pause { node: node(table, "pause", reading)? }),
        "kill" => Some(FaultKind::Kill { node: node(table, "kill", reading)? }),
        "restart" => Some(FaultKind::Restart { node: node(table, "restart", reading)? }),
        "rotate" => {
            let node = node(table, "rotate", reading);
            let cycles = table.integer("cycles", 1, CYCLES_MAX.into(), reading).unwrap_or(0);
            let cycles = u32::try_from(cycles).expect("at most CYCLES_MAX");
            Some(FaultKind::Rotate { node: node?, cycles })
        }
        "partition" => partition(table, beside, reading),
        _ => link(table, beside, reading),
    }
}

/// The name or pattern at `key`.
fn node(table: &mut Table<'_>, key: &'static str, reading: &mut Reading<'_>) -> Option<String> {
    let name = table.string(key, reading)?;
    check_pattern(table, key, name, reading);
    Some(name.to_owned())
}

fn partition(
    table: &mut Table<'_>,
    beside: &Beside<'_>,
    reading: &mut Reading<'_>,
) -> Option<FaultKind> {
    needs_links("partition", "a partition", table, beside, reading);
    let nodes = table.strings("partition", reading);
    if let Some(nodes) = &nodes {
        table.note("partition", Some(nodes.join(" ")), reading);
        if nodes.is_empty() {
            table.reject("partition", "this partition names no node", None, reading);
        }
        for name in nodes {
            if *name == CLIENT {
                let message = "the instrument is no node that could be cut off from the others";
                let help = "name nodes, and add client = true to cut these off from it, too";
                table.reject("partition", message, Some(help), reading);
            } else {
                check_pattern(table, "partition", name, reading);
            }
        }
    }
    let way = match table.one_of("one_way", &["in", "out"], reading) {
        Some("in") => CutWay::In,
        Some(_) => CutWay::Out,
        None => CutWay::Both,
    };
    let client = table.boolean_or("client", false, reading);
    let nodes = nodes?.into_iter().map(str::to_owned).collect();
    Some(FaultKind::Partition { nodes, way, client })
}

fn link(
    table: &mut Table<'_>,
    beside: &Beside<'_>,
    reading: &mut Reading<'_>,
) -> Option<FaultKind> {
    needs_links("link", "a change of links", table, beside, reading);
    let mut inner = Table::open(table.given("link")?, &table.full("link"), reading);
    let ends = links::ends(&mut inner, reading);
    let change = links::change(&mut inner, reading);
    if let Some(links) = beside.links {
        links::check_through(&inner, change, links.through, reading);
    }
    let keys = ["delay", "jitter", "loss", "bandwidth", "reorder"];
    if ends.is_some() && keys.into_iter().all(|key| inner.given(key).is_none()) {
        let message = "this fault changes nothing on its links";
        let help = format!("add one of {}, such as delay = \"200ms\"", keys.join(", "));
        inner.reject("", message, Some(&help), reading);
    }
    if let (Some(jitter), Some(delay)) = (change.jitter, change.delay)
        && jitter > delay
    {
        let message = format!(
            "a jitter of {} around a delay of {} would deliver before it is sent",
            show_duration(jitter),
            show_duration(delay)
        );
        inner.reject("jitter", message, Some("raise the delay, or lower the jitter"), reading);
    }
    for key in ["jitter", "reorder"] {
        if inner.given(key).is_some() && change.delay.is_none() && inner.given("delay").is_none() {
            let message = format!("a change of {key} says its delay, too");
            inner.reject(key, message, Some("add delay = \"…\" beside it"), reading);
        }
    }
    inner.finish(reading);
    let (from, to) = ends?;
    Some(FaultKind::Link { from: from.to_owned(), to: to.to_owned(), change })
}

fn needs_links(
    key: &str,
    what: &str,
    table: &Table<'_>,
    beside: &Beside<'_>,
    reading: &mut Reading<'_>,
) {
    if beside.links.is_none() {
        let help = "add [links]: the network of the trial's own, in which this can be done";
        table.reject(key, format!("{what} needs [links]"), Some(help), reading);
    }
}

fn check_length(
    verb: &str,
    table: &mut Table<'_>,
    length: Option<Duration>,
    reading: &mut Reading<'_>,
) {
    if verb == "kill" {
        if table.given("for").is_some() {
            let message = "a killed node stays down: `for` has no meaning here";
            let help = "remove it, or write restart in place of kill";
            table.reject("for", message, Some(help), reading);
        }
        return;
    }
    table.require("for", length, "for = \"5s\"", reading);
    if verb != "restart" && length.is_some_and(|length| length.is_zero()) {
        let what = match verb {
            "pause" => "a pause",
            "rotate" => "a rotation",
            "partition" => "a partition",
            _ => "a change of links",
        };
        table.reject("for", format!("{what} must be longer than nothing"), None, reading);
    }
}

fn check_at(
    table: &Table<'_>,
    at: Option<Duration>,
    duration: Option<Duration>,
    reading: &mut Reading<'_>,
) {
    if let (Some(at), Some(duration)) = (at, duration)
        && at >= duration
    {
        let message = format!(
            "a fault at {} comes after the measured window of {}",
            show_duration(at),
            show_duration(duration)
        );
        table.reject("at", message, None, reading);
    }
}
