//! The words of a server, for the coverage-guided fuzz target: messages of every form, and a connection of the load that is
//! handed them in pieces.

use sut::conformance::{same_in_pieces, with_outstanding};

use crate::messages;
use crate::session::PostgresSession;

/// Transactions that wait for an answer: more than most inputs answer, and few enough that some answer too many.
const WAITING: u64 = 8;

/// Reads `bytes` after the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, reads something else in pieces than at once, or takes a part for the whole.
pub fn fuzz_messages(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let mut rest = bytes;
    while let Ok(Some((_, used))) = messages::message(rest) {
        assert!((1..=rest.len()).contains(&used), "{used} of {}", rest.len());
        assert_eq!(messages::message(&rest[..used - 1]), Ok(None), "all but the last byte");
        rest = &rest[used..];
    }
    same_in_pieces(&|| with_outstanding(PostgresSession::for_fuzzing(), WAITING), bytes, *piece);
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
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/postgres_messages");
        let seeds = seeds_and_neighbours(&folder, b"RSKZENA12TDC\0\x04\x05I\xff", fuzz_messages);
        assert!(seeds >= 4, "{seeds}");
    }
}
