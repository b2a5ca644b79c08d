//! vegeta's JSON report, read back. (Its text report is read by `report`.)

use std::collections::BTreeMap;

use model::result::VegetaResult;
use serde::Deserialize;

use crate::error::ExchangeError;
use crate::format::short;

#[derive(Deserialize)]
struct Document {
    latencies: Latencies,
    bytes_in: Bytes,
    bytes_out: Bytes,
    duration: i64,
    wait: i64,
    requests: u64,
    rate: f64,
    throughput: f64,
    success: f64,
    status_codes: BTreeMap<String, u64>,
    errors: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Latencies {
    mean: i64,
    #[serde(rename = "50th")]
    p50: i64,
    #[serde(default, rename = "90th")]
    p90: i64,
    #[serde(rename = "95th")]
    p95: i64,
    #[serde(rename = "99th")]
    p99: i64,
    max: i64,
    #[serde(default)]
    min: i64,
}

#[derive(Deserialize)]
struct Bytes {
    total: u64,
}

/// Reads a JSON report.
///
/// # Errors
/// When the text is not one.
pub fn read_vegeta_json(name: &str, text: &str) -> Result<VegetaResult, ExchangeError> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        let why = format!("it is not a JSON report of vegeta: {}", short(&error));
        ExchangeError::Input { name: name.to_owned(), why }
    })?;
    let latencies = document.latencies;
    Ok(VegetaResult {
        requests: document.requests,
        rate: document.rate,
        throughput: document.throughput,
        attack_ns: document.duration,
        wait_ns: document.wait,
        total_ns: document.duration.saturating_add(document.wait),
        mean_ns: latencies.mean,
        min_ns: latencies.min,
        p50_ns: latencies.p50,
        p90_ns: latencies.p90,
        p95_ns: latencies.p95,
        p99_ns: latencies.p99,
        max_ns: latencies.max,
        bytes_in: document.bytes_in.total,
        bytes_out: document.bytes_out.total,
        success: document.success,
        status_codes: document.status_codes,
        errors: document.errors.unwrap_or_default(),
    })
}
