//! The table of the published reports, in their columns and as vegeta computes it: by sent time, all results.
//!
//! It must never be read as the response time: a request that was sent late looks fast here. That is why it stands
//! beside the other one and not instead of it.

use model::quantity::{show_count, show_ns};
use model::result::VegetaResult;

use super::{Shown, is_unsent, marked};
use crate::figures::bytes;
use crate::grid::{Cell, Grid};
use crate::paint::clean;

/// Whether any code is an HTTP status: the success of other systems is not a matter of 200 to 399.
pub(crate) fn has_statuses(shown: &[Shown<'_>]) -> bool {
    let mut codes = shown.iter().flat_map(|row| row.trial.vegeta.status_codes.keys());
    codes.any(|code| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The table.
pub(crate) fn published(shown: &[Shown<'_>]) -> Grid {
    let has_several = shown.len() > 1;
    let mut grid = Grid::new();
    if has_several {
        grid = grid.pin("setting");
    }
    grid = grid.number(1, "requests").number(1, "rate").number(1, "throughput").number(1, "wait");
    for head in ["mean", "50", "95", "99", "max"] {
        grid = grid.number(2, head);
    }
    grid = grid.number(3, "bytes in").number(3, "success").words(3, "codes");
    for row in shown.iter().filter(|row| !is_unsent(row.trial)) {
        let mut cells = Vec::new();
        if has_several {
            cells.push(Cell::new(row.label.as_str()));
        }
        cells.extend(values(&row.trial.vegeta, &row.at("vegeta")));
        grid.row(cells);
    }
    marked(grid, shown)
}

fn values(result: &VegetaResult, pointer: &str) -> Vec<Cell> {
    let codes: Vec<String> = result
        .status_codes
        .iter()
        .map(|(code, count)| format!("{}:{count}", clean(code)))
        .collect();
    let two = |value: f64| if value.is_finite() { format!("{value:.2}") } else { "–".to_owned() };
    let numbers = [
        ("requests", show_count(result.requests)),
        ("rate", two(result.rate)),
        ("throughput", two(result.throughput)),
        ("wait_ns", show_ns(result.wait_ns)),
        ("mean_ns", show_ns(result.mean_ns)),
        ("p50_ns", show_ns(result.p50_ns)),
        ("p95_ns", show_ns(result.p95_ns)),
        ("p99_ns", show_ns(result.p99_ns)),
        ("max_ns", show_ns(result.max_ns)),
        ("bytes_in", bytes(result.bytes_in)),
        ("success", format!("{}%", two(result.success * 100.0))),
    ];
    let cell = |(key, text): (&str, String)| Cell::new(text).at(format!("{pointer}/{key}"));
    let mut cells: Vec<Cell> = numbers.into_iter().map(cell).collect();
    cells.push(Cell::new(codes.join("  ")));
    cells
}
