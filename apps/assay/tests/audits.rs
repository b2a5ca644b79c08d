//! Every audit has a trial on the canary that is built to make it object, carried out by the real binary: the audit says
//! why in its own words. Where it voids what the trial is read for, the verdict is invalid and the exit code 97; where the
//! system is at fault, the numbers hold, and a promise decides. And one clean trial satisfies all.
//!
//! The machine may be busy with other things while this runs; then `send_lag` may fail beside the audit that a
//! trial is about, which is right and not asserted against.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::harness::{
    self, Echo, Place, Running, Said, alone, audit, await_that, beside_others, expect_audit,
    processes_of, trial,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::Value;

/// Every audit that there is, in the order of its list; the last looks across trials.
const AUDITS: [&str; 22] = [
    "backlog_drift",
    "client_failures",
    "clock",
    "complete",
    "connections",
    "conservation",
    "disks",
    "drain",
    "duplicates",
    "generator_busy",
    "host",
    "ledger",
    "links",
    "littles_law",
    "offered_rate",
    "preflight",
    "protocol",
    "send_lag",
    "stage_order",
    "survivorship",
    "warm_up",
    "repeatability",
];

/// Asserts what a trial that was built to fail one audit must come to.
#[track_caller]
fn expect_failed(said: &Said, document: &Value, name: &str, words: &[&str]) {
    said.expect_code(97);
    assert_eq!(document["verdict"], "invalid");
    assert_eq!(document["exit_meaning"], "the measurement is invalid: do not use its numbers");
    for words in words {
        expect_audit(document, name, "failed", words);
    }
    let audit = found(document, name);
    assert_ne!(audit["voids"], serde_json::json!([]), "it says which numbers: {audit}");
}

/// Asserts what a trial must come to whose system breaks a promise that nobody has to write: the numbers hold, and an
/// audit tells of it.
#[track_caller]
fn expect_broken(said: &Said, document: &Value, name: &str, words: &[&str]) {
    said.expect_code(99);
    assert_eq!(
        (&document["verdict"], &document["exit_meaning"]),
        (&"fail".into(), &"a promise is broken".into())
    );
    expect_told(document, name, words);
}

/// Asserts that an audit warns in these words, and voids nothing.
#[track_caller]
fn expect_told(document: &Value, name: &str, words: &[&str]) {
    for words in words {
        expect_audit(document, name, "warn", words);
    }
    assert_eq!(found(document, name)["voids"], serde_json::json!([]));
}

/// The audit of that name, of the first trial or of the run.
fn found<'a>(document: &'a Value, name: &str) -> &'a Value {
    let of_run = document["audits"].as_array().into_iter().flatten();
    let mut all = trial(document)["audits"].as_array().into_iter().flatten().chain(of_run);
    all.find(|audit| audit["name"] == name).expect("it is in the list")
}

/// Runs an experiment on the canary beside other trials; `text` follows `[system.deploy]`.
fn canary(text: &str) -> (Said, Value) {
    let _beside = beside_others();
    Place::new().experiment(&format!("[system]\nkind = \"echo\"\n[system.deploy]\n{text}"))
}

/// Claim: a clean trial, twice, satisfies every audit: none fails, none is left out but those of links and of disks,
/// which it has not. Service takes 20 ms, so that a busy machine's lateness stays small beside it.
#[test]
fn a_clean_trial_satisfies_all() {
    let _alone = alone();
    let (said, document) = Place::new().experiment(
        r#"
        trials = 2
        [system]
        kind = "echo"
        [system.deploy]
        servers = 64
        service = "20ms"
        [load]
        rate = "400/s"
        connections = 4
        warmup = "300ms"
        duration = "3s"
        timeout = "5s"
        "#,
    );
    said.expect_code(0);
    assert_eq!(document["verdict"], "pass", "{}", document["reason"]);
    for name in AUDITS {
        let (outcome, detail) = audit(&document, name);
        if name == "links" || name == "disks" {
            // A network and disks of its own would take root.
            assert_eq!(outcome, "skipped", "{detail}");
            continue;
        }
        assert!(outcome == "ok" || outcome == "warn", "{name} is {outcome}: {detail}");
        // Only these depend on what else this machine does.
        let may_warn = ["generator_busy", "host", "send_lag"];
        assert!(outcome == "ok" || may_warn.contains(&name), "{name}: {detail}");
    }
    let names = trial(&document)["audits"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|audit| audit["name"].as_str().unwrap()).collect();
    assert_eq!(names, AUDITS[..21], "the list above names all");
}

/// Claim: every audit of the list has a test of its name in this file.
#[test]
fn every_audit_has_its_trial() {
    let source = include_str!("audits.rs");
    for name in AUDITS {
        assert!(source.contains(&format!("#[test]\nfn {name}() {{")), "{name} has no trial");
    }
}

/// Claim: a queue that is offered more than it serves has a backlog that grows, and is told to be saturated.
#[test]
fn backlog_drift() {
    let (said, document) = canary(
        r#"
        service = "4ms"
        [load]
        rate = "350/s"
        connections = 8
        warmup = "200ms"
        duration = "2s"
        timeout = "5s"
        "#,
    );
    let words = ["the system is saturated", "of what was due", "level = \"saturated\""];
    expect_failed(&said, &document, "backlog_drift", &words);
}

/// Claim: transactions for which this client can open no connection are its own failures. The server closes
/// connections; for half a second of the trial the process may open no file.
#[test]
fn client_failures() {
    let _beside = beside_others();
    let (place, running) = started(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        faults = { close = 10 }
        [load]
        rate = "500/s"
        connections = 2
        warmup = "0s"
        duration = "2s"
        timeout = "2s"
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
    let words = ["failed in this client, not in the system: descriptors, ports or name lookup"];
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
    assert!((4..=60).contains(&count("grown")), "240/s for 50 ms take twelve: {used}");
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

/// Claim: answers that come twice are counted, and the system has broken a promise that nobody has to write.
#[test]
fn duplicates() {
    let (said, document) = canary(&format!("faults = {{ twice = 100 }}\n{QUICK_LOAD}"));
    let words = ["5 answers came for a stage that was already reached"];
    expect_broken(&said, &document, "duplicates", &words);
    let reason = document["reason"].as_str().unwrap();
    assert_eq!(reason, "gave 5 answers for a stage that was already reached");
}

/// Claim: a server that answers some requests twice over HTTP shifts its answers, and what came on these connections is
/// not counted on.
#[test]
fn protocol() {
    let faults = format!("protocol = \"http\"\nfaults = {{ twice = 100 }}\n{QUICK_LOAD}");
    let (said, document) = canary(&faults);
    let words = [
        "ended because the server broke the protocol",
        "bytes came that nobody had asked for",
        "may be another request's",
    ];
    expect_failed(&said, &document, "protocol", &words);
    let seen = &trial(&document)["health"];
    assert!(
        seen["protocol_errors"].as_u64() >= Some(1) && seen["doubtful"].as_u64() >= Some(1),
        "{seen}"
    );
}

/// Claim: a generator that gets no processor describes itself, not the system: it runs beside a loop on the same
/// processor that is given fifteen times as much of it.
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
        &["nice", "-n", "12", &taskset, "-c", "0"],
        r#"
        [system]
        kind = "echo"
        [load]
        rate = "100000/s"
        connections = 4
        warmup = "0s"
        duration = "1s"
        timeout = "10s"
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

/// Claim: a ledger that lost, repeated, invented and reordered says so by id, and the run has failed.
#[test]
fn ledger() {
    let (said, document) = canary(&format!(
        "faults = {{ lose = 100, repeat = 125, invent = 250, reorder = 200, reorder_by = 50 }}\n{QUICK_LOAD}"
    ));
    let words = [
        "5 acknowledged and not in the ledger (tx ",
        "4 in the ledger again (tx ",
        "2 in the ledger and never submitted (tx 46116860184273",
        "placed behind one that was sent after it was acknowledged (tx ",
    ];
    expect_broken(&said, &document, "ledger", &words);
    let reason = document["reason"].as_str().unwrap();
    assert!(reason.starts_with("lost 5 acknowledged transactions: tx "), "{reason}");
}

/// Claim: a disk that kept a sync longer than the plan asks makes the trial invalid. The whole process is stopped for
/// 700 ms, the disk with it, while a sync waits that was to take 300 ms: at nine transactions a second one always does.
#[test]
fn disks() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        harness::say("SKIPPED disks: a disk of a node's own takes root and /dev/fuse");
        return;
    }
    let _beside = beside_others();
    let (place, running) = started(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        sync = true
        [disk]
        nodes = ["echo"]
        sync_delay = "300ms"
        [load]
        rate = "9/s"
        connections = 2
        warmup = "0s"
        duration = "3s"
        timeout = "5s"
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
        [system]
        kind = "echo"
        [links.client]
        delay = "100ms"
        [load]
        rate = "200/s"
        connections = 2
        warmup = "0s"
        duration = "2s"
        timeout = "5s"
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

/// Claim: a window that ends in the middle of a freeze is not stable, whatever its rate says, and it is told.
#[test]
fn littles_law() {
    let (_, document) = canary(
        r#"
        faults = { stall = { at = "1700ms", for = "1s" } }
        [load]
        rate = "300/s"
        connections = 4
        warmup = "0s"
        duration = "2s"
        timeout = "5s"
        "#,
    );
    let words = ["outstanding on average, rate × time in the system", "the window was not stable"];
    expect_told(&document, "littles_law", &words);
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

/// Claim: a kind that is always refused is named before the load, with the answer.
#[test]
fn preflight() {
    let (said, document) = canary(
        r#"
        faults = { refuse = "put" }
        [workload]
        kinds = ["get", "put", "scan"]
        [load]
        rate = "200/s"
        connections = 2
        warmup = "0s"
        duration = "500ms"
        "#,
    );
    let words = ["1 of 3 kinds cannot succeed, at any load: put (refused as invalid)"];
    expect_failed(&said, &document, "preflight", &words);
    assert_eq!(trial(&document)["counts"]["rejected_by_class"]["invalid"], 33);
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
    let words = ["own lag p50", "are in good part the instrument's own"];
    expect_failed(&said, &said.json(), "send_lag", &words);
}

/// Claim: coalesced pacing, which is late on purpose, is named as the reason beside the lag.
#[test]
fn send_lag_of_coalesced_pacing() {
    let (_, document) = canary(&format!("{QUICK_LOAD}pacing = \"coalesced\"\n"));
    let (_, detail) = audit(&document, "send_lag");
    let words = "pacing is coalesced: arrivals are sent in quanta of 1 ms";
    assert!(detail.contains(words), "{detail}");
}

/// Claim: a transaction that is started before it is accepted has its stages out of order.
#[test]
fn stage_order() {
    let faults = "stages = 3\nservice = \"2ms\"\nfaults = { unordered = 10 }";
    let (said, document) = canary(&format!("{faults}\n{QUICK_LOAD}"));
    let words = ["50 transactions have stages out of order (the first is "];
    expect_failed(&said, &document, "stage_order", &words);
}

/// Claim: latencies of the few that a limiter let through are of a minority: told, and no fault of the numbers.
#[test]
fn survivorship() {
    let faults = "faults = { limit = { rate = \"50/s\", burst = 5 } }";
    let (said, document) = canary(&format!("{faults}\n{QUICK_LOAD}"));
    let words = ["never reached committed", "the latencies are of the minority that survived"];
    expect_told(&document, "survivorship", &words);
    harness::expect_holds(&said, &document);
}

/// Claim: a start that is four times as slow as the rest is not steady state.
#[test]
fn warm_up() {
    let _alone = alone();
    let (said, document) = Place::new().experiment(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        servers = 64
        service = "10ms"
        faults = { slow = { at = "0s", for = "600ms", factor = 4 } }
        [load]
        rate = "200/s"
        connections = 4
        warmup = "0s"
        duration = "3s"
        "#,
    );
    let words = ["the start is not like the rest; lengthen load.warmup"];
    expect_failed(&said, &document, "warm_up", &words);
}

/// Claim: two trials of one setting that measured different things are told apart: the server that both attach
/// to becomes ten times slower between them. It keeps no ledger, and is not accused of having lost what it never stored.
/// It changes when the first trial has ended, and before the second has warmed up.
#[test]
fn repeatability() {
    let _alone = alone();
    let server = Echo::start(&["--servers=64", "--service=2ms", "--slow=2200ms+1h*10"]);
    let (said, document) = Place::new().experiment(&format!(
        r#"
        trials = 2
        order = "as-written"
        [system]
        kind = "echo"
        [system.deploy]
        attach = "{}"
        [load]
        rate = "300/s"
        connections = 4
        warmup = "500ms"
        duration = "1500ms"
        drain = "1s"
        "#,
        server.frames
    ));
    let words = ["over 2 trials p50 differs by", "the trials did not measure the same thing"];
    expect_failed(&said, &document, "repeatability", &words);
}

/// 500 a second for a second, where only counts matter; more keys of `[load]` may follow.
const QUICK_LOAD: &str = r#"
[load]
rate = "500/s"
connections = 4
warmup = "0s"
duration = "1s"
timeout = "2s"
"#;

/// A trial of two seconds without anything wrong.
const SMALL: &str = r#"
[system]
kind = "echo"
[load]
rate = "500/s"
connections = 4
warmup = "0s"
duration = "2s"
timeout = "2s"
"#;

/// A small trial, whose folder is then altered and reported again.
fn altered(alter: impl FnOnce(&Path)) -> (Place, Said, Value) {
    let _beside = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(SMALL);
    assert_eq!(audit(&document, "clock").0, "ok");
    alter(&place.trial_folder(&document));
    let (said, document) = place.report();
    (place, said, document)
}

/// A run in a place of its own that has just been started.
fn started(experiment: &str) -> (Place, Running) {
    let place = Place::new();
    place.write("experiment.toml", experiment);
    let arguments = ["run", "experiment.toml", "--json", "--progress", "none", "--no-calibration"];
    let running = Running::start(&mut place.command(&arguments));
    (place, running)
}

/// Waits until a run has recorded that many bytes of rows.
fn await_rows(place: &Place, bytes: u64) {
    await_that(Duration::from_secs(10), "rows are recorded", || {
        let log = place.runs().pop().map(|run| run.join("settings/default/trial-0/rows.log"));
        log.and_then(|log| std::fs::metadata(log).ok()).is_some_and(|log| log.len() > bytes)
    });
}
