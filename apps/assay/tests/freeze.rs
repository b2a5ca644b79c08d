//! A server that stands still for a second in a run of ten at 1,000 a second. Whoever times from the moment a
//! request was finally sent reports a few milliseconds; one request in ten was due during the freeze and waited
//! for its end. What Assay must print follows from the schedule alone. In virtual time it does to the digit
//! (`instrument/exact`); here a real server and a real kernel make it longer by what the machine adds, and never shorter.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::harness::{Place, alone, beside_others, expect_audit, expect_holds, number, trial};
use serde_json::Value;

/// How far a figure may be below the one computed: three digits are kept of it, and the freeze begins within a
/// millisecond of its time.
const WITHIN: f64 = 0.02;

/// By how much a busy machine may make it longer: less than half of what is waited for, so that a figure is still told
/// from one that counts a wait twice.
const LONGER_S: f64 = 0.4;

/// The response time at quantile `q`, where 10,000 requests are due every millisecond, those of `freeze_s` within a
/// freeze, and the others are answered at once. With a second: sorted, the last tenth waits 1 ms, 2 ms, … 1,000 ms.
fn computed_s(q: f64, freeze_s: f64) -> f64 {
    let rank = (q * 10_000.0).ceil();
    let waits_s = (rank - 10_000.0) / 1_000.0 + freeze_s;
    assert!(waits_s > 0.0, "below it nobody waits");
    waits_s
}

fn quantile_s(trial: &Value, name: &str) -> f64 {
    let quantiles = trial["latency"][0]["response"]["quantiles"].as_array().unwrap();
    let found = quantiles.iter().find(|quantile| quantile["name"] == name).unwrap();
    assert_eq!(found["value_ns"], found["unconditional_ns"], "everything was answered");
    number(&found["value_ns"]) as f64 / 1e9
}

#[track_caller]
fn expect_near(what: &str, found: f64, computed: f64) {
    let off = found / computed - 1.0;
    println!("{what}: {found:.4} s, computed {computed:.4} s, {:+.2} %", off * 100.0);
    let (low, high) = (computed * (1.0 - WITHIN), computed * (1.0 + WITHIN) + LONGER_S);
    assert!((low..=high).contains(&found), "{what} is {found} s, computed {computed} s");
}

/// The figures of a run that was frozen for so long in its middle.
fn expect_freeze(document: &Value, freeze_s: f64) {
    let trial = trial(document);
    assert_eq!(number(&trial["counts"]["due"]), 10_000);
    assert_eq!(number(&trial["counts"]["committed"]), 10_000);
    for (name, q) in [("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)] {
        expect_near(name, quantile_s(trial, name), computed_s(q, freeze_s));
    }
    let response = &trial["latency"][0]["response"];
    expect_near("max", number(&response["max_ns"]) as f64 / 1e9, computed_s(1.0, freeze_s));
    // Nine in ten met a server that answers at once, and p90 lies at the edge.
    let p50 = quantile_s(trial, "p50");
    assert!((0.000_005..0.05).contains(&p50), "p50 {p50} s");
}

const LOAD: &str = r#"
[load]
rate = "1000/s"
connections = 64
connections_max = "fixed"
warmup = "200ms"
duration = "10s"
timeout = "5s"
"#;

/// The figures of a freeze, which are the machine's as well: `exact/tests/cases/stall.rs` has them to the nanosecond.
mod timing {
    use super::*;

    /// Claim: with the freeze in the server (it answers nothing, then everything), no percentile is below the one computed
    /// from the schedule, nor above it by more than the machine adds.
    #[test]
    fn a_server_that_stalls() {
        let _alone = alone();
        let faults = "faults = { stall = { at = \"4s\", for = \"1s\" } }";
        let (said, document) = Place::new()
            .experiment(&format!("[system]\nkind = \"echo\"\n[system.deploy]\n{faults}\n{LOAD}"));
        assert!(said.code == 0 || said.code == 97, "{}", said.stderr);
        expect_freeze(&document, 1.0);
    }

    /// Claim: with one request a connection over HTTP, where most of the requests that were due during the freeze
    /// could not even be sent, it is the same but for the moment that the server then needs to catch up; service
    /// time, shown beside it, hides most of it.
    #[test]
    fn a_server_that_stalls_over_http() {
        let _alone = alone();
        let deploy = "protocol = \"http\"\nfaults = { stall = { at = \"4s\", for = \"1s\" } }";
        let (said, document) = Place::new()
            .experiment(&format!("[system]\nkind = \"echo\"\n[system.deploy]\n{deploy}\n{LOAD}"));
        assert!(said.code == 0 || said.code == 97, "{}", said.stderr);
        expect_freeze(&document, 1.0);
        let service = trial(&document)["latency"][0]["service"]["quantiles"].as_array().unwrap();
        let p95 = service.iter().find(|quantile| quantile["name"] == "p95").unwrap();
        let p95 = number(&p95["value_ns"]) as f64 / 1e9;
        assert!(p95 < 0.1, "service time p95 {p95} s: 64 connections can hold 64 of the thousand");
    }

    /// Claim: with the freeze done to the process from outside (`[[fault]] pause`), it is the same, and when it
    /// was done is recorded.
    #[test]
    fn a_server_that_is_paused() {
        let _alone = alone();
        let place = Place::new();
        let fault = "[[fault]]\nat = \"4s\"\nfor = \"1s\"\npause = \"echo\"";
        let (said, document) =
            place.experiment(&format!("[system]\nkind = \"echo\"\n{LOAD}\n{fault}\n"));
        assert!(said.code == 0 || said.code == 97, "{}", said.stderr);
        let faults = place.trial_folder(&document).join("faults.ndjson");
        let lines = std::fs::read_to_string(faults).unwrap();
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let phases: Vec<&str> = lines.iter().filter_map(|line| line["phase"].as_str()).collect();
        assert_eq!(phases, ["start", "end"], "{lines:?}");
        let times_ns: Vec<u64> = lines[1..].iter().map(|line| number(&line["at_ns"])).collect();
        // It ends when it is due to, and is shorter by what it began late.
        expect_freeze(&document, ((times_ns[1] - times_ns[0]) as f64 / 1e9).min(1.0));
        let times: Vec<u64> = times_ns.iter().map(|ns| ns / 1_000_000).collect();
        // Late is the machine's affair, and each may be late by its own.
        assert!((4_200..5_000).contains(&times[0]), "4 s after a warm-up of 0.2 s: {times:?}");
        assert!(
            (5_200..6_000).contains(&times[1]),
            "a second after its beginning was due: {times:?}"
        );
    }
}

/// Claim: of two pauses of one node of which one lies within the other, the report gives each its own beginning and
/// end, and the server is back when the outer one ends: `resume` lets go of the pause that is over, and of no other.
#[test]
fn pauses_within_each_other() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(
        r#"
        system = { kind = "echo" }
        load = { rate = "200/s", connections = 4, warmup = "0s", duration = "4s" }
        [[fault]]
        at = "1s"
        for = "2s"
        pause = "echo"
        [[fault]]
        at = "1500ms"
        for = "500ms"
        pause = "echo"
        "#,
    );
    assert!([0, 97, 99].contains(&said.code), "{}", said.stderr);
    let faults = trial(&document)["faults"].as_array().expect("faults").clone();
    let ms = |fault: &Value, key| number(&fault[key]) / 1_000_000;
    let seen: Vec<_> = faults
        .iter()
        .map(|it| (number(&it["fault"]), ms(it, "from_ns"), ms(it, "to_ns")))
        .collect();
    let [(0, outer_from, outer_to), (1, inner_from, inner_to)] = seen[..] else {
        panic!("{faults:?}")
    };
    // Late is the machine's affair; the order, and that no end is swapped, is ours.
    assert!(outer_from < inner_from && inner_from < inner_to && inner_to < outer_to, "{seen:?}");
    assert_eq!(faults[1]["ended"]["goes_on"], true, "{faults:?}");
    assert_eq!(faults[0]["ended"]["goes_on"], false, "{faults:?}");
    // Nothing is committed while either pause holds it, and much as soon as the outer one is over.
    assert!(ms(&faults[0], "silence_ns") + 100 >= outer_to - outer_from, "{faults:?}");
    let (of_outer, of_inner) = (ms(&faults[0], "back_after_ns"), ms(&faults[1], "back_after_ns"));
    assert!(of_inner > of_outer, "it is back only after the outer one: {faults:?}");
}

/// Claim: a fault on a node that does not exist is not passed over: the experiment that was asked for did not
/// take place.
#[test]
fn a_fault_of_a_node_that_there_is_not() {
    let _beside = beside_others();
    let (said, document) = Place::new().experiment(
        r#"
        system = { kind = "echo" }
        load = { rate = "100/s", duration = "1s" }
        [[fault]]
        at = "100ms"
        for = "100ms"
        pause = "nobody"
        "#,
    );
    assert!(
        [1, 2, 97].contains(&said.code),
        "code {}: the fault never happened and nothing says so\n{}",
        said.code,
        document["reason"]
    );
}

/// Transactions that may pass each other on four connections.
const ON_THE_WAY: u64 = 8;

/// Claim: a node that is killed on request in mid-run leaves transactions without an answer, which are unknown
/// and never successes, and the run is reported.
#[test]
fn a_server_that_is_killed() {
    let _beside = beside_others();
    let (said, document) = Place::new().experiment(
        r#"
        system = { kind = "echo" }
        load = { rate = "200/s", connections = 4, warmup = "0s", duration = "2s", timeout = "500ms" }
        [[fault]]
        at = "1s"
        kill = "echo"
        "#,
    );
    let counts = &trial(&document)["counts"];
    let committed = number(&counts["committed"]);
    // Those that were due before it was killed, whenever the machine came to that.
    let killed_ms = number(&trial(&document)["faults"][0]["from_ns"]) / 1_000_000;
    assert!((1..=killed_ms / 5 + 5).contains(&committed), "{counts}, killed after {killed_ms} ms");
    assert_eq!(number(&counts["due"]), 400);
    let lost = number(&trial(&document)["fates"]["lost"]);
    // An acknowledged entry may be in its memory for 100 ms, and on a busy machine for longer: the last ones are lost.
    assert!(lost < committed, "{lost} of {committed} lost");
    let ids = trial(&document)["fates"]["examples"]["lost"].as_array().cloned().unwrap_or_default();
    let first = ids.iter().map(number).min().unwrap_or(committed);
    assert!(first + lost + ON_THE_WAY >= committed, "{lost} of {committed} lost, from {first} on");
    if lost > 0 {
        said.expect_code(99);
        expect_audit(&document, "ledger", "warn", "acknowledged and not in the ledger");
    } else {
        expect_holds(&said, &document);
    }
}

/// Claim: a node that is restarted under load (`[[fault]] restart`) answers again at its old address, is sampled in
/// both lives, and the report has a table that says when it was down; what it had acknowledged and not yet stored is
/// found lost.
#[test]
fn a_server_that_is_restarted() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(
        r#"
        system = { kind = "echo" }
        load = { rate = "200/s", connections = 4, warmup = "0s", duration = "4s", timeout = "500ms" }
        [[fault]]
        at = "1s"
        for = "500ms"
        restart = "echo"
        "#,
    );
    assert!([0, 97, 99].contains(&said.code), "{}", said.stderr);
    let trial = trial(&document);
    let counts = &trial["counts"];
    assert_eq!(number(&counts["due"]), 800);
    // Those that wait for it past their time are unknown; how many is the machine's affair, too.
    let committed = number(&counts["committed"]);
    assert!((200..800).contains(&committed), "{counts}");
    let late: u64 = trial["seconds"].as_array().unwrap()[3]["committed"].as_u64().unwrap();
    assert!(late > 0, "it serves again: {}", trial["seconds"]);
    let fates = &trial["fates"];
    // An acknowledged entry may be in its memory for 100 ms.
    assert!(number(&fates["lost"]) <= 25, "{fates}");
    let once = number(&fates["once"]);
    assert!(once + 25 >= committed, "what it stored before it died is there: {fates}");
    let faults = trial["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((&faults[0]["kind"], &faults[0]["node"]), (&"restart".into(), &"echo".into()));
    assert!(number(&faults[0]["to_ns"]) > number(&faults[0]["from_ns"]), "{faults:?}");
    let page = std::fs::read_to_string(place.run_folder().join("report.html"));
    let page = page.unwrap();
    assert!(page.contains("data-name=\"faults\""), "the page has the table");
    assert!(page.contains("started again after"), "and its words");
}
