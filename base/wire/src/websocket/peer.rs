//! An honest server as a function of bytes, for the tests of those that speak to one.

use super::{Event, Limits, MessageReader, Opcode, Sender, accept_value, write_frame};

/// The payload of the ping that it sends at once: servers ask whether their clients are there.
const PING: &[u8] = b"there?";

/// A server that is asked for `path`: it takes bytes of a client, whole messages or not, and gives those that come back: the
/// handshake, a ping, and the messages that `answer` makes of each.
///
/// # Panics
/// Where the client asks for another path, breaks the protocol, or sends anything but text and pongs.
pub fn peer(
    path: &'static str,
    answer: impl Fn(&str) -> Vec<String> + 'static,
) -> impl FnMut(&[u8]) -> Vec<u8> {
    let mut received = Vec::new();
    let mut reader = None;
    move |bytes: &[u8]| {
        received.extend_from_slice(bytes);
        let mut out = Vec::new();
        let reader = match &mut reader {
            Some(reader) => reader,
            None => {
                let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
                    return out;
                };
                let head: Vec<u8> = received.drain(..end + 4).collect();
                out.extend(switched(&String::from_utf8(head).expect("text"), path));
                write_frame(&mut out, Opcode::Ping, None, |out| out.extend_from_slice(PING));
                reader.insert(MessageReader::new(Sender::Client, Limits::CLIENT))
            }
        };
        loop {
            let progress = reader.read(&received).expect("the protocol");
            let used = progress.used;
            match progress.event {
                Some(Event::Text(text)) => {
                    answer(text).iter().for_each(|words| write_text(&mut out, words));
                }
                Some(Event::Pong(payload)) => assert!(payload.is_empty() || payload == PING),
                Some(other) => panic!("a client sent {other:?}"),
                None => {
                    received.drain(..used);
                    return out;
                }
            }
            received.drain(..used);
        }
    }
}

/// The answer to the head of a handshake.
fn switched(head: &str, path: &str) -> Vec<u8> {
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some(format!("GET {path} HTTP/1.1").as_str()));
    let key = lines.find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
    let accept = accept_value(key);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
    .into_bytes()
}

/// Writes a message of text as a server does, unmasked.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    write_frame(out, Opcode::Text, None, |out| out.extend_from_slice(text.as_bytes()));
}
