//! How late what had arrived was read: what the engine counts of the receipts that the kernel stamped.

use serde::{Deserialize, Serialize};

/// How late one engine thread read what had arrived, of a share of its connections: a mark's stamp less the kernel's
/// stamp of the last byte of that receipt, for each measured transaction that was committed by such a receipt.
///
/// Histograms are lists of the largest value in a bucket (0.8 % wide), in nanoseconds, and how many lie in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiveFacts {
    /// Receipts on connections for which the kernel was asked for stamps.
    pub receipts: u64,
    /// Of these, those that it stamped.
    pub stamped: u64,
    /// Of these, those that it had stamped after they were read, by more than the clocks' relation may be off: a wall
    /// clock that was set. They are in no histogram.
    pub impossible: u64,
    /// The most by which the relation of the kernel's clock to the trial's may have been off, nanoseconds.
    pub clock_error_ns: i64,
    /// The furthest that the kernel's clock was moved against the trial's from one look to the next, nanoseconds.
    pub clock_moved_ns: i64,
    /// Receive lag.
    pub lag: Vec<(i64, u64)>,
    /// Response times of the same transactions.
    pub response: Vec<(i64, u64)>,
    /// The same less the receive lag of each.
    pub without: Vec<(i64, u64)>,
}
