//! The first table: one row a setting, what was offered, what came of it, and how long it took.
//!
//! It must never mix the rates up: offered, committed and goodput are different numbers.

use model::quantity::{show_count, show_ns};
use model::result::{Quantile, SettingResult, TrialResult, Verdict};

use super::latency::{combined_quantile, of_all_trials};
use super::{Shown, failed_parts, final_latency, is_probe, marked, marked_cell};
use crate::answer::unsent_words;
use crate::figures::{NONE, between, failed, is_thin, of_all_due, quantile, rate, share, span_ns};
use crate::grid::{Cell, Grid, Source};
use crate::paint::{Paint, clean, verdict_mark};

/// The table for several trials.
pub(crate) fn results(shown: &[Shown<'_>]) -> Grid {
    let is_probed = shown.iter().any(|row| is_probe(row.trial));
    marked(if is_probed { probes(shown) } else { loads(shown) }, shown)
}

fn loads(shown: &[Shown<'_>]) -> Grid {
    // Where everything that was committed was committed in time, the two are one column.
    let has_late = shown.iter().any(|row| {
        let rates = &row.trial.rates;
        committed_rate(row.trial).is_some_and(|committed| {
            (committed - rates.goodput_per_s).abs() > 0.000_5 * committed.abs()
        })
    });
    let mut grid = Grid::new().pin("setting").words(1, "verdict").number(1, "offered/s");
    if has_late {
        grid = grid.number(1, "committed/s");
    }
    grid = grid.number(1, "goodput/s").words(1, "achieved").number(1, "failed");
    grid = quantile_columns(grid, shown);
    for (index, row) in shown.iter().enumerate() {
        let rates = &row.trial.rates;
        let mut cells = vec![Cell::new(row.label.as_str()), verdict_cell(row)];
        if let Some([load, _]) = unsent_words(row.trial) {
            cells.push(Cell::new(load));
            cells.resize_with(grid.columns.len(), || Cell::new(NONE));
            grid.row(cells);
            continue;
        }
        cells.push(Cell::new(rate(rates.offered_per_s)).at(row.at("rates/offered_per_s")));
        if has_late {
            cells.push(committed_cell(row));
        }
        cells.push(Cell::new(rate(rates.goodput_per_s)).at(row.at("rates/goodput_per_s")));
        cells.push(kept_cell(row));
        cells.push(failed_cell(row));
        cells.extend(quantile_cells(row, shown));
        grid.row(cells);
        if let Some((label, at, of)) = of_all_trials(shown, index) {
            let ends = [of.goodput_low_per_s, of.goodput_high_per_s];
            let mut cells = vec![Cell::default(); if has_late { 4 } else { 3 }];
            cells[0] = Cell::new(label);
            cells.push(goodput_interval(ends, &at));
            cells.extend([Cell::default(), Cell::default()]);
            cells.extend(["p50", "p99"].map(|name| combined_quantile(of, name, &at)));
            cells.resize_with(grid.columns.len(), Cell::default);
            grid.row(cells);
        }
    }
    grid
}

/// The interval of goodput over repetitions; empty where it has no end.
fn goodput_interval(ends: [Option<f64>; 2], at: &str) -> Cell {
    if ends == [None, None] {
        return Cell::default();
    }
    let [low, high] = ends.map(|end| end.map(rate));
    let place = |end: &str| format!("{at}/goodput_{end}_per_s");
    let source = Source::Between(place("low"), place("high"));
    Cell::painted(between(low, high), Paint::Dim).of(source)
}

fn probes(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").words(1, "verdict").number(1, "background/s");
    grid = grid.number(1, "committed").number(1, "probes").number(1, "failed");
    grid = quantile_columns(grid, shown);
    for row in shown {
        let counts = &row.trial.counts;
        let (background, kept) = match &row.trial.background {
            Some(load) => {
                (per_second(load.due, row.trial.window_ns), share(load.committed, load.due))
            }
            None => (0.0, NONE.to_owned()),
        };
        let kept = if background == 0.0 { NONE.to_owned() } else { kept };
        let mut cells = vec![
            Cell::new(row.label.as_str()),
            verdict_cell(row),
            Cell::new(rate(background))
                .of(Source::PerSecond(row.at("background/due"), row.at("window_ns"))),
            Cell::new(kept)
                .of(Source::Share(vec![row.at("background/committed")], row.at("background/due"))),
            Cell::new(show_count(counts.due)).at(row.at("counts/due")),
            failed_cell(row),
        ];
        cells.extend(quantile_cells(row, shown));
        grid.row(cells);
    }
    grid
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn per_second(count: u64, window_ns: i64) -> f64 {
    if window_ns <= 0 { f64::NAN } else { count as f64 / (window_ns as f64 / 1e9) }
}

fn committed_rate(trial: &TrialResult) -> Option<f64> {
    let reached = &trial.rates.reached_per_s;
    reached.iter().find(|(stage, _)| stage == trial.final_stage_of_load()).map(|(_, per_s)| *per_s)
}

fn committed_cell(row: &Shown<'_>) -> Cell {
    let reached = &row.trial.rates.reached_per_s;
    match reached.iter().position(|(stage, _)| stage == row.trial.final_stage_of_load()) {
        Some(index) => {
            Cell::new(rate(reached[index].1)).at(row.at(&format!("rates/reached_per_s/{index}/1")))
        }
        None => Cell::new(NONE),
    }
}

/// Goodput of what was offered, with its mark.
pub(crate) fn kept_cell(row: &Shown<'_>) -> Cell {
    let (kept, paint) = kept(row.setting, row.trial);
    let of = Source::Share(vec![row.at("rates/goodput_per_s")], row.at("rates/offered_per_s"));
    marked_cell(Cell::painted(kept, paint).of(of), row)
}

/// How many failed, which is worth seeing unless it is zero.
fn failed_cell(row: &Shown<'_>) -> Cell {
    let count = failed(&row.trial.counts);
    let paint = if count == 0 { Paint::Dim } else { Paint::Plain };
    Cell::painted(show_count(count), paint).of(Source::Sum(failed_parts(&row.at("counts"))))
}

pub(crate) fn verdict_cell(row: &Shown<'_>) -> Cell {
    let verdict = row.trial.verdict;
    let (mark, paint) = verdict_mark(verdict);
    match row.setting.expect {
        Some(expect) if expect == verdict => {
            Cell::painted(format!("✓ {}, as declared", verdict.word()), Paint::Good)
        }
        Some(expect) => {
            Cell::painted(format!("✗ {}, declared {}", verdict.word(), expect.word()), Paint::Bad)
        }
        None if is_limit_found(row) => Cell::painted("◐ limit found", Paint::Caution),
        None => Cell::painted(format!("{mark} {}", verdict.word()), paint),
    }
}

/// Whether a threshold of level `saturated` was there to find the limit, and found it here.
pub(crate) fn is_limit_found(row: &Shown<'_>) -> bool {
    row.setting.saturated && row.setting.expect.is_none() && row.trial.verdict == Verdict::Pass
}

/// p50 and p99 of all that were due; beside them that of the committed, where the two differ somewhere.
fn quantile_columns(grid: Grid, shown: &[Shown<'_>]) -> Grid {
    let grid = grid.number(2, "p50").number(2, "p99");
    if differs(shown) { grid.number(2, "p99 of committed") } else { grid }
}

fn differs(shown: &[Shown<'_>]) -> bool {
    shown.iter().filter_map(|row| final_latency(row.trial)).any(|it| it.inf > 0)
}

fn quantile_cells(row: &Shown<'_>, shown: &[Shown<'_>]) -> Vec<Cell> {
    let mut cells = vec![quantile_named(row, "p50"), quantile_named(row, "p99")];
    if differs(shown) {
        cells.push(of_committed_named(row, "p99"));
    }
    cells
}

/// A quantile of the response time of all that were due: what a threshold asks for.
pub(crate) fn quantile_named(row: &Shown<'_>, name: &str) -> Cell {
    let quantiles = final_latency(row.trial).map(|latency| &latency.response.quantiles);
    let index = quantiles.and_then(|all| all.iter().position(|q| q.name == name));
    match (quantiles, index) {
        (Some(all), Some(index)) if row.trial.counts.due > 0 => {
            let text = of_all_due(&all[index]);
            let paint = if text.starts_with('~') { Paint::Dim } else { Paint::Plain };
            let place = format!("{}/response/quantiles/{index}/unconditional_ns", row.latency_at());
            marked_cell(Cell::painted(text, paint).at(place), row)
        }
        _ => Cell::new(NONE),
    }
}

/// The same of those that reached the final stage.
fn of_committed_named(row: &Shown<'_>, name: &str) -> Cell {
    let quantiles = final_latency(row.trial).map(|latency| &latency.response.quantiles);
    let index = quantiles.and_then(|all| all.iter().position(|q| q.name == name));
    match (quantiles, index) {
        (Some(all), Some(index)) => {
            let paint = if is_thin(&all[index]) { Paint::Dim } else { Paint::Plain };
            let place = format!("{}/response/quantiles/{index}/value_ns", row.latency_at());
            marked_cell(Cell::painted(quantile(&all[index]), paint).at(place), row)
        }
        _ => Cell::new(NONE),
    }
}

/// How much of what was offered came through, with the mark of saturation, which survives without colour.
pub(crate) fn kept(setting: &SettingResult, trial: &TrialResult) -> (String, Paint) {
    let rates = &trial.rates;
    let of_offered = rates.goodput_per_s / rates.offered_per_s;
    if !of_offered.is_finite() {
        return (NONE.to_owned(), Paint::Dim);
    }
    let (mark, paint) = match of_offered {
        _ if setting.saturated => ("○", Paint::Bad),
        r if r >= 0.98 => ("●", Paint::Good),
        r if r >= 0.90 => ("◐", Paint::Caution),
        _ => ("○", Paint::Bad),
    };
    (format!("{mark} {}", one_decimal(of_offered)), paint)
}

/// A percentage with one decimal, cut and not rounded: 99.97 % is not 100 %.
fn one_decimal(share: f64) -> String {
    let tenths = (share * 1000.0 + 1e-9).floor() / 10.0;
    if tenths == 100.0 { "100%".to_owned() } else { format!("{tenths:.1}%") }
}

/// The few numbers of a single trial: lines of pieces that stay whole.
pub(crate) fn headline(trial: &TrialResult) -> Vec<Vec<String>> {
    let counts = &trial.counts;
    let window = span_ns(trial.window_ns);
    let what = if is_probe(trial) { "probes due" } else { "due" };
    let committed = share(counts.committed, counts.due);
    // Rates are the load's, and beside a probe it has a line of its own.
    let offered = match is_probe(trial) {
        true => per_second(counts.due, trial.window_ns),
        false => trial.rates.offered_per_s,
    };
    let goodput = format!("goodput {}/s", rate(trial.rates.goodput_per_s));
    let mut lines = vec![vec![
        format!("{} {what} in {window} ({}/s)", show_count(counts.due), rate(offered)),
        format!("{} {} ({committed})", show_count(counts.committed), clean(&trial.final_stage)),
    ]];
    if let Some(background) = &trial.background {
        let reached = match trial.has_several_ends() {
            true => clean(trial.final_stage_of_load()),
            false => "committed".to_owned(),
        };
        lines.push(vec![
            format!("background {}/s", rate(per_second(background.due, trial.window_ns))),
            format!("{} of it {reached}", share(background.committed, background.due)),
            goodput,
        ]);
    } else {
        lines[0].push(goodput);
    }
    if let Some(latency) = final_latency(trial) {
        let (due, committed) = (of_all_due as fn(&Quantile) -> String, quantile as _);
        let max = |ns: Option<i64>| ns.map_or_else(|| "inf".to_owned(), show_ns);
        let of = |whose: &str, show: fn(&Quantile) -> String, largest: Option<i64>| {
            let is_shown = |name: &str| ["p50", "p95", "p99"].contains(&name);
            let shown = latency.response.quantiles.iter().filter(|q| is_shown(&q.name));
            let mut parts = vec![whose.to_owned()];
            parts.extend(shown.map(|q| format!("{} {}", q.name, show(q))));
            parts.push(format!("max {}", max(largest)));
            parts
        };
        if latency.inf > 0 {
            lines.push(of("response time of all due", due, latency.due_max_ns));
            lines.push(of("of the committed", committed, latency.response.max_ns));
        } else if latency.response.count > 0 {
            lines.push(of("response time", due, latency.response.max_ns));
        }
    }
    lines
}
