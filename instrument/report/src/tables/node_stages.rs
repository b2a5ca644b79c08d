//! The pipeline inside the nodes: a row a stage, and what must be read with it.
//!
//! It must never show rates of what could not be read in full without saying so.

use model::quantity::{show_count, show_ns};
use model::result::{Distribution, NodeStageResult, NodeStagesResult};

use super::{Shown, marked};
use crate::figures::{latency, latency_f64, quantile, rate};
use crate::grid::{Cell, Grid, Line};
use crate::paint::{Paint, clean};

/// Problems of reading that are said of a trial; the rest stands in the result.
const PROBLEMS_MAX: usize = 3;

/// A row a stage; no rows where no system has stages that nodes stamp.
pub(crate) fn node_stages(shown: &[Shown<'_>]) -> Grid {
    let has_several = shown.len() > 1;
    let mut grid = Grid::new();
    if has_several {
        grid = grid.pin("setting");
    }
    grid = grid.pin("stage").number(1, "passed").number(1, "per second");
    grid = grid.number(1, "least").number(1, "most");
    for head in ["mean", "p50", "p99", "max"] {
        grid = grid.number(2, head);
    }
    grid = grid.number(2, "most behind");
    for row in shown {
        let Some(all) = &row.trial.node_stages else { continue };
        for (index, stage) in all.stages.iter().enumerate() {
            let mut cells = Vec::new();
            if has_several {
                cells.push(Cell::new(row.label.as_str()));
            }
            cells.extend(of_stage(stage, &row.at(&format!("node_stages/stages/{index}"))));
            cells.push(behind(all, index, row));
            grid.row(cells);
        }
    }
    marked(grid, shown)
}

fn of_stage(of: &NodeStageResult, at: &str) -> Vec<Cell> {
    let per_s = |value: Option<f64>, key: &str| {
        value.map_or_else(Cell::default, |value| Cell::new(rate(value)).at(format!("{at}/{key}")))
    };
    let times: &Distribution = &of.latency;
    let named = |name: &str| {
        let index = times.quantiles.iter().position(|q| q.name == name);
        index.map_or_else(Cell::default, |index| {
            let q = &times.quantiles[index];
            let is_thin = crate::figures::is_thin(q);
            let paint = if is_thin { Paint::Dim } else { Paint::Plain };
            let at = format!("{at}/latency/quantiles/{index}/value_ns");
            Cell::painted(quantile(q), paint).at(at)
        })
    };
    let has_times = times.count > 0;
    let time = |cell: Cell| if has_times { cell } else { Cell::default() };
    vec![
        Cell::new(clean(&of.stage)),
        Cell::new(show_count(of.passed)).at(format!("{at}/passed")),
        per_s(of.throughput_per_s, "throughput_per_s"),
        per_s(of.throughput_min_per_s, "throughput_min_per_s"),
        per_s(of.throughput_max_per_s, "throughput_max_per_s"),
        time(Cell::new(latency_f64(times.mean_ns)).at(format!("{at}/latency/mean_ns"))),
        time(named("p50")),
        time(named("p99")),
        time(Cell::new(latency(times.max_ns)).at(format!("{at}/latency/max_ns"))),
    ]
}

/// How far the stage was behind the one before it, at most.
fn behind(all: &NodeStagesResult, index: usize, row: &Shown<'_>) -> Cell {
    let name = &all.stages[index].stage;
    let is_it = |gap: &model::result::NodeStageGap| gap.stage.split(" + ").any(|it| it == name);
    let Some(place) = all.gaps.iter().position(is_it) else { return Cell::default() };
    let gap = &all.gaps[place];
    let paint = if gap.missing > 0 { Paint::Caution } else { Paint::Plain };
    let at = row.at(&format!("node_stages/gaps/{place}/behind_max"));
    Cell::painted(show_count(gap.behind_max), paint).at(at)
}

/// The meaning of the columns, what never came out of a stage, when a stage was furthest behind, and what could not be read.
pub(crate) fn node_stage_lines(shown: &[Shown<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in shown {
        let Some(all) = &row.trial.node_stages else { continue };
        let of = if shown.len() > 1 { format!("{}: ", row.label) } else { String::new() };
        if lines.is_empty() {
            let text = "Passed: transactions of the whole trial. Rates, least and most by the second, and times are over \
                        the whole seconds of the measured window; times are the nodes' own. Most behind: how many more \
                        had passed the stage before, by the end of a second.";
            lines.push(Line { text: text.to_owned(), is_finding: false });
        }
        if all.seconds == 0 {
            let text = format!(
                "{of}the measured window holds no whole second, so there are no rates and times."
            );
            lines.push(Line { text, is_finding: true });
        }
        for gap in all.gaps.iter().filter(|gap| gap.missing > 0) {
            let text = format!(
                "{of}{} of {} that passed {} never passed {}.",
                show_count(gap.missing),
                show_count(gap.came),
                clean(&gap.before),
                clean(&gap.stage)
            );
            lines.push(Line { text, is_finding: true });
        }
        if let Some(gap) = all.gaps.iter().max_by_key(|gap| gap.behind_max)
            && gap.behind_max > 0
        {
            let text = format!(
                "{of}{} was most behind: by {} at {}.",
                clean(&gap.stage),
                show_count(gap.behind_max),
                show_ns(gap.behind_max_ns)
            );
            lines.push(Line { text, is_finding: false });
        }
        lines.extend(read(all, &of));
    }
    lines
}

fn read(all: &NodeStagesResult, of: &str) -> Vec<Line> {
    let facts = &all.read;
    let mut texts: Vec<String> =
        facts.problems.iter().map(|it| format!("{of}{}", clean(it))).collect();
    let more =
        (texts.len().saturating_sub(PROBLEMS_MAX) as u64).saturating_add(facts.problems_left_out);
    texts.truncate(PROBLEMS_MAX);
    if more > 0 {
        texts.push(format!("{of}{} more of the kind.", show_count(more)));
    }
    if !facts.is_whole && texts.is_empty() {
        texts.push(format!("{of}the nodes' events were not read: the trial ended before."));
    }
    for (count, why) in [
        (facts.outside, "lie outside any trial, by the nodes' clock"),
        (facts.undeclared, "are of a stage that the system does not declare"),
        (facts.beyond_nodes, "are of more nodes than are told apart"),
    ] {
        if count > 0 {
            texts.push(format!("{of}{} events are left out: they {why}.", show_count(count)));
        }
    }
    texts.into_iter().map(|text| Line { text, is_finding: true }).collect()
}
