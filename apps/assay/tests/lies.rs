//! One lie in 100,000 acknowledged transactions, at full speed: found each time, by id, and nothing else is.
//! The node writes down what it lied about; Assay is not told.

use std::collections::BTreeSet;

use crate::harness::{Place, beside_others, expect_audit, number, trial};
use serde_json::Value;

/// How often each lie is told.
const EVERY: u64 = 100_000;

/// The fewest transactions that a run must make for the claim to mean something.
const TRANSACTIONS_MIN: u64 = 300_000;

/// The bit that marks an invented transaction's id (systems/echo/README.md).
const INVENTED: u64 = 1 << 62;

/// Runs 350,000 pipelined transactions at full speed against a liar; gives the document and its confession.
fn liar(faults: &str) -> (Value, Vec<(String, u64)>) {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(&format!(
        r#"
        system.kind = "echo"
        workload = {{ payload = "16B" }}
        [system.deploy]
        in_flight_max = 256
        confess = true
        faults = {{ {faults} }}
        [load]
        rate = "max"
        connections = 2
        warmup = "0s"
        duration = "20s"
        transactions_max = 350000
        timeout = "10s"
        "#
    ));
    said.expect_code(99);
    let due = number(&trial(&document)["counts"]["due"]);
    assert!(due >= TRANSACTIONS_MIN, "only {due} transactions");
    let path = place.trial_folder(&document).join("nodes/echo.confession");
    let text = std::fs::read_to_string(path).expect("the node confesses");
    let line = |line: &str| {
        let (word, tx) = line.split_once(' ').expect("a word and a transaction");
        (word.to_owned(), tx.parse().expect("an id"))
    };
    (document, text.lines().map(line).collect())
}

/// The ids of a fate that the document names.
fn named(document: &Value, fate: &str) -> BTreeSet<u64> {
    let ids = trial(document)["fates"]["examples"][fate].as_array();
    ids.into_iter().flatten().map(number).collect()
}

/// The ids that the node confesses to have lied about with `word`.
fn confessed(confession: &[(String, u64)], word: &str) -> BTreeSet<u64> {
    confession.iter().filter(|(lie, _)| lie == word).map(|(_, tx)| *tx).collect()
}

/// Asserts that a lie was found by its ids, all of them and no others, and gives how many there were.
#[track_caller]
fn expect_found(document: &Value, confession: &[(String, u64)], word: &str, fate: &str) -> u64 {
    let ids = confessed(confession, word);
    assert!(ids.len() >= 3, "one in {EVERY} of {TRANSACTIONS_MIN} is three: {ids:?}");
    assert_eq!(named(document, fate), ids, "{word}");
    let count = number(&trial(document)["fates"][fate]);
    assert_eq!(count, ids.len() as u64, "{word}");
    let first = format!("(tx {}", ids.first().expect("three of them"));
    expect_audit(document, "ledger", "warn", &first);
    count
}

/// Asserts that the ledger holds everything else once.
#[track_caller]
fn expect_rest(document: &Value, lost: u64, duplicate: u64, phantom: u64) {
    let trial = trial(document);
    let (fates, committed) = (&trial["fates"], number(&trial["counts"]["committed"]));
    let found = ["lost", "duplicate", "phantom", "late", "refused_yet_present", "reordered"];
    let found = found.map(|fate| number(&fates[fate]));
    assert_eq!(found, [lost, duplicate, phantom, 0, 0, 0]);
    assert_eq!(number(&fates["entries"]), committed - lost + duplicate + phantom);
    // One that is there twice is not there once.
    assert_eq!(number(&fates["once"]), committed - lost - duplicate);
}

/// Claim: a server that acknowledges and does not store one transaction in 100,000 is found out, by id.
#[test]
fn one_lost_in_a_hundred_thousand() {
    let (document, confession) = liar("lose = 100000");
    let lost = expect_found(&document, &confession, "lose", "lost");
    expect_rest(&document, lost, 0, 0);
    expect_audit(&document, "conservation", "ok", "rows and engine agree");
}

/// Claim: a server that stores one transaction in 100,000 twice is found out, by id.
#[test]
fn one_repeated_in_a_hundred_thousand() {
    let (document, confession) = liar("repeat = 100000");
    let duplicate = expect_found(&document, &confession, "repeat", "duplicate");
    expect_rest(&document, 0, duplicate, 0);
}

/// Claim: an entry beside one transaction in 100,000 that was never submitted is found out, by its id.
#[test]
fn one_invented_in_a_hundred_thousand() {
    let (document, confession) = liar("invent = 100000");
    let phantom = expect_found(&document, &confession, "invent", "phantom");
    assert!(named(&document, "phantom").iter().all(|tx| tx & INVENTED != 0));
    expect_rest(&document, 0, 0, phantom);
}

/// Claim: all three lies at once, with a different seed, are told apart.
#[test]
fn all_three_at_once() {
    let faults = "lose = 100000, repeat = 100000, invent = 100000";
    let (document, confession) = liar(faults);
    let lost = expect_found_of(&document, &confession, "lose", "lost");
    let duplicate = expect_found_of(&document, &confession, "repeat", "duplicate");
    let phantom = expect_found_of(&document, &confession, "invent", "phantom");
    expect_rest(&document, lost, duplicate, phantom);
}

/// The same as `expect_found`, without the sentence, which names three ids of each fate at most.
#[track_caller]
fn expect_found_of(document: &Value, confession: &[(String, u64)], word: &str, fate: &str) -> u64 {
    let ids = confessed(confession, word);
    assert!(ids.len() >= 3, "{word}: {ids:?}");
    assert_eq!(named(document, fate), ids, "{word}");
    number(&trial(document)["fates"][fate])
}
