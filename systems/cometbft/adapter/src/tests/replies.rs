//! Every reply that a node was seen to give, in its own words, and what is made of it.

use model::{Class, Outcome};

use crate::answer::{Reply, Verdict, quickly_accepted};

fn verdict(text: &str) -> Option<Verdict> {
    serde_json::from_str::<Reply<'_>>(text).unwrap().verdict()
}

fn ended(text: &str) -> (Outcome, u16, String) {
    match verdict(text) {
        Some(Verdict::Ended(outcome, code, words)) => (outcome, code, words),
        other => panic!("{other:?}"),
    }
}

fn error(data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32603,"message":"Internal error","data":"{data}"}}}}"#
    )
}

/// Claim: each refusal of a node has the class that says whose fault it is, and words without numbers that
/// differ each time.
#[test]
fn refusals_are_told_apart() {
    let full = "mempool is full: number of txs 5000 (max: 5000), total txs bytes 5120000 (max: 1073741824)";
    let large = "Tx too large. Max size is 1048576, but got 1048577";
    let gave_up = "timed out waiting for tx to be included in a block";
    for (data, outcome, words) in [
        ("tx already exists in cache", Outcome::Rejected(Class::Conflict), "already in the cache"),
        (full, Outcome::Rejected(Class::Overloaded), "the mempool is full"),
        (
            "mempool is still rechecking after a new committed block, so it is considered as full",
            Outcome::Rejected(Class::Overloaded),
            "the mempool counts as full while it rechecks",
        ),
        (
            "max_subscription_clients 100 reached",
            Outcome::Rejected(Class::Limited),
            "too many wait for a commit",
        ),
        (
            "txSub was canceled (reason: CometBFT exited)",
            Outcome::Unknown,
            "not in a block before the node gave up",
        ),
        (large, Outcome::Rejected(Class::BadRequest), "the transaction is too large"),
        (gave_up, Outcome::Unknown, "not in a block before the node gave up"),
        ("disk", Outcome::Rejected(Class::Server), "Internal error (-32603): disk"),
    ] {
        assert_eq!(ended(&error(data)), (outcome, 32_603, words.to_owned()));
    }
    let refused = r#"{"jsonrpc":"2.0","id":1,"result":{"code":2,"data":"","log":"","codespace":"","hash":"4AA3"}}"#;
    let by_check = "refused by the check of the application, code 2".to_owned();
    assert_eq!(ended(refused), (Outcome::Rejected(Class::BadRequest), 2, by_check));
}

/// Claim: success is said only where the node says so; a commit whose check or execution failed is none.
#[test]
fn successes_are_what_the_node_says() {
    let taken = r#"{"jsonrpc":"2.0","id":1,"result":{"code":0,"data":"","log":"","codespace":"","hash":"80"}}"#;
    assert_eq!(verdict(taken), Some(Verdict::Accepted));
    let commit = |check: u32, block: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"check_tx":{{"code":{check}}},"tx_result":{{"code":{block}}},"hash":"6F","height":"3"}}}}"#
        )
    };
    assert_eq!(verdict(&commit(0, 0)), Some(Verdict::Committed));
    assert_eq!(ended(&commit(1, 0)).2, "refused by the check of the application, code 1");
    assert_eq!(ended(&commit(0, 70_000)).1, u16::MAX);
    assert_eq!(verdict(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None);
    assert_eq!(verdict(r#"{"jsonrpc":"2.0","id":1}"#), None);
}

/// Claim: the quick way reads what a node writes of a transaction that it has taken, and what it reads the slow way
/// reads as the same; a reply that differs in one byte is left to the slow way, or is the same reply of another.
#[test]
fn the_quick_way_says_what_the_slow_way_says() {
    let taken = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"code":0,"data":"","log":"","codespace":"","hash":"{}"}}}}"#,
            "0A".repeat(32)
        )
    };
    for id in [0, 7, 65_536, 9_999_999_999_999_999_999] {
        assert_eq!(quickly_accepted(&taken(&id.to_string())), Some(id));
        assert_eq!(verdict(&taken(&id.to_string())), Some(Verdict::Accepted));
    }
    for id in ["", "-1", "007", "18446744073709551616", "\"7\"", "7.0"] {
        assert_eq!(quickly_accepted(&taken(id)), None, "{id}");
    }
    let whole = taken("42").into_bytes();
    for at in 0..whole.len() {
        for flip in [1, 2, 0x10, 0x20] {
            let mut altered = whole.clone();
            altered[at] ^= flip;
            let Ok(altered) = String::from_utf8(altered) else { continue };
            let Some(id) = quickly_accepted(&altered) else { continue };
            let slow: Reply<'_> = serde_json::from_str(&altered).unwrap();
            assert_eq!((slow.id, slow.verdict()), (Some(id), Some(Verdict::Accepted)), "{altered}");
        }
        assert_eq!(quickly_accepted(&taken("42")[..at]), None);
    }
}
