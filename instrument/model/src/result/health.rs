//! How connections fared, as a result.

use serde::{Deserialize, Serialize};

/// How the connections of a trial fared, from its first to its last moment. A connection here is one TCP connection: one
/// that is lost and opened again is two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HealthResult {
    /// Opened so far that transactions could go.
    pub opened: u64,
    /// Of these, those that took the place of one that was lost.
    pub reopened: u64,
    /// Closed by the system in good order.
    pub closed: u64,
    /// Reset by the system, or broken in the network.
    pub reset: u64,
    /// Could not be opened.
    pub unopened: u64,
    /// Times that something came that was not of the protocol; each ended its connection.
    pub protocol_errors: u64,
    /// Bytes that arrived and that no request had asked for.
    pub unasked_bytes: u64,
    /// Transactions that had been sent and not answered when their connection was lost.
    pub lost: u64,
    /// Answers on connections that broke the protocol later: any of them may be another request's.
    pub doubtful: u64,
    /// The fewest answers on one connection.
    pub answers_min: u64,
    /// Answers on one connection, mean; null = none was opened.
    pub answers_mean: Option<f64>,
    /// The most answers on one connection.
    pub answers_max: u64,
}
