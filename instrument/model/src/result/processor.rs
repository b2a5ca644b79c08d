//! Processor time of transactions, as a result.

use serde::{Deserialize, Serialize};

/// Processor time over the measured window for each transaction that was committed in it, by process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorResult {
    /// Transactions of all streams that were committed within the measured window, whenever they fell due: what the time is
    /// divided by.
    pub committed: u64,
    /// This process, then each node with the processes that it started.
    pub processes: Vec<ProcessorOf>,
    /// Of all of them together, nanoseconds for each transaction; null = one of them was not sampled, or nothing was committed.
    pub ns_per_transaction: Option<f64>,
}

/// Processor time of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorOf {
    /// `generator`, which is this process with its clients, or a node's name.
    pub process: String,
    /// The part of the measured window that samples are of, 0 to 1; a node that is down is not sampled.
    pub sampled: f64,
    /// Processors that it kept busy, mean over the measured window as far as it was sampled; null = it was not.
    pub cores: Option<f64>,
    /// Its processor time in the measured window, as far as it was sampled, for each transaction, nanoseconds; null = it was
    /// not, or nothing was committed.
    pub ns_per_transaction: Option<f64>,
}
