//! A node's end of a connection: the handshake, then an answer to every request, in the words of a real node of
//! version 0.38.19.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sut::conformance::Peer;
pub(super) use wire::websocket::write_text as said;

/// The peer; `answer` makes a node's words of a request.
pub(super) fn peer(answer: fn(&Value) -> String) -> Peer {
    Box::new(wire::websocket::peer("/websocket", move |text| {
        vec![answer(&serde_json::from_str(text).unwrap())]
    }))
}

/// `broadcast_tx_sync` and `_async`: one in three refused for one of the reasons.
pub(super) fn sync_node(request: &Value) -> String {
    let id = request["id"].as_u64().expect("a number");
    let method = request["method"].as_str().expect("a method");
    assert!(matches!(method, "broadcast_tx_sync" | "broadcast_tx_async"), "{method}");
    let tx = request["params"]["tx"].as_str().expect("a transaction");
    assert!(STANDARD.decode(tx).is_ok());
    let error = |data: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "Internal error", "data": data}});
    let answer = match id % 12 {
        3 => error("tx already exists in cache"),
        6 => error(
            "mempool is full: number of txs 5000 (max: 5000), total txs bytes 5120000 (max: 1073741824)",
        ),
        9 => {
            json!({"jsonrpc": "2.0", "id": id, "result": {"code": 2, "data": "", "log": "", "codespace": "", "hash": "4AA3"}})
        }
        _ => {
            json!({"jsonrpc": "2.0", "id": id, "result": {"code": 0, "data": "", "log": "", "codespace": "", "hash": "9465"}})
        }
    };
    answer.to_string()
}

/// `broadcast_tx_commit`.
pub(super) fn commit_node(request: &Value) -> String {
    let id = request["id"].as_u64().expect("a number");
    assert_eq!(request["method"], "broadcast_tx_commit");
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "check_tx": {"code": 0, "data": null, "log": "", "gas_wanted": "1", "gas_used": "0", "events": []},
        "tx_result": {"code": 0, "data": null, "log": "", "events": [
            {"type": "app", "attributes": [{"key": "creator", "value": "Cosmoshi Netowoko", "index": true}]}]},
        "hash": "6F19", "height": "3"}})
    .to_string()
}

/// The answer to a subscription.
pub(super) fn subscribed(request: &Value) -> String {
    assert_eq!(request["method"], "subscribe");
    assert_eq!(request["params"]["query"], "tm.event='NewBlock'");
    json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}).to_string()
}

/// What a node tells of a block.
pub(super) fn new_block(height: u64, txs: Option<&[String]>) -> String {
    json!({"jsonrpc": "2.0", "id": 0, "result": {
        "query": "tm.event='NewBlock'",
        "data": {"type": "tendermint/event/NewBlock", "value": {
            "block": {
                "header": {"version": {"block": "11", "app": "1"}, "chain_id": "chain-7ZFh5e",
                    "height": height.to_string(), "time": "2026-11-20T23:22:36.927206051Z"},
                "data": {"txs": txs},
                "evidence": {"evidence": []},
                "last_commit": {"height": "3", "round": 0, "signatures": []}},
            "block_id": {"hash": "37FB", "parts": {"total": 1, "hash": "655F"}},
            "result_finalize_block": {"validator_updates": [], "app_hash": "BgAAAAAAAAA="}}},
        "events": {"tm.event": ["NewBlock"]}}})
    .to_string()
}
