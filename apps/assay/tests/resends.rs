//! What is unknown is sent again: on a node that closes connections or keeps answers to itself, everything is committed
//! in the end, and the ledger shows what that cost.

use crate::harness::{Place, beside_others, number, trial};
use serde_json::Value;

/// 800 transactions against a node with such faults; `load` follows `[load]`.
fn run(faults: &str, load: &str) -> Value {
    let _beside = beside_others();
    let (_, document) = Place::new().experiment(&format!(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        faults = {{ {faults} }}
        [load]
        rate = "400/s"
        connections = 4
        warmup = "0s"
        duration = "2s"
        timeout = "10s"
        {load}
        "#
    ));
    document
}

fn counts(document: &Value, name: &str) -> u64 {
    number(&trial(document)["counts"][name])
}

/// Claim: a node that stores and then closes the connection, or never answers, leaves transactions unknown; with
/// `load.resend` all are committed, none is lost, and those that were stored twice stand in the ledger twice.
#[test]
fn what_is_unknown_is_sent_again() {
    for (faults, after) in [("close = 40", ""), ("drop = 40", ", after = \"300ms\"")] {
        let once = run(faults, "drain = \"500ms\"");
        assert!(counts(&once, "unknown") >= 10, "{faults}: {}", trial(&once)["counts"]);
        let again = run(faults, &format!("resend = {{ attempts_max = 50{after} }}"));
        let due = counts(&again, "due");
        assert_eq!((due, counts(&again, "committed")), (800, 800), "{faults}");
        let fates = &trial(&again)["fates"];
        assert_eq!((number(&fates["lost"]), number(&fates["phantom"])), (0, 0), "{faults}");
        assert!(number(&fates["duplicate"]) >= 10, "{faults}: {fates}");
        // What the ledger holds twice was sent more than once, and the result says how often.
        let attempts = &trial(&again)["attempts"];
        let of = |name: &str| number(&attempts[name]);
        assert!(of("resent") >= 10 && of("allowed") == 50, "{faults}: {attempts}");
        assert!(of("total") >= 800 + of("resent") && of("max") >= 2, "{faults}: {attempts}");
        let of_once = &trial(&once)["attempts"];
        let [most, resent] = ["max", "resent"].map(|name| number(&of_once[name]));
        assert_eq!((most, resent), (1, 0), "{faults}: {of_once}");
    }
}
