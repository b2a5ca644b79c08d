//! A trial over time: by second, and in columns that a page draws.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One second of a trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SecondResult {
    /// Second after the trial's start.
    pub second: i64,
    /// Due in it.
    pub offered: u64,
    /// Reached the final stage in it.
    pub committed: u64,
    /// Ended otherwise in it.
    pub failed: u64,
    /// Of those that were due in it and committed: response time p50.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// Outstanding at its end (due and not ended).
    pub outstanding: i64,
}

/// A trial in columns of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Start of the first column, nanoseconds after the trial's start.
    pub start_ns: i64,
    /// Length of a column.
    pub width_ns: i64,
    /// Length of the last, which reaches to the trial's end: up to two of the others, so that a rate in it is of as many
    /// transactions; 0 in a document of an earlier version.
    #[serde(default)]
    pub last_ns: i64,
    /// At most [`TIMELINE_COLUMNS_MAX`]; all streams together, except the latencies.
    pub columns: Vec<TimelineColumn>,
}

impl Timeline {
    /// The end of the last column, nanoseconds after the trial's start.
    #[must_use]
    pub fn end_ns(&self) -> i64 {
        let before = i64::try_from(self.columns.len()).unwrap_or(i64::MAX).saturating_sub(1);
        let last = if self.last_ns > 0 { self.last_ns } else { self.width_ns };
        self.start_ns.saturating_add(self.width_ns.saturating_mul(before)).saturating_add(last)
    }
}

/// The most columns that a timeline may have.
pub const TIMELINE_COLUMNS_MAX: usize = 1200;

/// A column of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineColumn {
    /// Due in it.
    pub offered: u64,
    /// Sent in it.
    pub sent: u64,
    /// Ended in it, committed.
    pub committed: u64,
    /// Ended in it otherwise, by class; `unknown` and `shed` stand beside the classes.
    pub failed: BTreeMap<String, u64>,
    /// Reached each stage in it, in the order of the ladder.
    pub reached: Vec<u64>,
    /// Outstanding at its end (due and not ended).
    pub outstanding: i64,
    /// Response time to the final stage of those of the measured stream that were due in it: p50; null where fewer than
    /// ten of them lie beyond it, as for the two below.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// p99.9.
    pub p999_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// The instrument's own lag (`sent − ready`) of those that were due in it: p99.
    pub own_lag_p99_ns: Option<i64>,
}
