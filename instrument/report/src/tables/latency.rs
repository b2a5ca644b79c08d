//! Latency tables: quantiles with intervals, beside those that never got an answer, and by stage.
//!
//! It must never show a quantile without the number of samples it rests on, nor the answered alone where some were
//! not answered: a percentile of the survivors is shown together with the one over all that were due.

use model::quantity::show_count;
use model::result::{Distribution, LatencyResult, Quantile, TrialResult};

use super::Shown;
use crate::figures::{
    interval, interval_bare, is_thin, latency, latency_f64, percent, quantile, rate, unconditional,
    whole_ns,
};
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean};

/// The latency to the stage that counts as committed; the highest stage there is, if that one is absent.
pub(crate) fn final_latency(trial: &TrialResult) -> Option<&LatencyResult> {
    trial.latency.iter().find(|it| it.stage == trial.final_stage).or_else(|| trial.latency.last())
}

/// Whether the quantiles over all that were due differ from those of the survivors: at least the largest does, as
/// soon as one transaction never got there.
const fn differs(latency: &LatencyResult) -> bool {
    latency.inf > 0
}

/// One trial: a row a quantile.
pub(crate) fn quantiles_of_one(trial: &TrialResult) -> Grid {
    let Some(latency) = final_latency(trial) else { return Grid::new() };
    let (response, service) = (&latency.response, &latency.service);
    let differs = differs(latency);
    let mut grid = Grid::new().pin("");
    grid = grid.number(1, if differs { "reached" } else { "value" }).number(1, "95% interval");
    if differs {
        grid = grid.number(1, "of all due");
    }
    grid = grid.number(1, "service time").number(1, "samples beyond");
    let mut push =
        |name: &str, value: Cell, interval: String, all: String, sent: String, beyond: String| {
            let dim = |text: String| Cell::painted(text, Paint::Dim);
            let mut cells = vec![Cell::new(name), value, dim(interval)];
            if differs {
                cells.push(Cell::new(all));
            }
            cells.extend([dim(sent), dim(beyond)]);
            grid.row(cells);
        };
    let mean_interval = mean_interval(response, interval);
    push(
        "mean",
        Cell::new(latency_f64(response.mean_ns)),
        mean_interval,
        latency_f64(latency.restricted_mean_ns),
        latency_f64(service.mean_ns),
        String::new(),
    );
    for q in &response.quantiles {
        let same = service.quantiles.iter().find(|other| other.name == q.name);
        push(
            &q.name,
            quantile_cell(q),
            interval(q.value_ns, q.low_ns, q.high_ns),
            unconditional(q),
            same.map(|same| crate::figures::latency(same.value_ns)).unwrap_or_default(),
            show_count(q.beyond),
        );
    }
    let all_max =
        if latency.inf > 0 { "inf".to_owned() } else { crate::figures::latency(response.max_ns) };
    push(
        "max",
        Cell::new(crate::figures::latency(response.max_ns)),
        String::new(),
        all_max,
        crate::figures::latency(service.max_ns),
        String::new(),
    );
    grid
}

/// The interval of the mean in one of the two forms.
fn mean_interval(
    of: &Distribution,
    form: fn(Option<i64>, Option<i64>, Option<i64>) -> String,
) -> String {
    let whole = |ns: Option<f64>| ns.and_then(whole_ns);
    form(whole(of.mean_ns), whole(of.mean_low_ns), whole(of.mean_high_ns))
}

fn quantile_cell(q: &Quantile) -> Cell {
    Cell::painted(quantile(q), if is_thin(q) { Paint::Dim } else { Paint::Plain })
}

/// Several trials: a row a trial, its intervals below it, and the quantiles over all that were due where they differ.
pub(crate) fn quantiles_of_several(shown: &[Shown<'_>], verbose: bool) -> Grid {
    let latencies: Vec<(&Shown<'_>, &LatencyResult)> =
        shown.iter().filter_map(|row| Some((row, final_latency(row.trial)?))).collect();
    let mut names: Vec<&str> = Vec::new();
    for (_, latency) in &latencies {
        for q in &latency.response.quantiles {
            if !names.contains(&q.name.as_str()) {
                names.push(&q.name);
            }
        }
    }
    let mut grid = Grid::new().pin("setting").number(1, "n").number(1, "mean");
    for name in &names {
        grid = grid.number(1, name);
    }
    grid = grid.number(1, "max").number(2, "own lag p99");
    for (row, latency) in latencies {
        rows_of_trial(row, latency, &names, verbose, &mut grid);
    }
    grid
}

fn rows_of_trial(
    row: &Shown<'_>,
    of: &LatencyResult,
    names: &[&str],
    verbose: bool,
    grid: &mut Grid,
) {
    let response = &of.response;
    let each = |distribution: &Distribution, show: &dyn Fn(&Quantile) -> Cell| -> Vec<Cell> {
        let find = |name: &&str| distribution.quantiles.iter().find(|q| q.name == **name);
        names.iter().map(|name| find(name).map_or_else(Cell::default, show)).collect()
    };
    let dim = |text: String| Cell::painted(text, Paint::Dim);
    let mut push =
        |label: Cell, n: Cell, mean: Cell, quantiles: Vec<Cell>, max: Cell, lag: Cell| {
            grid.row([vec![label, n, mean], quantiles, vec![max, lag]].concat());
        };
    let lag = row.trial.own_lag.quantiles.iter().find(|q| q.name == "p99");
    push(
        Cell::new(row.label.as_str()),
        Cell::new(show_count(response.count)),
        Cell::new(latency_f64(response.mean_ns)),
        each(response, &quantile_cell),
        Cell::new(latency(response.max_ns)),
        dim(lag.map(|q| latency(q.value_ns)).unwrap_or_default()),
    );
    push(
        dim("  95% interval".to_owned()),
        Cell::default(),
        dim(mean_interval(response, interval_bare)),
        each(response, &|q| dim(interval_bare(q.value_ns, q.low_ns, q.high_ns))),
        Cell::default(),
        Cell::default(),
    );
    if differs(of) {
        push(
            Cell::new("  of all due"),
            Cell::new(show_count(row.trial.counts.due)),
            Cell::new(latency_f64(of.restricted_mean_ns)),
            each(response, &|q| Cell::new(unconditional(q))),
            Cell::new(if of.inf > 0 { "inf".to_owned() } else { latency(response.max_ns) }),
            Cell::default(),
        );
    }
    if verbose {
        let service = &of.service;
        push(
            dim("  service time".to_owned()),
            dim(show_count(service.count)),
            dim(latency_f64(service.mean_ns)),
            each(service, &|q| dim(latency(q.value_ns))),
            dim(latency(service.max_ns)),
            Cell::default(),
        );
        push(
            dim("  samples beyond".to_owned()),
            Cell::default(),
            Cell::default(),
            each(response, &|q| dim(show_count(q.beyond))),
            Cell::default(),
            Cell::default(),
        );
    }
}

/// Rates and latency by stage, for ladders with more than one.
pub(crate) fn stages(shown: &[Shown<'_>]) -> Grid {
    let has_several = shown.len() > 1;
    let mut grid = Grid::new();
    if has_several {
        grid = grid.pin("setting");
    }
    grid = grid.pin("stage").number(1, "reached/s").number(1, "of offered");
    grid = grid.number(1, "n").number(1, "p50").number(1, "p99").number(1, "max");
    for row in shown.iter().filter(|row| row.trial.rates.reached_per_s.len() > 1) {
        for (index, (stage, per_s)) in row.trial.rates.reached_per_s.iter().enumerate() {
            let response =
                row.trial.latency.iter().find(|it| it.stage == *stage).map(|it| &it.response);
            let named = |name: &str| {
                let found = response.and_then(|it| it.quantiles.iter().find(|q| q.name == name));
                found.map_or_else(Cell::default, quantile_cell)
            };
            let mut cells = Vec::new();
            if has_several {
                cells.push(Cell::new(if index == 0 { row.label.as_str() } else { "" }));
            }
            cells.extend([
                Cell::new(clean(stage)),
                Cell::new(rate(*per_s)),
                Cell::new(percent(per_s / row.trial.rates.offered_per_s)),
                Cell::new(response.map(|it| show_count(it.count)).unwrap_or_default()),
                named("p50"),
                named("p99"),
                Cell::new(latency(response.and_then(|it| it.max_ns))),
            ]);
            grid.row(cells);
        }
    }
    grid
}
