//! Servers as functions of bytes, honest ones, for protocols that several adapters speak.

use wire::websocket::accept_value;

use super::Peer;
use crate::{Marks, Session};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of the header of an HTTP/2 frame (RFC 9113 §4.1).
const FRAME_HEADER_BYTES: usize = 9;

/// The session after an honest handshake of WebSocket.
///
/// # Panics
/// If it asks for none, or does not take it.
#[must_use]
pub fn switched(mut session: Box<dyn Session>) -> Box<dyn Session> {
    let mut hello = Vec::new();
    session.open(&mut hello);
    let text = String::from_utf8_lossy(&hello);
    let key = text.split("Sec-WebSocket-Key: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let key = key.expect("a session asks for WebSocket");
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        accept_value(key)
    );
    let used = session.receive(answer.as_bytes(), &mut Vec::new(), &mut Marks::default());
    assert_eq!(used, Ok(answer.len()), "an honest handshake");
    session
}

/// An observer over WebSocket that begins with a subscription is ready when that is answered and not before; where it is refused
/// with `refusal`, its error has these words.
///
/// # Panics
/// If it is ready earlier, or never, or does not say why.
pub fn expect_ready_once_subscribed(
    session: &mut dyn Session,
    mut peer: Peer,
    refusal: &[u8],
    words: &str,
) {
    let (mut out, mut marks) = (Vec::new(), Marks::default());
    session.open(&mut out);
    let hello = peer(&out);
    out.clear();
    session.receive(&hello, &mut out, &mut marks).expect("a handshake is taken");
    assert!(!session.is_ready(), "the connection is open, nothing is subscribed");
    let answer = peer(&out);
    session.receive(&answer, &mut Vec::new(), &mut marks).expect("a subscription is taken");
    assert!(session.is_ready());
    let refused = session.receive(refusal, &mut Vec::new(), &mut marks);
    let error = refused.expect_err("a refused subscription is an error");
    assert!(error.0.contains(words), "{error}");
}

/// An HTTP/2 server that greets with the frame `settings` and answers each request with the frames that `answer` makes of its
/// stream, the second of three before the first.
///
/// # Panics
/// The peer panics where a client begins with anything but the preface of HTTP/2.
#[must_use]
pub fn http2_peer(settings: &'static [u8], answer: fn(u32) -> Vec<u8>) -> Peer {
    let (mut received, mut has_greeted, mut held) = (Vec::new(), false, Vec::new());
    Box::new(move |bytes| {
        received.extend_from_slice(bytes);
        let mut out = Vec::new();
        if !has_greeted && received.len() >= PREFACE.len() {
            assert!(received.starts_with(PREFACE));
            received.drain(..PREFACE.len());
            has_greeted = true;
            out.extend_from_slice(settings);
        }
        while has_greeted && received.len() >= FRAME_HEADER_BYTES {
            let word = |at: usize| {
                u32::from_be_bytes([
                    received[at],
                    received[at + 1],
                    received[at + 2],
                    received[at + 3],
                ])
            };
            let (length, stream) = ((word(0) >> 8) as usize, word(5));
            if received.len() < FRAME_HEADER_BYTES + length {
                break;
            }
            let (kind, flags) = (received[3], received[4]);
            received.drain(..FRAME_HEADER_BYTES + length);
            // DATA or HEADERS with END_STREAM: the request is whole.
            if kind <= 1 && flags & 1 == 1 {
                let answer = answer(stream);
                if stream % 6 == 1 && held.is_empty() {
                    held = answer;
                } else {
                    out.extend(answer);
                    out.append(&mut held);
                }
            }
        }
        // The held answer comes when nothing more was asked.
        out.append(&mut held);
        out
    })
}
