//! Flows: users who make one transaction after another, each due after the answer to the one before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Users who began, their later transactions, and how the flows went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowsResult {
    /// Transactions of the main load that fell due in the window by the plan: users who began, and targets beside them.
    pub begun: u64,
    /// Those of them that were sent.
    pub begun_sent: u64,
    /// Transactions that fell due in the window because the answer before them had come.
    pub followed: u64,
    /// All flows together.
    pub all: FlowResult,
    /// Each, in the order of the plan.
    pub flows: Vec<FlowResult>,
    /// Users of whom nothing is told, because more went through flows at once than are followed.
    pub left_out: u64,
}

/// One flow. A user's belongs to the window if it began there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// Users who began it.
    pub begun: u64,
    /// Every transaction of theirs was committed.
    pub completed: u64,
    /// One was rejected, and ended it.
    pub rejected: u64,
    /// By class.
    #[serde(default)]
    pub rejected_by_class: BTreeMap<String, u64>,
    /// One had no answer.
    pub unknown: u64,
    /// One was never sent: no connection, or the end of the drain.
    pub shed: u64,
    /// Per second of the window: completed.
    pub completed_per_s: f64,
    /// From when the first transaction was due to the last answer, what the user thought between them included; those
    /// that were completed: median.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// Longest.
    pub max_ns: Option<i64>,
    /// The p99 of all that began: what was not completed took for ever; null: for ever.
    pub p99_of_all_ns: Option<i64>,
}
