//! The trials of a search in the order in which they were run.

use model::result::{SearchClass, SearchRole};

use super::{Shown, quantile_named};
use crate::figures::rate;
use crate::grid::{Cell, Grid};
use crate::paint::Paint;

/// One row a trial of a search; none where nothing was searched for.
pub(crate) fn search(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("trial").words(1, "purpose").number(1, "rate/s");
    grid = grid.words(1, "answer").number(1, "goodput/s").number(1, "p99");
    let mut rows: Vec<_> = shown.iter().filter_map(|row| Some((row.search?, row))).collect();
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
        grid.row(vec![
            Cell::new((place + 1).to_string()),
            Cell::new(purpose),
            Cell::new(rate(of.per_s)).at(at("per_s")),
            answer,
            Cell::new(rate(row.trial.rates.goodput_per_s)).at(row.at("rates/goodput_per_s")),
            quantile_named(row, "p99"),
        ]);
    }
    grid
}

/// The meaning of the columns of [`search`].
pub(crate) fn search_line() -> &'static str {
    "bracket: short trials that double the rate. bisect: between the highest that passed and the lowest that failed. confirm: \
     fresh trials below it by the margin, all of which must pass. refute: fresh trials as far above it, most of which must fail."
}
