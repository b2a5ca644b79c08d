//! The answers of a broker, for the coverage-guided fuzz target: everything that is asked beside the load, and connections of
//! the load that are handed them in pieces.

use std::sync::Arc;

use sut::Session;
use sut::conformance::{same_in_pieces, with_outstanding};

use crate::session::{Common, ProduceSession};
use crate::wire::Reader;
use crate::{messages, records};

/// Transactions that wait for an answer.
const WAITING: u64 = 8;

/// A session that produces to the topic `t`.
pub(crate) fn session(acks: i16, is_idempotent: bool) -> ProduceSession {
    let common = Common { topic: "t".to_owned(), acks, is_idempotent, in_flight_max: 64 };
    ProduceSession::new(Arc::new(common))
}

/// One whose transactions have left.
fn waiting(acks: i16) -> Box<dyn Session> {
    let mut session = with_outstanding(session(acks, false), WAITING);
    session.gathered(&mut Vec::new());
    session
}

/// One that asks for its number.
fn beginning() -> Box<dyn Session> {
    let mut session = session(-1, true);
    session.open(&mut Vec::new());
    Box::new(session)
}

/// Reads `bytes` after the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, or finds something else in pieces than at once.
pub fn fuzz_answers(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let body = Reader(bytes);
    let _ = messages::api_versions(body);
    let _ = messages::cluster(body);
    let _ = messages::topic_created(body);
    let _ = messages::listed_end(body);
    let batches = messages::fetched(body).map_or(bytes, |fetched| fetched.records);
    let mut last = -1;
    let _ = records::read(batches, |record| {
        assert!(record.offset >= 0 && record.value.len() <= bytes.len());
        last = last.max(record.offset);
    })
    .inspect(|next| assert!(next.is_none_or(|next| next > last), "{next:?} after {last}"));
    for session in [&|| waiting(-1) as Box<_>, &|| waiting(0), &beginning] as [&dyn Fn() -> _; 3] {
        same_in_pieces(session, bytes, *piece);
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
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/kafka_answers");
        let seeds = seeds_and_neighbours(&folder, b"\x00\x01\x02\x7f\x80\xff", fuzz_answers);
        assert!(seeds >= 4, "{seeds}");
    }
}
