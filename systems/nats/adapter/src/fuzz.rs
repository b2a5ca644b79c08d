//! The words of a server, for the coverage-guided fuzz target: its lines and messages, and a connection of the load that is
//! handed them in pieces.

use std::sync::Arc;

use sut::conformance::{same_in_pieces, with_outstanding};

use crate::messages;
use crate::session::{Common, PublishSession};

/// Transactions that wait for an answer: more than most inputs answer, and few enough that some answer too many.
const WAITING: u64 = 8;

/// A session of a trial whose mark is 7.
pub(crate) fn session() -> PublishSession {
    let common = Common {
        run_mark: 7,
        stream: "S".to_owned(),
        subject: "s".to_owned(),
        in_flight_max: 64,
        has_ids: false,
    };
    PublishSession::new(Arc::new(common), "a")
}

/// Reads `bytes` after the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, reads something else in pieces than at once, or takes a part for the whole.
pub fn fuzz_messages(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let mut rest = bytes;
    while let Ok(Some((_, used))) = messages::said(rest) {
        assert!((1..=rest.len()).contains(&used), "{used} of {}", rest.len());
        assert_eq!(messages::said(&rest[..used - 1]), Ok(None), "all but the last byte");
        rest = &rest[used..];
    }
    let _ = messages::ack(bytes, "S");
    same_in_pieces(&|| with_outstanding(session(), WAITING), bytes, *piece);
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
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/nats_messages");
        let seeds = seeds_and_neighbours(&folder, b"IPMH- \r\n09{}\":\xff", fuzz_messages);
        assert!(seeds >= 4, "{seeds}");
    }
}
