//! A run of four nodes that say something of themselves: one is down for a while and has to catch up.

use model::picture::{Lane, LaneState, Lanes, Series};
use model::result::{Exit, RunResult, TrialResult};
use model::series::{SeriesFacts, SeriesUnit};

use crate::html_samples::COLUMNS;
use crate::sample_parts::{run, setting, trial};

/// The run.
pub fn nodes() -> RunResult {
    let mut it = trial("default");
    for of in series() {
        let known = |values: &[f64]| values.iter().copied().filter(|v| v.is_finite()).collect();
        let (min, mean, max): (Vec<f64>, Vec<f64>, Vec<f64>) =
            (known(&of.min), known(&of.mean), known(&of.max));
        let key = format!("{}.{}", of.source, of.name);
        let lowest = min.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = max.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = mean.iter().sum::<f64>() / mean.len() as f64;
        it.resources_last.insert(key.clone(), mean[mean.len() - 1]);
        it.resources.insert(key, (lowest, middle, highest));
    }
    it.series = declared();
    let reason = "every threshold holds and no audit objects";
    run("testnet", Exit::Ok, reason, vec![setting("default", vec![it])])
}

/// What they are. The names say nothing: pages are progress, the queue adds up, and the last is undeclared.
pub fn declared() -> Vec<SeriesFacts> {
    let of = SeriesFacts::of_node;
    vec![
        SeriesFacts::of_host("rss_bytes", "memory in use", SeriesUnit::Bytes)
            .adding_up()
            .foremost(),
        of("desk", "slips on the desk", SeriesUnit::of("slips")).adding_up().foremost(),
        of("turned", "pages turned", SeriesUnit::of("pages")).progress("pages", 1, 10),
        of("peers", "peers", SeriesUnit::of("nodes")).foremost(),
        of("late_votes", "late votes", SeriesUnit::PerSecond).throughput("late votes"),
        of("is_syncing", "is catching up", SeriesUnit::Number),
        SeriesFacts::of_analysis("pages_per_minute", "pages per minute", SeriesUnit::PerMinute),
        SeriesFacts::undeclared("mempool_height"),
    ]
}

/// How its nodes stand: as the analysis says it.
pub fn lanes_of(trial: &TrialResult) -> Vec<Lanes> {
    let series = series_of(trial);
    let nodes = series.iter().filter(|it| it.name == "turned");
    let lanes: Vec<Lane> = nodes
        .enumerate()
        .map(|(node, it)| Lane {
            source: it.source.clone(),
            states: (0..COLUMNS).map(|column| state(node, column)).collect(),
            reached: it.max.clone(),
            behind: it.max.iter().map(|it| it * 0.0 + behind(node, 0)).collect(),
        })
        .collect();
    let (name, unit) = ("turned".to_owned(), "pages".to_owned());
    let lanes = Lanes { name, unit, with_max: 1.0, near_max: 10.0, lanes };
    if lanes.lanes.is_empty() { Vec::new() } else { vec![lanes] }
}

fn is_down(node: usize, column: usize) -> bool {
    node == 3 && (10..17).contains(&column)
}

fn behind(node: usize, column: usize) -> f64 {
    match (node, column) {
        (3, 17..20) => 12.0,
        (3, 20..25) => 5.0,
        _ => 0.0,
    }
}

fn state(node: usize, column: usize) -> LaneState {
    match behind(node, column) {
        _ if is_down(node, column) => LaneState::Absent,
        0.0 => LaneState::With,
        5.0 => LaneState::Near,
        _ => LaneState::Far,
    }
}

/// Its series, for its picture; none of another run.
pub fn series_of(trial: &TrialResult) -> Vec<Series> {
    let is_it = trial.resources.contains_key("node-0.turned");
    let mut all = if is_it { series() } else { Vec::new() };
    // Of few nodes each is drawn, and what all have together.
    all.retain(|it| {
        !["nodes.min", "nodes.max"].contains(&it.source.as_str()) || it.name.ends_with("_minute")
    });
    all
}

fn series() -> Vec<Series> {
    let mut all = Vec::new();
    let mut add = |source: &str, name: &str, value: &dyn Fn(usize) -> f64| {
        let mean: Vec<f64> = (0..COLUMNS).map(value).collect();
        all.push(Series {
            source: source.to_owned(),
            name: name.to_owned(),
            min: mean.iter().map(|value| value * 0.9).collect(),
            max: mean.iter().map(|value| value * 1.1).collect(),
            mean,
        });
    };
    let up = |node: usize, column: usize, value: f64| {
        if is_down(node, column) { f64::NAN } else { value }
    };
    for node in 0..4 {
        let source = format!("node-{node}");
        add(&source, "rss_bytes", &|at| up(node, at, 4e7 + at as f64 * 1e5));
        add(&source, "desk", &|at| up(node, at, (at % 7 * 10) as f64));
        add(&source, "turned", &|at| up(node, at, 100.0 + at as f64 - behind(node, at)).round());
        add(&source, "peers", &|at| up(node, at, 3.0));
        add(&source, "mempool_height", &|at| up(node, at, 4.0));
        add(&source, "late_votes", &|at| up(node, at, at as f64 * 0.25));
        add(&source, "is_syncing", &|at| up(node, at, 0.0));
    }
    add("nodes.sum", "desk", &|at| (at % 7 * if is_down(3, at) { 30 } else { 40 }) as f64);
    for all_nodes in ["nodes.min", "nodes.mean", "nodes.max"] {
        add(all_nodes, "desk", &|at| (at % 7 * 10) as f64);
        add(all_nodes, "peers", &|_| 3.0);
        add(all_nodes, "mempool_height", &|_| 4.0);
    }
    add("nodes.max", "pages_per_minute", &|at| if at < 5 { f64::NAN } else { 60.0 });
    all
}
