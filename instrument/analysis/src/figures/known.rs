//! Everything about a trial that is known before its first row.

use std::time::Duration;

use model::facts::{MetricSample, TrialFacts};
use model::plan::{LoadPlan, SettingPlan, ThresholdPlan};
use model::{FinalStages, Stamp};

use crate::figures::grid::Grid;

/// The plan and the facts of a trial, and the times and stages that they make.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub setting: &'a SettingPlan,
    pub thresholds: &'a [ThresholdPlan],
    /// Fractions of one to give quantiles for.
    pub percentiles: &'a [f64],
    pub facts: &'a TrialFacts,
    /// Series of the generator, the host and the nodes.
    pub metrics: &'a [MetricSample],
    /// The measured window.
    pub grid: Grid,
    /// The stream whose latency is the result: the probe's if there is one.
    pub stream: u8,
    /// The final stage of each stream.
    pub ends: FinalStages,
    /// The final stage of the stream whose latency is the result.
    pub final_stage: usize,
    /// The longest time from a due time to the end of the drain, ns.
    pub patience_ns: i64,
    /// The end of the drain, or, where a crash kept it from being written down, the latest that was planned.
    pub last: Stamp,
}

impl<'a> Known<'a> {
    pub fn of(
        setting: &'a SettingPlan,
        thresholds: &'a [ThresholdPlan],
        percentiles: &'a [f64],
        facts: &'a TrialFacts,
        metrics: &'a [MetricSample],
    ) -> Self {
        let load = &setting.load;
        let grid = window(facts, load);
        let ends = facts.declared.final_stages();
        let stream = u8::from(setting.probe.is_some());
        let patience_ns = ns(load.drain_max + load.timeout);
        let planned_last = grid.end.saturating_add(patience_ns);
        let drain_end = facts.load.drain_end;
        // NO_STAMP is negative.
        let last = if drain_end <= 0 { planned_last } else { drain_end.max(grid.end) };
        let final_stage = ends.of(stream);
        Self {
            setting,
            thresholds,
            percentiles,
            facts,
            metrics,
            grid,
            stream,
            ends,
            final_stage,
            patience_ns,
            last,
        }
    }

    /// The name of a stage of the ladder; empty where there is none.
    pub fn stage_name(&self, stage: usize) -> String {
        self.facts.declared.stages.get(stage).cloned().unwrap_or_default()
    }
}

/// The measured window: as the trial recorded it, or, where a crash kept it from doing so, as planned.
fn window(facts: &TrialFacts, load: &LoadPlan) -> Grid {
    let recorded = Grid::new(facts.measure_start(), facts.measure_end());
    if facts.complete || recorded.slots > 0 {
        return recorded;
    }
    Grid::new(ns(load.warmup), ns(load.warmup.saturating_add(load.duration)))
}

/// Nanoseconds; the largest number for what is longer than 292 years.
pub(crate) fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
