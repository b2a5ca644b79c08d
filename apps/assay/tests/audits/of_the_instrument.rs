//! Trials in which the instrument itself, its machine or its record makes an audit object.

use std::process::Command;
use std::time::Duration;

use crate::harness::{
    self, DISK, Place, Running, alone, audit, await_that, beside_others, expect_audit, has_all,
    processes_of, trial,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::Value;

use super::{
    QUICK_LOAD, SMALL, altered, await_rows, canary, expect_failed, expect_told, found, started,
};

/// Claim: transactions for which this client can open no connection are its own failures. The server closes
/// connections; for half a second of the trial the process may open no file.
#[test]
fn client_failures() {
    let _beside = beside_others();
    let (place, running) = started(
        r#"
        system.kind = "echo"
        load = { rate = "500/s", connections = 2, warmup = "0s", duration = "2s", timeout = "2s" }
        [system.deploy]
        faults = { close = 10 }
        "#,
    );
    await_rows(&place, 500);
    let limit = |files: u64| {
        let id = Pid::from_raw(running.id().cast_signed());
        let limit = Rlimit { current: Some(files), maximum: Some(20_000) };
        prlimit(id, Resource::Nofile, limit).expect("its limit can be changed").current
    };
    let before = limit(3).expect("there is a limit");
    harness::pass(Duration::from_millis(500));
    limit(before);
    let said = running.finish();
    let words = ["failed in this client, not in the system: descriptors, ports, name lookup"];
    expect_failed(&said, &said.json(), "client_failures", &words);
    let texts = said.json()["settings"][0]["trials"][0]["errors"].to_string();
    assert!(texts.contains("this client has no file descriptors left"), "{texts}");
}

/// Claim: a wall clock that was set during the trial makes the system's own times useless. The machine's clock
/// is not touched: a real trial's trial.json is altered (`load.wall_step_ns`) and reported again.
#[test]
fn clock() {
    let (_place, said, document) = altered(|trial| {
        let facts = trial.join("trial.json");
        let text = std::fs::read_to_string(&facts).unwrap();
        let mut facts_of: Value = serde_json::from_str(&text).unwrap();
        facts_of["load"]["wall_step_ns"] = Value::from(-5_000_000_000_i64);
        std::fs::write(facts, facts_of.to_string()).unwrap();
    });
    for words in ["the wall clock moved back by 5.00 s", "it was set during the trial"] {
        expect_audit(&document, "clock", "failed", words);
    }
    let families: Vec<_> = found(&document, "clock")["voids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["family"])
        .collect();
    assert_eq!(families, ["stated", "node_stages"], "and nothing that the trial is read for");
    assert!(!document["reason"].as_str().unwrap().starts_with("clock"), "{}", said.stderr);
}

/// Claim: a trial that was killed is said to be cut off, with the bytes that its record lost: seven more are cut
/// from its row log, so that its last batch is not whole.
#[test]
fn complete() {
    let _beside = beside_others();
    let (place, running) = started(SMALL);
    await_rows(&place, 2_000);
    running.signal(Signal::KILL);
    running.finish();
    await_that(Duration::from_secs(5), "nothing is left", || processes_of(place.path()).is_empty());
    let log = place.run_folder().join("settings/default/trial-0/rows.log");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 7]).unwrap();
    let (_, document) = place.report();
    assert_eq!(document["verdict"], "invalid");
    expect_audit(&document, "complete", "failed", "the run ended without closing this trial");
    expect_audit(&document, "complete", "failed", "bytes at the end of its rows could not be read");
}

/// Claim: a pool that is too small for a server that is in no hurry is told to be the limit, and not the server; the
/// same load passes where connections may grow, with those in the result that were opened.
#[test]
fn connections() {
    let run = |pool: &str| {
        canary(&format!(
            r#"
            servers = 1000
            service = "50ms"
            in_flight_max = 1
            [load]
            rate = "240/s"
            connections = 8
            {pool}
            warmup = "0s"
            duration = "2s"
            timeout = "5s"
            "#
        ))
    };
    let (said, document) = run("connections_max = \"fixed\"");
    let words = ["all 8 connections were busy while service time was flat", "the client's pool"];
    expect_failed(&said, &document, "connections", &words);
    let (_, document) = run("");
    expect_audit(&document, "connections", "ok", "more were opened because all were busy");
    let used = &trial(&document)["connections"];
    let count = |key: &str| used[key].as_u64().unwrap();
    assert_eq!((count("first"), count("bound"), count("blocked")), (8, 1_024, 0));
    // As many more as a server that its machine holds up for longer has outstanding.
    assert!(count("grown") >= 4, "240/s for 50 ms take twelve: {used}");
}

/// Claim: an engine that counts one transaction more than there are rows breaks the sums. The counter of a real trial's
/// trial.json is altered, and the trial reported again.
#[test]
fn conservation() {
    let (_place, said, document) = altered(|trial| {
        let facts = trial.join("trial.json");
        let text = std::fs::read_to_string(&facts).unwrap();
        let mut facts_of: Value = serde_json::from_str(&text).unwrap();
        let due = &mut facts_of["load"]["workers"][0]["due"];
        *due = Value::from(due.as_u64().expect("a count") + 1);
        std::fs::write(facts, facts_of.to_string()).unwrap();
    });
    expect_failed(
        &said,
        &document,
        "conservation",
        &["the engine counts 1,001 due, but rows are 1,000"],
    );
}

/// Claim: a drain that is cut shorter than the timeout leaves transactions without an end, and says which key
/// to raise.
#[test]
fn drain() {
    let (said, document) = canary(
        r#"
        faults = { stall = { at = "900ms", for = "3s" } }
        [load]
        rate = "200/s"
        connections = 4
        warmup = "0s"
        duration = "1s"
        timeout = "10s"
        drain = "50ms"
        "#,
    );
    let words = ["were still outstanding when the drain of 50ms ended", "set load.drain"];
    expect_failed(&said, &document, "drain", &words);
}

/// Claim: a generator that gets no processor describes itself, not the system: it runs beside a loop on the same
/// processor that is given three times as much of it.
#[test]
fn generator_busy() {
    let Some(taskset) = harness::program("taskset") else {
        harness::say("SKIPPED generator_busy: taskset (util-linux) is not installed");
        return;
    };
    let _alone = alone();
    let taskset = taskset.display().to_string();
    let mut other = Command::new(&taskset);
    other.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
    let _other = Running::start(&mut other);
    let (said, document) = Place::new().experiment_by(
        &["nice", "-n", "5", &taskset, "-c", "0"],
        r#"
        system = { kind = "echo" }
        load = { rate = "100000/s", connections = 4, warmup = "0s", duration = "1s", timeout = "10s" }
        "#,
        &[],
    );
    let words = ["for a processor", "other work held the processors; run on an idle machine"];
    expect_failed(&said, &document, "generator_busy", &words);
}

/// Claim: a host that cannot open as many files as the plan has connections is said before anybody reads a
/// number.
#[test]
fn host() {
    let _beside = beside_others();
    let (said, document) =
        Place::new().experiment_by(&["sh", "-c", "ulimit -n 60; exec \"$@\"", "sh"], SMALL, &[]);
    let words = ["4 connections need 68 open files, the limit is 60 (raise it: ulimit -n)"];
    expect_failed(&said, &document, "host", &words);
}

/// Claim: a disk that kept a sync longer than the plan asks makes the trial invalid. The whole process is stopped for
/// 700 ms, the disk with it, while a sync waits that was to take 300 ms: at nine transactions a second one always does.
#[test]
fn disks() {
    if !has_all("disks", &[DISK]) {
        return;
    }
    let _beside = beside_others();
    let (place, running) = started(
        r#"
        system.kind = "echo"
        load = { rate = "9/s", connections = 2, warmup = "0s", duration = "3s", timeout = "5s" }
        [system.deploy]
        sync = true
        [disk]
        nodes = ["echo"]
        sync_delay = "300ms"
        "#,
    );
    await_rows(&place, 60);
    running.signal(Signal::STOP);
    harness::pass(Duration::from_millis(700));
    running.signal(Signal::CONT);
    let said = running.finish();
    let words = ["the disk of `echo` added", "more than 30.0 ms changes what was asked for"];
    expect_failed(&said, &said.json(), "disks", &words);
    let facts = place.run_folder().join("settings/default/trial-0/trial.json");
    let facts: Value = serde_json::from_str(&std::fs::read_to_string(facts).unwrap()).unwrap();
    let disk = &facts["after"]["disks"][0];
    assert_eq!(disk["node"], "echo");
    // A sync for each transaction, or for some that came together.
    assert!(disk["syncs"]["calls"].as_u64().unwrap() > 3, "{disk}");
    assert_eq!(disk["written_back"], 0);
}

/// Claim: a network that kept packets longer than the plan asks makes the trial invalid. The whole process is stopped
/// for 300 ms, its switch with it, so that all packets then underway are late; and what was asked was 100 ms.
#[test]
fn links() {
    if !rustix::process::geteuid().is_root() {
        harness::say("SKIPPED links: a network of its own takes root");
        return;
    }
    let _beside = beside_others();
    let (place, running) = started(
        r#"
        system = { kind = "echo" }
        load = { rate = "200/s", connections = 2, warmup = "0s", duration = "2s", timeout = "5s" }
        [links.client]
        delay = "100ms"
        "#,
    );
    await_rows(&place, 500);
    running.signal(Signal::STOP);
    harness::pass(Duration::from_millis(300));
    running.signal(Signal::CONT);
    let said = running.finish();
    let words =
        ["packets were handed over late by", "more than 10.0 ms changes what was asked for"];
    expect_failed(&said, &said.json(), "links", &words);
    let facts = place.run_folder().join("settings/default/trial-0/trial.json");
    let facts: Value = serde_json::from_str(&std::fs::read_to_string(facts).unwrap()).unwrap();
    assert_eq!(facts["after"]["network"]["nodes"], serde_json::json!(["echo"]));
    assert_eq!(facts["after"]["network"]["total"]["emulator_dropped"], 0);
}

/// Claim: load that never left the client, because its one connection was busy and its backlog full, was not
/// offered.
#[test]
fn offered_rate() {
    let (said, document) = canary(
        r#"
        service = "20ms"
        in_flight_max = 1
        [load]
        rate = "200/s"
        connections = 1
        connections_max = "fixed"
        warmup = "0s"
        duration = "1s"
        timeout = "5s"
        backlog_max = 5
        "#,
    );
    let words = ["planned 200.0/s", "part of the load never left this client", "shed)"];
    expect_failed(&said, &document, "offered_rate", &words);
}

/// Claim: an instrument that is stopped over and over, while it waits for answers and has nothing to send, says that it read
/// late what had arrived, of a load most of whose connections have no stamps. A client of a closed loop sends only once it
/// has read, so that nothing is sent late.
#[test]
fn receive_lag() {
    let _beside = beside_others();
    let (place, running) = started(
        r#"
        system.kind = "echo"
        load = { model = "closed", clients = 64, warmup = "0s", duration = "3s", timeout = "2s" }
        [system.deploy]
        servers = 64
        service = "5ms"
        "#,
    );
    await_rows(&place, 500);
    for _ in 0..48 {
        running.signal(Signal::STOP);
        harness::pass(Duration::from_millis(40));
        running.signal(Signal::CONT);
        harness::pass(Duration::from_millis(20));
    }
    let said = running.finish();
    let document = said.json();
    if audit(&document, "receive_lag").1.contains("the kernel stamped nothing") {
        return harness::say("this kernel stamps nothing that is received");
    }
    harness::expect_holds(&said, &document);
    expect_told(&document, "receive_lag", &["receive lag p50", "it makes up"]);
}

/// Claim: an instrument that was itself stopped for half a second of two says that the tail is its own.
#[test]
fn send_lag() {
    let _beside = beside_others();
    let (place, running) = started(SMALL);
    await_rows(&place, 500);
    running.signal(Signal::STOP);
    harness::pass(Duration::from_millis(500));
    running.signal(Signal::CONT);
    let said = running.finish();
    harness::expect_holds(&said, &said.json());
    expect_told(&said.json(), "send_lag", &["own lag p50", "it makes up"]);
}

/// Claim: coalesced pacing, which is late on purpose, is named as the reason beside the lag.
#[test]
fn send_lag_of_coalesced_pacing() {
    let (_, document) = canary(&format!("{QUICK_LOAD}pacing = \"coalesced\"\n"));
    let (_, detail) = audit(&document, "send_lag");
    let words = "pacing is coalesced: arrivals are sent in quanta of 1 ms";
    assert!(detail.contains(words), "{detail}");
}

/// Claim: five arrivals a second, exactly, never meet a pause of 90 ms in each second, and it is told that they cannot.
#[test]
fn even_arrivals() {
    let (_, document) = canary(
        r#"
        servers = 8
        service = "4ms"
        faults = { stall = [{ at = "900ms", for = "90ms" }, { at = "1900ms", for = "90ms" }] }
        [load]
        arrival = "constant"
        rate = "5/s"
        connections = 4
        warmup = "0s"
        duration = "3s"
        timeout = "5s"
        "#,
    );
    let words = ["see 5 phases of a second", "met always or never", "arrival = \"poisson\""];
    expect_told(&document, "even_arrivals", &words);
}
