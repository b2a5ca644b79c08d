//! A stream of a trial by its own final stage.

use serde::{Deserialize, Serialize};

/// Where a stream's transactions end, and how long those of the measured window took to get there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamResult {
    /// Which: `main` or `probe`.
    pub stream: String,
    /// The stage that counts as committed for it.
    pub until: String,
    /// Response time to that stage, of those that reached it, nanoseconds: p50; null = none did.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// The largest.
    pub max_ns: Option<i64>,
}
