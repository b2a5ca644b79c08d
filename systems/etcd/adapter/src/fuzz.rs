//! The words of a member, for the coverage-guided fuzz target: the answer to a put, and a connection of the load that is handed
//! frames in pieces.

use sut::conformance::{same_in_pieces, with_outstanding};

use crate::messages::revision;
use crate::session::PutSession;

/// Puts that wait for an answer: more than most inputs answer, and few enough that some answer too many.
const WAITING: u64 = 8;

/// Reads `bytes` after the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, reads something else in pieces than at once, or takes a part for the whole.
pub fn fuzz_answers(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    if revision(bytes).is_some() {
        assert_eq!(revision(&bytes[..bytes.len() - 1]), None, "all but the last byte");
    }
    same_in_pieces(&|| with_outstanding(PutSession::new(7, 64), WAITING), bytes, *piece);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sut::conformance::seeds_and_neighbours;

    use super::*;

    /// Claim: the seeds of the fuzz target are read, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/etcd_answers");
        let seeds =
            seeds_and_neighbours(&folder, b"\x00\x01\x03\x05\x09\x18\x7f08\xff", fuzz_answers);
        assert!(seeds >= 5, "{seeds}");
    }
}
