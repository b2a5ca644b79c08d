//! A database of others: PostgreSQL on the testbed's own disk, cut from its power with and without syncing; and its
//! isolation levels, judged by what clients read.

use crate::harness::{
    self, DISK, Place, WRONG_FATES, beside_others, expect_none, has_all, number, processes_of,
    trial_of,
};

/// Claim: a server that syncs loses nothing of what it has acknowledged when its power goes, and one that does not loses
/// entries, each named by id; none is stored twice or out of order, and no process is left. Beside what was lost stands what the
/// server said of its settings, with the documentation's promise for that value.
#[test]
fn power_takes_what_was_not_synced() {
    if !has_all("postgres", &["postgres", DISK]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("durability/postgres", &[]);
    for (key, is_lossy) in
        [("setting=default,fault=power-all", false), ("setting=unsafe,fault=power-all", true)]
    {
        let trial = trial_of(&document, key);
        let fates = &trial["fates"];
        assert_eq!(number(&fates["lost"]) > 0, is_lossy, "{key}: {fates}");
        expect_none(trial, &WRONG_FATES[1..]);
        // Without syncing the whole table may go, and a starved server come back too late for another entry.
        assert!(is_lossy || number(&fates["once"]) > 0, "{key}: it went on: {fates}");
        if is_lossy {
            let named = fates["examples"]["lost"].as_array().map_or(0, Vec::len);
            assert!(named > 0, "{fates}");
        }
        assert_eq!(trial["faults"][0]["ended"]["what"], "started_again", "{key}");
    }
    for (setting, name, value, words) in [
        ("default", "synchronous_commit", "on", "wait for local flush of WAL to disk"),
        (
            "async",
            "synchronous_commit",
            "off",
            "there can be a delay between when success is reported",
        ),
        ("default", "fsync", "on", "can recover to a consistent state"),
        ("unsafe", "fsync", "off", "can result in unrecoverable data corruption"),
    ] {
        let durability =
            &trial_of(&document, &format!("setting={setting},fault=power-all"))["durability"];
        assert!(durability["version"].as_str().is_some_and(|it| !it.is_empty()), "{durability}");
        let found = harness::durability_setting(durability, name);
        assert_eq!((&found["value"], &found["default"]), (&value.into(), &"on".into()), "{found}");
        let promise = &found["promise"];
        assert!(promise["words"].as_str().is_some_and(|it| it.contains(words)), "{found}");
        assert_eq!(promise["document"], "PostgreSQL 15");
        assert_eq!(promise["section"], "20.5.1, Settings");
    }
    assert!(processes_of(place.path()).is_empty(), "{:?}", processes_of(place.path()));
}

/// Claim: at read committed and at repeatable read the check names a cycle of transactions that both committed, a write skew
/// among them; at serializable it finds none with two clients. With more it finds at most a write skew, because three
/// connections can meet a race in the server (experiments/durability/second/postgres-late-commit.py).
#[test]
fn isolation_levels_allow_what_they_say() {
    if !has_all("postgres", &["postgres"]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let of_sixteen = place.toy("durability/postgres-isolation", &[]);
    let two = ["--set=load.clients=2", "--set=load.connections=2"];
    let of_two = place.toy("durability/postgres-isolation", &two);
    for (document, level, is_clean) in [
        (&of_sixteen, "read committed", false),
        (&of_sixteen, "repeatable read", false),
        (&of_two, "serializable", true),
    ] {
        let trial = trial_of(document, &format!("level={level}"));
        let checks = trial["checks"].as_array().into_iter().flatten();
        let mut found = checks.filter(|check| check["name"] == "list-append");
        let check = found.next().unwrap_or_else(|| panic!("{level}: no check: {trial}"));
        assert_eq!(check["outcome"] == "ok", is_clean, "{level}: {check}");
        match level {
            // Any of them may come first there; each is a cycle that is named.
            "read committed" => assert!(check.to_string().contains("skew"), "a skew: {check}"),
            "repeatable read" => {
                assert!(check.to_string().contains("G2-item"), "a write skew: {check}");
            }
            _ => assert!(number(&check["count"]) > 0, "it was looked at: {check}"),
        }
        assert_eq!(number(&trial["fates"]["lost"]), 0, "{level}");
    }
    let raced = trial_of(&of_sixteen, "level=serializable")["checks"].to_string();
    let is_skew = raced.contains("snapshot isolation at most");
    assert!(is_skew || !raced.contains("\"outcome\":\"failed\""), "{raced}");
}
