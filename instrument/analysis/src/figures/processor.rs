//! Processor time for each transaction, by process.
//!
//! Samples say how many processors a process kept busy over the interval that ends with them, so those at the window's edges
//! count with the part that lies inside. It must never say zero of what was not sampled.

use std::collections::{BTreeMap, BTreeSet};

use model::facts::{MetricSample, NodeFacts};
use model::picture::{is_node, natural_order};
use model::result::{ProcessorOf, ProcessorResult};
use model::series::OWN_PROCESSOR;
use model::{NO_STAMP, Stamp};

use crate::figures::float::to_f64;
use crate::figures::grid::Grid;

/// Of this process and of the nodes, those included of which there is no sample.
pub(crate) fn result(
    metrics: &[MetricSample],
    nodes: &[NodeFacts],
    grid: &Grid,
    committed: u64,
) -> ProcessorResult {
    let (own, name) = OWN_PROCESSOR;
    let is_sample = |it: &&MetricSample| {
        it.name == name && it.at != NO_STAMP && it.value.is_finite() && it.source != "host"
    };
    let samples: Vec<&MetricSample> = metrics.iter().filter(is_sample).collect();
    // All processes are looked at in one round, so a node that comes back has its interval from the others.
    let rounds: Vec<Stamp> =
        samples.iter().map(|it| it.at).collect::<BTreeSet<_>>().into_iter().collect();
    let mut used: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for sample in &samples {
        let from = since(&rounds, sample.at);
        let inside = sample.at.min(grid.end).saturating_sub(from.max(grid.start));
        if inside > 0 {
            let of = used.entry(&sample.source).or_default();
            of.0 += sample.value * to_f64(inside);
            of.1 += to_f64(inside);
        }
    }
    let mut names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    names.extend(samples.iter().map(|it| it.source.as_str()).filter(|source| is_node(source)));
    names.sort_unstable();
    names.dedup();
    names.sort_by_cached_key(|name| natural_order(name));
    let window = to_f64(grid.length());
    let of = |process: &str| {
        let used = used.get(process);
        ProcessorOf {
            process: process.to_owned(),
            sampled: used.map_or(0.0, |(_, ns)| ns / window),
            cores: used.map(|(used, ns)| used / ns),
            ns_per_transaction: used.and_then(|(used, _)| each(*used, committed)),
        }
    };
    let processes: Vec<_> = std::iter::once(own).chain(names).map(of).collect();
    let all: Option<f64> = processes.iter().map(|it| it.ns_per_transaction).sum();
    ProcessorResult { committed, processes, ns_per_transaction: all }
}

/// When the interval of the round at `at` began: at the round before. When the first one began was not recorded; it is taken
/// to have been as long as the next, and where there is no other, to have begun with the trial.
fn since(rounds: &[Stamp], at: Stamp) -> Stamp {
    match (rounds.partition_point(|round| *round < at), rounds) {
        (0, [first, second, ..]) => first.saturating_sub(second - first),
        (0, _) => at.min(0),
        (place, _) => rounds[place - 1],
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn each(used_ns: f64, committed: u64) -> Option<f64> {
    (committed > 0).then(|| used_ns / committed as f64)
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::facts::{MetricSample, NodeFacts};
    use model::result::ProcessorResult;

    use crate::names::metric::metric;
    use crate::testing::Trial;

    const S: i64 = 1_000_000_000;

    /// 1,000 committed each second for 10 s; `cores` of each source by the second in which its sample was taken.
    fn result(sources: &[(&str, &[(i64, f64)])], nodes: &[&str]) -> ProcessorResult {
        let mut trial = Trial::clean();
        for (source, samples) in sources {
            trial.metrics.extend(samples.iter().map(|(second, value)| MetricSample {
                at: second * S,
                source: (*source).to_owned(),
                name: "cpu_cores".to_owned(),
                value: *value,
            }));
        }
        let node = |name: &&str| NodeFacts { name: (*name).to_owned(), ..NodeFacts::default() };
        trial.facts.after.nodes = nodes.iter().map(node).collect();
        trial.result().processor
    }

    fn near(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() < expected * 0.002)
    }

    /// Claim: what a process used in the window is divided by what was committed in it; time before and after it counts as far
    /// as it lies inside, and the host's is nobody's.
    #[test]
    fn time_of_the_window() {
        let steady: Vec<(i64, f64)> = (-2..=13).map(|second| (second, 0.5)).collect();
        // Of the sample at 11 s half lies in the window: 0.5 core for 8 s, 2 cores for 1 s, 4 cores for 1 s.
        let uneven: Vec<(i64, f64)> = [-1, 1, 3, 5, 7, 9, 11]
            .map(|second| (second, [0.5, 4.0][usize::from(second == 11)]))
            .to_vec();
        let of = result(&[("generator", &steady), ("host", &steady)], &[]);
        assert_eq!(of.processes.len(), 1, "{of:?}");
        assert!((9_990..=10_000).contains(&of.committed), "{of:?}");
        assert!(near(of.processes[0].ns_per_transaction, 500_000.0), "{of:?}");
        assert_eq!((of.processes[0].sampled, of.processes[0].cores), (1.0, Some(0.5)));
        let of = result(&[("generator", &uneven), ("node0", &uneven)], &["node0"]);
        assert!(near(of.processes[1].ns_per_transaction, 850_000.0), "{of:?}");
        assert!(near(of.ns_per_transaction, 1_700_000.0), "{of:?}");
    }

    /// Claim: what was not sampled has no value and makes the total none; a node that was down for a while has what it used
    /// while it was sampled, and says of how much that is.
    #[test]
    fn what_was_not_sampled_is_not_zero() {
        let all: Vec<(i64, f64)> = (-1..=12).map(|second| (second, 1.0)).collect();
        let away: Vec<(i64, f64)> =
            all.iter().copied().filter(|(second, _)| !(4..9).contains(second)).collect();
        let nodes = ["node2", "node10", "node1"];
        let of = result(&[("generator", &all), ("node2", &away), ("node10", &all)], &nodes);
        let names: Vec<_> = of.processes.iter().map(|it| it.process.as_str()).collect();
        assert_eq!(names, ["generator", "node1", "node2", "node10"]);
        assert_eq!(of.processes[1].ns_per_transaction.or(of.processes[1].cores), None);
        assert_eq!(of.ns_per_transaction, None);
        let down = &of.processes[2];
        assert!((down.sampled - 0.5).abs() < 1e-9 && down.cores == Some(1.0), "{down:?}");
        assert!(near(down.ns_per_transaction, 500_000.0), "{down:?}");
        let none = result(&[], &[]);
        assert_eq!((none.processes[0].sampled, none.processes[0].cores), (0.0, None));
    }

    /// Claim: where nothing was committed nothing has a price, and the numbers have names for thresholds.
    #[test]
    fn nothing_committed() {
        let mut trial = Trial::clean();
        let sample = |second: i64| MetricSample {
            at: second * S,
            source: "generator".to_owned(),
            name: "cpu_cores".to_owned(),
            value: 1.0,
        };
        trial.metrics = (-1..=11).map(sample).collect();
        let paid = trial.clone().result();
        for name in ["processor.all", "processor.generator"] {
            assert!(near(metric(name, &paid).map(|it| it.value), 1e6), "{name}");
        }
        for row in &mut trial.rows {
            (row.outcome, row.marks[0]) = (Outcome::Unknown, model::NO_STAMP);
        }
        let result = trial.result();
        assert_eq!((result.processor.committed, result.processor.ns_per_transaction), (0, None));
        assert_eq!(result.processor.processes[0].cores, Some(1.0));
        assert_eq!(metric("processor.all", &result), None);
    }
}
