//! Transactions that have something in common: kind, code, error.

use serde::{Deserialize, Serialize};

use super::Counts;

/// Counts and latency of a group of transactions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GroupResult {
    /// The values that they share.
    pub name: String,
    /// How they ended.
    pub counts: Counts,
    /// Response time to the final answer: p50, p99, max of those that got one.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
}

/// An error text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ErrorResult {
    /// The text.
    pub text: String,
    /// Its class.
    pub class: String,
    /// How often.
    pub count: u64,
    /// First time, nanoseconds after the trial's start.
    pub first_ns: i64,
    /// Last time.
    pub last_ns: i64,
    /// One transaction that had it.
    pub example_tx: u64,
}
