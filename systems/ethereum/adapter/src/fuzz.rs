//! What a node says, for the coverage-guided fuzz target: replies to submissions, heads and answers to an observer, cut into
//! pieces.

use std::sync::Arc;

use clock::WallTime;
use model::Seed;
use sut::Session;
use sut::conformance::{same_in_pieces, switched};
use wire::websocket::{Opcode, write_frame};

use crate::known::Known;
use crate::observer::{ObserveSession, Success, texts};
use crate::session::SubmitSession;
use crate::view::View;

/// Reads `bytes` behind the first two: how long the pieces are, and who listens.
///
/// # Panics
/// When reading takes more than there is, or finds something else in pieces than at once.
pub fn fuzz_ethereum(bytes: &[u8]) {
    let Some((head, text)) = bytes.split_first_chunk::<2>() else { return };
    let mut stream = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        write_frame(&mut stream, Opcode::Text, None, |out| out.extend_from_slice(line));
    }
    let session = || -> Box<dyn Session> {
        let known = Arc::new(Known::default());
        known.give(&[0x11; 32], 1, WallTime::from_unix_ns(0));
        known.give(&[0x22; 32], 2, WallTime::from_unix_ns(0));
        let channel = texts("node".to_owned(), head[1] % 3 != 0, Seed(1));
        let success = if head[1] % 3 == 1 { Success::Receipt } else { Success::Inclusion };
        switched(match head[1] % 3 {
            0 => Box::new(SubmitSession::new(channel, known, 16)),
            _ => Box::new(ObserveSession::new(channel, known, View::new(0, 2), success)),
        })
    };
    same_in_pieces(&session, &stream, head[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the seeds of the fuzz target are read, whoever listens, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../fuzz/seeds/ethereum_messages");
        let mut seeds = 0;
        for entry in std::fs::read_dir(folder).expect("there are seeds").flatten() {
            let mut seed = std::fs::read(entry.path()).expect("a seed");
            for listener in 0..3 {
                seed[1] = listener;
                fuzz_ethereum(&seed);
                for at in (2..seed.len()).step_by(3) {
                    for other in *b"\"{}[],:0x\n\xff" {
                        let mut near = seed.clone();
                        near[at] = other;
                        fuzz_ethereum(&near);
                    }
                }
            }
            seeds += 1;
        }
        assert!(seeds >= 4, "{seeds}");
    }
}
