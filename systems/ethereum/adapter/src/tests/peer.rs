//! A node's end of a connection: the handshake, then an answer to every request, in the words of geth 1.17 and anvil 1.7.

use serde_json::{Value, json};
use sut::conformance::Peer;
pub(super) use wire::websocket::write_text as said;

use crate::accounts::keccak;
use crate::hex;

/// The peer; `answer` makes a node's words of a request.
pub(super) fn peer(answer: fn(&Value) -> String) -> Peer {
    Box::new(wire::websocket::peer("/", move |text| {
        vec![answer(&serde_json::from_str(text).unwrap())]
    }))
}

/// `eth_sendRawTransaction`: one in three refused for one of the reasons, and some taken with blanks in the reply.
pub(super) fn pool(request: &Value) -> String {
    let id = request["id"].as_u64().expect("a number");
    assert_eq!(request["method"], "eth_sendRawTransaction");
    let error = |code: i64, message: &str| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
    };
    match id % 12 {
        3 => error(-32000, "nonce too low: next nonce 7, tx nonce 3"),
        6 => error(-32003, "transaction underpriced"),
        9 => error(-32000, "txpool is full"),
        11 => accepted(request).replace(':', ": "),
        _ => accepted(request),
    }
}

/// It is taken.
pub(super) fn accepted(request: &Value) -> String {
    let raw = request["params"][0].as_str().expect("a transaction");
    let raw: Vec<u8> =
        raw.as_bytes()[2..].chunks(2).map(|pair| hex::digits::<1>(pair).unwrap()[0]).collect();
    let hash = hex::text(&keccak(&raw));
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":"{hash}"}}"#, request["id"])
}

/// The answer to a subscription, and to what is asked of blocks.
pub(super) fn watched(request: &Value) -> String {
    let id = &request["id"];
    match request["method"].as_str().expect("a method") {
        "eth_subscribe" => {
            json!({"jsonrpc": "2.0", "id": id, "result": "0xcd0c3e8af590364c09d0fa6a1210faf5"})
        }
        _ => json!({"jsonrpc": "2.0", "id": id, "result": null}),
    }
    .to_string()
}

/// What a node tells of a head.
pub(super) fn head(number: u64, hash: u8, parent: u8) -> String {
    let (hash, parent) = (hex::text(&[hash; 32]), hex::text(&[parent; 32]));
    json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": {
        "subscription": "0xcd0c3e8af590364c09d0fa6a1210faf5",
        "result": {"hash": hash, "parentHash": parent, "number": format!("0x{number:x}"),
            "miner": "0x0000000000000000000000000000000000000000", "gasUsed": "0x5208",
            "timestamp": "0x6b031da9"}}})
    .to_string()
}

/// The receipts of a block, as they are answered to question `id`.
pub(super) fn receipts(id: u64, list: &[(hex::Hash, bool)]) -> String {
    let receipts = list.iter().map(|(hash, had_effect)| {
        json!({"type": "0x2", "status": if *had_effect { "0x1" } else { "0x0" }, "logs": [],
            "transactionHash": hex::text(hash), "gasUsed": "0x5208", "contractAddress": null})
    });
    json!({"jsonrpc": "2.0", "id": id, "result": receipts.collect::<Vec<_>>()}).to_string()
}
