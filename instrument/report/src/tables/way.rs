//! Where the time of followed transactions went: a row a leg, from due to the final stage.

use model::quantity::show_count;
use model::result::{LegResult, WayResult};

use super::{Shown, marked};
use crate::figures::{latency, latency_f64, percent};
use crate::grid::{Cell, Grid, Line};
use crate::paint::clean;

fn of<'a>(row: &Shown<'a>) -> Option<&'a WayResult> {
    row.trial.node_stages.as_ref()?.way.as_ref()
}

/// A row a leg; no rows where no system declares legs.
pub(crate) fn way(shown: &[Shown<'_>]) -> Grid {
    let has_several = shown.len() > 1;
    let mut grid = Grid::new();
    if has_several {
        grid = grid.pin("setting");
    }
    grid = grid.pin("leg").pin("until").number(1, "share");
    for head in ["mean", "p50", "p99", "max"] {
        grid = grid.number(2, head);
    }
    for row in shown {
        for (index, leg) in of(row).into_iter().flat_map(|way| &way.legs).enumerate() {
            let mut cells = Vec::new();
            if has_several {
                cells.push(Cell::new(row.label.as_str()));
            }
            cells.extend(of_leg(leg, &row.at(&format!("node_stages/way/legs/{index}"))));
            grid.row(cells);
        }
    }
    marked(grid, shown)
}

fn of_leg(of: &LegResult, at: &str) -> Vec<Cell> {
    let time = |ns: Option<i64>, key: &str| Cell::new(latency(ns)).at(format!("{at}/{key}"));
    let share = of.share.map_or_else(Cell::default, |share| Cell::new(percent(share)));
    vec![
        Cell::new(clean(&of.leg)),
        Cell::new(clean(&of.stage)),
        share.at(format!("{at}/share")),
        Cell::new(latency_f64(of.mean_ns)).at(format!("{at}/mean_ns")),
        time(of.p50_ns, "p50_ns"),
        time(of.p99_ns, "p99_ns"),
        time(of.max_ns, "max_ns"),
    ]
}

/// How many are divided, and how many could not be.
pub(crate) fn way_lines(shown: &[Shown<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in shown {
        let Some(way) = of(row) else { continue };
        let name = if shown.len() > 1 { format!("{}: ", row.label) } else { String::new() };
        if lines.is_empty() {
            let text = "Each leg begins where the one above it ends, by the first node that passed the stage; the first \
                        begins when the transaction was due, the last ends with the mark of the final stage. \
                        Together they are the whole time.";
            lines.push(Line { text: text.to_owned(), is_finding: false });
        }
        let text =
            format!("{name}{} followed transactions are divided.", show_count(way.transactions));
        lines.push(Line { text, is_finding: false });
        for (count, why) in [
            (way.incomplete, "lack a stamp of a leg"),
            (way.disordered, "have stamps in another order"),
        ] {
            if count > 0 {
                let text = format!("{name}{} more {why}, and are left out.", show_count(count));
                lines.push(Line { text, is_finding: true });
            }
        }
    }
    lines
}
