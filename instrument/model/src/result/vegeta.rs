//! The numbers that vegeta prints, computed as it does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The published table, computed as vegeta computes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VegetaResult {
    /// All results.
    pub requests: u64,
    /// Requests ÷ (last send − first send).
    pub rate: f64,
    /// Successes ÷ (attack + wait).
    pub throughput: f64,
    /// Last send − first send, nanoseconds.
    pub attack_ns: i64,
    /// Last completion − last send, nanoseconds.
    pub wait_ns: i64,
    /// Attack + wait.
    pub total_ns: i64,
    /// Mean of all results.
    pub mean_ns: i64,
    /// Quantiles of all results, by sent time.
    pub min_ns: i64,
    /// p50.
    pub p50_ns: i64,
    /// p90.
    pub p90_ns: i64,
    /// p95.
    pub p95_ns: i64,
    /// p99.
    pub p99_ns: i64,
    /// Largest.
    pub max_ns: i64,
    /// Body bytes in.
    pub bytes_in: u64,
    /// Body bytes out.
    pub bytes_out: u64,
    /// Status 200–399 ÷ requests.
    pub success: f64,
    /// Status codes as text, sorted as text; `0` = never got an answer.
    pub status_codes: BTreeMap<String, u64>,
    /// Distinct error texts, in order of first appearance.
    pub errors: Vec<String>,
}
