//! The ledger on object stores: a load at its queue beside the probe that verifies, with buckets that go away.

mod clouds;
mod foreign;

use std::path::Path;

use serde_json::Value;

use crate::harness::{self, Place, beside_others, expect_audit, number, trial};

fn is_there() -> bool {
    let is_there = Path::new(harness::ASSAY).with_file_name("object-ledger").is_file();
    if !is_there {
        harness::say(
            "SKIPPED tests of the object ledger: they take object-ledger (assay doctor --install object-ledger)",
        );
    }
    is_there
}

/// Asserts that 100 transactions were accepted, eight probes verified, and all of them stand in the ledger once.
#[track_caller]
fn expect_all_verified(document: &Value) {
    let trial = trial(document);
    let [probes, verified] = counts(&trial["counts"]);
    assert!(probes == 8 && verified == probes, "{verified} of {probes}: {}", trial["errors"]);
    let [due, accepted] = counts(&trial["background"]);
    assert!(due == 100 && accepted == due, "{accepted} of {due}: {}", trial["errors"]);
    assert_eq!(number(&trial["fates"]["once"]), due + probes, "{}", trial["fates"]);
    expect_audit(document, "ledger", "ok", "");
}

/// Due and committed.
fn counts(of: &Value) -> [u64; 2] {
    ["due", "committed"].map(|count| number(&of[count]))
}

/// Claim: the load ends when the queue has accepted it and the probe when it has verified, in one trial; three of six buckets
/// are killed meanwhile and stay away; the folders of the other three alone hold every transaction of both, once; and the
/// probe's time is told in twelve parts, beside the time of its batches.
#[test]
fn three_buckets_hold_everything() {
    if !is_there() {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(
        r#"
        [system]
        kind = "object-ledger"
        [system.deploy]
        bucket_to_queue = "20ms"
        queue_to_cache  = "20ms"
        omc             = "10ms"
        attempt_max     = "1s"
        audit_buckets   = ["bucket1", "bucket3", "bucket5"]
        [load]
        rate        = "50/s"
        until       = "accepted"
        connections = 2
        warmup      = "0s"
        duration    = "2s"
        timeout     = "30s"
        [probe]
        interval    = "250ms"
        until       = "verified"
        connections = 8
        [[fault]]
        at   = "500ms"
        kill = "bucket0"
        [[fault]]
        at   = "500ms"
        kill = "bucket2"
        [[fault]]
        at   = "500ms"
        kill = "bucket4"
        "#,
    );
    assert!([0, 97].contains(&said.code), "{}", said.stderr);
    let trial = trial(&document);
    expect_all_verified(&document);
    expect_audit(&document, "client_failures", "ok", "");
    let stages = trial["node_stages"].to_string();
    for name in ["queued", "dequeued", "sequenced", "stored", "checked", "batch_finality"] {
        assert!(stages.contains(&format!("\"{name}\"")), "{name}: {stages}");
    }
}
