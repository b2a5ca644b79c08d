//! Resources of nodes and their own metrics: a row a node, and a row a metric over all nodes.
//!
//! It must never mix a node's numbers with the host's or the generator's, and computes nothing: every number stands in
//! the result.

use std::collections::BTreeSet;

use model::picture::is_node;
use model::quantity::show_count;
use model::series::SaidBy;

use super::{Shown, pointer_part};
use crate::figures::{NONE, bytes, rate};
use crate::grid::{Cell, Grid};
use crate::metrics::{Declared, source_rank};
use crate::paint::clean;
use crate::svg::scale::Unit;

/// Which of (min, mean, max) of the result.
const MIN: usize = 0;
const MEAN: usize = 1;
const MAX: usize = 2;

/// Nodes that have numbers, node-2 before node-10.
pub(crate) fn nodes_of<'a>(row: &Shown<'a>) -> Vec<&'a str> {
    let mut nodes: Vec<&str> = pairs(row).map(|(source, _)| source).collect();
    nodes.retain(|source| is_node(source));
    nodes.sort_unstable();
    nodes.dedup();
    nodes.sort_by_cached_key(|source| source_rank(source));
    nodes
}

/// Source and metric of each series of the result.
fn pairs<'a>(row: &Shown<'a>) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    row.trial.resources.keys().filter_map(|key| key.rsplit_once('.'))
}

/// The declarations of the trial's series.
fn declared<'a>(row: &Shown<'a>) -> Declared<'a> {
    Declared(&row.trial.series)
}

/// Metrics of nodes, those first that every reader looks at.
fn metrics_of<'a>(row: &Shown<'a>) -> Vec<&'a str> {
    let of_nodes = pairs(row).filter(|(source, _)| !matches!(*source, "host" | "generator"));
    let mut names: Vec<&str> =
        of_nodes.map(|(_, name)| name).collect::<BTreeSet<_>>().into_iter().collect();
    names.sort_by_key(|name| declared(row).rank(name));
    names
}

/// A row a node: mean and highest of each metric, and the last value of what nodes say of themselves. `cells_max` bounds
/// the table: metrics beyond it are left out. Empty where there are no nodes.
pub(crate) fn nodes(row: &Shown<'_>, cells_max: usize) -> Grid {
    let nodes = nodes_of(row);
    let is_of_a_node =
        |name: &&str| nodes.iter().any(|node| row.trial.resources.contains_key(&key(node, name)));
    let declared = declared(row);
    let mut room = (cells_max / nodes.len().max(1)).max(2);
    let mut names = Vec::new();
    for name in metrics_of(row).into_iter().filter(is_of_a_node) {
        let needs = if declared.is_of_the_host(name) { 2 } else { 3 };
        if needs > room || !declared.is_foremost(name) {
            break;
        }
        room -= needs;
        names.push(name);
    }
    if names.is_empty() {
        return Grid::new();
    }
    let mut grid = Grid::new().pin("node");
    for (group, name) in names.iter().enumerate() {
        let group = u8::try_from(group % 2).expect("zero or one");
        let words = headed(declared, name);
        grid =
            grid.number(group, &format!("{words}\nmean")).number(group, &format!("{words}\nmax"));
        if !declared.is_of_the_host(name) {
            grid = grid.number(group, &format!("{words}\nlast"));
        }
    }
    for node in nodes {
        let mut cells = vec![Cell::new(clean(node))];
        for name in &names {
            cells.extend([MEAN, MAX].map(|which| of_window(row, node, name, which)));
            if !declared.is_of_the_host(name) {
                cells.push(last(row, node, name));
            }
        }
        grid.row(cells);
    }
    grid
}

/// A row a metric: its lowest and highest of any node, its mean, and the highest of all nodes together where that is
/// something. At most so many rows; the second is how many were left out.
pub(crate) fn metrics_of_nodes(row: &Shown<'_>, rows_max: usize) -> (Grid, usize) {
    let mut grid = Grid::new()
        .pin("metric")
        .number(1, "lowest")
        .number(1, "mean")
        .number(1, "highest")
        .number(1, "together, highest");
    let has = |source: &str, name: &str| row.trial.resources.contains_key(&key(source, name));
    let mut names = metrics_of(row);
    names.retain(|name| has("nodes.max", name) || has("nodes.median", name));
    for name in names.iter().take(rows_max) {
        // What is said of the chain has one series, not several of nodes.
        let one = ["nodes.median", "nodes.max"].into_iter().find(|source| has(source, name));
        let (low, mean, high) = match one {
            Some(one) if !has("nodes.min", name) => (one, one, one),
            _ => ("nodes.min", "nodes.mean", "nodes.max"),
        };
        let facts = declared(row).of(name);
        let said = match facts.said_by {
            SaidBy::Undeclared => facts.label.as_str(),
            _ => name,
        };
        let mut cells = vec![Cell::new(clean(said))];
        cells.push(of_window(row, low, name, MIN));
        cells.push(of_window(row, mean, name, MEAN));
        cells.push(of_window(row, high, name, MAX));
        cells.push(match facts.adds_up() {
            true => of_window(row, "nodes.sum", name, MAX),
            false => Cell::default(),
        });
        grid.row(cells);
    }
    (grid, names.len().saturating_sub(rows_max))
}

/// The head of a column: words and unit.
fn headed(declared: Declared<'_>, name: &str) -> String {
    match declared.named(name) {
        (words, _, axis) if words.ends_with(&axis) => words,
        (words, _, axis) => format!("{words}, {axis}"),
    }
}

fn key(source: &str, name: &str) -> String {
    format!("{source}.{name}")
}

fn of_window(row: &Shown<'_>, source: &str, name: &str, which: usize) -> Cell {
    let key = key(source, name);
    let Some((min, mean, max)) = row.trial.resources.get(&key) else { return Cell::new(NONE) };
    let value = [min, mean, max][which];
    let pointer = row.at(&format!("resources/{}/{which}", pointer_part(&key)));
    Cell::new(shown(*value, declared(row).named(name).1)).at(pointer)
}

fn last(row: &Shown<'_>, source: &str, name: &str) -> Cell {
    let key = key(source, name);
    let Some(value) = row.trial.resources_last.get(&key) else { return Cell::new(NONE) };
    let pointer = row.at(&format!("resources_last/{}", pointer_part(&key)));
    Cell::new(shown(*value, declared(row).named(name).1)).at(pointer)
}

/// A value in its unit.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, not below zero, and saturating for what no machine reaches"
)]
fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes if value >= 0.0 => bytes(value.round() as u64),
        _ if value >= 0.0 && value.fract() == 0.0 && value < 1e15 => show_count(value as u64),
        _ if value != 0.0 && value.abs() < 0.095 => format!("{value:.4}"),
        _ => rate(value),
    }
}
