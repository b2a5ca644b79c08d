//! What a program says, for the coverage-guided fuzz target: lines of a channel of the load, in pieces, and of the control
//! channel.

use std::sync::Arc;

use sut::{Mark, Marks, Session as _, Transaction};

use crate::line::{self, Answer, Vocabulary};
use crate::session::LineSession;

/// Transactions that are outstanding.
const OUTSTANDING: u64 = 8;

/// Reads `bytes` behind the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, or reads something else in pieces than at once.
pub fn fuzz_line(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let _ = line::read::<Answer>(bytes);
    let piece = usize::from(piece % 64) + 1;
    assert_eq!(heard(bytes.chunks(piece)), heard(std::iter::once(bytes)), "in pieces of {piece}");
}

/// Words that seeds use.
fn words() -> Vocabulary {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Vocabulary {
        stages: list(&["accepted", "committed"]),
        kinds: list(&["put", "get"]),
        steps: list(&["queued"]),
    }
}

/// What a session makes of bytes that come in these pieces: its marks, and how it ended.
fn heard<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, Option<String>) {
    let mut session = LineSession::new(Arc::new(words()), Arc::default(), 64);
    for id in 0..OUTSTANDING {
        session.submit(&Transaction::new(id, 0, b"value"), &mut Vec::new());
    }
    let (mut unread, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        unread.extend_from_slice(piece);
        let mut marks = Marks::default();
        let result = session.receive(&unread, &mut Vec::new(), &mut marks);
        found.extend(marks.observations().iter().map(|one| format!("{} {:?}", one.tx, one.bytes)));
        found.extend(marks.list().iter().map(|mark| said(&marks, mark)));
        match result {
            Ok(used) => {
                assert!(used <= unread.len(), "{used} of {}", unread.len());
                unread.drain(..used);
            }
            Err(error) => {
                found.sort();
                return (found, Some(error.0));
            }
        }
    }
    // Observations and marks of one receipt come in lists of their own.
    found.sort();
    (found, None)
}

/// A mark in words: the index of a text says nothing outside its receipt.
fn said(marks: &Marks, mark: &Mark) -> String {
    match mark {
        Mark::Ended { tx, answer } => {
            format!("{tx} ended as {}: {}", answer.outcome, marks.text(answer))
        }
        Mark::Reached { .. } => format!("{mark:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the seeds of the fuzz target are read, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/exec_lines");
        let mut seeds = 0;
        for entry in std::fs::read_dir(folder).expect("there are seeds").flatten() {
            let seed = std::fs::read(entry.path()).expect("a seed");
            fuzz_line(&seed);
            for at in 0..seed.len() {
                for other in *b"{}[],:\"\n09\xff" {
                    let mut near = seed.clone();
                    near[at] = other;
                    fuzz_line(&near);
                }
            }
            seeds += 1;
        }
        assert!(seeds >= 5, "{seeds}");
    }
}
