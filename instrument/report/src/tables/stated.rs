//! Latency by two definitions: the client's, and the one that the ledger states of itself.
//!
//! It must never show the second alone: what was refused, lost or never sent is not in it, and its two times may be
//! of two clocks.

use model::facts::ClockRelation;
use model::quantity::show_count;
use model::result::{LatencyResult, StatedLatency};

use super::{Shown, final_latency, marked};
use crate::figures::{latency, latency_f64, unconditional};
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean};

/// A row for each definition; no rows where no ledger states anything.
pub(crate) fn two_definitions(shown: &[Shown<'_>]) -> Grid {
    let has_several = shown.len() > 1;
    let mut grid = Grid::new();
    if has_several {
        grid = grid.pin("setting");
    }
    grid = grid.pin("latency").number(1, "count");
    for head in ["min", "mean", "p50", "p99", "max", "stddev"] {
        grid = grid.number(1, head);
    }
    for row in shown {
        let Some(stated) = &row.trial.stated else { continue };
        let mut push = |name: String, cells: [Cell; 7]| {
            let label = has_several.then(|| Cell::new(row.label.as_str()));
            let head = Cell::new(name);
            grid.row(label.into_iter().chain([head]).chain(cells).collect());
        };
        if let Some(of) = final_latency(row.trial) {
            let stage = clean(&of.stage);
            push(format!("response, {stage}"), reached(of, &row.latency_at()));
            push("response, all due".to_owned(), of_all_due(row, of, &row.latency_at()));
        }
        push("stated by the ledger".to_owned(), of_ledger(stated, row));
    }
    marked(grid, shown)
}

fn reached(of: &LatencyResult, at: &str) -> [Cell; 7] {
    let it = &of.response;
    let quantile = |name: &str| {
        let index = it.quantiles.iter().position(|q| q.name == name);
        index.map_or_else(Cell::default, |index| {
            let at = format!("{at}/response/quantiles/{index}/value_ns");
            Cell::new(latency(it.quantiles[index].value_ns)).at(at)
        })
    };
    let cell = |key: &str, text: String| Cell::new(text).at(format!("{at}/response/{key}"));
    [
        cell("count", show_count(it.count)),
        cell("min_ns", latency(it.min_ns)),
        cell("mean_ns", latency_f64(it.mean_ns)),
        quantile("p50"),
        quantile("p99"),
        cell("max_ns", latency(it.max_ns)),
        Cell::default(),
    ]
}

fn of_all_due(row: &Shown<'_>, of: &LatencyResult, at: &str) -> [Cell; 7] {
    let it = &of.response;
    let quantile = |name: &str| {
        let index = it.quantiles.iter().position(|q| q.name == name);
        index.map_or_else(Cell::default, |index| {
            let at = format!("{at}/response/quantiles/{index}/unconditional_ns");
            Cell::new(unconditional(&it.quantiles[index])).at(at)
        })
    };
    let max = match of.due_max_ns {
        None => Cell::new("inf"),
        max => Cell::new(latency(max)).at(format!("{at}/due_max_ns")),
    };
    [
        Cell::new(show_count(row.trial.counts.due)).at(row.at("counts/due")),
        Cell::new(latency(it.min_ns)).at(format!("{at}/response/min_ns")),
        super::latency::mean_of_all_due(of, at),
        quantile("p50"),
        quantile("p99"),
        max,
        Cell::default(),
    ]
}

fn of_ledger(it: &StatedLatency, row: &Shown<'_>) -> [Cell; 7] {
    let cell = |key: &str, text: String| Cell::new(text).at(row.at(&format!("stated/{key}")));
    let min = match it.negative {
        0 => Paint::Plain,
        _ => Paint::Bad,
    };
    [
        cell("count", show_count(it.count)),
        Cell { paint: min, ..cell("min_ns", latency(it.min_ns)) },
        cell("mean_ns", latency_f64(it.mean_ns)),
        cell("p50_ns", latency(it.p50_ns)),
        cell("p99_ns", latency(it.p99_ns)),
        cell("max_ns", latency(it.max_ns)),
        cell("stddev_ns", latency_f64(it.stddev_ns)),
    ]
}

/// The clocks that two times are by.
const fn clock_words(clocks: ClockRelation) -> &'static str {
    match clocks {
        ClockRelation::Unknown => "the clocks of these times are not known",
        ClockRelation::OneHost => "nodes and instrument are on one host: one clock",
        ClockRelation::OtherHosts => "clocks of other hosts: offset unknown",
    }
}

/// The notes to read with it: the subject of each definition, its clocks, and oddities of the entries.
pub(crate) fn definition_lines(shown: &[Shown<'_>]) -> Vec<String> {
    let stated: Vec<&StatedLatency> =
        shown.iter().filter_map(|row| row.trial.stated.as_ref()).collect();
    if stated.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        "Response: due to seen by the client, in the measured window; of all due, no answer counts as infinitely long. Stated by the ledger: submitted to recorded, over what stands in it, the warm-up included.".to_owned(),
    ];
    for it in &stated {
        let line = format!("The ledger's times: {}.", clock_words(it.clocks));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let sum = |of: fn(&StatedLatency) -> u64| stated.iter().map(|it| of(it)).sum::<u64>();
    for (count, what) in [
        (sum(|it| it.duplicates), "stand in the ledger a second time and count again"),
        (sum(|it| it.negative), "were recorded before they were submitted: the clocks disagree"),
        (sum(|it| it.without_time), "have no time yet and are left out"),
    ] {
        if count > 0 {
            lines.push(format!("{} entries {what}.", show_count(count)));
        }
    }
    lines
}
