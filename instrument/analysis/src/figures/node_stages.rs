//! Conclusions from the stamps of nodes: throughput and latency by stage, and how far each stage is behind the one before.
//!
//! Rates and latencies are over the whole seconds of the measured window, because the record keeps seconds; what came
//! and what went is of the whole trial, so that nothing is missing that was merely on its way. Histograms are merged;
//! no percentile is averaged. A stage that passes fewer than the one before is a finding and no audit: where a node
//! refuses, or only one of several goes on, that is as it should be.

use std::collections::{BTreeMap, BTreeSet};

use model::facts::TrialFacts;
use model::node_events::{NODE_STAGES_MAX, NodeStage};
use model::quantity::show_count;
use model::result::{
    Distribution, NodeStageColumn, NodeStageGap, NodeStageResult, NodeStagesResult, TrialResult,
};
use record::StageSecond;
use stats::carry::Carry;
use stats::{Histogram, SparseHistogram};

use crate::figures::grid::{Grid, SECOND};
use crate::figures::known::Known;
use crate::figures::latency::distribution;
use crate::figures::part::Part;

/// The most columns of time: each stage keeps a histogram of each.
const COLUMNS_MAX: i64 = 600;
/// The most nodes that are counted.
const NODES_MAX: usize = 10_000;

/// The rows of stages.parquet so far.
#[derive(Clone)]
pub(crate) struct NodeStages {
    stages: Vec<Stage>,
    /// Whole seconds of the measured window.
    window: std::ops::Range<i64>,
    /// Seconds of a column.
    width: i64,
    columns: usize,
}

#[derive(Clone)]
struct Stage {
    declared: NodeStage,
    passed: u64,
    /// Before the first column.
    before: u64,
    /// Of the window.
    latency: Histogram,
    sum_ns: u128,
    by_second: BTreeMap<i64, u64>,
    columns: Vec<(u64, SparseHistogram)>,
    nodes: BTreeSet<String>,
}

impl Part for Option<NodeStages> {
    fn of_trial(trial: &Known<'_>) -> Self {
        NodeStages::new(trial.facts, &trial.grid, trial.last)
    }

    /// It is of seconds of nodes alone.
    fn carry(&mut self, _: &mut Carry<'_>) {}

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        let stages = self.as_ref();
        result.node_stages = stages.map(|it| it.result(trial.facts, trial.percentiles));
    }
}

impl NodeStages {
    /// `None` where the system declares none. `end` is when the last thing of the trial happened.
    pub fn new(facts: &TrialFacts, grid: &Grid, end: i64) -> Option<Self> {
        let declared = &facts.declared.node_stages;
        if declared.is_empty() {
            return None;
        }
        let seconds = (end / SECOND + 1).max(1);
        let width = (seconds - 1) / COLUMNS_MAX + 1;
        let columns = usize::try_from((seconds - 1) / width + 1).expect("at most COLUMNS_MAX");
        let stage = |declared: &NodeStage| Stage {
            declared: declared.clone(),
            passed: 0,
            before: 0,
            latency: Histogram::default(),
            sum_ns: 0,
            by_second: BTreeMap::new(),
            columns: vec![Default::default(); columns],
            nodes: BTreeSet::new(),
        };
        // A second that the window begins in is not all of it.
        let first = grid.start.div_euclid(SECOND) + i64::from(grid.start.rem_euclid(SECOND) > 0);
        Some(Self {
            stages: declared.iter().take(NODE_STAGES_MAX).map(stage).collect(),
            window: first..grid.end.div_euclid(SECOND).max(first),
            width,
            columns,
        })
    }

    /// Adds a row. One of a stage that is not declared is passed over: the file was checked, so it is a later version's.
    pub fn row(&mut self, row: &StageSecond<'_>) {
        let is_it = |stage: &&mut Stage| stage.declared.name == row.stage;
        let Some(stage) = self.stages.iter_mut().find(is_it) else { return };
        stage.passed = stage.passed.saturating_add(row.count);
        if !stage.nodes.contains(row.node) && stage.nodes.len() < NODES_MAX {
            stage.nodes.insert(row.node.to_owned());
        }
        if self.window.contains(&row.second) {
            let count = stage.by_second.entry(row.second).or_default();
            *count = count.saturating_add(row.count);
            stage.sum_ns += u128::from(row.sum_ns);
            for (ns, count) in row.lengths {
                stage.latency.record_n(*ns, *count);
            }
        }
        if row.second < 0 {
            stage.before = stage.before.saturating_add(row.count);
            return;
        }
        // The last column holds all that nodes do after the end of the trial, when they are asked to finish.
        let column = usize::try_from(row.second / self.width).unwrap_or(usize::MAX);
        let (count, lengths) = &mut stage.columns[column.min(self.columns - 1)];
        *count = count.saturating_add(row.count);
        for (ns, count) in row.lengths {
            lengths.record_n(*ns, *count);
        }
    }

    /// The result.
    pub fn result(&self, facts: &TrialFacts, percentiles: &[f64]) -> NodeStagesResult {
        NodeStagesResult {
            from_second: self.window.start,
            seconds: self.seconds(),
            start_ns: 0,
            width_ns: self.width.saturating_mul(SECOND),
            stages: self.stages.iter().map(|stage| self.stage(stage, percentiles)).collect(),
            gaps: self.pairs().iter().map(|(before, behind)| self.gap(before, behind)).collect(),
            way: None,
            read: facts.after.node_events.clone().unwrap_or_default(),
        }
    }

    fn seconds(&self) -> u64 {
        u64::try_from(self.window.end - self.window.start)
            .expect("it ends where it begins or later")
    }

    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn stage(&self, of: &Stage, percentiles: &[f64]) -> NodeStageResult {
        let seconds = self.seconds();
        let count = of.by_second.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let per_second = |count: u64| (seconds > 0).then_some(count as f64);
        let is_every_second = of.by_second.len() as u64 == seconds;
        // A second in which nothing was done has no row.
        let least = if is_every_second { of.by_second.values().min() } else { None };
        NodeStageResult {
            stage: of.declared.name.clone(),
            label: of.declared.label.clone(),
            passed: of.passed,
            count,
            throughput_per_s: per_second(count).map(|count| count / seconds as f64),
            throughput_min_per_s: per_second(least.copied().unwrap_or(0)),
            throughput_max_per_s: per_second(of.by_second.values().max().copied().unwrap_or(0)),
            latency: latency(of, percentiles),
            nodes: of.nodes.len() as u64,
            columns: of.columns.iter().map(|(count, lengths)| column(*count, lengths)).collect(),
        }
    }

    /// Each stage with those behind it: the ones that say so, or the next one where that says nothing.
    fn pairs(&self) -> Vec<(&Stage, Vec<&Stage>)> {
        let said = |stage: &&Stage| !stage.declared.behind.is_empty();
        let mut pairs = Vec::new();
        for (place, before) in self.stages.iter().enumerate() {
            let name = &before.declared.name;
            let behind: Vec<&Stage> =
                self.stages.iter().filter(|it| it.declared.behind == *name).collect();
            let next = self.stages.get(place + 1).filter(|next| !said(next));
            match next {
                _ if !behind.is_empty() => pairs.push((before, behind)),
                Some(next) => pairs.push((before, vec![next])),
                None => {}
            }
        }
        pairs
    }

    /// Stages whose sums do not come out, where all that passes one passes one of those behind it: in words.
    pub fn unbalanced(&self) -> Vec<String> {
        let is_said = |behind: &[&Stage]| behind.iter().all(|it| !it.declared.behind.is_empty());
        let pairs = self.pairs().into_iter().filter(|(_, behind)| is_said(behind));
        let sums = pairs.map(|(before, behind)| {
            let went = behind.iter().fold(0_u64, |sum, it| sum.saturating_add(it.passed));
            (before, behind, went)
        });
        sums.filter(|(before, _, went)| before.passed != *went)
            .map(|(before, behind, went)| {
                format!(
                    "{} passed {}, and {} passed {}",
                    show_count(before.passed),
                    before.declared.name,
                    show_count(went),
                    names(&behind)
                )
            })
            .collect()
    }

    fn gap(&self, before: &Stage, behind: &[&Stage]) -> NodeStageGap {
        let passed = |of: &[&Stage]| of.iter().fold(0_u64, |sum, it| sum.saturating_add(it.passed));
        let went = passed(behind);
        let mut gap = NodeStageGap {
            before: before.declared.name.clone(),
            stage: names(behind),
            came: before.passed,
            went,
            missing: before.passed.saturating_sub(went),
            behind_max: 0,
            behind_max_ns: 0,
        };
        let mut came = before.before;
        let mut went = behind.iter().fold(0_u64, |sum, it| sum.saturating_add(it.before));
        for (index, of_before) in before.columns.iter().enumerate() {
            came = came.saturating_add(of_before.0);
            went = behind.iter().fold(went, |sum, it| sum.saturating_add(it.columns[index].0));
            if came.saturating_sub(went) > gap.behind_max {
                let end = i64::try_from(index + 1).expect("at most COLUMNS_MAX");
                gap.behind_max = came - went;
                gap.behind_max_ns = end.saturating_mul(self.width.saturating_mul(SECOND));
            }
        }
        gap
    }
}

/// Names of stages that stand side by side.
fn names(of: &[&Stage]) -> String {
    let names: Vec<&str> = of.iter().map(|it| it.declared.name.as_str()).collect();
    names.join(" + ")
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn latency(of: &Stage, percentiles: &[f64]) -> Distribution {
    let none = vec![stats::QuantileInterval::default(); percentiles.len()];
    let count = of.latency.count();
    Distribution {
        // The histogram knows lengths to three digits only; the sum is the nodes' own.
        mean_ns: (count > 0).then(|| of.sum_ns as f64 / count as f64),
        variance_ns2: None,
        ..distribution(&of.latency, None, percentiles, &none)
    }
}

fn column(count: u64, lengths: &SparseHistogram) -> NodeStageColumn {
    NodeStageColumn {
        count,
        p50_ns: lengths.quantile(0.5),
        p99_ns: lengths.quantile(0.99),
        max_ns: lengths.moments().max(),
    }
}

#[cfg(test)]
mod tests {
    use model::plan::{Level, ThresholdPlan};
    use model::result::TrialResult;

    use super::*;
    use crate::names::metric::metric;
    use crate::testing::Trial;

    /// A trial of 10 s in which 100 a second are received and, but for seconds 4 to 6, stored; all are in the end.
    fn stalled() -> Trial {
        let mut trial = Trial::clean();
        trial.facts.declared.node_stages =
            ["received", "raft.stored"].map(|name| NodeStage::new(name, "in words")).to_vec();
        for second in 0..10 {
            trial.stage_second(second, "received", "a", 60, &[]);
            trial.stage_second(second, "received", "b", 40, &[]);
            if (4..7).contains(&second) {
                continue;
            }
            let stored = if second == 7 { 400 } else { 100 };
            let slow = if second == 7 { 4_000_000 } else { 1_000 };
            trial.stage_second(second, "raft.stored", "a", stored, &[(slow, stored)]);
        }
        trial
    }

    fn value(result: &TrialResult, name: &str) -> f64 {
        metric(name, result).unwrap_or_else(|| panic!("{name} has no value")).value
    }

    /// Claim: throughput is over whole seconds of the window, a second without a row is none, quantiles are of merged
    /// histograms, and the most that a stage was behind is found with its time although everything came in the end.
    #[test]
    fn a_stall_of_a_stage() {
        let mut trial = stalled();
        // 2.5 s of warm-up: seconds 0 to 2 are not in the window.
        trial.facts.declared.measure_start = 2_500_000_000;
        let result = trial.result();
        let stages = result.node_stages.as_ref().unwrap();
        assert_eq!((stages.from_second, stages.seconds), (3, 7));
        assert_eq!(
            (stages.stages[0].passed, stages.stages[0].count, stages.stages[0].nodes),
            (1000, 700, 2)
        );
        assert_eq!(value(&result, "stage.received.throughput"), 100.0);
        assert_eq!(value(&result, "stage.raft.stored.throughput"), 100.0);
        assert_eq!(value(&result, "stage.raft.stored.throughput.min"), 0.0);
        assert_eq!(value(&result, "stage.raft.stored.throughput.max"), 400.0);
        assert_eq!(value(&result, "stage.raft.stored.count"), 700.0);
        assert_eq!(value(&result, "stage.raft.stored.p50"), 4_000_000.0);
        assert_eq!(value(&result, "stage.raft.stored.min"), 1_000.0);
        assert_eq!(value(&result, "stage.raft.stored.max"), 4_000_000.0);
        assert_eq!(value(&result, "stage.raft.stored.mean"), (400.0 * 4e6 + 300.0 * 1e3) / 700.0);
        assert!(metric("stage.received.p99", &result).is_none(), "it gave no lengths");
        let gap = &stages.gaps[0];
        assert_eq!((gap.came, gap.went, gap.missing), (1000, 1000, 0));
        assert_eq!((gap.behind_max, gap.behind_max_ns), (300, 7_000_000_000));
        let counts: Vec<u64> = stages.stages[1].columns.iter().map(|it| it.count).collect();
        assert_eq!(counts, [100, 100, 100, 100, 0, 0, 0, 400, 100, 100, 0]);
        assert_eq!(stages.stages[1].columns[7].p99_ns, Some(4_000_000));
    }

    /// Claim: what never came out of a stage is a finding and does not make the trial invalid; thresholds on stages hold
    /// or break.
    #[test]
    fn a_finding_is_no_audit() {
        let mut trial = stalled();
        trial.stage_second(9, "received", "a", 25, &[]);
        let promise = |expr: &str| ThresholdPlan::new(expr, Level::Warn);
        trial.thresholds = vec![
            promise("stage.raft.stored.throughput.min > 0/s"),
            promise("stage.raft.stored.p99 < 1s and stage.committed.p99 < 1s"),
            promise("stage.received.p99 < 1s"),
        ];
        let result = trial.result();
        assert_eq!(result.node_stages.as_ref().unwrap().gaps[0].missing, 25);
        assert_eq!(result.verdict, model::result::Verdict::Pass, "{}", result.reason);
        let holds: Vec<_> = result.thresholds.iter().take(3).map(|it| it.holds).collect();
        assert_eq!(holds, [Some(false), Some(true), None]);
        assert!(result.thresholds[2].detail.contains("no node"), "{}", result.thresholds[2].detail);
    }

    /// Claim: a system that declares nothing has no such result; a window without a whole second has no rate.
    #[test]
    fn nothing_to_say() {
        assert!(Trial::clean().result().node_stages.is_none());
        let mut trial = stalled();
        trial.facts.declared.measure_start = 2_500_000_000;
        trial.facts.declared.measure_end = 2_900_000_000;
        let result = trial.result();
        let stages = result.node_stages.unwrap();
        assert_eq!((stages.seconds, stages.stages[0].throughput_per_s), (0, None));
        assert_eq!(stages.stages[0].passed, 1000);
    }
}
