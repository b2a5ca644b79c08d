//! A server's end of a connection: the handshake, a ping, then an answer to every message.

use sut::conformance::Peer;

pub(super) fn said(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    wire::websocket::write_text(&mut out, text);
    out
}

/// The peer; `answer` gives the words that answer a message, in the order in which they are sent.
pub(super) fn peer(answer: fn(&str) -> Vec<String>) -> Peer {
    Box::new(wire::websocket::peer("/feed?x=1", answer))
}

/// The message itself.
pub(super) fn echo(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

/// An answer with the id of the message, after an event of the server's own; one in five is an error.
pub(super) fn called(text: &str) -> Vec<String> {
    let call: serde_json::Value = serde_json::from_str(text).unwrap();
    let id = &call["id"];
    let event = r#"{"event":"tick"}"#.to_owned();
    match id.as_u64().unwrap() % 5 {
        4 => vec![event, format!(r#"{{"id":{id},"error":{{"code":-32000,"message":"no"}}}}"#)],
        _ => vec![event, format!(r#"{{ "result": true, "id": {id} }}"#)],
    }
}
