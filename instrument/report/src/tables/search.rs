//! The trials of a search in the order in which they were run.

use model::facts::RestFacts;
use model::result::{SearchClass, SearchRole};

use super::{Shown, marked, quantile_named};
use crate::figures::{rate, span_ns};
use crate::grid::{Cell, Grid};
use crate::paint::Paint;

/// One row a trial of a search; none where nothing was searched for.
pub(crate) fn search(shown: &[Shown<'_>]) -> Grid {
    let mut rows: Vec<_> = shown.iter().filter_map(|row| Some((row.search?, row))).collect();
    let find = rows.first().map(|(_, row)| row.find).unwrap_or_default();
    let rests = rows.iter().any(|((_, of), _)| of.rest.is_some());
    let tried = if find.is_count() { find.word() } else { "rate/s" };
    let mut grid = Grid::new().pin("trial").words(1, "purpose").number(1, tried);
    grid = grid.words(1, "answer").number(1, "goodput/s").number(1, "p99");
    if rests {
        grid = grid.number(1, "rest before");
    }
    rows.sort_by_key(|((place, _), _)| *place);
    for ((place, of), row) in rows {
        let at = |key: &str| format!("/search/trials/{place}/{key}");
        let purpose = match of.role {
            SearchRole::Bracket => "bracket",
            SearchRole::Bisect => "bisect",
            SearchRole::Confirm => "confirm",
            SearchRole::Refute => "refute",
        };
        let answer = match of.class {
            SearchClass::Kept => Cell::painted("✓ kept", Paint::Good),
            SearchClass::Failed => Cell::painted("✗ failed", Paint::Bad),
            SearchClass::Untold => Cell::painted("! invalid", Paint::Caution),
        };
        let value = if find.is_count() { of.value.to_string() } else { rate(of.value) };
        let mut cells = vec![
            Cell::new((place + 1).to_string()),
            Cell::new(purpose),
            Cell::new(value).at(at("value")),
            answer,
            Cell::new(rate(row.trial.rates.goodput_per_s)).at(row.at("rates/goodput_per_s")),
            quantile_named(row, "p99"),
        ];
        if rests {
            cells.push(rested(of.rest.as_ref()).at(at("rest/waited_ns")));
        }
        grid.row(cells);
    }
    marked(grid, shown)
}

fn rested(rest: Option<&RestFacts>) -> Cell {
    match rest {
        None => Cell::new("–"),
        Some(rest) if rest.is_calm => Cell::new(span_ns(rest.waited_ns)),
        Some(rest) => Cell::painted(format!("! {}", span_ns(rest.waited_ns)), Paint::Caution),
    }
}

/// The meaning of the columns of [`search`].
pub(crate) fn search_lines(shown: &[Shown<'_>]) -> Vec<String> {
    let purposes = "bracket: short trials that double the value. bisect: between the highest that passed and the lowest that \
         failed. confirm: fresh trials below it by the margin, all of which must pass. refute: fresh trials as far above it, \
         most of which must fail.";
    let mut lines = vec![purposes.to_owned()];
    if let Some(rest) = shown.iter().filter_map(|row| row.search?.1.rest.as_ref()).next() {
        lines.push(format!(
            "rest before: the wait until three probes in a row took at most {}, twice the slowest of those before the first \
             trial and 1 ms; ! = the wait ended before that.",
            span_ns(rest.calm_ns)
        ));
    }
    lines
}
