//! The key-value database when its disks are full or stand still, and when it is broken on purpose: what it loses, and whether
//! a run finds it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{self, DISK, LINKS, Place, beside_others, has_all, number};

/// Claim: whatever disk is full or stands still, nothing that was acknowledged is lost or executed twice, and everybody is
/// answered in the end; while no disk takes anything nothing is committed, and each replica that was refused something says so
/// in its log; a leader whose disk stands still gives up leading.
#[test]
fn a_bad_disk_loses_nothing() {
    if !has_all("a_bad_disk_loses_nothing", &[DISK]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let mut command = place.shipped("kv/full-disk", "toy", &[]);
    let said = harness::Running::start(&mut command).finish_within(Duration::from_secs(120));
    let document = said.json();
    let settings: Vec<_> = document["settings"].as_array().into_iter().flatten().collect();
    assert_eq!(settings.len(), 4);
    for setting in settings {
        let trial = &setting["trials"][0];
        let (key, fates) = (setting["key"].as_str().unwrap_or_default(), &trial["fates"]);
        harness::expect_none(trial, &harness::WRONG_FATES);
        assert!(number(&fates["once"]) > 100, "{key}: {fates}");
        let folder = place.run_folder().join(trial["path"].as_str().unwrap_or_default());
        let log = |node: &str| {
            std::fs::read_to_string(folder.join("nodes").join(format!("{node}.log")))
                .unwrap_or_else(|error| panic!("{}: {node}: {error}", folder.display()))
        };
        let full = ["kv0", "kv1", "kv2"].map(|node| {
            let log = log(node);
            let times = log.matches("the disk is full: nothing more is kept").count();
            let ends = log.matches("the disk has room again, after ").count();
            assert_eq!(times, ends, "{key}: {log}");
            times > 0
        });
        // Of the three that are taken one after the other the last may be asked for nothing: two keep nothing by then.
        let facts = std::fs::read_to_string(folder.join("trial.json")).expect("a trial has facts");
        let facts: serde_json::Value = serde_json::from_str(&facts).expect("they are JSON");
        let disk =
            facts["after"]["disks"].as_array().into_iter().flatten().find(|it| it["node"] == "kv2");
        let is_refused = number(&disk.expect("kv2 has a disk")["refused_full"]) > 0;
        let expected = match key {
            "fault=follower" => [false, true, false],
            "fault=leader" => [true, false, false],
            "fault=all" => [true, true, is_refused],
            _ => [false; 3],
        };
        assert_eq!(full, expected, "{key}");
        let silence_ns = number(&trial["faults"][0]["silence_ns"]);
        assert!(key != "fault=all" || silence_ns > 500_000_000, "{key}: {silence_ns}");
        let others_led = log("kv1").contains("leads now") || log("kv2").contains("leads now");
        // A starved machine may elect others at any time.
        let is_the_leaders = key == "fault=leader" || key == "fault=stuck";
        assert!(others_led || !is_the_leaders, "{key}");
    }
}

/// The program that runs a replica which is broken on purpose, by a link that says what is.
fn broken(place: &Place, what: &str) -> String {
    let folder = Path::new(harness::ASSAY).parent().expect("it lies in a folder").join("examples");
    let program = folder.join("broken_kv");
    // Each time: cargo knows whether there is anything to do.
    let mut build = std::process::Command::new(env!("CARGO"));
    build.args(["build", "--release", "--quiet", "--workspace", "--example", "broken_kv"]);
    // What cargo says of the package that it tests would make ring's build script run anew, and again afterwards; what a
    // user told cargo of profiles must hold here, too.
    let is_of_a_package =
        |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for name in std::env::vars().map(|(name, _)| name).filter(is_of_a_package) {
        build.env_remove(name);
    }
    assert!(build.status().expect("cargo runs").success(), "building the broken replica");
    let link = place.path().join(format!("broken-{what}"));
    std::os::unix::fs::symlink(&program, &link).expect("the place can be written");
    link.display().to_string()
}

const QUICK: &str = "election_timeout = \"300ms\"";

const RESTART: &str = r#"
        [[fault]]
        at = "2s"
        for = "500ms"
        restart = "kv0"
    "#;

/// Runs five seconds of lists on three replicas that are broken so, which is found.
fn run_broken(what: &str, deploy: &str, load: &str, faults: &str) -> Value {
    let (said, document) = tried_broken(what, deploy, load, faults);
    said.expect_code(99);
    document
}

/// The same, whether it is found or not.
fn tried_broken(what: &str, deploy: &str, load: &str, faults: &str) -> (harness::Said, Value) {
    let place = Place::new();
    let program = broken(&place, what);
    place.experiment(&format!(
        r#"
        system.kind = "kv"
        workload = {{ kind = "list-append", keys = 4, ops = 1 }}
        [system.deploy]
        program = "{program}"
        {deploy}
        [load]
        model = "closed"
        warmup = "0s"
        duration = "5s"
        timeout = "5s"
        drain = "8s"
        {load}
        {faults}
        "#
    ))
}

/// The audits and checks that object: each one's name and words.
fn accusations(document: &Value) -> Vec<(String, String)> {
    let trial = harness::trial(document);
    let found = ["audits", "checks"].into_iter().flat_map(|list| {
        let all = trial[list].as_array().into_iter().flatten();
        all.filter(|it| it["outcome"] == "failed" || it["outcome"] == "warn")
    });
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    found.map(|it| (text(&it["name"]), text(&it["detail"]) + &text(&it["words"]))).collect()
}

fn is_accused(document: &Value, name: &str, words: &str) -> bool {
    accusations(document).iter().any(|(who, what)| who == name && what.contains(words))
}

#[track_caller]
fn expect_accused(document: &Value, name: &str, words: &str) {
    let said = accusations(document);
    assert!(is_accused(document, name, words), "{name} does not say `{words}`: {said:#?}");
}

/// Claim: a replica that acknowledges before its disk has synced is found when the power is cut: the ledger lacks what was
/// acknowledged.
#[test]
fn acknowledging_before_the_sync_is_found() {
    if !has_all("acknowledging_before_the_sync_is_found", &[DISK]) {
        return;
    }
    let _beside = beside_others();
    let deploy = r#"
        election_timeout = "300ms"
        replicas = 1
        segment = "8MiB"
        [disk]
        nodes = ["kv"]
        size = "128MiB"
        sync_delay = "60ms"
    "#;
    let load = r#"
        clients = 16
        connections = 4
        think = "2ms"
        resend = { attempts_max = 9, after = "2s" }
    "#;
    let faults = r#"
        [[fault]]
        at = "2s"
        for = "300ms"
        power = "kv"
        loss = "drop"
    "#;
    let document = run_broken("acknowledges", deploy, load, faults);
    expect_accused(&document, "ledger", "acknowledged and not in the ledger");
    assert!(number(&harness::trial(&document)["fates"]["lost"]) > 0);
}

/// Claim: a database that forgets what it has executed is found where transactions are sent again: they stand in the ledger
/// twice.
#[test]
fn forgetting_what_was_executed_is_found() {
    let _beside = beside_others();
    let load = r#"
        clients = 16
        connections = 4
        resend = { attempts_max = 9, after = "1ms" }
    "#;
    let document = run_broken("results", QUICK, load, RESTART);
    expect_accused(&document, "ledger", "in the ledger again");
    assert!(number(&harness::trial(&document)["fates"]["duplicate"]) > 0);
}

/// Claim: replicas that answer reads without making sure that they lead are found when one has stood still, another leads,
/// and the first is cut off from it: a read lacks what had been acknowledged before it was sent.
#[test]
fn stale_reads_of_a_leader_that_was_are_found() {
    if !has_all("stale reads", &[LINKS]) {
        return;
    }
    let _beside = beside_others();
    // Clients that stay on their connections: those that only read stay with the leader that was. They ask soon after it
    // goes on, because it leads no longer than an election takes.
    let load = r#"
        clients = 64
        connections = 64
        affinity = "client"
        think = "50ms"
        resend = { attempts_max = 9, after = "4s" }
    "#;
    let faults = r#"
        [[fault]]
        at = "1s"
        for = "2500ms"
        pause = "kv0"
        [[fault]]
        at = "1200ms"
        for = "4s"
        partition = "kv0"
    "#;
    let deploy = format!("{QUICK}\n[links]\ndelay = \"0ms\"");
    // Whether a client asks in the 300 ms in which it still leads is the machine's: without such a read there is nothing to find.
    let mut tries = (0..3).map(|_| tried_broken("reads", &deploy, load, faults));
    let found = tries.find(|(said, _)| said.code == 99);
    let (_, document) = found.expect("one of three histories has a stale read");
    expect_accused(&document, "list-append", "in real time");
    expect_accused(&document, "list-append", "was answered at");
}

/// Claim: replicas that carry entries out in another order than was decided are found when another one leads: what it holds
/// contradicts what was read before.
#[test]
fn another_order_than_decided_is_found() {
    let _beside = beside_others();
    let load = r#"
        clients = 32
        connections = 8
        resend = { attempts_max = 9, after = "2s" }
    "#;
    // Each in turn, so that whoever leads gives way to one that may have executed in another order.
    let others = [("3s", "kv1"), ("4s", "kv2")].map(|(at, node)| {
        format!("[[fault]]\nat = \"{at}\"\nfor = \"500ms\"\nrestart = \"{node}\"\n")
    });
    let faults = format!("{RESTART}\n{}", others.concat());
    // Whether a client reads in both orders is the machine's.
    let mut tries = (0..3).map(|_| run_broken("order", QUICK, load, &faults));
    assert!(
        tries.any(|document| is_accused(&document, "list-append", "incompatible order")),
        "none of three histories has two orders"
    );
}
