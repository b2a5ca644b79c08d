//! The promises that the run supports: minute by minute, and of pages that need several requests.
//!
//! It must never say more than the minutes do: the sentence is the analysis' own.

use model::quantity::{show_count, show_ns};
use model::result::BorneResult;

use super::Shown;
use crate::figures::{NONE, percent, rate};
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean};

/// The first trial of each setting of which minutes are told.
fn with_minutes<'a>(
    shown: &'a [Shown<'a>],
) -> impl Iterator<Item = (&'a Shown<'a>, &'a BorneResult)> {
    let is_first = |row: &&Shown<'_>| {
        row.setting.trials.first().is_some_and(|trial| std::ptr::eq(trial, row.trial))
    };
    shown.iter().filter(is_first).filter_map(|row| Some((row, row.setting.borne.as_ref()?)))
}

/// A row a setting: how many of its minutes hold, and the worst of them.
pub(crate) fn minutes(shown: &[Shown<'_>]) -> Grid {
    let mut quantiles: Vec<&str> = Vec::new();
    for (_, borne) in with_minutes(shown) {
        if !quantiles.contains(&borne.quantile.as_str()) {
            quantiles.push(&borne.quantile);
        }
    }
    let mut grid = Grid::new().pin("setting").number(0, "offered/s").number(0, "minutes");
    grid = grid.number(0, "that hold").number(0, "least success");
    for quantile in &quantiles {
        grid = grid.number(0, &format!("worst {}", clean(quantile)));
    }
    for (row, borne) in with_minutes(shown) {
        let at = |key: &str| format!("{}/borne/{key}", row.setting_pointer);
        let paint = if borne.held == borne.minutes { Paint::Good } else { Paint::Bad };
        let offered = Cell::new(rate(row.trial.rates.offered_per_s));
        let mut cells = vec![
            Cell::new(clean(&row.setting.key)),
            offered.at(row.at("rates/offered_per_s")),
            Cell::new(show_count(borne.minutes)).at(at("minutes")),
            Cell::painted(show_count(borne.held), paint).at(at("held")),
            Cell::new(percent(borne.success_min)).at(at("success_min")),
        ];
        cells.extend(quantiles.iter().map(|quantile| {
            match *quantile == borne.quantile {
                true => Cell::new(borne.worst_ns.map_or_else(|| "inf".to_owned(), show_ns))
                    .at(at("worst_ns")),
                false => Cell::new(NONE),
            }
        }));
        grid.row(cells);
    }
    grid
}

/// The promises, a line each.
pub(crate) fn promised(shown: &[Shown<'_>]) -> Vec<String> {
    let words = with_minutes(shown).map(|(_, borne)| clean(&borne.words));
    words.filter(|words| !words.is_empty()).collect()
}

/// The meaning of the columns of the minutes.
pub(crate) fn minutes_line() -> &'static str {
    "Whole minutes of due times. A minute holds where every threshold on success and on response times holds in it, \
     those of level warn aside; what cannot succeed at any load is left out. A load can be promised where each minute \
     holds, at it and at every lower one."
}

/// A row a trial: how often a page of several requests is whole. Empty where all requests of all trials succeed.
pub(crate) fn pages(shown: &[Shown<'_>]) -> Grid {
    let fails = |row: &&Shown<'_>| row.trial.counts.committed < row.trial.counts.due;
    if !shown.iter().any(|row| fails(&row)) {
        return Grid::new();
    }
    let has_without = shown
        .iter()
        .any(|row| row.trial.page.is_some_and(|page| page.independent_without.is_some()));
    let mut grid = Grid::new().pin("setting").number(0, "requests").number(0, "independent");
    if has_without {
        grid = grid.number(0, "without what cannot");
    }
    grid = grid.number(0, "in a row");
    for row in shown {
        let Some(page) = row.trial.page else { continue };
        let at = |key: &str| row.at(&format!("page/{key}"));
        let odds = |share: Option<f64>, key: &str| match share {
            Some(share) => Cell::new(percent(share)).at(at(key)),
            None => Cell::new(NONE),
        };
        let mut cells = vec![
            Cell::new(row.label.as_str()),
            Cell::new(show_count(u64::from(page.calls))).at(at("calls")),
            Cell::new(percent(page.independent)).at(at("independent")),
        ];
        if has_without {
            cells.push(odds(page.independent_without, "independent_without"));
        }
        cells.push(odds(page.in_a_row, "in_a_row"));
        grid.row(cells);
    }
    grid
}

/// The meaning of the columns of the pages.
pub(crate) fn pages_line() -> &'static str {
    "Of pages that make so many requests, how many get every answer. Independent: the share that succeeds, to the power of \
     the requests. In a row: of all requests that were due one after another; failures that come together break fewer pages."
}
