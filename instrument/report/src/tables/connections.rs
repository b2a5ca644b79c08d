//! How connections fared.

use model::quantity::show_count;
use model::result::HealthResult;

use super::Shown;
use crate::figures::NONE;
use crate::grid::{Cell, Grid};
use crate::paint::Paint;

/// One row a trial; with `troubled_only` none where each connection stood from the first to the last moment.
pub(crate) fn connections(shown: &[Shown<'_>], troubled_only: bool) -> Grid {
    let mut grid = Grid::new().pin("setting").number(1, "opened").number(1, "opened again");
    for name in ["closed by it", "reset", "not opened", "protocol errors", "bytes unasked"] {
        grid = grid.number(1, name);
    }
    grid = grid.number(1, "lost with it").number(1, "answers in doubt");
    grid = grid.number(2, "answers, fewest").number(2, "mean").number(2, "most");
    for row in shown {
        let Some(of) = &row.trial.health else { continue };
        if troubled_only && !is_troubled(of) {
            continue;
        }
        let at = |key: &str| row.at(&format!("health/{key}"));
        let bad = |count: u64, key: &str| {
            let paint = if count == 0 { Paint::Dim } else { Paint::Bad };
            Cell::painted(show_count(count), paint).at(at(key))
        };
        grid.row(vec![
            Cell::new(row.label.as_str()),
            Cell::new(show_count(of.opened)).at(at("opened")),
            bad(of.reopened, "reopened"),
            bad(of.closed, "closed"),
            bad(of.reset, "reset"),
            bad(of.unopened, "unopened"),
            bad(of.protocol_errors, "protocol_errors"),
            bad(of.unasked_bytes, "unasked_bytes"),
            bad(of.lost, "lost"),
            bad(of.doubtful, "doubtful"),
            Cell::new(show_count(of.answers_min)).at(at("answers_min")),
            of.answers_mean.map_or_else(
                || Cell::new(NONE),
                |mean| Cell::new(format!("{mean:.1}")).at(at("answers_mean")),
            ),
            Cell::new(show_count(of.answers_max)).at(at("answers_max")),
        ]);
    }
    grid
}

/// The meaning of the columns of [`connections`].
pub(crate) fn connections_line() -> &'static str {
    "Of the whole trial; one that is lost and opened again is two. In doubt: answers on connections that broke the protocol \
     later, any of which may be another request's."
}

fn is_troubled(of: &HealthResult) -> bool {
    // Not added up: a record may say anything.
    let counts = [of.reopened, of.closed, of.reset, of.lost, of.unopened, of.protocol_errors];
    counts.into_iter().chain([of.unasked_bytes, of.doubtful]).any(|count| count > 0)
}
