//! The worth of the kernel's stamps of receipts. How late each answer was read stands in its row.

use serde::{Deserialize, Serialize};

/// The receipts of one engine thread on connections that the kernel was asked to stamp. A stamp that was not used is
/// corrected nowhere: the mark is then of when it was read, and its row says that it has no stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiveFacts {
    /// Receipts.
    pub receipts: u64,
    /// Of these, those that it stamped.
    pub stamped: u64,
    /// Of these, those whose stamp was not used because the wall clock was set: it was later than the reading by more than
    /// the clocks' relation may be off, or the clock was found moved when it was read.
    pub impossible: u64,
    /// Marks whose stamp was not used because it lies before their transaction was sent.
    pub early: u64,
    /// The most by which the relation of the kernel's clock to the trial's may have been off, nanoseconds.
    pub clock_error_ns: i64,
    /// The furthest that the kernel's clock was moved against the trial's from one look to the next, nanoseconds.
    pub clock_moved_ns: i64,
}
