//! A run of four nodes that say something of themselves: one is down for a while and has to catch up.

use model::picture::Series;
use model::result::{Exit, RunResult, TrialResult};

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
    let reason = "every threshold holds and no audit objects";
    run("testnet", Exit::Ok, reason, vec![setting("default", vec![it])])
}

/// Its series, for its picture; none of another run.
pub fn series_of(trial: &TrialResult) -> Vec<Series> {
    let is_it = trial.resources.contains_key("node-0.height_blocks");
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
    let is_down = |node: usize, column: usize| node == 3 && (10..17).contains(&column);
    let up = |node: usize, column: usize, value: f64| {
        if is_down(node, column) { f64::NAN } else { value }
    };
    for node in 0..4 {
        let source = format!("node-{node}");
        let behind = |column: usize| match (node, column) {
            (3, 17..20) => 12.0,
            (3, 20..25) => 5.0,
            _ => 0.0,
        };
        add(&source, "rss_bytes", &|at| up(node, at, 4e7 + at as f64 * 1e5));
        add(&source, "mempool_transactions", &|at| up(node, at, (at % 7 * 10) as f64));
        add(&source, "height_blocks", &|at| up(node, at, 100.0 + at as f64 - behind(at)).round());
        add(&source, "peers_nodes", &|at| up(node, at, 3.0));
        add(&source, "late_votes_per_second", &|at| up(node, at, at as f64 * 0.25));
        add(&source, "block_syncing_flag", &|at| up(node, at, 0.0));
    }
    add("nodes.sum", "mempool_transactions", &|at| {
        (at % 7 * if is_down(3, at) { 30 } else { 40 }) as f64
    });
    for all_nodes in ["nodes.min", "nodes.mean", "nodes.max"] {
        add(all_nodes, "mempool_transactions", &|at| (at % 7 * 10) as f64);
        add(all_nodes, "peers_nodes", &|_| 3.0);
    }
    add("nodes.max", "blocks_per_minute", &|at| if at < 5 { f64::NAN } else { 60.0 });
    all
}
