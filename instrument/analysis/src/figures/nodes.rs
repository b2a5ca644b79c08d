//! All nodes together: what the series of several nodes say at one time, and what those that are progress come to a
//! minute. What may be made of a series is declared with it.
//!
//! Nodes are asked one by one, so "at one time" needs a rule. Time is cut into ticks as long as samples are usually
//! apart. A node's value in a tick is that of its samples there; where it has none, its last one still holds for the
//! next tick and no longer, so a node that is down is in no sum. It must never fill a longer gap.

use std::collections::BTreeMap;

use model::facts::MetricSample;
use model::picture::is_node;
use model::series::{SeriesFacts, SeriesRole, SeriesUnit, declared};
use model::{NO_STAMP, Stamp};

use crate::figures::float::to_f64;
use crate::figures::grid::Grid;

/// Ticks that a value holds beyond its own: one answer may be late, two missing are a gap.
const HOLDS_TICKS: usize = 1;
/// The most ticks: a day of seconds.
const TICKS_MAX: usize = 86_400;
/// A rate per minute is a mean over this long.
const WINDOW_NS: i64 = 20_000_000_000;
/// Shorter than this a mean says nothing of a minute.
const WINDOW_MIN_NS: i64 = 5_000_000_000;
/// How often the distance of "with the others" a node may be behind the highest, and still count as one that does the work
/// of all, not its own catching up: nodes are asked at different instants.
const BEHIND_MAX: f64 = 2.0;

/// The sources of what is said of all nodes.
const SUM: &str = "nodes.sum";
const MEAN: &str = "nodes.mean";
const MIN: &str = "nodes.min";
const MAX: &str = "nodes.max";
const MEDIAN: &str = "nodes.median";

/// A node's value in a tick.
#[derive(Clone, Copy, Debug)]
struct Cell {
    min: f64,
    mean: f64,
    max: f64,
}

/// Ticks of equal length, and what each node's series says in each.
struct Ticks {
    start: Stamp,
    width: i64,
    count: usize,
    /// By name, then by source.
    cells: BTreeMap<String, BTreeMap<String, Vec<Option<Cell>>>>,
}

/// The series of all nodes together.
#[derive(Debug, Default)]
pub(crate) struct OverAll {
    pub samples: Vec<MetricSample>,
    /// The declarations of those that have names of their own.
    pub series: Vec<SeriesFacts>,
}

/// Series of all nodes, made of those of each: their mean, lowest and highest by tick, their sum where they add up, and
/// progress and throughput by the minute.
pub(crate) fn over_all(metrics: &[MetricSample], facts: &[SeriesFacts]) -> OverAll {
    let Some(ticks) = Ticks::of(metrics) else { return OverAll::default() };
    let mut made = Vec::new();
    for (name, nodes) in &ticks.cells {
        let adds_up = declared(facts, name).is_some_and(SeriesFacts::adds_up);
        for tick in 0..ticks.count {
            let cells: Vec<Cell> = nodes.values().filter_map(|cells| cells[tick]).collect();
            if cells.is_empty() {
                continue;
            }
            let mut say =
                |source: &str, value: f64| made.push(ticks.sample(source, name, tick, value));
            let sum: f64 = cells.iter().map(|cell| cell.mean).sum();
            if adds_up {
                say(SUM, sum);
            }
            say(MEAN, sum / to_f64(cells.len()));
            say(MIN, cells.iter().map(|cell| cell.min).fold(f64::INFINITY, f64::min));
            say(MAX, cells.iter().map(|cell| cell.max).fold(f64::NEG_INFINITY, f64::max));
        }
    }
    let mut over_all = OverAll { samples: made, series: Vec::new() };
    ticks.by_the_minute(facts, &mut over_all);
    over_all
}

/// A series by the minute that has not been declared or made already.
fn by_the_minute(unit: &str, facts: &[SeriesFacts], made: &[SeriesFacts]) -> Option<SeriesFacts> {
    let name = format!("{}_per_minute", unit.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    if declared(facts, &name).or(declared(made, &name)).is_some() {
        return None;
    }
    Some(SeriesFacts::of_analysis(&name, &format!("{unit} per minute"), SeriesUnit::PerMinute))
}

/// The last value of each series of nodes, and of all nodes, in the measured window (of all time where none fell inside).
pub(crate) fn last(metrics: &[MetricSample], grid: &Grid) -> BTreeMap<String, f64> {
    let mut last: BTreeMap<(&str, &str), (bool, Stamp, f64)> = BTreeMap::new();
    for sample in metrics.iter().filter(|s| s.value.is_finite() && s.at != NO_STAMP) {
        if matches!(sample.source.as_str(), "generator" | "host") {
            continue;
        }
        let found = (grid.holds(sample.at), sample.at, sample.value);
        let of = last.entry((&sample.source, &sample.name)).or_insert(found);
        if (found.0, found.1) >= (of.0, of.1) {
            *of = found;
        }
    }
    let named = |((source, name), (_, _, value))| (format!("{source}.{name}"), value);
    last.into_iter().map(named).collect()
}

/// How far nodes have come in one series that is progress.
struct Progress<'a> {
    nodes: &'a BTreeMap<String, Vec<Option<Cell>>>,
    /// Of any node, by tick.
    highest: Vec<Option<f64>>,
    /// How far behind a node may be and still count.
    behind_max: f64,
}

impl Ticks {
    fn of(metrics: &[MetricSample]) -> Option<Self> {
        type Points = Vec<(Stamp, f64)>;
        let mut series: BTreeMap<&str, BTreeMap<&str, Points>> = BTreeMap::new();
        let is_of_a_node =
            |s: &&MetricSample| is_node(&s.source) && s.value.is_finite() && s.at != NO_STAMP;
        for sample in metrics.iter().filter(is_of_a_node) {
            let of_name = series.entry(&sample.name).or_default();
            of_name.entry(&sample.source).or_default().push((sample.at, sample.value));
        }
        for points in series.values_mut().flat_map(BTreeMap::values_mut) {
            points.sort_by_key(|(at, _)| *at);
        }
        let all = || series.values().flat_map(BTreeMap::values).flatten().map(|(at, _)| *at);
        let (start, end) = (all().min()?, all().max()?);
        let mut apart: Vec<i64> = series
            .values()
            .flat_map(BTreeMap::values)
            .flat_map(|points| points.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)))
            .collect();
        let middle = apart.len() / 2;
        let usual = if apart.is_empty() { 1 } else { *apart.select_nth_unstable(middle).1 };
        let least = end.saturating_sub(start) / i64::try_from(TICKS_MAX).expect("small") + 1;
        let width = usual.max(least);
        // Samples come at the middle of ticks, so that a late one is not the next tick's.
        let first = start.saturating_sub(width / 2);
        let place = |at: Stamp| {
            usize::try_from(at.saturating_sub(first) / width).expect("not before the first")
        };
        let count = place(end) + 1;
        let cells = series.iter().map(|(name, of_name)| {
            let of_source = of_name.iter().map(|(source, points)| {
                let placed = points.iter().map(|(at, value)| (place(*at), *value));
                ((*source).to_owned(), in_ticks(placed, count))
            });
            ((*name).to_owned(), of_source.collect())
        });
        Some(Self { start: first, width, count, cells: cells.collect() })
    }

    fn sample(&self, source: &str, name: &str, tick: usize, value: f64) -> MetricSample {
        let tick = i64::try_from(tick).expect("at most a day of seconds");
        MetricSample {
            at: self
                .start
                .saturating_add(tick.saturating_mul(self.width))
                .saturating_add(self.width / 2),
            source: source.to_owned(),
            name: name.to_owned(),
            value,
        }
    }

    /// How many ticks a window has, and the fewest of them that say something.
    fn window(&self) -> (usize, usize) {
        let ticks = |ns: i64| usize::try_from(ns / self.width).unwrap_or(1).max(1);
        (ticks(WINDOW_NS), ticks(WINDOW_MIN_NS))
    }

    fn by_the_minute(&self, facts: &[SeriesFacts], into: &mut OverAll) {
        // Several may be progress: the one that is declared first is what nodes keep up with.
        let mut keeps_up_with: Option<Progress<'_>> = None;
        for of in facts {
            if let SeriesRole::Progress { unit, with_max, .. } = &of.role
                && let Some(progress) = self.progress(&of.name, f64::from(*with_max))
            {
                if let Some(made) = by_the_minute(unit, facts, &into.series) {
                    self.growth(&made.name, &progress.highest, &mut into.samples);
                    into.series.push(made);
                }
                keeps_up_with.get_or_insert(progress);
            }
        }
        for of in facts {
            if let SeriesRole::Throughput { unit } = &of.role
                && let Some(nodes) = self.cells.get(&of.name)
                && let Some(made) = by_the_minute(unit, facts, &into.series)
            {
                self.throughput(&made.name, nodes, keeps_up_with.as_ref(), &mut into.samples);
                into.series.push(made);
            }
        }
    }

    fn progress(&self, name: &str, with_max: f64) -> Option<Progress<'_>> {
        let nodes = self.cells.get(name)?;
        let highest = |tick: usize| {
            let of_nodes = nodes.values().filter_map(|cells| cells[tick]);
            of_nodes.map(|cell| cell.max).reduce(f64::max)
        };
        let highest = (0..self.count).map(highest).collect();
        Some(Progress { nodes, highest, behind_max: BEHIND_MAX * with_max })
    }

    /// How fast the highest grows: the rate of all, whoever is catching up with it.
    fn growth(&self, name: &str, highest: &[Option<f64>], made: &mut Vec<MetricSample>) {
        let (window, least) = self.window();
        for (tick, reached) in highest.iter().enumerate() {
            let from = tick.saturating_sub(window);
            let first = (from..tick).find_map(|at| highest[at].map(|reached| (at, reached)));
            if let (Some(reached), Some((at, before))) = (reached, first)
                && tick - at >= least
                && *reached >= before
            {
                let minutes = to_f64(tick - at) * to_f64(self.width) / 60e9;
                made.push(self.sample(MAX, name, tick, (reached - before) / minutes));
            }
        }
    }

    /// The median over the nodes that keep up with the others, of each one's mean over a window.
    fn throughput(
        &self,
        name: &str,
        nodes: &BTreeMap<String, Vec<Option<Cell>>>,
        progress: Option<&Progress<'_>>,
        made: &mut Vec<MetricSample>,
    ) {
        let (window, least) = self.window();
        for tick in 0..self.count {
            let keeps_up = |source: &String| {
                let Some(progress) = progress else { return true };
                let own = progress.nodes.get(source).and_then(|cells| cells[tick]);
                match (own, progress.highest[tick]) {
                    (Some(own), Some(highest)) => highest - own.max <= progress.behind_max,
                    _ => false,
                }
            };
            let from = (tick + 1).saturating_sub(window);
            let mut rates: Vec<f64> = nodes
                .iter()
                .filter(|(source, cells)| cells[tick].is_some() && keeps_up(source))
                .filter_map(|(_, cells)| {
                    let known: Vec<f64> =
                        cells[from..=tick].iter().flatten().map(|cell| cell.mean).collect();
                    (known.len() >= least).then(|| known.iter().sum::<f64>() / to_f64(known.len()))
                })
                .collect();
            rates.sort_by(f64::total_cmp);
            let middle = rates.len() / 2;
            let median = match rates.len() {
                0 => continue,
                odd if odd % 2 == 1 => rates[middle],
                _ => f64::midpoint(rates[middle - 1], rates[middle]),
            };
            made.push(self.sample(MEDIAN, name, tick, median * 60.0));
        }
    }
}

/// Samples, in the order of time, by tick; a tick without any has what the one before has, [`HOLDS_TICKS`] times.
fn in_ticks(placed: impl Iterator<Item = (usize, f64)>, count: usize) -> Vec<Option<Cell>> {
    let mut sums: Vec<Option<(Cell, usize)>> = vec![None; count];
    for (tick, value) in placed {
        let empty = Cell { min: value, mean: 0.0, max: value };
        let (cell, samples) = sums[tick].get_or_insert((empty, 0));
        cell.min = cell.min.min(value);
        cell.max = cell.max.max(value);
        cell.mean += value;
        *samples += 1;
    }
    let mut held = 0;
    let mut last = None;
    sums.into_iter()
        .map(|sum| {
            match sum {
                Some((cell, samples)) => {
                    last = Some(Cell { mean: cell.mean / to_f64(samples), ..cell });
                    held = 0;
                }
                None if held < HOLDS_TICKS => held += 1,
                None => last = None,
            }
            last
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Stamp = 1_000_000_000;

    fn sample(at: Stamp, source: &str, name: &str, value: f64) -> MetricSample {
        MetricSample { at, source: source.into(), name: name.into(), value }
    }

    fn of_node(name: &str) -> SeriesFacts {
        SeriesFacts::of_node(name, name, SeriesUnit::Number)
    }

    /// The values of this source under this name, by second.
    fn said(of: &OverAll, source: &str, name: &str) -> Vec<(i64, f64)> {
        let is_it = |s: &&MetricSample| s.source == source && s.name == name;
        of.samples.iter().filter(is_it).map(|s| (s.at / S, s.value)).collect()
    }

    /// Claim: nodes that were asked at slightly different times add up, a missed answer is bridged once, a node that is
    /// down is in no sum, and neither host nor generator is a node.
    #[test]
    fn sums_of_nodes() {
        let mut samples = Vec::new();
        for second in 0..10_i64 {
            let at = second * S;
            samples.push(sample(at, "host", "size", 1e9));
            samples.push(sample(at, "generator", "size", 1e9));
            samples.push(sample(at + S / 50, "a", "size", 10.0));
            // One answer of b is missing, and it is down from 6 s on.
            if second < 6 && second != 3 {
                samples.push(sample(at + S / 10, "b", "size", 30.0));
            }
        }
        let all = over_all(&samples, &[of_node("size").adding_up()]);
        let sums: Vec<f64> = said(&all, SUM, "size").into_iter().map(|(_, sum)| sum).collect();
        assert_eq!(sums, [40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 10.0, 10.0, 10.0]);
        let last = |source: &str| said(&all, source, "size").last().map(|(_, value)| *value);
        assert_eq!((last(MEAN), last(MIN), last(MAX)), (Some(10.0), Some(10.0), Some(10.0)));
        assert_eq!(said(&all, MEAN, "size")[0].1, 20.0);
        assert_eq!((said(&all, MIN, "size")[0].1, said(&all, MAX, "size")[0].1), (10.0, 30.0));
    }

    /// Claim: what is declared as progress and throughput is said by the minute, whatever it is called: growth is that of
    /// the highest node, throughput that of nodes that keep up. One that catches up fast, from far behind, changes neither.
    #[test]
    fn all_by_the_minute() {
        let mut samples = Vec::new();
        for second in 0..60_i64 {
            let at = second * S;
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let turned = (second / 2) as f64;
            for node in ["a", "b"] {
                samples.push(sample(at, node, "turned", 1_000.0 + turned));
                samples.push(sample(at, node, "height_blocks", 999.0 + turned));
                samples.push(sample(at, node, "read_each_second", 7.0));
            }
            for node in ["c", "d", "e"] {
                samples.push(sample(at, node, "turned", 10.0 * turned));
                samples.push(sample(at, node, "read_each_second", 5_000.0));
            }
        }
        let facts = [
            of_node("turned").progress("pages", 1, 10),
            of_node("height_blocks"),
            of_node("read_each_second").throughput("lines read"),
        ];
        let all = over_all(&samples, &facts);
        let made: Vec<&str> = all.series.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(made, ["pages_per_minute", "lines_read_per_minute"]);
        let pages = said(&all, MAX, "pages_per_minute");
        assert_eq!(pages.first().map(|(at, _)| *at), Some(5), "nothing is said of five seconds");
        assert!(pages.iter().skip(20).all(|(_, rate)| (rate - 30.0).abs() < 1e-9), "{pages:?}");
        let rates = said(&all, MEDIAN, "lines_read_per_minute");
        assert!(rates.len() > 50 && rates.iter().all(|(_, rate)| *rate == 420.0), "{rates:?}");
    }

    /// Claim: of a series that was not declared, whatever its name, only mean, lowest and highest are made.
    #[test]
    fn names_say_nothing() {
        let names = [
            "height_blocks",
            "mempool_transactions",
            "cpu_cores",
            "committed_transactions_per_second",
        ];
        let mut samples = Vec::new();
        for second in 0..60_i64 {
            for (node, name) in
                ["a", "b"].into_iter().flat_map(|node| names.map(|name| (node, name)))
            {
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let value = second as f64;
                samples.push(sample(second * S, node, name, value));
            }
        }
        let all = over_all(&samples, &[]);
        assert!(all.series.is_empty());
        let sources: std::collections::BTreeSet<&str> =
            all.samples.iter().map(|it| it.source.as_str()).collect();
        assert_eq!(sources.into_iter().collect::<Vec<_>>(), [MAX, MEAN, MIN]);
        assert!(all.samples.iter().all(|it| names.contains(&it.name.as_str())));
    }

    /// Claim: nothing, one sample, equal times and times far apart are all the same to it.
    #[test]
    fn few_samples() {
        let facts = [of_node("size").adding_up()];
        let over_all = |metrics: &[MetricSample]| super::over_all(metrics, &facts);
        assert!(over_all(&[]).samples.is_empty());
        assert!(over_all(&[sample(5, "host", "size", 1.0)]).samples.is_empty());
        let one = over_all(&[sample(5, "a", "size", 3.0)]);
        assert_eq!(said(&one, SUM, "size"), [(0, 3.0)]);
        let same = over_all(&[sample(5, "a", "size", 1.0), sample(5, "a", "size", 3.0)]);
        assert_eq!(said(&same, MEAN, "size"), [(0, 2.0)]);
        let far = [
            sample(0, "a", "x", 1.0),
            sample(1, "a", "x", 2.0),
            sample(i64::MAX / 2, "a", "x", 3.0),
        ];
        assert!(over_all(&far).samples.len() < 4 * 5);
        let none = [sample(NO_STAMP, "a", "x", 1.0), sample(1, "a", "x", f64::NAN)];
        assert!(over_all(&none).samples.is_empty());
    }
}
