//! A node's words about a block, read by the short way and by the long one.

use crate::observer::Seen;

/// As version 0.38 writes it, shortened behind the transactions.
const BLOCK: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"result":{"query":"tm.event='NewBlock'","data":{"type":"tendermint/event/NewBlock","value":{"block":{"header":{"version":{"block":"11","app":"1"},"chain_id":"chain-7ZFh5e","height":"12","time":"2026-11-20T23:22:36.927206051Z","last_block_id":{"hash":"37FB","parts":{"total":1,"hash":"655F"}},"proposer_address":"AA01"},"data":{"txs":["YT0wMQ==","YT0x","a+/9"]},"#,
    r#""evidence":{"evidence":[]},"last_commit":{"height":"11","round":0,"signatures":[]}},"block_id":{"hash":"37FB","parts":{"total":1,"hash":"655F"}},"result_finalize_block":{"tx_results":[{"code":0,"log":"","events":[]}],"app_hash":"BgAAAAAAAAA="}}},"events":{"tm.event":["NewBlock"]}}}"#,
);

/// Claim: both ways find the same in a block, and the short one finds it.
#[test]
fn both_ways_read_a_block() {
    let seen = Seen::quickly(BLOCK).unwrap();
    assert_eq!((seen.height, seen.txs.as_slice()), ("12", &["YT0wMQ==", "YT0x", "a+/9"][..]));
    assert_eq!(Seen::by_json(BLOCK).unwrap(), Some(seen));
}

/// Claim: a block without transactions, other words and what is cut short are left to the long way.
#[test]
fn the_short_way_leaves_the_rest() {
    let one = BLOCK.replace(r#","YT0x","a+/9""#, "");
    assert_eq!(Seen::quickly(&one).unwrap().txs, ["YT0wMQ=="]);
    for txs in ["[]", "null"] {
        let empty = BLOCK.replace(r#"["YT0wMQ==","YT0x","a+/9"]"#, txs);
        assert_eq!(Seen::quickly(&empty), None);
        assert!(Seen::by_json(&empty).unwrap().unwrap().txs.is_empty());
    }
    let subscribed = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
    assert_eq!((Seen::quickly(subscribed), Seen::by_json(subscribed).unwrap()), (None, None));
    let end = BLOCK.find("]},").unwrap() + 2;
    for at in 0..end {
        assert_eq!(Seen::quickly(&BLOCK[..at]), None, "{at}");
    }
}

/// Claim: whatever byte differs, where both ways read something they read the same.
#[test]
fn no_byte_misleads_the_short_way() {
    let mut both = 0;
    for at in 0..BLOCK.len() {
        for other in ["\"", "\\", " ", "x", ",", "]", "}", "\\\"", "\",\"", "],"] {
            let altered = format!("{}{other}{}", &BLOCK[..at], &BLOCK[at + 1..]);
            let (Some(quickly), Ok(Some(by_json))) =
                (Seen::quickly(&altered), Seen::by_json(&altered))
            else {
                continue;
            };
            assert_eq!(quickly, by_json, "{altered}");
            both += 1;
        }
    }
    assert!(both > 100, "{both}");
}
