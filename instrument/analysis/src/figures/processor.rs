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
    let (own, _) = OWN_PROCESSOR;
    let Samples { samples, rounds } = &Samples::of(metrics);
    let mut used: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for sample in samples {
        let from = since(rounds, sample.at);
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

/// Of all processes together, in each of so many sections of the window: what was used beyond what the commits of the same
/// samples take at the window's mean. `committed` is of each slot of the grid.
pub(crate) fn excess(
    metrics: &[MetricSample],
    grid: &Grid,
    committed: &[u32],
    sections: usize,
) -> Vec<i64> {
    let Samples { mut samples, rounds } = Samples::of(metrics);
    samples.sort_by_key(|it| it.at);
    let slot_at = |slot: usize| {
        let slot = i64::try_from(slot).unwrap_or(i64::MAX);
        grid.start.saturating_add(slot.saturating_mul(grid.width)).min(grid.end)
    };
    let window = |at: Stamp| at.clamp(grid.start, grid.end);
    // Each round's part of the window, what was used in it, and what was committed.
    let mut all = Vec::new();
    for of_round in samples.chunk_by(|one, other| one.at == other.at) {
        let at = of_round[0].at;
        let (from, to) = (window(since(&rounds, at)), window(at));
        if to <= from {
            continue;
        }
        let used: f64 = of_round.iter().map(|it| it.value * to_f64(to - from)).sum();
        let count = |slot: usize| {
            let overlap = slot_at(slot + 1).min(to) - slot_at(slot).max(from);
            f64::from(committed[slot]) * to_f64(overlap.max(0)) / to_f64(grid.width)
        };
        // The slots that overlap.
        let slot_of = |at: Stamp| usize::try_from((at - grid.start) / grid.width).unwrap_or(0);
        let slots = slot_of(from)..committed.len().min(slot_of(to - 1) + 1);
        all.push((from, to, used, slots.map(count).sum::<f64>()));
    }
    let (used, through) = all.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.2, sum.1 + it.3));
    let each = if through > 0.0 { used / through } else { 0.0 };
    let section = |section: usize| {
        let (start, end) = (
            slot_at(section * grid.slots / sections),
            slot_at((section + 1) * grid.slots / sections),
        );
        let part = |(from, to, used, count): &(Stamp, Stamp, f64, f64)| {
            let overlap = (end.min(*to) - start.max(*from)).max(0);
            (used - each * count) * to_f64(overlap) / to_f64(to - from)
        };
        #[expect(clippy::cast_possible_truncation, reason = "nanoseconds")]
        let ns = all.iter().map(part).sum::<f64>().round() as i64;
        ns
    };
    (0..sections).map(section).collect()
}

/// Samples of processes, and the times at which all of them were looked at in one round: a node that comes back has its
/// interval from the others.
struct Samples<'a> {
    samples: Vec<&'a MetricSample>,
    rounds: Vec<Stamp>,
}

impl<'a> Samples<'a> {
    fn of(metrics: &'a [MetricSample]) -> Self {
        let (_, name) = OWN_PROCESSOR;
        let is_sample = |it: &&MetricSample| {
            it.name == name && it.at != NO_STAMP && it.value.is_finite() && it.source != "host"
        };
        let samples: Vec<&MetricSample> = metrics.iter().filter(is_sample).collect();
        let rounds = samples.iter().map(|it| it.at).collect::<BTreeSet<_>>().into_iter().collect();
        Self { samples, rounds }
    }
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
    /// as it lies inside, and the host's belongs to none.
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

    /// Claim: of a steady load the seconds in which more is used than at the mean have an excess, the others as much less, and
    /// together they have none; where the processor follows the commits there is no excess.
    #[test]
    fn excess_of_sections() {
        let of = |cores: fn(i64) -> f64, commits: fn(usize) -> u32| {
            let sample = |second: i64| MetricSample {
                at: second * S,
                source: "generator".to_owned(),
                name: "cpu_cores".to_owned(),
                value: cores(second),
            };
            let grid = super::Grid::new(0, 10 * S);
            let committed: Vec<u32> =
                (0..grid.slots).map(|it| commits(it * 10 / grid.slots)).collect();
            super::excess(&(-1..=12).map(sample).collect::<Vec<_>>(), &grid, &committed, 20)
        };
        // A sample is of the second before it: half a core for five seconds, then two. A section is half a second.
        let busy = of(|second| [0.5, 2.0][usize::from(second > 5)], |_| 10);
        assert!(busy.iter().sum::<i64>().abs() < 1_000, "{busy:?}");
        assert!(busy[..10].iter().all(|it| (*it + 375_000_000).abs() < 1_000), "{busy:?}");
        assert!(busy[10..].iter().all(|it| (*it - 375_000_000).abs() < 1_000), "{busy:?}");
        let follows = of(
            |second| [0.5, 2.0][usize::from(second > 5)],
            |second| [10, 40][usize::from(second >= 5)],
        );
        assert!(follows.iter().all(|it| it.abs() < 20_000_000), "{follows:?}");
        let grid = super::Grid::new(0, 10 * S);
        assert!(super::excess(&[], &grid, &[], 30).iter().all(|it| *it == 0));
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

    /// Claim: samples in any order and of several sources have the excess that they had when each was looked for among all.
    #[test]
    fn excess_of_samples_in_any_order() {
        let sample = |(n, source): (i64, &str)| MetricSample {
            at: n * 370_000_000 % (11 * S) - S / 3,
            source: source.to_owned(),
            name: "cpu_cores".to_owned(),
            value: [0.25, 1.5, 0.75][usize::try_from(n % 3).unwrap()],
        };
        let metrics: Vec<_> =
            (0..40).flat_map(|n| [(n, "generator"), (n, "node0")].map(sample)).collect();
        let grid = super::Grid::new(S / 7, 9 * S + 5);
        let committed: Vec<u32> = (0..).map(|it| it * 13 % 7).take(grid.slots).collect();
        let found = super::excess(&metrics, &grid, &committed, 6);
        let as_before =
            [-257_396_069, -144_302_090, 195_808_571, -239_228_551, -178_710_708, 623_828_847];
        assert_eq!(found, as_before);
    }

    /// Claim: the work grows with the samples, not with their square: 200,000 of them a nanosecond apart take little time.
    #[test]
    fn many_samples_are_quick() {
        let sample = |at: i64| MetricSample {
            at,
            source: "generator".to_owned(),
            name: "cpu_cores".to_owned(),
            value: 1.0,
        };
        let metrics: Vec<_> = (1..=200_000).map(sample).collect();
        let grid = super::Grid::new(0, 10 * S);
        let began = clock::CpuTime::of_this_thread();
        let found = super::excess(&metrics, &grid, &vec![1; grid.slots], 20);
        let took = clock::CpuTime::of_this_thread().since(began);
        assert_eq!(found.iter().map(|it| it.abs()).sum::<i64>(), 0, "{found:?}");
        assert!(took.as_secs() < 5, "{took:?}");
    }
}
