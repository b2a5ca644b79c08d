//! The words of schedules: the shape of arrivals in time, the multiplier of a rate, and bounds.

use std::time::Duration;

use model::plan::{Arrivals, Schedule};
use model::quantity::Rate;

use crate::table::{Reading, Table};

/// The most load generators that a rate is multiplied by.
pub(crate) const GENERATORS_MAX: u64 = 100_000;

/// The most clients of a closed loop.
pub(crate) const CLIENTS_MAX: u32 = 10_000_000;

/// When transactions are due, and how long that takes if the shape itself says so.
pub(crate) struct Shape {
    pub arrivals: Arrivals,
    /// How long the shape lasts, if it has an end of its own.
    pub length: Option<Duration>,
    /// Whether the measured window must be exactly that long.
    pub exact: bool,
}

impl Shape {
    pub fn endless(schedule: Schedule) -> Self {
        Self { arrivals: Arrivals::Open { schedule }, length: None, exact: false }
    }

    pub fn is_trace(&self) -> bool {
        matches!(self.arrivals, Arrivals::Open { schedule: Schedule::Trace { .. } })
    }

    /// Leaves out what a trace has after `end`.
    pub fn cut(mut self, end: Duration) -> Self {
        if let Arrivals::Open { schedule: Schedule::Trace { due_ns } } = &mut self.arrivals {
            let end = u64::try_from(end.as_nanos()).unwrap_or(u64::MAX);
            due_ns.retain(|due| *due < end);
        }
        self
    }
}

/// The factor of a rate.
pub(crate) struct Multiplier {
    pub total: u64,
    pub generators: u64,
    pub per_generator: bool,
}

/// A rate that is not `max`.
pub(crate) fn finite(
    table: &Table<'_>,
    rate: Rate,
    what: &str,
    reading: &mut Reading<'_>,
) -> Option<Rate> {
    if rate.is_max() {
        let message = format!("`max` is no rate for {what}");
        table.reject("rate", message, Some("give a rate such as 50/s"), reading);
        return None;
    }
    Some(rate)
}

/// The same for the rate under a key of its own.
pub(crate) fn finite_at(
    table: &Table<'_>,
    key: &str,
    rate: Rate,
    reading: &mut Reading<'_>,
) -> Option<Rate> {
    if rate.is_max() {
        let message = format!("`{}` cannot be `max` here", table.full(key));
        table.reject(key, message, Some("give a rate such as 50/s"), reading);
        return None;
    }
    Some(rate)
}
