//! Trials in which the system, or what is asked of it, makes an audit object.

use crate::harness::{self, Echo, Place, alone, trial};

use super::{QUICK_LOAD, canary, expect_broken, expect_failed, expect_told};

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

/// Claim: answers that come twice are counted, and the system has failed an implicit threshold.
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
        "unsolicited bytes received",
        "may be another request's",
    ];
    expect_failed(&said, &document, "protocol", &words);
    let seen = &trial(&document)["health"];
    assert!(
        seen["protocol_errors"].as_u64() >= Some(1) && seen["doubtful"].as_u64() >= Some(1),
        "{seen}"
    );
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
        "placed after one that was sent after it was acknowledged (tx ",
    ];
    expect_broken(&said, &document, "ledger", &words);
    let reason = document["reason"].as_str().unwrap();
    assert!(
        reason.contains("thresholds failed: lost 5 acknowledged transactions: tx "),
        "{reason}"
    );
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
    let words =
        ["the test request before the load failed for 1 of 3 kinds: put (refused as invalid)"];
    expect_failed(&said, &document, "preflight", &words);
    assert_eq!(trial(&document)["counts"]["rejected_by_class"]["bad_request"], 33);
}

/// Claim: a transaction that is started before it is accepted has its stages out of order.
#[test]
fn stage_order() {
    let faults = "stages = 3\nservice = \"2ms\"\nfaults = { unordered = 10 }";
    let (said, document) = canary(&format!("{faults}\n{QUICK_LOAD}"));
    // Both marks of one receipt have its stamp: a transaction whose two answers came together is in order.
    let words = [" transactions have stages out of order (the first is "];
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

/// Claim: a start that is ten times as slow as the rest is not steady state.
#[test]
fn warm_up() {
    let _alone = alone();
    let (said, document) = Place::new().experiment(
        r#"
        system.kind = "echo"
        load = { rate = "200/s", connections = 4, warmup = "0s", duration = "3s" }
        [system.deploy]
        servers = 256
        service = "10ms"
        faults = { slow = { at = "0s", for = "600ms", factor = 50 } }
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
    let server = Echo::start(&["--servers=64", "--service=2ms", "--slow=3700ms+1h*10"]);
    let (said, document) = Place::new().experiment(&format!(
        r#"
        trials = 2
        order = "as-written"
        system.kind = "echo"
        load = {{ rate = "300/s", connections = 4, warmup = "500ms", duration = "3s", drain = "1s" }}
        [system.deploy]
        attach = "{}"
        "#,
        server.frames
    ));
    let words = ["over 2 trials p50 differs by", "the trials did not measure the same thing"];
    expect_failed(&said, &document, "repeatability", &words);
}

/// Claim: a server that is slower in each second has latencies of no one level, and the audit says so.
#[test]
fn latency_drift() {
    let (_, document) = canary(
        r#"
        servers = 64
        service = "20ms"
        faults = { drift = "30%" }
        [load]
        rate = "400/s"
        connections = 4
        warmup = "300ms"
        duration = "3s"
        timeout = "5s"
        "#,
    );
    let words =
        ["p50 rises steadily from", "quantiles of the whole window describe none of its levels"];
    expect_told(&document, "latency_drift", &words);
}

/// Claim: a server that stands still for a third of the window, beside clients that wait for it, is told with what they
/// would have sent.
#[test]
fn silence() {
    let (_, document) = canary(
        r#"
        servers = 8
        service = "4ms"
        faults = { stall = { at = "800ms", for = "700ms" } }
        [load]
        model = "closed"
        clients = 8
        connections = 4
        warmup = "0s"
        duration = "2s"
        timeout = "5s"
        "#,
    );
    let words = [
        "nothing was answered for ",
        "a closed loop sends nothing meanwhile",
        "more would have been due",
    ];
    expect_told(&document, "silence", &words);
}

/// Claim: what the warm-up swallowed, the first request on each connection, is told with its time.
#[test]
fn first_use() {
    let (_, document) = canary(
        r#"
        servers = 256
        service = "10ms"
        faults = { slow = { at = "0s", for = "900ms", factor = 50 } }
        [load]
        rate = "200/s"
        connections = 4
        warmup = "1500ms"
        duration = "2s"
        timeout = "5s"
        "#,
    );
    let words = [
        "the first request on each of 4 connections took 5",
        "who opens a connection waits so long",
    ];
    expect_told(&document, "first_use", &words);
}
