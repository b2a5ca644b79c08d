//! What a queue says, for the coverage-guided fuzz target: a connection of the load that is handed it in pieces.

use sut::conformance::{same_in_pieces, with_outstanding};

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
    same_in_pieces(&|| with_outstanding(QueueSession::new(64), WAITING), bytes, *piece);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sut::conformance::seeds_and_neighbours;

    use super::*;

    /// Claim: the seeds of the fuzz target are read, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/ledger_answers");
        let seeds =
            seeds_and_neighbours(&folder, &[0, 1, 8, 9, 17, 25, 0x81, 0x89, 0xff], fuzz_answers);
        assert!(seeds >= 4, "{seeds}");
    }
}
