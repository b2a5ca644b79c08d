//! A trial whose load goes up and down in steps: what each step was offered, and what came of it.

use serde::{Deserialize, Serialize};

use super::Counts;

/// The steps of a trial, in the order of time, and what they say together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StepsResult {
    /// The steps.
    pub steps: Vec<StepResult>,
    /// Index of the last step, on the way up, that kept up before the first that did not; null = none such.
    pub knee: Option<usize>,
    /// Index of the step with the most goodput; null = nothing was committed.
    pub peak: Option<usize>,
    /// Whether goodput at the highest offered load is less than four fifths of the most that there was.
    pub collapses: bool,
    /// Index of the first step on the way down that keeps up again, where some did not; null = none.
    pub recovers: Option<usize>,
    /// The same in words; empty = every step kept up.
    pub words: String,
}

/// One step. Counts and times are of what was due in it, rates are over its length.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StepResult {
    /// Its start, nanoseconds after the trial's.
    pub start_ns: i64,
    /// Its length.
    pub length_ns: i64,
    /// Load generators that were there, where the plan counts them.
    pub generators: Option<u64>,
    /// Clients of a closed loop that were there.
    pub clients: Option<u64>,
    /// The plan's rate; null for closed loops.
    pub planned_per_s: Option<f64>,
    /// Due ÷ length.
    pub offered_per_s: f64,
    /// Reached the final stage ÷ length, whenever it was due, in a time as long as the step that begins when the fastest
    /// twentieth of the step's transactions got there: what the system got through. More than was offered where it works
    /// on what was left over.
    pub goodput_per_s: f64,
    /// How what was due in it ended, of the main load.
    pub counts: Counts,
    /// Response time to the final stage of what was due in it, of the measured stream: p50 of those that got there.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// Outstanding (due and not ended) at its end.
    pub outstanding: i64,
    /// Whether goodput was 98 % of what was offered, or as much of what was due was committed in the end and goodput was
    /// 90 %: a system that commits in blocks loses up to a block at each end of a step.
    pub keeps_up: bool,
    /// Passed each node stage per second, in the whole seconds of the step, in the order of the pipeline; empty where it
    /// holds none.
    #[serde(default)]
    pub node_stages_per_s: Vec<(String, f64)>,
}
