//! Real nodes: anvil whose pool keeps what its blocks do not take, and geth's chain for development within and past its
//! means.

use serde_json::Value;

use crate::harness::{Place, beside_others, finish, has_all, number, trial_of};

/// How many a check of a trial named; `None` where it held.
fn named(trial: &Value, check: &str) -> Option<u64> {
    let checks = trial["checks"].as_array().into_iter().flatten();
    let found = checks.into_iter().find(|one| one["name"] == check);
    let found = found.unwrap_or_else(|| panic!("no check {check}: {}", trial["checks"]));
    (found["outcome"] == "failed").then(|| number(&found["count"]))
}

fn run(place: &Place, name: &str, more: &[&str]) -> Value {
    run_profile(place, name, "toy", more)
}

fn run_profile(place: &Place, name: &str, profile: &str, more: &[&str]) -> Value {
    finish(&mut place.shipped(&format!("ethereum/{name}"), profile, more)).json()
}

/// Claim: transfers within a node's means are all mined once, on anvil and on geth, and nothing is named.
#[test]
fn within_their_means() {
    if !has_all("ethereum", &["anvil", "geth"]) {
        return;
    }
    let _beside = beside_others();
    let document = run(&Place::new(), "transfers", &[]);
    for node in ["anvil", "geth"] {
        let trial = trial_of(&document, &format!("node={node},rate=100/s"));
        let fates = &trial["fates"];
        assert!(in_chain(fates) >= 200, "{node}: {fates}");
        for fate in ["lost", "duplicate", "phantom", "refused_yet_present", "refused_as_logged"] {
            assert_eq!(number(&fates[fate]), 0, "{node}: {fate}: {fates}");
        }
        for check in
            ["dropped", "left_in_pool", "nonce_gap", "replaced", "reverted", "shared_account"]
        {
            assert_eq!(named(trial, check), None, "{node}: {}", trial["checks"]);
        }
    }
}

/// How many transfers are in the chain, in time or after it: that is the machine's.
fn in_chain(fates: &Value) -> u64 {
    number(&fates["once"]) + number(&fates["late"])
}

/// What of a trial's transfers is neither in the chain nor refused: so many are named by the checks of what waits and of what
/// is gone.
fn kept_or_gone(trial: &Value) -> u64 {
    ["dropped", "left_in_pool", "nonce_gap"].iter().filter_map(|check| named(trial, check)).sum()
}

/// Every transfer that was due has one fate: in the chain, refused, never sent, left in the pool, or gone. What the node never
/// answered, on a machine that starves it, is known only where it is in the chain.
#[track_caller]
fn expect_each_has_a_fate(trial: &Value) {
    let (counts, fates) = (&trial["counts"], &trial["fates"]);
    let kept_out = number(&counts["rejected"]) + number(&counts["shed"]);
    let sum = in_chain(fates) + kept_out + kept_or_gone(trial);
    let accepted = &trial["latency"][0];
    assert_eq!(accepted["stage"], "accepted");
    let unanswered = number(&accepted["missing"]) - number(&counts["shed"]);
    let due = number(&counts["due"]);
    assert!(
        (due - unanswered..=due).contains(&sum),
        "{sum}, {unanswered} were never answered: {counts}, {fates}, {}",
        trial["checks"]
    );
    for fate in ["lost", "duplicate", "phantom", "refused_yet_present"] {
        assert_eq!(number(&fates[fate]), 0, "{fate}: {fates}");
    }
}

/// Claim: at a rate that geth takes and at one that it does not, each transfer has a fate: mined, in time or late, or dropped by
/// a pool without room that had accepted it, which is no success.
#[test]
fn past_the_knee_of_geth() {
    if !has_all("ethereum", &["geth"]) {
        return;
    }
    let _beside = beside_others();
    let only = ["--set", "matrix.node.values=['geth']"];
    let document = run_profile(&Place::new(), "transfers", "knee", &only);
    for rate in ["100/s", "4800/s"] {
        let trial = trial_of(&document, &format!("node=geth,rate={rate}"));
        expect_each_has_a_fate(trial);
        let (counts, left) = (&trial["counts"], kept_or_gone(trial));
        assert!(in_chain(&trial["fates"]) > 0, "{}", trial["fates"]);
        assert!(number(&counts["committed"]) + left <= number(&counts["due"]), "{counts}");
        // How many its pool drops, and how many it mines late instead, is the machine's: only the first is a failure by itself.
        if left > 0 {
            assert_eq!(trial["verdict"], "fail", "{}", trial["checks"]);
        }
    }
}

/// Claim: what anvil accepts and leaves in its pool is named, by the transfer, and is no success: it could have been mined, or it
/// waits for one of its account that the machine was too slow to send.
#[test]
fn left_in_the_pool() {
    if !has_all("ethereum", &["anvil"]) {
        return;
    }
    let _beside = beside_others();
    let only = ["--set", "matrix.node.values=['anvil']", "--set", "matrix.rate.values=['2400/s']"];
    let document = run_profile(&Place::new(), "transfers", "knee", &only);
    let trial = trial_of(&document, "node=anvil,rate=2400/s");
    expect_each_has_a_fate(trial);
    let left: u64 =
        ["left_in_pool", "nonce_gap"].iter().filter_map(|check| named(trial, check)).sum();
    let counts = &trial["counts"];
    assert!(left > 100, "{}", trial["checks"]);
    assert!(number(&counts["committed"]) + left <= number(&counts["due"]), "{counts}");
    assert_eq!(trial["verdict"], "fail");
}

/// Claim: errors inside of replies are refusals, and what a node accepted and dropped, or leaves in its pool, is no success and
/// is named: twice of what the blocks hold is offered, and full blocks make them too dear. Each transfer that was due has one
/// fate: in the chain, refused, in the pool, or gone.
#[test]
fn a_pool_that_keeps() {
    if !has_all("ethereum", &["anvil"]) {
        return;
    }
    let _beside = beside_others();
    let document = run(&Place::new(), "interval", &["--set", "load.warmup=0s"]);
    let trial = &document["settings"][0]["trials"][0];
    let (counts, fates) = (&trial["counts"], &trial["fates"]);
    let (due, refused) = (number(&counts["due"]), number(&counts["rejected"]));
    expect_each_has_a_fate(trial);
    assert!(in_chain(fates) > 100 && number(&counts["committed"]) < due, "{counts}, {fates}");
    // How many of them there are, and which keep them out, is the machine's.
    assert!(kept_or_gone(trial) > 0, "{}", trial["checks"]);
    let errors = trial["errors"].to_string();
    assert!(refused > 0 && errors.contains("max fee below the base fee"), "{errors}");
    assert_eq!(trial["verdict"], "fail");
}

/// Claim: two clients that share an account, a nonce that is given again, and a transfer that reverts are each named by their
/// check and by no other, and nothing is named where there is no fault. A transfer that reverted has its hash beside it.
#[test]
fn faults_of_accounts() {
    if !has_all("ethereum", &["anvil"]) {
        return;
    }
    let _beside = beside_others();
    let document = run(&Place::new(), "accounts", &[]);
    for (fault, check) in [
        ("none", ""),
        ("shared", "shared_account"),
        ("replacing", "replaced"),
        ("reverting", "reverted"),
    ] {
        let trial = trial_of(&document, &format!("node=anvil,fault={fault}"));
        for other in ["shared_account", "replaced", "reverted"] {
            let count = named(trial, other);
            assert_eq!(count.is_some(), other == check, "{fault}: {}", trial["checks"]);
        }
        if check == "reverted" {
            let checks = trial["checks"].as_array().into_iter().flatten();
            let words =
                checks.filter(|one| one["name"] == check).find_map(|it| it["words"].as_str());
            let hash = words.and_then(|words| words.rsplit_once("; the first: 0x"));
            assert!(hash.is_some_and(|(_, hash)| hash.len() == 64), "{words:?}");
        }
    }
}
