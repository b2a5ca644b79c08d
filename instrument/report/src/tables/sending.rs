//! How transactions left: what was sent again, and what left together.

use model::quantity::show_count;
use model::result::{AttemptsResult, BatchesResult};

use super::{Shown, marked};
use crate::figures::{NONE, share};
use crate::grid::{Cell, Grid, Source};
use crate::paint::Paint;

/// One row a trial whose load sends again; none where no load does.
pub(crate) fn attempts(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").number(1, "sent").number(1, "sent again");
    grid =
        grid.number(1, "of all").number(1, "mean attempts").number(1, "most").number(1, "allowed");
    for row in shown {
        let of: &AttemptsResult = &row.trial.attempts;
        if of.allowed < 2 {
            continue;
        }
        let at = |key: &str| row.at(&format!("attempts/{key}"));
        let again = if of.resent == 0 { Paint::Dim } else { Paint::Plain };
        grid.row(vec![
            Cell::new(row.label.as_str()),
            Cell::new(show_count(of.sent)).at(at("sent")),
            Cell::painted(show_count(of.resent), again).at(at("resent")),
            part(of.resent, of.sent, at("resent"), at("sent")),
            mean(of.mean, at("mean")),
            Cell::new(show_count(of.max)).at(at("max")),
            Cell::new(show_count(of.allowed)).at(at("allowed")),
        ]);
    }
    marked(grid, shown)
}

/// The meaning of the columns of [`attempts`].
pub(crate) fn attempts_line() -> &'static str {
    "Of the main load, what fell due in the measured window; the first attempt is one of them."
}

/// One row a trial whose load has batches; none where no load has.
pub(crate) fn batches(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").number(1, "batches").number(1, "mean size");
    grid = grid.number(1, "largest");
    for reason in ["full", "completion", "delay", "drain"] {
        grid = grid.number(2, reason);
    }
    for row in shown {
        let Some(of) = &row.trial.batches else { continue };
        let of: &BatchesResult = of;
        let at = |key: &str| row.at(&format!("batches/{key}"));
        let reason = |count: u64, key: &str| part(count, of.count, at(key), at("count"));
        grid.row(vec![
            Cell::new(row.label.as_str()),
            Cell::new(show_count(of.count)).at(at("count")),
            mean(of.size_mean, at("size_mean")),
            of.size_max.map_or_else(
                || Cell::new(NONE),
                |size| Cell::new(show_count(size)).at(at("size_max")),
            ),
            reason(of.full, "full"),
            reason(of.completion, "completion"),
            reason(of.delay, "delay"),
            reason(of.drain, "drain"),
        ]);
    }
    marked(grid, shown)
}

/// The meaning of the columns of [`batches`].
pub(crate) fn batches_line() -> &'static str {
    "Of the whole trial, warm-up and drain included. Why they left: full, as many waited as a batch holds; completion, \
     one had come back; delay, the oldest had waited long enough; drain, the load was over."
}

/// A share of a count, or a dash where there is none.
fn part(count: u64, whole: u64, at: String, of: String) -> Cell {
    if whole == 0 {
        return Cell::new(NONE);
    }
    Cell::new(share(count, whole)).of(Source::Share(vec![at], of))
}

/// A mean of counts, or a dash.
fn mean(of: Option<f64>, at: String) -> Cell {
    of.map_or_else(|| Cell::new(NONE), |mean| Cell::new(format!("{mean:.2}")).at(at))
}
