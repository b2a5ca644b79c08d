//! The gateway before nodes that are really there: one with a limiter that is played, and anvil.

use std::path::Path;

use serde_json::Value;
use testbed::install;

use crate::harness::{self, Place, beside_others, number};

fn run(name: &str, more: &[&str]) -> Value {
    Place::new().toy(&format!("eth-gateway/{name}"), more)
}

fn is_there() -> bool {
    let is_there = Path::new(harness::ASSAY).with_file_name("eth-gateway").is_file();
    if !is_there {
        harness::say(
            "SKIPPED tests of the gateway: they take eth-gateway (assay doctor --install eth-gateway)",
        );
    }
    is_there
}

/// Of the only trial of a setting: how many requests were due and how many were committed.
fn counts(setting: &Value) -> (u64, u64) {
    let counts = &setting["trials"][0]["counts"];
    (number(&counts["due"]), number(&counts["committed"]))
}

/// The kinds that the pass before the load found to be without a chance.
fn named(setting: &Value) -> Vec<&str> {
    let findings = setting["trials"][0]["preflight"].as_array().into_iter().flatten();
    let failed = findings.into_iter().filter(|finding| finding["ok"] == false);
    failed.filter_map(|finding| finding["kind"].as_str()).collect()
}

/// Claim: one command starts the node, a chain, the gateway and the study; the path that can never succeed is named before
/// the load, and is all that fails.
#[test]
fn the_study() {
    if !is_there() {
        return;
    }
    let _beside = beside_others();
    let document = run("study", &[]);
    let setting = &document["settings"][0];
    assert_eq!(named(setting), ["GET /block/last/"], "{}", setting["trials"][0]["preflight"]);
    let (due, committed) = counts(setting);
    assert!(due >= 40 && committed < due && committed + 2 >= due, "{committed} of {due}");
    let calls = setting["trials"][0]["resources_last"]["gateway.node_calls"].as_f64();
    // Nothing is saved: each request is a call, but those of paths that do not reach the node.
    assert!(calls.is_some_and(|calls| calls > 20.0), "{calls:?}");
}

/// Claim: the limiter that the study plays refuses the set that the published node refused, and not the other that asks more
/// calls a second. The window is four seconds long in place of a minute.
#[test]
fn the_limiter_of_the_study() {
    if !is_there() {
        return;
    }
    let _beside = beside_others();
    let document = run(
        "study",
        &[
            "--set=system.deploy.node_arguments=[\"--allowed-rps\", \"48.5\", \"--limited\", \"blocks\", \"--window\", \"4s\", \"--backoff\", \"2s\"]",
            "--set=matrix.set.values=[\"blocks\", \"dapp\", \"everything\"]",
            "--set=matrix.rate.values=[\"60/s\"]",
            "--set=load.duration=7s",
        ],
    );
    let limited = |set: &str| {
        let settings = document["settings"].as_array().expect("three");
        let is_it = |it: &&Value| it["key"].as_str().is_some_and(|key| key.contains(set));
        let setting = settings.iter().find(is_it).expect("it is in the matrix");
        let (due, committed) = counts(setting);
        assert!(due > 300, "{set}: {due}");
        due - committed
    };
    assert!(limited("blocks") > 60, "{}", limited("blocks"));
    assert!(limited("dapp") <= 2, "{}", limited("dapp"));
}

/// Claim: a gateway that a fault kills is found again by its clients when it is back.
#[test]
fn a_gateway_that_is_killed() {
    if !is_there() {
        return;
    }
    let _beside = beside_others();
    let fault = "--set=fault=[{ at = \"1s\", for = \"1s\", restart = \"gateway\" }]";
    let document = run("study", &[fault, "--set=load.duration=6s"]);
    let fault = &document["settings"][0]["trials"][0]["faults"][0];
    assert!(fault["back_after_ns"].is_number(), "{fault}");
}

/// Claim: every request that is drawn from the chain of a real node is answered, the calls and searches of its token
/// included.
#[test]
fn real_nodes() {
    if !is_there() || install::find("anvil").is_none() || install::find("geth").is_none() {
        return;
    }
    let _beside = beside_others();
    let document = run("nodes", &[]);
    let settings = document["settings"].as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(settings.len(), 6, "two nodes, three sets");
    for setting in settings {
        let is_everything = setting["key"].as_str().is_some_and(|key| key.contains("everything"));
        let expected: &[&str] = if is_everything { &["GET /block/last/"] } else { &[] };
        assert_eq!(
            named(setting),
            expected,
            "{}: {}",
            setting["key"],
            setting["trials"][0]["preflight"]
        );
        let (due, committed) = counts(setting);
        assert!(committed + 2 >= due && due >= 50, "{}: {committed} of {due}", setting["key"]);
    }
}
