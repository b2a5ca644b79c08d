//! What a queue says, for the coverage-guided fuzz target: a connection of the load that is handed it in pieces.

use sut::{Mark, Marks, Session as _, Transaction};

use crate::frames;
use crate::session::QueueSession;

/// Transactions that wait for an answer: more than most inputs answer, and few enough that some answer too many.
const WAITING: u64 = 8;

/// Reads `bytes` behind the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, finds something else in pieces than at once, or takes a part for the whole.
pub fn fuzz_answers(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    if let Ok(Some(answered)) = frames::read(bytes) {
        assert!((1..=frames::ANSWER_BYTES_MAX.min(bytes.len())).contains(&answered.used));
        assert_eq!(frames::read(&bytes[..answered.used - 1]), Ok(None));
        assert_eq!(frames::read(&bytes[..answered.used]), Ok(Some(answered)));
    }
    let piece = usize::from(piece % 64) + 1;
    assert_eq!(heard(bytes.chunks(piece)), heard(std::iter::once(bytes)), "in pieces of {piece}");
}

/// What a session makes of bytes that come in these pieces: its marks, how many bytes it read, and how it ended.
fn heard<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Mark>, usize, Option<String>) {
    let mut session = QueueSession::new(64);
    for id in 0..WAITING {
        session.submit(&Transaction::new(id, 0, b"value"), &mut Vec::new());
    }
    let (mut unread, mut found, mut read) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        unread.extend_from_slice(piece);
        let mut marks = Marks::default();
        let result = session.receive(&unread, &mut Vec::new(), &mut marks);
        // The index of a text says nothing outside its receipt.
        found.extend(marks.list().iter().map(|mark| match *mark {
            Mark::Ended { tx, answer } => {
                Mark::Ended { tx, answer: sut::Answer { text: 0, ..answer } }
            }
            reached => reached,
        }));
        match result {
            Ok(used) => {
                assert!(used <= unread.len(), "{used} of {}", unread.len());
                read += used;
                unread.drain(..used);
            }
            // How far it had come is nobody's business any more: the connection is closed.
            Err(error) => return (found, 0, Some(error.0)),
        }
    }
    (found, read, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the seeds of the fuzz target are read, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../fuzz/seeds/ledger_answers");
        let mut seeds = 0;
        for entry in std::fs::read_dir(folder).expect("there are seeds").flatten() {
            let seed = std::fs::read(entry.path()).expect("a seed");
            fuzz_answers(&seed);
            for at in 0..seed.len() {
                for other in [0, 1, 8, 9, 17, 25, 0x81, 0x89, 0xff] {
                    let mut near = seed.clone();
                    near[at] = other;
                    fuzz_answers(&near);
                }
            }
            seeds += 1;
        }
        assert!(seeds >= 4, "{seeds}");
    }
}
