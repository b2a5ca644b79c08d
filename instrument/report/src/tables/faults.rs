//! Faults, one a row: who, from when to when, and what is said of it.
//!
//! It must never pass over a fault that could not be injected: what was asked for did not take place then.

use model::quantity::show_ns;

use super::Shown;
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean};

/// A row for each fault of these trials, at most `rows_max`; and how many there are beside them.
pub(crate) fn faults(shown: &[Shown<'_>], rows_max: usize) -> (Grid, u64) {
    let with_faults = shown.iter().filter(|row| !row.trial.faults.is_empty());
    let has_several = shown.len() > 1;
    let mut grid = Grid::new();
    if has_several {
        grid = grid.pin("setting");
    }
    grid = grid.pin("fault").words(1, "node").number(1, "in flight");
    for head in ["from", "to", "length", "longest silence", "back after"] {
        grid = grid.number(1, head);
    }
    grid = grid.words(1, "detail");
    let mut left_out = 0;
    for row in with_faults {
        left_out += row.trial.faults_left_out;
        for (index, it) in row.trial.faults.iter().enumerate() {
            if grid.rows.len() == rows_max {
                left_out += 1;
                continue;
            }
            let time = |key: &str, ns: Option<i64>| match ns {
                Some(ns) => Cell::new(moment(ns)).at(row.at(&format!("faults/{index}/{key}"))),
                None => Cell::default(),
            };
            let words = match it.happened {
                true => Cell::new(clean(&it.in_words())),
                false => Cell::painted(
                    format!("did not take place: {}", clean(&it.in_words())),
                    Paint::Bad,
                ),
            };
            let in_flight = match it.in_flight {
                None => Cell::default(),
                Some(count) => {
                    let paint =
                        if it.met_nothing().is_some() { Paint::Caution } else { Paint::Plain };
                    let cell = Cell::painted(count.to_string(), paint);
                    cell.at(row.at(&format!("faults/{index}/in_flight")))
                }
            };
            let label = has_several.then(|| Cell::new(row.label.as_str()));
            let cells = [
                Cell::new(clean(&it.kind)),
                Cell::new(clean(&it.node)),
                in_flight,
                time("from_ns", Some(it.from_ns)),
                time("to_ns", it.to_ns),
                time("length_ns", it.length_ns),
                time("silence_ns", it.silence_ns),
                time("back_after_ns", it.back_after_ns),
                words,
            ];
            grid.row(label.into_iter().chain(cells).collect());
        }
    }
    (grid, left_out)
}

/// A time after the trial's start, which may be its very beginning.
fn moment(ns: i64) -> String {
    if ns == 0 { "0 s".to_owned() } else { show_ns(ns) }
}
