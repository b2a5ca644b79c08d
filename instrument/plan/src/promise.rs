//! Parts that hold for the whole experiment and speak of its axes: thresholds, expected verdicts, report tables,
//! percentiles.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use model::names::DeclaredNames;
use model::options::{Options, Problem, Span, Value};
use model::plan::{ABORT_AFTER_MAX, AbortPlan, Axis, Level, TablePlan, ThresholdPlan};
use model::quantity::parse_percent;
use model::result::Verdict;

use crate::input::Mistake;
use crate::keys;
use crate::matrix::{unknown_axis, unknown_label, verdict};
use crate::table::{Effect, Reading, Table, not_a_list};

/// The most thresholds, expectations and tables, each.
const ITEMS_MAX: usize = 1_000;

/// The label of each axis in one setting.
pub(crate) type Labels = BTreeMap<String, String>;

/// The axes and settings that names are checked against; `None` where the matrix itself is wrong.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub axes: &'a [Axis],
    pub settings: &'a [Labels],
    /// In the order of the settings; empty where one of these could not be read.
    pub declared: &'a [Declared],
}

/// The declarations of a setting's system, if it can be built.
pub(crate) type Declared = Option<Rc<DeclaredNames>>;

fn items<'a>(root: &'a Options, path: &str, reading: &mut Reading<'_>) -> &'a [Options] {
    match root.get(path) {
        None => &[],
        Some(Options { value: Value::Array(items), span }) => {
            if items.len() > ITEMS_MAX {
                let message = format!("{} of `{path}`; at most {ITEMS_MAX} are taken", items.len());
                reading.problems.add(*span, message, None);
                return &[];
            }
            items
        }
        Some(other) => {
            not_a_list(other, path, reading);
            &[]
        }
    }
}

/// `[[threshold]]`.
pub(crate) fn thresholds(
    root: &Options,
    known: Option<Known<'_>>,
    reading: &mut Reading<'_>,
) -> Vec<ThresholdPlan> {
    let mut thresholds = Vec::new();
    for (index, item) in items(root, "threshold", reading).iter().enumerate() {
        let mut table = Table::open(item, &format!("threshold[{index}]"), reading);
        let expr = table.string("expr", reading);
        table.require("expr", expr, "expr = \"p99 < 1s\"", reading);
        let at = at(&mut table, known, reading);
        if let (Some(expr), Some(given)) = (expr, table.given("expr"))
            && let Err(mistake) = check_everywhere(expr, &at, known, reading)
        {
            add_mistake(given.span, expr, mistake, reading);
        }
        let words = ["fail", "invalid", "saturated", "warn"];
        let level =
            match table.one_of_or("level", &words, keys::fixed("threshold[].level"), reading) {
                Some("invalid") => Level::Invalid,
                Some("saturated") => Level::Saturated,
                Some("warn") => Level::Warn,
                _ => Level::Fail,
            };
        let confidence = table.one_of("confidence", &["95%"], reading).map(|_| 0.95);
        let abort = abort(&mut table, expr, reading);
        table.finish(reading);
        if let Some(expr) = expr {
            thresholds.push(ThresholdPlan {
                at,
                confidence,
                abort,
                ..ThresholdPlan::new(expr, level)
            });
        }
    }
    thresholds
}

/// How long a threshold has to be broken while the load runs, to end it.
fn abort(table: &mut Table<'_>, expr: Option<&str>, reading: &mut Reading<'_>) -> Option<Duration> {
    let after = table.duration("abort", reading)?;
    if !(Duration::from_secs(1)..=ABORT_AFTER_MAX).contains(&after) {
        let message = "`abort` must lie between 1s and 10m: so long a threshold is broken before it ends the trial";
        table.reject("abort", message, None, reading);
        return None;
    }
    if let Some(Err(message)) = expr.map(|expr| AbortPlan::parse(expr, after)) {
        table.reject("abort", message, None, reading);
        return None;
    }
    Some(after)
}

/// Whether a threshold can be evaluated in every setting that it is of.
fn check_everywhere(
    expr: &str,
    at: &Labels,
    known: Option<Known<'_>>,
    reading: &Reading<'_>,
) -> Result<(), Mistake> {
    let check = reading.outside.check_threshold;
    let mut seen: Vec<&DeclaredNames> = Vec::new();
    for (labels, declared) in known.into_iter().flat_map(|it| it.settings.iter().zip(it.declared)) {
        let Some(names) = declared.as_deref().filter(|_| is_at(at, labels)) else { continue };
        if seen.contains(&names) {
            continue;
        }
        if let Err(mut mistake) = check(expr, Some(names)) {
            if !seen.is_empty() {
                let words: Vec<String> = labels.iter().map(|(a, l)| format!("{a}={l}")).collect();
                mistake.message.push_str(&format!(", in the setting {}", words.join(",")));
            }
            return Err(mistake);
        }
        seen.push(names);
    }
    if seen.is_empty() { check(expr, None) } else { Ok(()) }
}

/// `[[expect]]`: which settings, and their verdict.
pub(crate) fn expectations(
    root: &Options,
    known: Option<Known<'_>>,
    reading: &mut Reading<'_>,
) -> Vec<(Labels, Verdict)> {
    let mut expectations = Vec::new();
    for (index, item) in items(root, "expect", reading).iter().enumerate() {
        let mut table = Table::open(item, &format!("expect[{index}]"), reading);
        let at = at(&mut table, known, reading);
        let given = table.given("verdict");
        let given = table.require("verdict", given, "verdict = \"invalid\"", reading);
        let verdict = given.and_then(|given| verdict(given, reading));
        table.finish(reading);
        expectations.extend(verdict.map(|verdict| (at, verdict)));
    }
    expectations
}

/// `at = { axis = label }`.
fn at(table: &mut Table<'_>, known: Option<Known<'_>>, reading: &mut Reading<'_>) -> Labels {
    let mut labels = Labels::new();
    let (Some(options), Some(known)) = (table.given("at"), known) else { return labels };
    let path = table.full("at");
    let before = reading.problems.list.len();
    for (name, span, value) in crate::table::entries_as_written(options, &path, reading) {
        let label = value.label();
        match known.axes.iter().find(|axis| axis.name == name) {
            None => {
                let names: Vec<&str> = known.axes.iter().map(|axis| axis.name.as_str()).collect();
                unknown_axis(name, span, &names, reading);
            }
            Some(axis) if !axis.labels.contains(&label) => {
                let all: Vec<&str> = axis.labels.iter().map(String::as_str).collect();
                unknown_label(name, &label, value.span, &all, reading);
            }
            Some(_) => {
                labels.insert(name.to_owned(), label);
            }
        }
    }
    let found = known.settings.iter().any(|setting| is_at(&labels, setting));
    if !found && reading.problems.list.len() == before {
        reading.problems.add(options.span, "no setting has all of these labels", None);
    }
    labels
}

/// Whether a setting has all of these labels.
pub(crate) fn is_at(at: &Labels, setting: &Labels) -> bool {
    at.iter().all(|(axis, label)| setting.get(axis) == Some(label))
}

/// Puts a mistake in an expression where the expression stands in the source.
pub(crate) fn add_mistake(span: Span, expr: &str, mistake: Mistake, reading: &mut Reading<'_>) {
    let text = reading.sources.get(usize::from(span.source)).map_or("", |s| s.text.as_str());
    // With escapes in it the text as written differs; then all of it is pointed at.
    let written = text.get(span.start..span.end).and_then(|written| written.find(expr));
    let span = match written {
        Some(at) if mistake.start < mistake.end && mistake.end <= expr.len() => Span {
            source: span.source,
            start: span.start + at + mistake.start,
            end: span.start + at + mistake.end,
        },
        _ => span,
    };
    let Mistake { message, help, .. } = mistake;
    reading.problems.list.push(Problem { message, span, help });
}

/// `[report]`.
pub(crate) fn tables(
    root: &Options,
    known: Option<Known<'_>>,
    reading: &mut Reading<'_>,
) -> Vec<TablePlan> {
    let Some(options) = root.get("report") else { return Vec::new() };
    let mut report = Table::open(options, "report", reading);
    report.refuse_unbuilt("plots", "figures", reading);
    let _ = report.given("tables");
    report.finish(reading);
    let mut tables = Vec::new();
    if matches!(options.value, Value::Table(_)) {
        for (index, item) in items(root, "report.tables", reading).iter().enumerate() {
            tables.extend(one_table(item, index, known, reading));
        }
    }
    tables
}

fn one_table(
    item: &Options,
    index: usize,
    known: Option<Known<'_>>,
    reading: &mut Reading<'_>,
) -> Option<TablePlan> {
    let mut table = Table::open(item, &format!("report.tables[{index}]"), reading);
    let group = table.strings("group", reading).unwrap_or_default();
    for axis in &group {
        check_axis(&mut table, "group", axis, known, reading);
    }
    let rows = rows(&mut table, known, reading);
    let given = table.given("columns");
    let example = "columns = [\"throughput\", \"p50\", \"p99\"]";
    table.require("columns", given, example, reading);
    let across = match given.map(|given| &given.value) {
        Some(Value::String(axis)) => Some(axis.as_str()),
        _ => None,
    };
    let names = table.strings("columns", reading).unwrap_or_default();
    let cell = table.string("cell", reading);
    match across {
        Some(axis) => {
            check_axis(&mut table, "columns", axis, known, reading);
            table.require("cell", cell, "cell = \"throughput\"", reading);
        }
        None => {
            for name in &names {
                check_metric(&mut table, "columns", name, known, reading);
            }
            if cell.is_some() {
                let message = "`cell` needs an axis along the top";
                table.reject("cell", message, Some("write columns = \"AXIS\""), reading);
            }
        }
    }
    if let Some(cell) = cell {
        check_metric(&mut table, "cell", cell, known, reading);
    }
    let units = ["ns", "us", "ms", "s"];
    let unit = if table.given("unit").is_some() {
        table.one_of("unit", &units, reading).unwrap_or_default()
    } else {
        keys::fixed("report.tables[].unit")
    };
    table.finish(reading);
    Some(TablePlan {
        group: group.into_iter().map(str::to_owned).collect(),
        rows: rows?,
        across: across.unwrap_or_default().to_owned(),
        cell: cell.unwrap_or_default().to_owned(),
        columns: if across.is_some() {
            Vec::new()
        } else {
            names.into_iter().map(str::to_owned).collect()
        },
        unit: unit.to_owned(),
    })
}

/// The axis down the side: as written, or the only one; empty without a matrix.
fn rows(
    table: &mut Table<'_>,
    known: Option<Known<'_>>,
    reading: &mut Reading<'_>,
) -> Option<String> {
    if let Some(axis) = table.string("rows", reading) {
        check_axis(table, "rows", axis, known, reading);
        return Some(axis.to_owned());
    }
    match known?.axes {
        [] => Some(String::new()),
        [only] => Some(only.name.clone()),
        several => {
            let example = format!("rows = \"{}\"", several[0].name);
            table.require("rows", None, &example, reading)
        }
    }
}

fn check_axis(
    table: &mut Table<'_>,
    key: &'static str,
    axis: &str,
    known: Option<Known<'_>>,
    reading: &mut Reading<'_>,
) {
    let Some(known) = known else { return };
    if !known.axes.iter().any(|one| one.name == axis) {
        let names: Vec<&str> = known.axes.iter().map(|axis| axis.name.as_str()).collect();
        let span = place_of(table, key, axis);
        unknown_axis(axis, span, &names, reading);
    }
}

/// A column may name what the system of any setting declares; the cells of the others are empty.
fn check_metric(
    table: &mut Table<'_>,
    key: &'static str,
    name: &str,
    known: Option<Known<'_>>,
    reading: &mut Reading<'_>,
) {
    let declared = known.map_or(&[][..], |known| known.declared);
    let mut any: Option<DeclaredNames> = None;
    for names in declared.iter().flatten() {
        any.get_or_insert_default().join(names);
    }
    if let Err(mistake) = (reading.outside.check_metric)(name, any.as_ref()) {
        let span = place_of(table, key, name);
        add_mistake(span, name, mistake, reading);
    }
}

/// Where the text `word` stands under `key`: itself, or an item of the list there.
fn place_of(table: &mut Table<'_>, key: &'static str, word: &str) -> Span {
    match table.given(key) {
        Some(Options { value: Value::Array(items), span }) => items
            .iter()
            .find(|item| matches!(&item.value, Value::String(text) if text == word))
            .map_or(*span, |item| item.span),
        Some(options) => options.span,
        None => table.span(),
    }
}

/// `measure.percentiles`: numbers, or texts such as `p99.9`; as fractions of one.
pub(crate) fn percentiles(root: &Options, reading: &mut Reading<'_>) -> Vec<f64> {
    const PATH: &str = "measure.percentiles";
    let Some(options) = root.get(PATH) else {
        let fixed = keys::fixed(PATH);
        reading.effects.push(Effect { path: PATH.into(), value: fixed.into(), span: None });
        let parse = |word: &str| parse_percent(&format!("{word}%"));
        return fixed.split(' ').filter_map(|word| parse(word).ok()).collect();
    };
    let Value::Array(items) = &options.value else {
        let message = format!("`{PATH}` must be a list, but is {}", options.type_word());
        let help = "write percentiles = [50, 99, 99.9]".to_owned();
        reading.problems.add(options.span, message, Some(help));
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let mut fractions = Vec::with_capacity(items.len());
    for item in items {
        match percentile(item) {
            Ok(fraction) if seen.insert(fraction.to_bits()) => fractions.push(fraction),
            Ok(_) => {
                let message = format!("the percentile `{}` is there twice", item.label());
                reading.problems.add(item.span, message, None);
            }
            Err((message, help)) => reading.problems.add(item.span, message, help),
        }
    }
    if items.is_empty() || items.len() > 100 {
        let message = format!("`{PATH}` must name between 1 and 100 percentiles");
        reading.problems.add(options.span, message, None);
    }
    let shown: Vec<String> = items.iter().map(Options::label).collect();
    reading.effects.push(Effect {
        path: PATH.into(),
        value: shown.join(" "),
        span: Some(options.span),
    });
    fractions
}

fn percentile(item: &Options) -> Result<f64, (String, Option<String>)> {
    let text = match &item.value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => format!("{number}%"),
        Value::Float(number) if *number > 0.0 && *number < 1.0 => {
            let message = format!("`{number}` would be the {number}th percentile of a hundred");
            let percent = format!("{:.4}", number * 100.0);
            let percent = percent.trim_end_matches('0').trim_end_matches('.');
            let help = format!("write {percent}, or \"p{number}\" if you mean it");
            return Err((message, Some(help)));
        }
        Value::Float(number) => format!("{number}%"),
        _ => {
            let message = format!("a percentile must be a number, but is {}", item.type_word());
            return Err((message, None));
        }
    };
    parse_percent(&text).map_err(|message| (message, None))
}
