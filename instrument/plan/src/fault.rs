//! `[[fault]]` of one setting: what is done to whom, when, and for how long.
//!
//! Which kinds of fault there are, and which keys each takes, comes in through [`crate::Outside`]; here is what they
//! have in common. A fault is one thing, so their words exclude each other. It must never take a key that a kind has no
//! use for.

use std::time::Duration;

use model::fault::{FaultKey, FaultKind, FaultWritten, KeyForm, Length, Need, Subject};
use model::options::{Options, Value};
use model::plan::{FaultPlan, FaultValue, LinksPlan};
use model::quantity::show_duration;

use crate::links::{self, check_pattern};
use crate::table::{Reading, Table, not_a_list};

/// The most faults of a setting.
const FAULTS_MAX: usize = 1_000;

/// Faults of the design that the testbed cannot inject yet, by their key.
const UNBUILT: [(&str, &str); 3] =
    [("every", "a fault that comes again"), ("outage", "an outage"), ("limiter", "a rate limiter")];

/// The plan's parts that a fault is read against.
pub(crate) struct Beside<'a> {
    /// The measured window, if the load could be read.
    pub duration: Option<Duration>,
    /// The network, if there is one.
    pub links: Option<&'a LinksPlan>,
    /// Whether nodes have disks of their own.
    pub has_disks: bool,
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
    let kinds = reading.outside.faults;
    let before = reading.problems.list.len();
    let mut table = Table::open(item, &format!("fault[{index}]"), reading);
    for (key, what) in UNBUILT.into_iter().filter(|(key, _)| !takes(kinds, key)) {
        table.refuse_unbuilt(key, what, reading);
    }
    let is_built = reading.problems.list.len() == before;
    let at = table.duration("at", reading);
    let length = table.duration("for", reading);
    let given: Vec<&FaultKind> =
        kinds.iter().filter(|kind| table.given(kind.word).is_some()).collect();
    let mut plan = FaultPlan {
        at: at.unwrap_or_default(),
        length: length.unwrap_or_default(),
        ..FaultPlan::default()
    };
    match given.as_slice() {
        [kind] => {
            plan.kind = kind.word.to_owned();
            read_kind(kind, &mut plan, &mut table, beside, reading);
        }
        given => {
            for key in kinds.iter().flat_map(|kind| kind.keys) {
                let _ = table.given(key.name);
            }
            if is_built {
                not_one(given, kinds, &table, reading);
            }
        }
    }
    if is_built {
        table.require("at", at, "at = \"10s\"", reading);
        if let [kind] = given.as_slice() {
            check_length(kind, &mut table, length, reading);
        }
        check_at(&table, at, beside.duration, reading);
    }
    table.finish(reading);
    (reading.problems.list.len() == before).then_some(plan)
}

/// Whether a kind has this word or key.
fn takes(kinds: &[FaultKind], name: &str) -> bool {
    kinds.iter().any(|kind| kind.word == name || kind.keys.iter().any(|key| key.name == name))
}

fn not_one(
    given: &[&FaultKind],
    kinds: &[FaultKind],
    table: &Table<'_>,
    reading: &mut Reading<'_>,
) {
    match given {
        [first, .., last] => {
            let (first, last) = (first.word, last.word);
            let message = format!("one fault is one thing, but here are `{first}` and `{last}`");
            table.reject(last, message, Some("write a [[fault]] for each"), reading);
        }
        _ => {
            let words: Vec<&str> = kinds.iter().map(|kind| kind.word).collect();
            let help = format!("add one of {}, such as pause = \"node0\"", words.join(", "));
            table.reject("", "this fault does not say what is done", Some(&help), reading);
        }
    }
}

/// The action and its nodes; and mistakes for keys that belong to other kinds.
fn read_kind(
    kind: &FaultKind,
    plan: &mut FaultPlan,
    table: &mut Table<'_>,
    beside: &Beside<'_>,
    reading: &mut Reading<'_>,
) {
    refuse_others(kind, table, reading);
    if kind.needs.contains(&Need::Links) && beside.links.is_none() {
        let help = "add [links]: the network of the trial's own, in which this can be done";
        table.reject(kind.word, format!("{} needs [links]", kind.called), Some(help), reading);
    }
    if kind.needs.contains(&Need::Disks) && !beside.has_disks {
        let help =
            "add [disk] with nodes = [\"…\"]: a disk of the node's own, to which this can be done";
        table.reject(kind.word, format!("{} needs [disk]", kind.called), Some(help), reading);
    }
    let mut given = Vec::new();
    let mut inner = None;
    match kind.on {
        Subject::Node => {
            plan.on.extend(table.string(kind.word, reading).map(str::to_owned));
        }
        Subject::Nodes => {
            let names = table.strings(kind.word, reading);
            if let Some(names) = names {
                table.note(kind.word, Some(names.join(" ")), reading);
                if names.is_empty() {
                    let message = format!("this {} names no node", kind.word);
                    table.reject(kind.word, message, None, reading);
                }
                plan.on.extend(names.into_iter().map(str::to_owned));
            }
        }
        Subject::Link(keys) => {
            let options = table.given(kind.word).expect("it was given: that chose the kind");
            let mut of_link = Table::open(options, &table.full(kind.word), reading);
            if let Some((from, to)) = links::ends(&mut of_link, reading) {
                plan.on = vec![from.to_owned(), to.to_owned()];
            }
            read_keys(keys, plan, &mut given, &mut of_link, reading);
            inner = Some(of_link);
        }
    }
    read_keys(kind.keys, plan, &mut given, table, reading);
    let written = FaultWritten { plan, given: &given, links: beside.links };
    let complaints = (kind.check)(&written);
    if inner.is_none() {
        for name in &plan.on {
            check_pattern(table, kind.word, name, reading);
        }
    }
    for it in complaints {
        let at = inner.as_ref().filter(|_| it.key != kind.word).unwrap_or(table);
        at.reject(it.key, it.message, it.help.as_deref(), reading);
    }
    if let Some(inner) = inner {
        inner.finish(reading);
    }
}

/// Adds a mistake for each key that is there and that this kind does not take, but another does.
fn refuse_others(kind: &FaultKind, table: &mut Table<'_>, reading: &mut Reading<'_>) {
    let kinds = reading.outside.faults;
    let mut told: Vec<&str> = Vec::new();
    for key in kinds.iter().flat_map(|other| other.keys) {
        let is_own = kind.keys.iter().any(|own| own.name == key.name);
        if table.given(key.name).is_none() || is_own || told.contains(&key.name) {
            continue;
        }
        told.push(key.name);
        let has_it = |other: &&FaultKind| other.keys.iter().any(|it| it.name == key.name);
        let owners: Vec<&str> = kinds.iter().filter(has_it).map(|owner| owner.word).collect();
        let message = format!(
            "`{}` belongs to {}, but this is {}",
            table.full(key.name),
            owners.join(" and "),
            kind.word
        );
        table.reject(key.name, message, Some("remove it"), reading);
    }
}

fn read_keys(
    keys: &[FaultKey],
    plan: &mut FaultPlan,
    given: &mut Vec<&'static str>,
    table: &mut Table<'_>,
    reading: &mut Reading<'_>,
) {
    for key in keys {
        let name = key.name;
        if table.given(name).is_some() {
            given.push(name);
        }
        let value = match key.form {
            KeyForm::Duration => table.duration(name, reading).map(FaultValue::Duration),
            KeyForm::Share => table.percent(name, reading).map(FaultValue::Share),
            KeyForm::Bandwidth => table.bandwidth(name, reading).map(FaultValue::Bandwidth),
            KeyForm::Size => table.size(name, reading).map(FaultValue::Size),
            KeyForm::Count(min, max) => {
                table.integer(name, min, max, reading).map(FaultValue::Count)
            }
            KeyForm::Flag => Some(FaultValue::Flag(table.boolean_or(name, false, reading))),
            KeyForm::Word(words) => {
                let word = table.one_of(name, words, reading);
                word.map(|word| FaultValue::Word(word.to_owned()))
            }
        };
        plan.keys.extend(value.map(|value| (name.to_owned(), value)));
    }
}

fn check_length(
    kind: &FaultKind,
    table: &mut Table<'_>,
    length: Option<Duration>,
    reading: &mut Reading<'_>,
) {
    if let Length::None { message, help } = kind.length {
        if table.given("for").is_some() {
            table.reject("for", message, Some(help), reading);
        }
        return;
    }
    table.require("for", length, "for = \"5s\"", reading);
    if kind.length == Length::Positive && length.is_some_and(|length| length.is_zero()) {
        let message = format!("{} must be greater than zero", kind.called);
        table.reject("for", message, None, reading);
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
