//! A load in steps: a row a step, what it was offered and what came of it.
//!
//! It must never mix up what was due in a step with what the system got through during it: shares are of the first,
//! goodput is the second.

use model::quantity::{show_count, show_ns};
use model::result::{StepResult, StepsResult};

use super::groups::class_pointer;
use super::{Shown, marked};
use crate::figures::{NONE, failures, latency, rate};
use crate::grid::{Cell, Grid, Source};
use crate::paint::{Paint, clean};

/// A row a step of each trial that has steps.
pub(crate) fn steps(shown: &[Shown<'_>]) -> Grid {
    let of = || shown.iter().filter_map(|row| Some((row, row.trial.steps.as_ref()?)));
    let all = || of().flat_map(|(_, it)| &it.steps);
    let mut classes: Vec<String> = Vec::new();
    for (class, _) in all().flat_map(|step| failures(&step.counts)) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    let has = [
        shown.len() > 1,
        all().any(|step| step.generators.is_some()),
        all().any(|step| step.clients.is_some()),
    ];
    let mut grid = Grid::new();
    if has[0] {
        grid = grid.pin("setting");
    }
    grid = grid.pin("from");
    for (head, is_there) in ["generators", "clients"].into_iter().zip(&has[1..]) {
        if *is_there {
            grid = grid.number(0, head);
        }
    }
    grid = grid.number(1, "offered/s").number(1, "goodput/s").words(1, "achieved");
    grid = grid.number(2, "p50").number(2, "p99");
    grid = grid.number(3, "due").number(3, "committed");
    for class in &classes {
        grid = grid.number(3, &clean(class));
    }
    grid = grid.number(3, "outstanding");
    for (row, result) in of() {
        for (index, step) in result.steps.iter().enumerate() {
            let at = row.at(&format!("steps/steps/{index}"));
            let mut cells = Vec::new();
            if has[0] {
                cells.push(Cell::new(row.label.as_str()));
            }
            cells.push(Cell::new(show_ns(step.start_ns)).at(format!("{at}/start_ns")));
            for (value, is_there, key) in
                [(step.generators, has[1], "generators"), (step.clients, has[2], "clients")]
            {
                if is_there {
                    cells.push(value.map_or_else(
                        || Cell::new(NONE),
                        |value| Cell::new(show_count(value)).at(format!("{at}/{key}")),
                    ));
                }
            }
            cells.extend(numbers(step, &at, &classes));
            grid.row(cells);
        }
    }
    marked(grid, shown)
}

fn numbers(step: &StepResult, at: &str, classes: &[String]) -> Vec<Cell> {
    let counts = &step.counts;
    let share = step.goodput_per_s / step.offered_per_s;
    let kept = if share.is_finite() {
        let (mark, paint) = match step.keeps_up {
            true => ("●", Paint::Good),
            false => ("○", Paint::Bad),
        };
        let places = (format!("{at}/goodput_per_s"), format!("{at}/offered_per_s"));
        Cell::painted(format!("{mark} {}", crate::figures::percent(share)), paint)
            .of(Source::Share(vec![places.0], places.1))
    } else {
        Cell::new(NONE)
    };
    let mut cells = vec![
        Cell::new(rate(step.offered_per_s)).at(format!("{at}/offered_per_s")),
        Cell::new(rate(step.goodput_per_s)).at(format!("{at}/goodput_per_s")),
        kept,
        Cell::new(latency(step.p50_ns)).at(format!("{at}/p50_ns")),
        Cell::new(latency(step.p99_ns)).at(format!("{at}/p99_ns")),
        Cell::new(show_count(counts.due)).at(format!("{at}/counts/due")),
        Cell::new(show_count(counts.committed)).at(format!("{at}/counts/committed")),
    ];
    let of_step = failures(counts);
    for class in classes {
        let count = of_step.iter().find(|(known, _)| known == class).map_or(0, |(_, n)| *n);
        let paint = if count == 0 { Paint::Dim } else { Paint::Plain };
        let cell = Cell::painted(show_count(count), paint);
        cells.push(match class_pointer(counts, class, &format!("{at}/counts")) {
            Some(pointer) => cell.at(pointer),
            None => cell,
        });
    }
    let outstanding = u64::try_from(step.outstanding).map_or_else(|_| NONE.to_owned(), show_count);
    cells.push(Cell::new(outstanding).at(format!("{at}/outstanding")));
    cells
}

/// The meaning of the columns, and the steps' joint message.
pub(crate) fn step_lines(shown: &[Shown<'_>]) -> Vec<String> {
    let of: Vec<(&Shown<'_>, &StepsResult)> =
        shown.iter().filter_map(|row| Some((row, row.trial.steps.as_ref()?))).collect();
    if of.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = of
        .iter()
        .filter(|(_, result)| !result.words.is_empty())
        .map(|(row, result)| match shown.len() {
            1 => clean(&result.words),
            _ => format!("{}: {}", row.label, clean(&result.words)),
        })
        .collect();
    let said = "Due, committed and failures: of what was due in the step, however late it ended. Goodput: what got there \
                in as long a time as the step, whenever it was due. Outstanding: at its end. kept: ● the step keeps up, \
                ○ it does not.";
    lines.push(said.to_owned());
    lines
}
