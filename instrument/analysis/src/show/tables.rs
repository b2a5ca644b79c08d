//! The tables that an experiment asks for, from its settings' results.

use std::collections::BTreeMap;

use model::plan::{Plan, SettingPlan, TablePlan};
use model::result::{Cell, SettingResult, TableResult, TrialResult};

use crate::names::doubt::doubt;
use crate::names::metric::{Metric, metric};
use crate::names::unit::Unit;

/// Every table of the plan, one for each value of its group.
pub(crate) fn all(plan: &Plan, results: &[SettingResult]) -> Vec<TableResult> {
    plan.tables.iter().flat_map(|table| of_plan(table, plan, results)).collect()
}

type Line<'a> = (&'a SettingPlan, &'a SettingResult);

fn of_plan(table: &TablePlan, plan: &Plan, results: &[SettingResult]) -> Vec<TableResult> {
    let mut groups: Vec<(String, Vec<Line<'_>>)> = Vec::new();
    for setting in &plan.settings {
        let Some(result) = results.iter().find(|result| result.key == setting.key) else {
            continue;
        };
        if result.trials.is_empty() {
            continue;
        }
        let named = table.group.iter().map(|path| format!("{path}={}", label(setting, path)));
        let title = named.collect::<Vec<_>>().join(", ");
        match groups.iter_mut().find(|(known, _)| *known == title) {
            Some((_, lines)) => lines.push((setting, result)),
            None => groups.push((title, vec![(setting, result)])),
        }
    }
    groups
        .into_iter()
        .map(|(title, lines)| {
            if table.across.is_empty() {
                by_column(table, title, &lines)
            } else {
                crossed(table, title, &lines)
            }
        })
        .collect()
}

/// One column a metric, one row a setting.
fn by_column(table: &TablePlan, title: String, lines: &[Line<'_>]) -> TableResult {
    let mut heads =
        vec![if table.rows.is_empty() { "setting".to_owned() } else { table.rows.clone() }];
    heads.extend(table.columns.iter().map(|name| head(name, &table.unit)));
    let rows = lines
        .iter()
        .map(|(setting, result)| {
            let mut row = vec![text_cell(row_label(table, setting, lines))];
            row.extend(table.columns.iter().map(|name| cell(name, &table.unit, result)));
            row
        })
        .collect();
    TableResult { title: titled(table, title, lines), columns: heads, rows }
}

/// One column a label of the axis along the top.
fn crossed(table: &TablePlan, title: String, lines: &[Line<'_>]) -> TableResult {
    let mut across: Vec<String> = Vec::new();
    let mut rows: Vec<(String, BTreeMap<usize, Cell>)> = Vec::new();
    for (setting, result) in lines {
        let (top, side) = (label(setting, &table.across), label(setting, &table.rows));
        let column = position(&mut across, top);
        let found = cell(&table.cell, &table.unit, result);
        match rows.iter_mut().find(|(known, _)| *known == side) {
            Some((_, cells)) => {
                cells.entry(column).or_insert(found);
            }
            None => rows.push((side, BTreeMap::from([(column, found)]))),
        }
    }
    let mut heads = vec![format!("{} \\ {}", table.rows, table.across)];
    heads.extend(across.iter().cloned());
    let rows = rows
        .into_iter()
        .map(|(side, mut cells)| {
            let mut row = vec![text_cell(side)];
            row.extend((0..across.len()).map(|column| cells.remove(&column).unwrap_or_default()));
            row
        })
        .collect();
    let what = head(&table.cell, &table.unit);
    let title = if title.is_empty() { what } else { format!("{what}, {title}") };
    TableResult { title: titled(table, title, lines), columns: heads, rows }
}

fn position(list: &mut Vec<String>, item: String) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// The label of an axis, or the value of an option (`system.deploy.batch`).
fn label(setting: &SettingPlan, path: &str) -> String {
    if let Some(label) = setting.values.get(path) {
        return label.clone();
    }
    let from =
        [("system.deploy.", &setting.system.deploy), ("workload.", &setting.system.workload)];
    let option = from.iter().find_map(|(prefix, options)| options.get(path.strip_prefix(prefix)?));
    option.map_or_else(|| "–".to_owned(), model::options::Options::label)
}

/// The row's label; the whole key where the label alone would name several settings.
fn row_label(table: &TablePlan, setting: &SettingPlan, lines: &[Line<'_>]) -> String {
    if table.rows.is_empty() {
        return setting.key.clone();
    }
    let own = label(setting, &table.rows);
    let twins = lines.iter().filter(|(other, _)| label(other, &table.rows) == own).count();
    if twins > 1 { format!("{own} ({})", setting.key) } else { own }
}

fn titled(table: &TablePlan, title: String, lines: &[Line<'_>]) -> String {
    let rows = if table.rows.is_empty() { "setting" } else { &table.rows };
    let title = if title.is_empty() { format!("by {rows}") } else { title };
    let trials = lines.iter().map(|(_, result)| result.trials.len()).max().unwrap_or(0);
    // A trial's own value is shown, never a mean of percentiles.
    if trials > 1 { format!("{title} (the middle one of up to {trials} trials)") } else { title }
}

fn head(name: &str, unit: &str) -> String {
    let parsed = crate::names::metric_names::parse(name).map(|name| name.unit());
    match parsed {
        Some(Unit::Ns) if !unit.is_empty() => format!("{name} ({unit})"),
        Some(Unit::NsSquared) if !unit.is_empty() => format!("{name} ({unit}²)"),
        _ => name.to_owned(),
    }
}

fn text_cell(text: String) -> Cell {
    Cell { text, ..Cell::default() }
}

/// The cell of a setting: its only trial's, or the middle one's of several.
fn cell(name: &str, unit: &str, result: &SettingResult) -> Cell {
    let metric_of = |trial| Some((metric(name, trial)?, trial));
    let mut found: Vec<(Metric, &TrialResult)> =
        result.trials.iter().filter_map(metric_of).collect();
    if found.is_empty() {
        return text_cell("–".to_owned());
    }
    found.sort_by(|(a, _), (b, _)| a.value.total_cmp(&b.value));
    let (middle, trial) = found.swap_remove((found.len() - 1) / 2);
    if middle.unit == Unit::Text {
        return text_cell(middle.text);
    }
    let scale = unit_ns(unit);
    let (value, text) = match (middle.unit, scale) {
        (Unit::Ns, Some(scale)) => (middle.value / scale, fixed(middle.value / scale)),
        (Unit::NsSquared, Some(scale)) => {
            (middle.value / scale / scale, fixed(middle.value / scale / scale))
        }
        (Unit::PerSecond, _) => (middle.value, fixed(middle.value)),
        (unit, _) => (middle.value, Metric::print(middle.value, unit)),
    };
    let void = doubt(name, trial).may_be.is_some();
    Cell { text, value: value.is_finite().then_some(value), grey: middle.grey, void }
}

fn unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" | "µs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

/// Two decimals, more where the number is small.
fn fixed(value: f64) -> String {
    match value.abs() {
        _ if value.is_infinite() => "∞".to_owned(),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
