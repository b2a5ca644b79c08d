//! Facts of the agents that carried out parts of a load.

use serde::{Deserialize, Serialize};

/// An agent's part and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentFacts {
    /// Its name: its host's, and a number.
    pub name: String,
    /// Its first worker; rows name their worker.
    pub first_worker: u32,
    /// How many workers it has.
    pub workers: u32,
    /// Rows that came from it.
    pub rows: u64,
    /// Transactions of its part that fell due and of which no row came; absent: its part has no due times of its own
    /// (a closed loop, a rate of `max`).
    pub not_offered: Option<u64>,
    /// Why its part is not whole, in words; empty = it is.
    pub lost: String,
    /// How far the beginning of its line may be from the coordinator's, nanoseconds.
    pub start_error_ns: i64,
    /// The exchange of clocks before the load, the best of those during it, and the one after it.
    pub clocks: Vec<ClockExchange>,
}

/// One exchange of clocks between coordinator and agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockExchange {
    /// When, on the coordinator's clock, nanoseconds.
    pub at_ns: i64,
    /// The agent's clock less the coordinator's, nanoseconds.
    pub offset_ns: i64,
    /// The offset is at most this far from the true one.
    pub error_ns: i64,
}
