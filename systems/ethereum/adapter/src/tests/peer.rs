//! A node's end of a connection: the handshake, then an answer to every request, in the words of geth 1.17 and anvil 1.7.

use serde_json::{Value, json};
use sut::conformance::Peer;
use wire::websocket::{Event, Limits, MessageReader, Opcode, Sender, accept_value, write_frame};

use crate::accounts::keccak;
use crate::hex;

/// A message of text from a node.
pub(super) fn said(out: &mut Vec<u8>, text: &str) {
    write_frame(out, Opcode::Text, None, |out| out.extend_from_slice(text.as_bytes()));
}

/// The peer; `answer` makes a node's words of a request.
pub(super) fn peer(answer: fn(&Value) -> String) -> Peer {
    let mut received = Vec::new();
    let mut reader = None;
    Box::new(move |bytes| {
        received.extend_from_slice(bytes);
        let mut out = Vec::new();
        let reader = match &mut reader {
            Some(reader) => reader,
            None => {
                let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
                    return out;
                };
                let head = String::from_utf8(received.drain(..end + 4).collect()).unwrap();
                let mut lines = head.lines();
                assert_eq!(lines.next(), Some("GET / HTTP/1.1"));
                let key = lines.find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
                let accept = accept_value(key.expect("a key"));
                out.extend(format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n").into_bytes());
                // Nodes ask whether their clients are there.
                write_frame(&mut out, Opcode::Ping, None, |out| out.extend_from_slice(b"there?"));
                reader.insert(MessageReader::new(Sender::Client, Limits::CLIENT))
            }
        };
        loop {
            let progress = reader.read(&received).unwrap();
            let used = progress.used;
            match progress.event {
                Some(Event::Text(request)) => {
                    let request: Value = serde_json::from_str(request).unwrap();
                    said(&mut out, &answer(&request));
                }
                Some(Event::Pong(payload)) => assert!(payload.is_empty() || payload == b"there?"),
                Some(other) => panic!("a session sent {other:?}"),
                None => {
                    received.drain(..used);
                    return out;
                }
            }
            received.drain(..used);
        }
    })
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
