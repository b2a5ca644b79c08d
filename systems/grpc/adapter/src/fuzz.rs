//! Entry point for fuzzing: bytes from a gRPC server, cut at arbitrary places, to the reader of messages and to a session.

use crate::messages::{MessageError, MessageReader};

/// Any bytes as the body of an answer. The first byte says how it is cut.
///
/// # Panics
/// If a cut changes what is found, or a bound is not kept.
pub fn fuzz_grpc(bytes: &[u8]) {
    let Some((cut, body)) = bytes.split_first() else { return };
    let whole = read(body, usize::MAX);
    assert_eq!(whole, read(body, usize::from(*cut).max(1)), "the cut changed what was found");
    assert!(whole.0.iter().all(|message| message.len() <= BYTES_MAX));
}

const BYTES_MAX: usize = 200;

fn read(body: &[u8], piece: usize) -> (Vec<Vec<u8>>, Result<(), MessageError>) {
    let (mut reader, mut found) = (MessageReader::default(), Vec::new());
    for piece in body.chunks(piece) {
        let read = reader.read(piece, BYTES_MAX, true, &mut |one| found.push(one.to_vec()));
        if read.is_err() {
            return (found, read);
        }
    }
    let end = reader.end();
    (found, end)
}
