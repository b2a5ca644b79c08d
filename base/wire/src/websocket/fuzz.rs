//! Entry point for fuzzing: bytes from a WebSocket peer, cut at arbitrary places. What is claimed is asserted:
//! any cut gives the same findings as one piece, and what is held stays within its bounds.

use super::limits::{Limits, WebSocketError};
use super::{Event, Handshake, KEY_BYTES, MessageReader, Opcode, Sender, write_frame};

/// Bounds that short inputs reach.
const NARROW: Limits = Limits { head_bytes_max: 200, frame_bytes_max: 150, message_bytes_max: 200 };

/// Any bytes as frames of either side, and as the answer to a handshake. The first byte chooses the side, the
/// second how the rest is cut.
///
/// # Panics
/// If a cut changes what is found, or a bound is not kept.
pub fn fuzz_websocket(bytes: &[u8]) {
    let [side, cuts, input @ ..] = bytes else { return };
    let sender = if side & 1 == 0 { Sender::Server } else { Sender::Client };
    // A refusal at the end of a head is for the caller; here it must only not panic.
    let _ = Handshake::new([7; KEY_BYTES], &NARROW).read(input);
    for limits in [NARROW, Limits::CLIENT] {
        let whole = read_all(sender, limits, input, usize::MAX);
        for piece in [1, usize::from(*cuts).max(1), usize::from(cuts >> 4) + 2] {
            let cut = read_all(sender, limits, input, piece);
            assert_eq!(whole, cut, "pieces of {piece} bytes changed what was found");
        }
        let longest = whole.0.iter().map(|(_, payload)| payload.len()).max().unwrap_or(0);
        assert!(longest <= limits.message_bytes_max, "a message of {longest} bytes got through");
    }
    round_trip(input, *side);
}

/// What is written is read back.
fn round_trip(payload: &[u8], side: u8) {
    let (sender, mask) = if side & 1 == 0 {
        (Sender::Server, None)
    } else {
        (Sender::Client, Some([side, 1, 2, 3]))
    };
    let mut bytes = Vec::new();
    write_frame(&mut bytes, Opcode::Binary, mask, |out| out.extend_from_slice(payload));
    let mut reader = MessageReader::new(sender, Limits::CLIENT);
    let progress = reader.read(&bytes).expect("what is written can be read");
    assert_eq!((progress.used, progress.event), (bytes.len(), Some(Event::Binary(payload))));
}

/// Everything that was found, each with its payload, and how it ended.
pub(super) type Findings = (Vec<(String, Vec<u8>)>, Option<WebSocketError>);

/// Offers `input` in pieces, each behind what was left unused, as the engine does.
pub(super) fn read_all(sender: Sender, limits: Limits, input: &[u8], piece: usize) -> Findings {
    let mut reader = MessageReader::new(sender, limits);
    let (mut found, mut start, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = end.saturating_add(piece).min(input.len());
        loop {
            match reader.read(&input[start..end]) {
                Ok(progress) => {
                    assert!(progress.used <= end - start, "used more than there was");
                    start += progress.used;
                    let Some(event) = progress.event else { break };
                    found.push(owned(event));
                }
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

fn owned(event: Event<'_>) -> (String, Vec<u8>) {
    let (kind, payload) = match event {
        Event::Text(text) => ("text".to_owned(), text.as_bytes()),
        Event::Binary(payload) => ("binary".to_owned(), payload),
        Event::Ping(payload) => ("ping".to_owned(), payload),
        Event::Pong(payload) => ("pong".to_owned(), payload),
        Event::Close { code, reason } => (format!("close {code:?}"), reason.as_bytes()),
    };
    (kind, payload.to_vec())
}
