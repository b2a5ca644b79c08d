//! What a server says, for the coverage-guided fuzz target: replies of every form, and a connection of the load that is
//! handed them in pieces.

use sut::{Mark, Marks, Session as _, Transaction};

use crate::resp;
use crate::session::SetSession;

/// Transactions that wait for an answer: more than most inputs answer, and few enough that some answer too many.
const WAITING: u64 = 8;

/// Reads `bytes` behind the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, reads something else in pieces than at once, or takes a part for the whole.
pub fn fuzz_resp(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    replies(bytes);
    let piece = usize::from(piece % 64) + 1;
    assert_eq!(heard(bytes.chunks(piece)), heard(std::iter::once(bytes)), "in pieces of {piece}");
}

/// One reply behind the other.
fn replies(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((reply, used))) = resp::reply(rest) {
        assert!((1..=rest.len()).contains(&used), "{used} of {}", rest.len());
        assert_eq!(resp::reply(&rest[..used - 1]), Ok(None), "all but the last byte of {reply:?}");
        assert_eq!(resp::reply(&rest[..used]), Ok(Some((reply, used))));
        rest = &rest[used..];
    }
}

/// What a session makes of bytes that come in these pieces: its marks, how many bytes it read, and how it ended.
fn heard<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, usize, Option<String>) {
    let mut session = SetSession::new(7, 64);
    for id in 0..WAITING {
        session.submit(&Transaction::new(id, 0, b"value"), &mut Vec::new());
    }
    let (mut unread, mut found, mut read) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        unread.extend_from_slice(piece);
        let mut marks = Marks::default();
        let result = session.receive(&unread, &mut Vec::new(), &mut marks);
        found.extend(marks.list().iter().map(|mark| said(&marks, mark)));
        match result {
            Ok(used) => {
                assert!(used <= unread.len(), "{used} of {}", unread.len());
                read += used;
                unread.drain(..used);
            }
            // How far it had come is nobody's business any more: the connection is closed. Nor is how much of what it did
            // not want was there.
            Err(error) => {
                let why = error.0.split(':').next().unwrap_or_default();
                return (found, 0, Some(why.to_owned()));
            }
        }
    }
    (found, read, None)
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
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../fuzz/seeds/redis_replies");
        let mut seeds = 0;
        for entry in std::fs::read_dir(folder).expect("there are seeds").flatten() {
            let seed = std::fs::read(entry.path()).expect("a seed");
            fuzz_resp(&seed);
            for at in 0..seed.len() {
                for other in *b"+-:$*\r\n09\xff" {
                    let mut near = seed.clone();
                    near[at] = other;
                    fuzz_resp(&near);
                }
            }
            seeds += 1;
        }
        assert!(seeds >= 5, "{seeds}");
    }
}
