//! Entry point for fuzzing: any bytes from a client, to the listener for frames and to that for HTTP, cut in two, with time
//! enough for whatever they ask; and any bytes as a reply. What is claimed is asserted: what the node answers are whole
//! frames that a client can read, and it holds no more than it was sent.

use std::time::Duration;

use clock::Instant;
use process::rehearsal::Rehearsal;
use wire::frames::next_frame;

use crate::events::Events;
use crate::ledger::Ledger;
use crate::protocol::read_reply;
use crate::{Confession, EchoNode, FRAMES_LISTENER, HTTP_LISTENER, Options};

/// Longer than anything takes that a node without options serves.
const LONG: Duration = Duration::from_secs(60);

/// Any bytes.
///
/// # Panics
/// If one of the claims does not hold.
pub fn fuzz_frames(bytes: &[u8]) {
    let half = bytes.len() / 2;
    check_answers(&[bytes]);
    check_answers(&[&bytes[..half], &bytes[half..]]);
    let mut http = node();
    let connection = http.open(HTTP_LISTENER);
    http.send(connection, bytes);
    http.advance(Instant::ZERO.plus(LONG));
    let _ = read_reply(bytes);
}

fn node() -> Rehearsal<EchoNode> {
    let (ledger, confession) = (Ledger::in_memory(), Confession::in_memory());
    Rehearsal::new(EchoNode::new(Options::default(), ledger, confession, Events::none()))
}

/// The answers to pieces of a client's bytes are in the protocol.
fn check_answers(pieces: &[&[u8]]) {
    let mut node = node();
    let connection = node.open(FRAMES_LISTENER);
    for piece in pieces {
        if node.is_open(connection) {
            node.send(connection, piece);
        }
    }
    node.advance(Instant::ZERO.plus(LONG));
    let answers = node.take_bytes(connection);
    let mut used = 0;
    while let Some(frame) = next_frame(&answers[used..]).expect("what is answered is in frames") {
        let reply = read_reply(frame.payload);
        assert!(reply.is_ok(), "not a reply: {reply:?}");
        used += frame.used;
    }
    assert_eq!(used, answers.len(), "an answer is cut off");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::fuzz_frames;

    /// Claim: of the fuzz target's seeds, whole and with any one byte changed, none breaks what the target asserts.
    #[test]
    fn near_the_fuzz_seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/echo_frames");
        let mut count = 0;
        for entry in std::fs::read_dir(Path::new(folder)).expect("there are seeds").flatten() {
            let seed = std::fs::read(entry.path()).expect("a seed");
            fuzz_frames(&seed);
            for place in 0..seed.len() {
                for other in [0x41, 0xff] {
                    let mut changed = seed.clone();
                    changed[place] ^= other;
                    fuzz_frames(&changed);
                }
            }
            count += 1;
        }
        assert!(count >= 3, "there are {count} seeds");
    }
}
