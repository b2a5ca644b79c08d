//! Failures by class, and transactions by kind and by the system's own code.
//!
//! It must never hide a group that failed behind one that did not: groups are shown worst first.

use model::quantity::show_count;
use model::result::{ErrorResult, GroupResult};

use super::Shown;
use crate::figures::{failed, failures, latency, ratio, share};
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean};

/// Failures by class for several trials: a column for each class that occurs anywhere.
pub(crate) fn failure_classes(shown: &[Shown<'_>]) -> Grid {
    let mut classes: Vec<String> = Vec::new();
    for (class, _) in shown.iter().flat_map(|row| failures(&row.trial.counts)) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    if classes.is_empty() {
        return Grid::new();
    }
    let mut grid =
        Grid::new().pin("setting").number(1, "due").number(1, "sent").number(1, "committed");
    for class in &classes {
        grid = grid.number(1, class);
    }
    grid = grid.number(1, "failed");
    for row in shown {
        let counts = &row.trial.counts;
        let of_row = failures(counts);
        let mut cells = vec![
            Cell::new(row.label.as_str()),
            Cell::new(show_count(counts.due)),
            Cell::new(show_count(counts.sent)),
            Cell::new(show_count(counts.committed)),
        ];
        for class in &classes {
            let count = of_row.iter().find(|(known, _)| known == class).map_or(0, |(_, n)| *n);
            let paint = if count == 0 { Paint::Dim } else { Paint::Plain };
            cells.push(Cell::painted(show_count(count), paint));
        }
        cells.push(Cell::new(share(failed(counts), counts.due)));
        grid.row(cells);
    }
    grid
}

/// The most groups that are shown unless everything is.
pub(crate) const GROUPS_MAX: usize = 12;

/// Groups, those with the largest share of failures first; at most `rows_max`. Second: how many were left out.
pub(crate) fn groups(head: &str, all: &[GroupResult], rows_max: usize) -> (Grid, usize) {
    let mut ordered: Vec<&GroupResult> = all.iter().collect();
    ordered.sort_by(|a, b| {
        let failed_share = |group: &GroupResult| ratio(failed(&group.counts), group.counts.due);
        failed_share(b).total_cmp(&failed_share(a))
    });
    let mut grid = Grid::new().pin(head).number(1, "due").number(1, "committed");
    grid = grid.number(1, "failed").number(2, "p50").number(2, "p99").number(2, "max");
    grid = grid.words(3, "failures");
    for group in ordered.iter().take(rows_max) {
        let counts = &group.counts;
        let lost = failed(counts);
        let classes: Vec<String> = failures(counts)
            .into_iter()
            .map(|(class, count)| format!("{class} {}", show_count(count)))
            .collect();
        let failed_cell = match lost {
            0 => Cell::painted("0", Paint::Dim),
            _ => Cell::painted(share(lost, counts.due), Paint::Bad),
        };
        grid.row(vec![
            Cell::new(clean(&group.name)),
            Cell::new(show_count(counts.due)),
            Cell::new(show_count(counts.committed)),
            failed_cell,
            Cell::new(latency(group.p50_ns)),
            Cell::new(latency(group.p99_ns)),
            Cell::new(latency(group.max_ns)),
            Cell::new(classes.join(" · ")),
        ]);
    }
    (grid, ordered.len().saturating_sub(rows_max))
}

/// Error texts: count, class, and a sentence with the text, its times and an example.
pub(crate) fn errors(all: &[ErrorResult], rows_max: usize) -> Vec<(String, String)> {
    all.iter()
        .take(rows_max)
        .map(|error| {
            let at = |ns: i64| format!("{:.1} s", seconds(ns));
            let times = if error.count == 1 {
                format!("at {}", at(error.first_ns))
            } else {
                format!("{} to {}", at(error.first_ns), at(error.last_ns))
            };
            let head = format!("{} × {}", show_count(error.count), clean(&error.class));
            (head, format!("{}  ({times}, tx {})", clean(&error.text), error.example_tx))
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
