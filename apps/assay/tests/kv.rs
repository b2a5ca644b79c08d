//! The key-value database as users meet it.

mod durability;

use crate::harness::{
    DISK, LINKS, Place, WRONG_FATES, beside_others, expect_checks, expect_none, has_all, number,
};

/// Claim: with every workload, size and number of clients of the experiment each acknowledged transaction stands once in
/// the ledger, and what left together left as batches.
#[test]
fn batches_are_executed_once() {
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("kv/batching", &[]);
    let settings: Vec<_> = document["settings"].as_array().into_iter().flatten().collect();
    assert_eq!(settings.len(), 7);
    for setting in settings {
        let trial = &setting["trials"][0];
        let (key, fates) = (&setting["key"], &trial["fates"]);
        expect_none(trial, &WRONG_FATES);
        assert!(number(&fates["once"]) > 100, "{key}: {fates}");
    }
}

/// Claim: lists and accounts are found strictly serializable and conserved by every check that applies, which looked at what
/// was answered; reads leave nothing in the ledger and are not missed there.
#[test]
fn what_clients_see_is_in_order() {
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("kv/consistency", &[]);
    let settings: Vec<_> = document["settings"].as_array().into_iter().flatten().collect();
    assert_eq!(settings.len(), 2);
    for setting in settings {
        let trial = &setting["trials"][0];
        let key = setting["key"].as_str().unwrap_or_default();
        let names = expect_checks(trial);
        let expected: &[&str] = match key {
            "workload=bank" => &["commit-order", "conserved"],
            _ => &["commit-order", "list-append"],
        };
        for name in expected {
            assert!(names.contains(name), "{key}: {names:?}");
        }
        let fates = &trial["fates"];
        assert_eq!(number(&fates["lost"]) + number(&fates["phantom"]), 0, "{key}: {fates}");
        assert!(number(&fates["once"]) > 100, "{key}: {fates}");
    }
}

/// Claim: whatever is done to the leader, nothing that was acknowledged is lost or executed twice, and what clients saw is
/// strictly serializable; the group goes on after the fault.
#[test]
fn faults_lose_nothing() {
    if !has_all("faults of kv", &[DISK, LINKS]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("kv/faults", &[]);
    let settings: Vec<_> = document["settings"].as_array().into_iter().flatten().collect();
    assert_eq!(settings.len(), 4);
    for setting in settings {
        let trial = &setting["trials"][0];
        let (key, fates) = (&setting["key"], &trial["fates"]);
        expect_none(trial, &WRONG_FATES);
        assert!(number(&fates["once"]) > 100, "{key}: {fates}");
        let names = expect_checks(trial);
        assert!(names.len() >= 2, "{key}: {names:?}");
    }
}

/// Claim: a replica that loses its disk under load, at once or for a while, comes back empty and catches up; nothing that was acknowledged is lost or executed twice, what clients saw is in order, and all replicas hold the same.
#[test]
fn lost_disks_lose_nothing() {
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("kv/replace", &[]);
    let settings: Vec<_> = document["settings"].as_array().into_iter().flatten().collect();
    assert_eq!(settings.len(), 4);
    let mut met = Vec::new();
    for setting in settings {
        let trial = &setting["trials"][0];
        let (key, fates) = (&setting["key"], &trial["fates"]);
        expect_none(trial, &WRONG_FATES);
        assert!(number(&fates["once"]) > 100, "{key}: {fates}");
        let fault = &trial["faults"][0];
        // A busy machine may end the trial before.
        let is_back = |what: &str| ["caught_up", "not_caught_up"].contains(&what);
        assert!(fault["ended"]["what"].as_str().is_some_and(is_back), "{key}: {fault}");
        met.push(number(&fault["in_flight"]));
        assert!(expect_checks(trial).contains(&"same-state"), "{key}");
    }
    // Any of them may come when a batch has just answered all.
    assert!(met.iter().filter(|it| **it >= 16).count() >= 2, "{met:?}");
}
