//! What a server says, for the coverage-guided fuzz target: replies of every form, and a connection of the load that is
//! handed them in pieces.

use sut::conformance::{same_in_pieces, with_outstanding};

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
    same_in_pieces(&|| with_outstanding(SetSession::new(7, 64), WAITING), bytes, *piece);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sut::conformance::seeds_and_neighbours;

    use super::*;

    /// Claim: the seeds of the fuzz target are read, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/redis_replies");
        let seeds = seeds_and_neighbours(&folder, b"+-:$*\r\n09\xff", fuzz_resp);
        assert!(seeds >= 5, "{seeds}");
    }
}
