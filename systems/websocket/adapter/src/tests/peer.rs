//! A server's end of a connection: the handshake, a ping, then an answer to every message.

use sut::conformance::Peer;
use wire::websocket::{Event, Limits, MessageReader, Opcode, Sender, accept_value, write_frame};

pub(super) fn said(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::Text, None, |out| out.extend_from_slice(text.as_bytes()));
    out
}

/// The peer; `answer` gives the words that answer a message, in the order in which they are sent.
pub(super) fn peer(answer: fn(&str) -> Vec<String>) -> Peer {
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
                assert_eq!(lines.next(), Some("GET /feed?x=1 HTTP/1.1"));
                let key = lines.find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
                let accept = accept_value(key.expect("a key"));
                out.extend(format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n").into_bytes());
                write_frame(&mut out, Opcode::Ping, None, |out| out.extend_from_slice(b"there?"));
                reader.insert(MessageReader::new(Sender::Client, Limits::CLIENT))
            }
        };
        loop {
            let progress = reader.read(&received).unwrap();
            let used = progress.used;
            match progress.event {
                Some(Event::Text(text)) => {
                    answer(text).iter().for_each(|words| out.extend(said(words)));
                }
                Some(Event::Pong(payload)) => assert_eq!(payload, b"there?"),
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
