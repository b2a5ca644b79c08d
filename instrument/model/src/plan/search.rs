//! The search for the highest rate that keeps the thresholds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::duration_text;

/// How a search goes on: its settings come into the plan one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// The first rate, per second.
    pub from_per_s: f64,
    /// No more than this is ever offered, per second.
    pub most_per_s: f64,
    /// How far apart the highest rate that is kept and the lowest that is not may be at the end of the bisection, as a
    /// fraction of the lower one.
    pub width: f64,
    /// How far below the highest rate that passed the confirming trials are, and how far above it the refuting ones, as a
    /// fraction of it.
    #[serde(default = "margin")]
    pub margin: f64,
    /// The measured window of the trials that bracket the limit.
    #[serde(with = "duration_text")]
    pub bracket: Duration,
    /// The measured window of all others: the time for which the result is sustained.
    #[serde(with = "duration_text")]
    pub hold: Duration,
    /// How many trials in a row confirm the result, and of how many the majority refutes the rate above it.
    pub confirmations: u32,
}

/// The margin of a plan of an earlier version.
const fn margin() -> f64 {
    0.05
}
