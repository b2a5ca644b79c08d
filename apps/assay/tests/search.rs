//! The search for the highest rate, on real nodes whose limit is known.

use serde_json::Value;

use crate::harness::{Place, beside_others};

/// A search on echo, which refuses what is beyond `limit`.
fn limited(limit: &str) -> String {
    format!(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        faults = {{ limit = {{ rate = "{limit}", burst = 1 }} }}
        [load]
        rate = "20/s"
        connections = 2
        warmup = "0s"
        duration = "2s"
        timeout = "5s"
        [search]
        find = "load.rate"
        bracket = "1s"
        trials = 1
        [[threshold]]
        expr = "success >= 90%"
        "#
    )
}

/// Claim: the rate that a limiter lets through is found, confirmed by a trial of its own and refuted above it, and what
/// limits is named; every trial stands in the plan and in the result, and the report of the folder finds the same.
#[test]
fn a_limiter_is_found() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(&limited("100/s"));
    said.expect_code(0);
    let search = &document["search"];
    assert_eq!(search["end"], "found", "{search}");
    let confirmed = search["confirmed_per_s"].as_f64().unwrap();
    let refuted = search["refuted_per_s"].as_f64().unwrap();
    // A machine that sends late sends in bursts, of which the limiter lets fewer through.
    assert!((20.0..=112.0).contains(&confirmed) && refuted > confirmed, "{search}");
    assert_eq!(search["limit"], "admission", "{search}");
    let trials = search["trials"].as_array().unwrap();
    let mut confirming =
        trials.iter().filter(|trial| trial["role"] == "confirm" && trial["class"] == "kept");
    assert!(
        confirming.next_back().is_some_and(|trial| trial["per_s"] == search["confirmed_per_s"])
    );
    let in_settings = |setting: &Value| setting["trials"].as_array().map_or(0, Vec::len);
    let measured: usize = document["settings"].as_array().unwrap().iter().map(in_settings).sum();
    assert_eq!(measured, trials.len());
    let (_, again) = place.report();
    assert_eq!(again["search"], *search);
}

/// Claim: where not even a rate close to nothing is kept the run says so and fails.
#[test]
fn nothing_is_kept() {
    let _beside = beside_others();
    let text = limited("100/s").replace("success >= 90%", "p99 < 1ns");
    let (said, document) = Place::new().experiment(&text);
    said.expect_code(99);
    assert_eq!(document["search"]["end"], "not_even", "{}", document["search"]);
    assert_eq!(document["search"]["confirmed_per_s"], Value::Null);
}
