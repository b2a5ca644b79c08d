//! Streams that end at different stages: what *committed* means of each, and how long it takes.
//!
//! It must never stand where all streams end at one stage: there it would say nothing.

use model::quantity::show_count;
use model::result::{Counts, StreamResult, TrialResult};

use super::{Shown, marked};
use crate::figures::{latency, share};
use crate::grid::{Cell, Grid, Source};
use crate::paint::clean;

/// A row for each stream of a trial whose streams end at different stages; no rows where none has such.
pub(crate) fn streams(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").pin("stream").words(0, "until").number(1, "due");
    grid = grid.number(1, "committed").number(1, "of all");
    grid = grid.number(2, "p50").number(2, "p99").number(2, "max");
    for row in shown.iter().filter(|row| row.trial.has_several_ends()) {
        for (index, of) in row.trial.streams.iter().enumerate() {
            let Some((counts, counts_at)) = counts_of(row.trial, of) else { continue };
            let time = |key: &str, ns: Option<i64>| {
                Cell::new(latency(ns)).at(row.at(&format!("streams/{index}/{key}")))
            };
            let (due, committed) =
                (row.at(&format!("{counts_at}/due")), row.at(&format!("{counts_at}/committed")));
            grid.row(vec![
                Cell::new(row.label.as_str()),
                Cell::new(clean(&of.stream)),
                Cell::new(clean(&of.until)),
                Cell::new(show_count(counts.due)).at(due.clone()),
                Cell::new(show_count(counts.committed)).at(committed.clone()),
                Cell::new(share(counts.committed, counts.due))
                    .of(Source::Share(vec![committed], due)),
                time("p50_ns", of.p50_ns),
                time("p99_ns", of.p99_ns),
                time("max_ns", of.max_ns),
            ]);
        }
    }
    marked(grid, shown)
}

/// The counts of a stream, and where they stand in the trial.
fn counts_of<'a>(trial: &'a TrialResult, of: &StreamResult) -> Option<(&'a Counts, &'static str)> {
    match of.stream == trial.stream {
        true => Some((&trial.counts, "counts")),
        false => trial.background.as_ref().map(|counts| (counts, "background")),
    }
}

/// The meaning of the columns of [`streams`].
pub(crate) fn streams_line() -> &'static str {
    "Each stream to its own final stage (until): committed is what reached that one, and times are to it, of those that did. \
     Goodput and rates by stage are the load's, which is followed no further than its own."
}
