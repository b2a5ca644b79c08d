//! Reads, and what they returned; transactions that are logged and refused; checks of what a ledger holds. Trials on the
//! canary by the real binary.

use std::collections::BTreeSet;

use crate::harness::{
    Place, WRONG_FATES, beside_others, expect_audit, expect_holds, expect_none, number, trial,
};
use serde_json::Value;

/// Reads and writes of few keys by many clients, through a queue that serves several at once and not in turn.
fn registers(faults: &str, keys: u32, load: &str) -> String {
    format!(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        servers = 8
        service = {{ mean = "500us", distribution = "exponential" }}
        confess = true
        faults = {{ {faults} }}
        [load]
        model = "closed"
        clients = 32
        connections = 4
        warmup = "100ms"
        timeout = "5s"
        {load}
        [workload]
        kinds = ["put", "get"]
        keys = {keys}
        "#
    )
}

/// The check of that name in the first trial.
#[track_caller]
fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = trial(document)["checks"].as_array().into_iter().flatten();
    let mut named = checks.filter(|check| check["name"] == name);
    named.next().unwrap_or_else(|| panic!("no check called {name}"))
}

/// Claim: of thousands of reads beside concurrent writes, exactly those that the node confesses to have answered with an
/// old value are found, by id, in the check and in the verdict's sentence; the ledger, in which no read stands, is as it
/// should be, and the same folder gives the same again.
#[test]
fn stale_reads_are_found() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(&registers("stale = 400", 4, "duration = \"2s\""));
    said.expect_code(99);
    let path = place.trial_folder(&document).join("nodes/echo.confession");
    let text = std::fs::read_to_string(path).expect("the node confesses");
    let stale = text.lines().filter_map(|line| line.strip_prefix("stale "));
    let stale: BTreeSet<u64> = stale.map(|tx| tx.parse().expect("an id")).collect();
    assert!(stale.len() >= 3, "{text}");
    let found = check(&document, "register");
    assert_eq!(
        (&found["outcome"], number(&found["count"])),
        (&"failed".into(), stale.len() as u64)
    );
    let named = found["examples"].as_array().expect("ids").iter().map(number);
    assert_eq!(named.collect::<BTreeSet<u64>>(), stale.iter().copied().take(100).collect());
    let words = found["words"].as_str().expect("words");
    assert!(words.contains("a value that had been overwritten before they began"), "{words}");
    // A failed threshold comes before what a busy machine voids.
    let reason = document["reason"].as_str().expect("a reason");
    let first = format!("(tx {}", stale.first().expect("three of them"));
    assert!(reason.starts_with("check register: ") && reason.contains(&first), "{reason}");
    expect_audit(&document, "ledger", "ok", "none lost, repeated or invented");
    expect_audit(&document, "conservation", "ok", "rows and engine agree");
    let fates = &trial(&document)["fates"];
    assert_eq!((number(&fates["lost"]), number(&fates["phantom"])), (0, 0));
    // Every entry is a write's, and about half of what was committed were reads.
    assert_eq!(fates["entries"], fates["once"]);
    assert!(number(&fates["once"]) < number(&trial(&document)["counts"]["committed"]) * 3 / 4);
    let (_, again) = place.report();
    assert_eq!(check(&again, "register"), found);
}

/// Claim: in twenty trials with an honest node the check has looked at reads and found nothing, however few the keys.
#[test]
fn honest_reads_are_believed() {
    let _beside = beside_others();
    for (keys, trials) in [(1, 5), (4, 10), (1000, 5)] {
        let text = registers("", keys, "duration = \"500ms\"");
        let (said, document) = Place::new().experiment(&format!("trials = {trials}\n{text}"));
        expect_holds(&said, &document);
        let all = document["settings"][0]["trials"].as_array().expect("trials");
        assert_eq!(all.len(), trials);
        for one in all {
            let found = &one["checks"][0];
            assert_eq!((&found["name"], &found["outcome"]), (&"register".into(), &"ok".into()));
            // How many there were in half a second is the machine's own.
            assert!(number(&found["count"]) > 0, "{found}");
            assert_eq!(one["fates"]["lost"], 0);
        }
    }
}

/// Claim: a transaction that the node logs and refuses has its own fate, by id, and is no failed threshold; one that was
/// refused and not logged is nowhere; and the rest stands there once. (The preflight pass rightly says that the kind
/// cannot succeed.)
#[test]
fn refused_and_logged_as_such() {
    let _beside = beside_others();
    let run = |faults: &str| {
        Place::new().experiment(&format!(
            r#"
            system.kind = "echo"
            load = {{ rate = "1000/s", warmup = "0s", duration = "1s", timeout = "5s" }}
            workload = {{ kinds = ["put", "pay"] }}
            [system.deploy]
            faults = {{ {faults} }}
            "#
        ))
    };
    let (said, document) = run(r#"refuse = "pay", logs_refused = true"#);
    said.expect_code(97);
    let fates = &trial(&document)["fates"];
    let logged = number(&fates["refused_as_logged"]);
    assert_eq!(logged, number(&trial(&document)["counts"]["rejected"]));
    assert!(logged >= 400, "{fates}");
    assert_eq!(number(&fates["refused_entries"]), logged);
    assert_eq!(number(&fates["entries"]), logged + number(&fates["once"]));
    let first = fates["examples"]["refused_as_logged"][0].clone();
    assert_eq!(number(&first), 1, "every other one, from the second on");
    expect_none(trial(&document), &WRONG_FATES[..4]);
    expect_audit(&document, "ledger", "ok", "refused and logged as such; none lost");
    expect_audit(&document, "conservation", "ok", "rows and engine agree");
    let (_, document) = run(r#"refuse = "pay""#);
    let fates = &trial(&document)["fates"];
    assert_eq!((&fates["refused_as_logged"], &fates["refused_entries"]), (&0.into(), &0.into()));
}

/// Claim: entries that hold something else than was submitted, acknowledged transactions that stand there as refused only,
/// and reads that stand there at all are each found by id, and each for what it is.
#[test]
fn what_the_ledger_holds() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(
        r#"
        system.kind = "echo"
        load = { rate = "1000/s", threads = 2, connections = 2, warmup = "0s", duration = "1s", timeout = "5s" }
        workload = { payload = "100B", kinds = ["put", "get"], verify_content = true }
        [system.deploy]
        confess = true
        faults = { alter = 97, void = 101, logs_reads = true }
        "#,
    );
    said.expect_code(99);
    let path = place.trial_folder(&document).join("nodes/echo.confession");
    let text = std::fs::read_to_string(path).expect("the node confesses");
    let confessed = |word: &str| -> Vec<u64> {
        let mut ids: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix(word))
            .map(|tx| tx.trim().parse().expect("an id"))
            .collect();
        ids.sort_unstable();
        ids
    };
    let ids = |value: &Value| -> Vec<u64> {
        let mut ids: Vec<u64> = value.as_array().into_iter().flatten().map(number).collect();
        ids.sort_unstable();
        ids
    };
    let (altered, void) = (confessed("alter "), confessed("void "));
    assert!(altered.len() >= 4 && void.len() >= 4, "{text}");
    let found = check(&document, "content");
    assert_eq!((&found["outcome"], ids(&found["examples"])), (&"failed".into(), altered.clone()));
    assert_eq!(number(&found["count"]), altered.len() as u64);
    assert_eq!(check(&document, "register")["outcome"], "ok");
    let fates = &trial(&document)["fates"];
    assert_eq!(ids(&fates["examples"]["lost"]), void);
    assert_eq!(number(&fates["lost_as_refused"]), void.len() as u64);
    let reads = number(&fates["phantom_unrecorded"]);
    assert!(reads >= 400 && reads == number(&fates["phantom"]), "{fates}");
    assert!(ids(&fates["examples"]["phantom"]).iter().all(|tx| tx % 2 == 1), "{fates}");
    expect_audit(&document, "ledger", "warn", "acknowledged and in the ledger only as refused");
    expect_audit(
        &document,
        "ledger",
        "warn",
        "in the ledger and of a kind that it does not record",
    );
}
