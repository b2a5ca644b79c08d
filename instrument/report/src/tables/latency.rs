//! Latency tables: quantiles with intervals, beside those that never got an answer, and by stage.
//!
//! It must never show a quantile without the number of samples it rests on, nor the answered alone where some were
//! not answered: a percentile of the survivors is shown together with the one over all that were due.

use model::quantity::show_count;
use model::result::{CombinedResult, Distribution, LatencyResult, Quantile, TrialResult};

use super::{Shown, is_unsent, marked};
use crate::figures::{
    NONE, interval, interval_bare, is_thin, latency, latency_f64, percent, plural, quantile, rate,
    span_ns, unconditional, whole_ns,
};
use crate::grid::{Cell, Grid, Source};
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

/// The meaning of times of all due, where they differ from what reached the stage.
pub(crate) fn said_of_all_due<'a>(
    latencies: impl Iterator<Item = &'a LatencyResult>,
) -> Option<String> {
    let (refused, missing) = latencies.fold((0_u64, 0_u64), |(refused, missing), it| {
        (refused.saturating_add(it.refused), missing.saturating_add(it.missing))
    });
    let refused = (refused > 0).then(|| {
        format!("the {} that were refused, timed until that answer came", show_count(refused))
    });
    let missing = (missing > 0).then(|| {
        format!(
            "the {} without an answer, as infinitely long (inf); restricted: the mean with the timeout for these",
            show_count(missing)
        )
    });
    let said: Vec<String> = refused.into_iter().chain(missing).collect();
    (!said.is_empty()).then(|| format!("times of all due include {}", said.join(", and ")))
}

/// Response times that the windows do not exclude, though none was seen: of windows of different lengths the shortest.
pub(crate) fn said_of_the_unseen<'a>(
    latencies: impl Iterator<Item = &'a LatencyResult>,
) -> Option<String> {
    let every = latencies.filter_map(|it| it.not_excluded_ns).min()?;
    Some(format!(
        "no interval holds what did not happen in the window: of a stall or a slow spell that was not seen, up to one in {} is not excluded (the rule of three)",
        span_ns(every)
    ))
}

/// The meaning of the rows over several trials, where there are any.
pub(crate) fn said_of_all_trials(shown: &[Shown<'_>]) -> Option<&'static str> {
    shown.iter().any(|row| row.setting.combined.is_some()).then_some(
        "all trials: 95 % intervals over repetitions, the wider of how the trials differ (Student's t) and how uncertain each is; thresholds are judged by each trial",
    )
}

/// The row of all trials of a setting, below the last of them: its label, and where in the document it stands.
pub(super) fn of_all_trials<'a>(
    shown: &'a [Shown<'a>],
    index: usize,
) -> Option<(String, String, &'a CombinedResult)> {
    let row = &shown[index];
    let combined = row.setting.combined.as_ref()?;
    if shown.get(index + 1).is_some_and(|next| std::ptr::eq(next.setting, row.setting)) {
        return None;
    }
    let (setting, _) = row.pointer.rsplit_once("/trials/")?;
    let label = format!("{} all {}", clean(&row.setting.key), plural(combined.trials, "trial"));
    Some((label, format!("{setting}/combined"), combined))
}

/// The interval of a quantile over repetitions.
pub(super) fn combined_quantile(of: &CombinedResult, name: &str, at: &str) -> Cell {
    let Some(index) = of.quantiles.iter().position(|it| it.name == name) else {
        return Cell::default();
    };
    let (it, at) = (&of.quantiles[index], format!("{at}/quantiles/{index}"));
    let ends = Source::Between(format!("{at}/low_ns"), format!("{at}/high_ns"));
    Cell::painted(interval(None, it.low_ns, it.high_ns), Paint::Dim).of(ends)
}

/// One trial: a row a quantile.
pub(crate) fn quantiles_of_one(row: &Shown<'_>) -> Grid {
    let latency = final_latency(row.trial).filter(|_| !is_unsent(row.trial));
    let Some(latency) = latency else { return Grid::new() };
    let (response, service) = (&latency.response, &latency.service);
    let at = row.latency_at();
    let differs = differs(latency);
    let mut grid = Grid::new().pin("");
    grid = grid.number(1, if differs { "committed" } else { "value" }).number(1, "95% interval");
    let of_answered = latency.answered.as_ref().filter(|_| differs);
    if of_answered.is_some() {
        grid = grid.number(1, "answered");
    }
    if differs {
        grid = grid.number(1, "of all due");
    }
    grid = grid.number(1, "service time").number(1, "samples beyond");
    let mut push =
        |name: &str, value: Cell, interval: Cell, all: Cell, sent: Cell, beyond: Cell| {
            let dim = |cell: Cell| Cell { paint: Paint::Dim, ..cell };
            let mut cells = vec![Cell::new(name), value, dim(interval)];
            if let Some(answered) = of_answered {
                cells.push(answered_cell(answered, name, &at));
            }
            if differs {
                cells.push(all);
            }
            cells.extend([dim(sent), dim(beyond)]);
            grid.row(cells);
        };
    push(
        "mean",
        Cell::new(latency_f64(response.mean_ns)).at(format!("{at}/response/mean_ns")),
        mean_interval(response, &at, interval),
        mean_of_all_due(latency, &at),
        Cell::new(latency_f64(service.mean_ns)).at(format!("{at}/service/mean_ns")),
        Cell::default(),
    );
    for (index, q) in response.quantiles.iter().enumerate() {
        let place = format!("{at}/response/quantiles/{index}");
        push(
            &q.name,
            quantile_cell(q, &place),
            quantile_interval(q, &place, interval),
            Cell::new(unconditional(q)).at(format!("{place}/unconditional_ns")),
            service_cell(service, &q.name, &at),
            Cell::new(show_count(q.beyond)).at(format!("{place}/beyond")),
        );
    }
    push(
        "max",
        max_cell(response, &format!("{at}/response")),
        Cell::default(),
        max_of_all_due(latency, &at),
        max_cell(service, &format!("{at}/service")),
        Cell::default(),
    );
    if latency.missing > 0 {
        let none = Cell::default;
        let restricted = restricted_mean_cell(latency, &at);
        push("restricted", none(), none(), restricted, none(), none());
    }
    marked(grid, std::slice::from_ref(row))
}

/// The same number of the answered.
fn answered_cell(answered: &Distribution, name: &str, at: &str) -> Cell {
    match name {
        "mean" => Cell::new(latency_f64(answered.mean_ns)).at(format!("{at}/answered/mean_ns")),
        "max" => max_cell(answered, &format!("{at}/answered")),
        _ => {
            let index = answered.quantiles.iter().position(|q| q.name == name);
            index.map_or_else(Cell::default, |index| {
                let place = format!("{at}/answered/quantiles/{index}");
                quantile_cell(&answered.quantiles[index], &place)
            })
        }
    }
}

/// A quantile of the service time, without a mark: it stands beside the response time, never instead of it.
fn service_cell(service: &Distribution, name: &str, at: &str) -> Cell {
    let index = service.quantiles.iter().position(|q| q.name == name);
    index.map_or_else(Cell::default, |index| {
        Cell::new(latency(service.quantiles[index].value_ns))
            .at(format!("{at}/service/quantiles/{index}/value_ns"))
    })
}

fn max_cell(of: &Distribution, at: &str) -> Cell {
    Cell::new(latency(of.max_ns)).at(format!("{at}/max_ns"))
}

/// The largest of all due: infinite as soon as one was not answered.
fn max_of_all_due(of: &LatencyResult, at: &str) -> Cell {
    match of.due_max_ns {
        None => Cell::new("inf"),
        max => Cell::new(latency(max)).at(format!("{at}/due_max_ns")),
    }
}

/// The mean of all due: infinite likewise.
pub(crate) fn mean_of_all_due(of: &LatencyResult, at: &str) -> Cell {
    match of.due_mean_ns {
        None => Cell::new("inf"),
        mean => Cell::new(latency_f64(mean)).at(format!("{at}/due_mean_ns")),
    }
}

/// The mean with the timeout for those that were not answered: smaller than the mean of all due, and labelled so.
fn restricted_mean_cell(of: &LatencyResult, at: &str) -> Cell {
    Cell::new(latency_f64(of.restricted_mean_ns)).at(format!("{at}/restricted_mean_ns"))
}

type IntervalForm = fn(Option<i64>, Option<i64>, Option<i64>) -> String;

fn quantile_interval(q: &Quantile, at: &str, form: IntervalForm) -> Cell {
    let ends = Source::Between(format!("{at}/low_ns"), format!("{at}/high_ns"));
    Cell::new(form(q.value_ns, q.low_ns, q.high_ns)).of(ends)
}

/// The interval of the mean in one of the two forms.
fn mean_interval(of: &Distribution, at: &str, form: IntervalForm) -> Cell {
    let whole = |ns: Option<f64>| ns.and_then(whole_ns);
    let ends = Source::Between(
        format!("{at}/response/mean_low_ns"),
        format!("{at}/response/mean_high_ns"),
    );
    Cell::new(form(whole(of.mean_ns), whole(of.mean_low_ns), whole(of.mean_high_ns))).of(ends)
}

fn quantile_cell(q: &Quantile, at: &str) -> Cell {
    let paint = if is_thin(q) { Paint::Dim } else { Paint::Plain };
    Cell::painted(quantile(q), paint).at(format!("{at}/value_ns"))
}

/// Several trials: a row a trial, its intervals below it, and the quantiles over all that were due where they differ.
///
/// `bare` intervals have no unit: they stand below the value that shows it.
pub(crate) fn quantiles_of_several(shown: &[Shown<'_>], verbose: bool, bare: bool) -> Grid {
    let form: IntervalForm = if bare { interval_bare } else { interval };
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
    for (index, row) in shown.iter().enumerate() {
        if let Some(latency) = final_latency(row.trial) {
            rows_of_trial(row, latency, &names, verbose, form, &mut grid);
        }
        if let Some((label, at, of)) = of_all_trials(shown, index) {
            let ends = Source::Between(format!("{at}/mean_low_ns"), format!("{at}/mean_high_ns"));
            let whole = |ns: Option<f64>| ns.and_then(whole_ns);
            let mean = interval(None, whole(of.mean_low_ns), whole(of.mean_high_ns));
            let mut cells =
                vec![Cell::new(label), Cell::default(), Cell::painted(mean, Paint::Dim).of(ends)];
            cells.extend(names.iter().map(|name| combined_quantile(of, name, &at)));
            cells.extend([Cell::default(), Cell::default()]);
            grid.row(cells);
        }
    }
    marked(grid, shown)
}

fn rows_of_trial(
    row: &Shown<'_>,
    of: &LatencyResult,
    names: &[&str],
    verbose: bool,
    form: IntervalForm,
    grid: &mut Grid,
) {
    let response = &of.response;
    let at = row.latency_at();
    let each = |distribution: &Distribution, show: &dyn Fn(&Quantile, &str) -> Cell| -> Vec<Cell> {
        let find = |name: &&str| {
            let index = distribution.quantiles.iter().position(|q| q.name == **name)?;
            let place = format!("{at}/response/quantiles/{index}");
            Some(show(&distribution.quantiles[index], &place))
        };
        names.iter().map(|name| find(name).unwrap_or_default()).collect()
    };
    let dim = |cell: Cell| Cell { paint: Paint::Dim, ..cell };
    let mut push =
        |label: Cell, n: Cell, mean: Cell, quantiles: Vec<Cell>, max: Cell, lag: Cell| {
            grid.row([vec![label, n, mean], quantiles, vec![max, lag]].concat());
        };
    let count = |count: u64, rest: &str| Cell::new(show_count(count)).at(format!("{at}/{rest}"));
    let mean = |ns: Option<f64>, rest: &str| Cell::new(latency_f64(ns)).at(format!("{at}/{rest}"));
    push(
        Cell::new(row.label.as_str()),
        count(response.count, "response/count"),
        mean(response.mean_ns, "response/mean_ns"),
        each(response, &quantile_cell),
        max_cell(response, &format!("{at}/response")),
        dim(own_lag_cell(row)),
    );
    push(
        dim(Cell::new("  95% interval")),
        Cell::default(),
        dim(mean_interval(response, &at, form)),
        each(response, &|q, place| dim(quantile_interval(q, place, form))),
        Cell::default(),
        Cell::default(),
    );
    if differs(of) {
        push(
            Cell::new("  of all due"),
            Cell::new(show_count(row.trial.counts.due)).at(row.at("counts/due")),
            mean_of_all_due(of, &at),
            each(response, &|q, place| {
                Cell::new(unconditional(q)).at(format!("{place}/unconditional_ns"))
            }),
            max_of_all_due(of, &at),
            Cell::default(),
        );
    }
    if verbose && of.missing > 0 {
        let restricted = restricted_mean_cell(of, &at);
        let none = names.iter().map(|_| Cell::default()).collect();
        let label = dim(Cell::new("  restricted"));
        push(label, Cell::default(), restricted, none, Cell::default(), Cell::default());
    }
    if verbose {
        let service = &of.service;
        push(
            dim(Cell::new("  service time")),
            dim(count(service.count, "service/count")),
            dim(mean(service.mean_ns, "service/mean_ns")),
            names.iter().map(|name| dim(service_cell(service, name, &at))).collect(),
            dim(max_cell(service, &format!("{at}/service"))),
            Cell::default(),
        );
        push(
            dim(Cell::new("  samples beyond")),
            Cell::default(),
            Cell::default(),
            each(response, &|q, place| {
                dim(Cell::new(show_count(q.beyond)).at(format!("{place}/beyond")))
            }),
            Cell::default(),
            Cell::default(),
        );
    }
}

fn own_lag_cell(row: &Shown<'_>) -> Cell {
    let quantiles = &row.trial.own_lag.quantiles;
    quantiles.iter().position(|q| q.name == "p99").map_or_else(Cell::default, |index| {
        Cell::new(latency(quantiles[index].value_ns))
            .at(row.at(&format!("own_lag/quantiles/{index}/value_ns")))
    })
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
            let place = row.trial.latency.iter().position(|it| it.stage == *stage);
            let response = place.map(|place| &row.trial.latency[place].response);
            let at = row.at(&format!("latency/{}/response", place.unwrap_or(0)));
            let named = |name: &str| {
                let all = response.map_or(&[][..], |it| &it.quantiles);
                let index = all.iter().position(|q| q.name == name);
                index.map_or_else(Cell::default, |index| {
                    quantile_cell(&all[index], &format!("{at}/quantiles/{index}"))
                })
            };
            let reached = row.at(&format!("rates/reached_per_s/{index}/1"));
            let of_offered = Source::Share(vec![reached.clone()], row.at("rates/offered_per_s"));
            let mut cells = Vec::new();
            if has_several {
                cells.push(Cell::new(if index == 0 { row.label.as_str() } else { "" }));
            }
            let of_load = match row.trial.load_goes_to(stage) {
                true => [
                    Cell::new(rate(*per_s)).at(reached),
                    Cell::new(percent(per_s / row.trial.rates.offered_per_s)).of(of_offered),
                ],
                false => [Cell::new(NONE), Cell::new(NONE)],
            };
            cells.push(Cell::new(clean(stage)));
            cells.extend(of_load);
            cells.extend([
                response.map_or_else(Cell::default, |it| {
                    Cell::new(show_count(it.count)).at(format!("{at}/count"))
                }),
                named("p50"),
                named("p99"),
                response.map_or_else(|| Cell::new(latency(None)), |it| max_cell(it, &at)),
            ]);
            grid.row(cells);
        }
    }
    marked(grid, shown)
}
