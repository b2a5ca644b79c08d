//! Which connection a transaction takes: a server that keeps each client's order, and connections that go to another
//! node when theirs is killed.

use crate::harness::{Place, beside_others, expect_audit, number, trial};
use serde_json::Value;

/// Claim: a server that demands each client's transactions in order on one connection refuses most of them where they
/// take any connection, and none where clients stay on theirs, also on several threads, with an open and a closed loop.
/// (Numbers of clients that connections in turn would not serve by chance.)
#[test]
fn a_server_that_needs_affinity() {
    let arrivals = ["rate = \"1200/s\"", "model = \"closed\"\nclients = 26\nthink = \"10ms\""];
    for (arrivals, threads) in arrivals.into_iter().zip([2, 1]) {
        let run = |affinity: &str| {
            let _beside = beside_others();
            let (_, document) = Place::new().experiment(&format!(
                r#"
                system.kind = "echo"
                workload = {{ payload = "16B", clients = 26 }}
                [system.deploy]
                ordered = true
                service = "20us"
                [load]
                {arrivals}
                connections = 8
                threads = {threads}
                affinity = "{affinity}"
                warmup = "0s"
                duration = "2s"
                timeout = "10s"
                "#
            ));
            document
        };
        let counts = |document: &Value| {
            let counts = &trial(document)["counts"];
            let conflicts = counts["rejected_by_class"]["conflict"].as_u64().unwrap_or(0);
            [number(&counts["due"]), number(&counts["committed"]), conflicts]
        };
        let anywhere = run("any");
        let [due, committed, conflicts] = counts(&anywhere);
        assert!(conflicts * 2 > due && committed > 0, "{arrivals}: {committed} of {due}");
        let at_home = run("client");
        let [due, committed, conflicts] = counts(&at_home);
        assert!(due > 0 && committed == due, "{arrivals}: {committed} of {due}, {conflicts}");
        expect_audit(&at_home, "ledger", "ok", "");
    }
}

/// 800 transactions, of which some ten are always under way; the node that they go to is killed in mid-load.
fn killed(nodes: u32, resend: &str, patience: &str) -> Value {
    let _beside = beside_others();
    let first = if nodes == 1 { "echo" } else { "echo0" };
    let (_, document) = Place::new().experiment(&format!(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        nodes = {nodes}
        servers = 64
        service = "25ms"
        sync = true
        [load]
        rate = "400/s"
        connections = 4
        warmup = "0s"
        duration = "2s"
        timeout = "{patience}"
        drain = "{patience}"
        {resend}
        [[fault]]
        at = "1s"
        kill = "{first}"
        "#
    ));
    document
}

/// Claim: when their node is killed, connections go to the second one, what was outstanding is sent again there, and
/// everything is committed and stands in one of the two ledgers. Without sending again what was outstanding stays unknown;
/// without a second node half of all is never committed.
#[test]
fn connections_go_to_the_second_node() {
    let resend = "resend = { attempts_max = 20 }";
    let document = killed(2, resend, "60s");
    let at = trial(&document);
    let (counts, fates) = (&at["counts"], &at["fates"]);
    let count = |name: &str| number(&counts[name]);
    assert_eq!((count("due"), count("committed")), (800, 800), "{counts}");
    let fate = |name: &str| number(&fates[name]);
    assert_eq!((fate("lost"), fate("phantom"), fate("late")), (0, 0, 0), "{fates}");
    assert_eq!(fate("entries"), 800 + fate("duplicate"), "{fates}");
    assert!(number(&at["attempts"]["resent"]) >= 3, "{}", at["attempts"]);
    assert_eq!(at["faults"][0]["node"], "echo0");
    assert_eq!(at["faults"][0]["happened"], true);

    let unknown = killed(2, "", "10s");
    let counts = &trial(&unknown)["counts"];
    assert!(number(&counts["unknown"]) >= 3, "{counts}");
    assert_eq!(number(&counts["committed"]) + number(&counts["unknown"]), 800, "{counts}");

    let alone = killed(1, resend, "10s");
    let counts = &trial(&alone)["counts"];
    assert!(number(&counts["committed"]) < 500, "{counts}");
}
