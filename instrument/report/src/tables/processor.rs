//! Processor time of transactions, by process.

use model::result::{ProcessorOf, ProcessorResult};

use super::{Shown, is_unsent, marked};
use crate::figures::{NONE, latency_f64, percent};
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean};

/// Nodes of a trial that have rows; what more there are stand in the result document.
const NODES_MAX: usize = 16;

/// A row a process and trial, and one for all processes together.
pub(crate) fn processor(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").words(1, "process").number(1, "processors");
    grid = grid.number(1, "a transaction").number(2, "sampled");
    for row in shown.iter().filter(|row| !is_unsent(row.trial)) {
        let of: &ProcessorResult = &row.trial.processor;
        for (index, process) in of.processes.iter().enumerate().take(1 + NODES_MAX) {
            let at = |key: &str| row.at(&format!("processor/processes/{index}/{key}"));
            let mut cells = vec![Cell::new(row.label.as_str()), Cell::new(clean(&process.process))];
            cells.extend(numbers(process, at));
            grid.row(cells);
        }
        if of.processes.len() > 1 {
            let all = of.ns_per_transaction;
            let at = row.at("processor/ns_per_transaction");
            grid.row(vec![
                Cell::new(row.label.as_str()),
                Cell::new("all"),
                Cell::default(),
                time(all, at),
                Cell::default(),
            ]);
        }
    }
    marked(grid, shown)
}

fn numbers(of: &ProcessorOf, at: impl Fn(&str) -> String) -> [Cell; 3] {
    let cores = of.cores.map_or_else(
        || Cell::painted("not sampled", Paint::Caution),
        |cores| Cell::new(format!("{cores:.2}")).at(at("cores")),
    );
    let part = Cell::new(percent(of.sampled)).at(at("sampled"));
    [cores, time(of.ns_per_transaction, at("ns_per_transaction")), part]
}

/// A time, or a dash.
fn time(ns: Option<f64>, at: String) -> Cell {
    ns.map_or_else(|| Cell::new(NONE), |_| Cell::new(latency_f64(ns)).at(at))
}

/// The meaning of the columns of [`processor`].
pub(crate) fn processor_lines(shown: &[Shown<'_>]) -> Vec<String> {
    let said = "Of the measured window, by what was committed in it: generator is this process with its clients, a node is with \
                the processes that it started. A process that was sampled for a part of the window counts with that part.";
    let most = shown.iter().map(|row| row.trial.processor.processes.len()).max().unwrap_or(0);
    let left_out = most.saturating_sub(1 + NODES_MAX);
    let more = format!("{left_out} more nodes stand in the result document, and count among all.");
    std::iter::once(said.to_owned()).chain((left_out > 0).then_some(more)).collect()
}
