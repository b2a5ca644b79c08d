//! The nodes' own stamps, concluded: the pipeline stage by stage.

use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::node_events::NodeEventsFacts;

/// The pipeline of a trial, as its nodes stamped it. All nodes together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeStagesResult {
    /// Whole seconds of the measured window, over which rates and latencies are: the first, after the trial's start.
    pub from_second: i64,
    /// How many; 0 if the window holds none, and then there are no rates and latencies.
    pub seconds: u64,
    /// Start of the first column, nanoseconds after the trial's start.
    pub start_ns: i64,
    /// Length of a column, a whole number of seconds.
    pub width_ns: i64,
    /// Stages in the order of the pipeline.
    pub stages: Vec<NodeStageResult>,
    /// Neighbouring stages, in the same order.
    pub gaps: Vec<NodeStageGap>,
    /// The way of sampled transactions from due to the final stage, leg by leg; absent: the system declares no legs, or no
    /// transaction was followed.
    pub way: Option<WayResult>,
    /// The result of reading the nodes' events.
    pub read: NodeEventsFacts,
}

/// The time of followed transactions from when each was due to its mark of the final stage, divided without a rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WayResult {
    /// Transactions of the measured window that are divided: they reached the final stage and have a span of each leg.
    pub transactions: u64,
    /// Followed transactions that reached the final stage and lack a span of some leg.
    pub incomplete: u64,
    /// Those whose stamps contradict the order of the legs: no leg is made longer or shorter to hide it.
    pub disordered: u64,
    /// The time of all that are divided, from due to the final stage: the sum of all legs.
    pub total_ns: u64,
    /// Legs in the order of the way.
    pub legs: Vec<LegResult>,
}

/// A leg.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LegResult {
    /// Its name.
    pub leg: String,
    /// The node stage that it ends with; empty: it ends where the transaction was sent, or with the mark of the final stage.
    pub stage: String,
    /// The time of all transactions in it.
    pub sum_ns: u64,
    /// Of `total_ns`, a share of one.
    pub share: Option<f64>,
    /// A transaction: mean.
    pub mean_ns: Option<f64>,
    /// p50, to three digits.
    pub p50_ns: Option<i64>,
    /// p99, to three digits.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
}

/// A stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeStageResult {
    /// Its name.
    pub stage: String,
    /// In words.
    pub label: String,
    /// Transactions that passed it in the whole trial.
    pub passed: u64,
    /// Of them, those in the whole seconds of the measured window.
    pub count: u64,
    /// A second.
    pub throughput_per_s: Option<f64>,
    /// In the second with the fewest.
    pub throughput_min_per_s: Option<f64>,
    /// In the second with the most.
    pub throughput_max_per_s: Option<f64>,
    /// How long it took, as the nodes say, in the same seconds: one sample an event. To three digits; the mean is exact.
    pub latency: Distribution,
    /// Nodes that stamped it.
    pub nodes: u64,
    /// By column of time.
    pub columns: Vec<NodeStageColumn>,
}

/// A column of time of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStageColumn {
    /// Transactions that passed.
    pub count: u64,
    /// How long it took: p50.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
}

/// Two neighbouring stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStageGap {
    /// The earlier.
    pub before: String,
    /// The later.
    pub stage: String,
    /// Transactions that passed the earlier in the whole trial.
    pub came: u64,
    /// Transactions that passed the later.
    pub went: u64,
    /// How many never came out of it, at least: came − went, if that is above zero.
    pub missing: u64,
    /// The most that the later was behind the earlier at the end of a column.
    pub behind_max: u64,
    /// When that was, nanoseconds after the trial's start.
    pub behind_max_ns: i64,
}
