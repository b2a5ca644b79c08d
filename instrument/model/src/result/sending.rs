//! How transactions left: how often each, and in what company.

use serde::{Deserialize, Serialize};

/// How often transactions were sent: of the main load, those that fell due in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptsResult {
    /// How often the plan lets one be sent; 1 where nothing is sent again.
    pub allowed: u64,
    /// Transactions that were sent.
    pub sent: u64,
    /// Of them, those that were sent more than once.
    pub resent: u64,
    /// Times that they were sent, all together.
    pub total: u64,
    /// Mean number of times; null if nothing was sent.
    pub mean: Option<f64>,
    /// The most that any was sent.
    pub max: u64,
}

/// Batches of the whole trial, warm-up and drain included. The four reasons add up to the number of batches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchesResult {
    /// Batches.
    pub count: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Mean number of transactions in one; null if there was none.
    pub size_mean: Option<f64>,
    /// Transactions in the largest; null if there was none, or an earlier version recorded the trial and did not say.
    pub size_max: Option<u64>,
    /// Left because as many waited as a batch holds.
    pub full: u64,
    /// Left because a batch had come back while something waited.
    pub completion: u64,
    /// Left because the oldest had waited for the longest delay.
    pub delay: u64,
    /// Left because the load was over.
    pub drain: u64,
}
