//! The ledger's own latency, held against the published report tool on the same chain: the same transactions, the
//! same figures to the millisecond.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{self, Place, audit, beside_others, number, processes_of, trial};
use serde_json::Value;

/// The installed programs; `None`, said by name, if one is missing.
fn programs(test: &str) -> Option<[PathBuf; 2]> {
    let mut found = Vec::new();
    for name in ["cometbft", "cometbft-report"] {
        match testbed::install::find(name) {
            Some(path) => found.push(path),
            None => {
                harness::say(&format!(
                    "SKIPPED cometbft_report tests: {test}: {name} is not installed (assay doctor --install {name})"
                ));
                return None;
            }
        }
    }
    found.try_into().ok()
}

/// Bursts of 150 a second on each of two connections for five seconds, one of them warm-up.
const TRANSACTIONS: u64 = 5 * 300;

fn experiment(program: &Path, more: &str) -> String {
    format!(
        r#"
        name = "cometbft-report"
        [system]
        kind = "cometbft"
        [system.deploy]
        program = "{}"
        validators = 4
        [workload]
        kind = "loadtime"
        size = "512B"
        {more}
        [load]
        rate = "300/s"
        burst = {{ every = "1s" }}
        connections = 2
        warmup = "1s"
        duration = "4s"
        timeout = "60s"
        drain = "60s"
        [[threshold]]
        expr = "stated.mean < 60s"
        "#,
        program.display()
    )
}

/// What the published tool prints of the only run in a stopped node's blocks: figures by name, durations in
/// nanoseconds.
fn report(program: &Path, place: &Place, document: &Value) -> BTreeMap<String, String> {
    let data = place.trial_folder(document).join("nodes/testnet/node0/data");
    let output = Command::new(program)
        .args(["--database-type", "goleveldb", "--data-dir"])
        .arg(&data)
        .output()
        .expect("the report tool starts");
    let text = String::from_utf8(output.stdout).expect("it prints text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("Experiment ID").count(), 1, "{text}");
    let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Go's `1.420272798s`, `340.1ms`, `1m2s` in milliseconds.
fn milliseconds(text: &str) -> f64 {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic() || c == 'µ').expect("a unit");
        let value: f64 = rest[..digits].parse().expect("a number");
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += value
            * match &rest[..unit_end] {
                "ns" => 1e-6,
                "µs" => 1e-3,
                "ms" => 1.0,
                "s" => 1e3,
                "m" => 6e4,
                other => panic!("the unit {other} of {text}"),
            };
        rest = &rest[unit_end..];
    }
    total
}

/// Runs it, has the published tool read what a node kept, and compares.
fn agree(test: &str, more: &str, switches: usize) {
    let Some([node, tool]) = programs(test) else { return };
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(&experiment(&node, more));
    let left = processes_of(place.path());
    assert!(left.is_empty(), "still running: {left:?}");
    let ours = &trial(&document)["stated"];
    assert!(!ours.is_null(), "nothing is stated\n{}\n{}", said.stdout, said.stderr);
    let theirs = report(&tool, &place, &document);
    let of = |name: &str| theirs.get(name).unwrap_or_else(|| panic!("{name}: {theirs:?}"));

    assert_eq!(of("Total Valid Tx"), &number(&ours["count"]).to_string());
    let counts = &trial(&document)["counts"];
    assert_eq!(number(&ours["count"]), TRANSACTIONS, "{counts}\n{}", said.stdout);
    assert_eq!(of("Total Negative Latencies"), &number(&ours["negative"]).to_string());
    assert_eq!(of("Total Invalid Tx"), "0");
    assert_eq!((number(&ours["without_time"]), number(&ours["duplicates"])), (0, 0));
    assert_eq!([of("Connections"), of("Rate"), of("Size")], ["2", "150", "512"]);
    for (name, key) in [
        ("Minimum Latency", "min_ns"),
        ("Maximum Latency", "max_ns"),
        ("Average Latency", "mean_ns"),
        ("Standard Deviation", "stddev_ns"),
    ] {
        let (theirs, ours) = (milliseconds(of(name)), ours[key].as_f64().expect(key) / 1e6);
        assert!((theirs - ours).abs() < 1.0, "{name}: theirs {theirs} ms, ours {ours} ms");
    }
    assert_eq!(ours["clocks"], "one_host");
    assert_eq!(audit(&document, "ledger").0, "ok");
    assert_eq!(document["fidelity"].as_array().map(Vec::len), Some(switches));
    assert_eq!(trial(&document)["thresholds"][0]["holds"], true);
}

/// Claim: count, least, largest, mean and standard deviation of latency as the ledger states it are those of the
/// published report tool on a stopped node's own files, with the time at which a transaction was due.
#[test]
fn the_published_report_tool_agrees() {
    agree("the_published_report_tool_agrees", "", 0);
}

/// Claim: they are with the time at which a transaction was written, too, and that choice is said.
#[test]
fn it_agrees_about_the_time_of_writing() {
    agree("it_agrees_about_the_time_of_writing", "stamp = \"given\"", 1);
}
