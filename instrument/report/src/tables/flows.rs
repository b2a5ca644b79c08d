//! Flows of users: how many began, how they ended, how long they took; and which transactions were due by the schedule and
//! which because an answer had come.
//!
//! It must never stand where no user makes more than one transaction: kinds say all there.

use model::quantity::show_count;

use super::{Shown, marked};
use crate::figures::{latency, rate, share};
use crate::grid::{Cell, Grid, Source};
use crate::paint::clean;

/// A row a flow of each trial that has flows.
pub(crate) fn flows(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").pin("flow").number(0, "begun").number(1, "completed");
    grid = grid
        .number(1, "of all")
        .number(1, "refused")
        .number(1, "no answer")
        .number(1, "never sent");
    grid = grid.number(0, "completed/s").number(2, "p50").number(2, "p99").number(2, "max");
    for row in shown {
        for (index, of) in row.trial.flows.iter().flat_map(|flows| &flows.flows).enumerate() {
            let at = |key: &str| row.at(&format!("flows/flows/{index}/{key}"));
            let count = |key: &str, count: u64| Cell::new(show_count(count)).at(at(key));
            let time = |key: &str, ns: Option<i64>| Cell::new(latency(ns)).at(at(key));
            grid.row(vec![
                Cell::new(row.label.as_str()),
                Cell::new(clean(&of.name)),
                count("begun", of.begun),
                count("completed", of.completed),
                Cell::new(share(of.completed, of.begun))
                    .of(Source::Share(vec![at("completed")], at("begun"))),
                count("rejected", of.rejected),
                count("unknown", of.unknown),
                count("shed", of.shed),
                Cell::new(rate(of.completed_per_s)).at(at("completed_per_s")),
                time("p50_ns", of.p50_ns),
                time("p99_ns", of.p99_ns),
                time("max_ns", of.max_ns),
            ]);
        }
    }
    marked(grid, shown)
}

/// Which transactions are which, for each trial that has flows, and what the times are of.
pub(crate) fn flow_lines(shown: &[Shown<'_>]) -> Vec<String> {
    let of_trial = |row: &Shown<'_>| {
        let flows = row.trial.flows.as_ref()?;
        let mut line = format!(
            "{} transactions were due by the schedule (a user began), {} because the answer before them had come.",
            show_count(flows.begun),
            show_count(flows.followed)
        );
        if shown.len() > 1 {
            line.insert_str(0, &format!("{}: ", row.label));
        }
        if flows.left_out > 0 {
            line.push_str(&format!(
                " Of {} users nothing is told: too many were on their way at once, or the load was cut off under way.",
                show_count(flows.left_out)
            ));
        }
        Some(line)
    };
    let mut lines: Vec<String> = shown.iter().filter_map(of_trial).collect();
    if !lines.is_empty() {
        lines.push(
            "Times are of completed flows, from when the first transaction was due to the last answer, thinking included."
                .to_owned(),
        );
    }
    lines
}
