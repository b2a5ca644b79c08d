//! Transactions that leave together, and streams that go by different kinds of link, end to end on the canary.

use crate::harness::{Place, beside_others, expect_audit, number, trial, written_thresholds};
use serde_json::Value;

/// A frame costs 2 ms and a transaction 20 µs: one by one 495 a second, in batches of 40 some 14,000.
fn batched(deploy: &str, load: &str) -> Value {
    let _beside = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(&format!(
        r#"
        system.kind = "echo"
        workload = {{ payload = "16B" }}
        [system.deploy]
        batches = true
        per_frame = "2ms"
        service = "20us"
        {deploy}
        [load]
        rate = "1500/s"
        connections = 2
        warmup = "0s"
        duration = "3s"
        timeout = "1s"
        drain = "2s"
        {load}
        "#
    ));
    document
}

fn counts(document: &Value) -> [u64; 2] {
    ["due", "committed"].map(|count| number(&trial(document)["counts"][count]))
}

/// Claim: a server for which each frame costs much saturates where transactions leave as they come and a turn of the
/// loop carries one, and does not where they wait for each other; never more than one batch is outstanding on a
/// connection, which the server counts; and the ledger holds each transaction once.
#[test]
fn batches_pay_where_frames_cost() {
    // One outstanding on a connection: no session can put several into a frame.
    let document = batched("in_flight_max = 1", "");
    let [due, committed] = counts(&document);
    assert!(committed * 2 < due, "{committed} of {due} one by one");
    let batch = r#"batch = { size_max = 40, delay_max = "5ms", in_flight_max = 1 }
        [[threshold]]
        expr = "batches.size.max <= 40 and batches.size.mean > 1 and batches.count > 100"
        [[threshold]]
        expr = "batches.drain > 50%"
        level = "warn"
        "#;
    let document = batched("frames_max = 1", batch);
    let [due, committed] = counts(&document);
    assert!(due > 4_000 && committed == due, "{committed} of {due} in batches");
    expect_audit(&document, "ledger", "ok", "");
    assert_eq!(number(&trial(&document)["fates"]["once"]), committed);
    counted(&document, due);
}

/// The result says how many batches left, how large they were and why, and thresholds on that are met or fail.
fn counted(document: &Value, due: u64) {
    let batches = &trial(document)["batches"];
    let of = |name: &str| number(&batches[name]);
    assert_eq!(of("transactions"), due, "{batches}");
    let reasons = ["full", "completion", "delay", "drain"].map(of);
    assert_eq!(reasons.iter().sum::<u64>(), of("count"), "{batches}");
    let mean = batches["size_mean"].as_f64().expect("a mean");
    assert!((2..=40).contains(&of("size_max")) && mean > 1.0, "{batches}");
    let written = written_thresholds(trial(document)).into_iter();
    let holds: Vec<_> = written.map(|it| it["holds"].as_bool()).collect();
    assert_eq!(holds, [Some(true), Some(false)], "{}", trial(document)["thresholds"]);
}

/// Claim: the server counts: where more batches are outstanding than it takes, it refuses them, and the bound of the
/// load is what kept them away before.
#[test]
fn a_second_batch_is_refused() {
    let batch = r#"batch = { size_max = 8, delay_max = "0s", in_flight_max = 4 }"#;
    let document = batched("frames_max = 1", batch);
    let [due, committed] = counts(&document);
    assert!(committed < due, "{committed} of {due}");
    expect_audit(&document, "ledger", "ok", "");
}

/// Claim: a probe through a client library beside a load over wires, and the reverse: both streams are committed, with
/// latencies of their own, and the ledger holds each transaction of both once.
#[test]
fn a_called_probe_beside_a_wired_load() {
    for by in ["probe_by", "load_by"] {
        let _beside = beside_others();
        let place = Place::new();
        let (_, document) = place.experiment(&format!(
            r#"
            system.kind = "echo"
            load = {{ rate = "200/s", connections = 8, warmup = "0s", duration = "2s", timeout = "5s" }}
            workload = {{ payload = "16B" }}
            [system.deploy]
            service = "100us"
            {by} = "call"
            [probe]
            interval = "50ms"
            "#
        ));
        let trial = trial(&document);
        let count = |of: &Value| ["due", "committed"].map(|count| number(&of[count]));
        // Beside a probe the counts are the probe's, and the load is the background.
        let [sent, probed] = count(&trial["counts"]);
        let [due, committed] = count(&trial["background"]);
        assert!(due == 400 && committed == due, "{by}: {committed} of {due}");
        assert!(sent == 40 && probed == sent, "{by}: {probed} of {sent} probes");
        assert_eq!(number(&trial["fates"]["once"]), due + sent, "{by}");
        expect_audit(&document, "ledger", "ok", "");
        let response = &trial["latency"][0]["response"];
        // No less than the service, no more than a bad moment of a busy machine.
        let [least, most] = ["min_ns", "max_ns"].map(|word| number(&response[word]));
        assert!(least >= 100_000 && most < 5_000_000_000, "{by}: {response}");
    }
}
