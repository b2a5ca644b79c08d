//! The texts of strangers, for the coverage-guided fuzz target: a node's replies to submissions and its events, cut into
//! pieces; what it answers to questions aside; a manifest.

use model::Seed;
use sut::conformance::{same_in_pieces, switched};
use sut::{Session, Texts};
use wire::websocket::{Opcode, write_frame};

use crate::answer::Method;
use crate::config_file;
use crate::manifest;
use crate::observer::{ObserveSession, SUBSCRIBE, Seen};
use crate::rpc;
use crate::session::SubmitSession;
use crate::system::TARGET;

/// Nodes of a manifest at most, as in an experiment.
const NODES_MAX: usize = 200;

/// Reads `bytes` after the first two: how long the pieces are, and as what they are read.
///
/// # Panics
/// When reading takes more than there is, finds something else in pieces than at once, or a block read quickly differs from
/// the same block taken apart as JSON.
pub fn fuzz_cometbft(bytes: &[u8]) {
    let Some(([piece, way], rest)) = bytes.split_first_chunk::<2>() else { return };
    let text = std::str::from_utf8(rest).unwrap_or_default();
    match way % 6 {
        0 => messages(*piece, rest, &|| submitting(Method::Sync)),
        1 => messages(*piece, rest, &|| submitting(Method::Async)),
        2 => messages(*piece, rest, &|| submitting(Method::Commit)),
        3 => {
            messages(*piece, rest, &|| Box::new(ObserveSession::new(channel(SUBSCRIBE), 7, None)));
            quick_is_exact(text);
        }
        4 => {
            if let Ok(read) = manifest::read(text, NODES_MAX) {
                let written = read.to_toml();
                assert!(manifest::read(&written, NODES_MAX).is_ok(), "not read again:\n{written}");
            }
        }
        _ => {
            rpc::fuzz_answers(rest);
            let _ = config_file::changed(text, &[]);
        }
    }
}

/// A block in the words of the version that is read quickly is the one that a reader of JSON finds, if it is one at all.
fn quick_is_exact(text: &str) {
    let (Some(quick), Ok(Some(exact))) = (Seen::quickly(text), Seen::by_json(text)) else { return };
    assert_eq!(quick.height, exact.height, "{text}");
    let same = quick.txs.iter().zip(&exact.txs).all(|(one, other)| one == other);
    assert!(same && quick.txs.len() == exact.txs.len(), "{text}");
}

fn channel(greeting: &str) -> Texts {
    let greeting = (!greeting.is_empty()).then(|| greeting.to_owned());
    Texts::new("node".to_owned(), TARGET, greeting, Seed(1))
}

fn submitting(method: Method) -> Box<dyn Session> {
    Box::new(SubmitSession::new(channel(""), method, 16, None))
}

/// Each line as a message, in one stream.
fn messages(piece: u8, lines: &[u8], session: &dyn Fn() -> Box<dyn Session>) {
    let mut stream = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        write_frame(&mut stream, Opcode::Text, None, |out| out.extend_from_slice(line));
    }
    same_in_pieces(&|| switched(session()), &stream, piece);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Claim: of the fuzz target's seeds, whole and with any one byte changed, none breaks what the target asserts.
    #[test]
    fn near_the_fuzz_seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/cometbft_words");
        let others = [0, b'"', b'\\', b'}', b'9', 0xff];
        let seeds = sut::conformance::seeds_and_neighbours(
            Path::new(folder),
            &others,
            super::fuzz_cometbft,
        );
        assert!(seeds >= 6, "there are {seeds} seeds");
    }
}
