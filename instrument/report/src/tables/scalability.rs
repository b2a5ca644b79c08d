//! A sweep over clients beside the Universal Scalability Law.

use model::quantity::show_count;

use super::Shown;
use crate::figures::rate;
use crate::grid::{Cell, Grid};
use crate::paint::clean;

/// A row a setting of a sweep; none where nothing was swept.
pub(crate) fn scalability(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").number(1, "clients").number(1, "goodput/s");
    grid = grid.number(1, "by the law/s").number(1, "residual");
    for row in shown.iter().filter(|row| row.trial.trial == 0) {
        let Some(of) = &row.setting.scalability else { continue };
        let at = |key: &str| format!("{}/scalability/{key}", row.setting_pointer);
        grid.row(vec![
            Cell::new(clean(&row.setting.key)),
            Cell::new(show_count(of.clients)).at(at("clients")),
            Cell::new(rate(row.trial.rates.goodput_per_s)).at(row.at("rates/goodput_per_s")),
            Cell::new(rate(of.fitted_per_s)).at(at("fitted_per_s")),
            Cell::new(format!("{:+.1}%", of.residual * 100.0)).at(at("residual")),
        ]);
    }
    grid
}

/// The law of each sweep, in words.
pub(crate) fn scalability_lines(shown: &[Shown<'_>]) -> Vec<String> {
    let first = shown.iter().filter(|row| row.trial.trial == 0);
    let laws = first.filter_map(|row| row.setting.scalability.as_ref()?.law.as_ref());
    laws.map(|law| clean(&law.words)).collect()
}
