//! The measured window in sections: the spread within a trial, as comparisons need it.

use serde::{Deserialize, Serialize};

/// The measured window in sections of equal length, by due time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SectionsResult {
    /// By percentile, in the order asked: how much its natural logarithm grows for each unit of share, around it and as far
    /// as the share is uncertain; null where the samples do not reach so far.
    pub slopes: Vec<Option<f64>>,
    /// The sections, in order; none where the window is too short for them.
    pub all: Vec<SectionResult>,
}

/// One section of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionResult {
    /// Due in it, of all streams.
    pub offered: u64,
    /// Committed in it, whenever they were due, of all streams.
    pub committed: u64,
    /// Processor time of all processes in it, this one included, beyond what its commits would take at the window's mean,
    /// nanoseconds; samples are spread evenly over their second. 0 = nothing was sampled.
    #[serde(default)]
    pub processor_excess_ns: i64,
    /// Due in it, of the measured stream.
    pub due: u64,
    /// Of these, those that reached the final stage.
    pub reached: u64,
    /// The sum of their response times, nanoseconds.
    pub sum_ns: i64,
    /// By percentile: how many of those that were due in it took no longer than the percentile of all due.
    pub within: Vec<u64>,
}
