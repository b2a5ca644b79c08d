//! Entry point for fuzzing: any bytes from a client that has said hello, to the listener for clients and to that for metrics,
//! and any bytes as a reply and as a ledger. What is claimed is asserted: what a replica answers can be read, however the bytes
//! were cut, and what is refused as malformed ends its connection.

use process::rehearsal::Rehearsal;
use wire::frames::next_frame;

use crate::database::Limits;
use crate::ledger::{Ledger, read_entry};
use crate::protocol::{self, Reply, Why, read_reply};
use crate::{CLIENTS_LISTENER, KvNode, METRICS_LISTENER};

/// Any bytes.
///
/// # Panics
/// If one of the claims does not hold.
pub fn fuzz_connection(bytes: &[u8]) {
    let half = bytes.len() / 2;
    check_answers(&[bytes]);
    check_answers(&[&bytes[..half], &bytes[half..]]);
    let mut metrics = Rehearsal::new(node());
    let connection = metrics.open(METRICS_LISTENER);
    metrics.send(connection, bytes);
    let _ = read_reply(bytes);
    let mut rest = bytes;
    while let Some((_, length)) = read_entry(rest) {
        rest = &rest[length..];
    }
    replicated::fuzz_frames(bytes);
}

fn node() -> KvNode {
    KvNode::new(0, Limits::default(), Ledger::in_memory())
}

/// What is answered to pieces of what a client sends is in the protocol.
fn check_answers(pieces: &[&[u8]]) {
    let mut node = Rehearsal::new(node());
    let connection = node.open(CLIENTS_LISTENER);
    let mut hello = Vec::new();
    protocol::write_hello(&mut hello, 0);
    node.send(connection, &hello);
    for piece in pieces {
        if node.is_open(connection) {
            node.send(connection, piece);
        }
    }
    let answers = node.take_bytes(connection);
    let mut used = 0;
    let mut is_malformed = false;
    while let Some(frame) = next_frame(&answers[used..]).expect("what is answered is in frames") {
        assert!(!is_malformed, "an answer behind the end");
        let reply = read_reply(frame.payload).expect("what is answered is a reply");
        is_malformed = matches!(reply, Reply::Refused { why: Why::Malformed, .. });
        used += frame.used;
    }
    assert_eq!(used, answers.len(), "an answer is cut off");
    assert_eq!(
        is_malformed,
        !node.is_open(connection),
        "who is malformed is cut off, and nobody else"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::group;

    fn seeds_of(target: &str) -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds").join(target)
    }

    fn seeds() -> std::path::PathBuf {
        seeds_of("kv_connection")
    }

    /// Claim: of the fuzz target's seeds, whole and with any one byte changed, none breaks what the target asserts.
    #[test]
    fn near_the_fuzz_seeds() {
        let mut count = 0;
        for entry in std::fs::read_dir(seeds()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            fuzz_connection(&bytes);
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 0x41;
                fuzz_connection(&changed);
            }
            count += 1;
        }
        assert!(count >= 3, "there are {count} seeds");
    }

    /// Writes the seeds of the fuzz target: run with `KV_SEEDS=1` when the form changes.
    #[test]
    fn seeds_are_of_this_form() {
        let transactions = std::fs::read(seeds_of("kv_transactions").join("published")).unwrap();
        let mut bytes = Vec::new();
        group::begin(&mut bytes, 0);
        group::push(&mut bytes, 0, 3, 1, |out| out.extend_from_slice(&transactions));
        let (mut submit, mut read, mut questions) = (Vec::new(), Vec::new(), Vec::new());
        protocol::write_submit(&mut submit, 7, &bytes);
        let mut reads = u32::try_from(transactions.len()).unwrap().to_le_bytes().to_vec();
        reads.extend_from_slice(&transactions);
        protocol::write_read(&mut read, 8, 1, &reads);
        protocol::write_ledger_request(&mut questions, 0);
        protocol::write_status_request(&mut questions);
        protocol::write_hello(&mut questions, 0);
        for (name, seed) in [("submit", submit), ("read", read), ("questions", questions)] {
            let path = seeds().join(name);
            if std::env::var_os("KV_SEEDS").is_some() {
                std::fs::create_dir_all(seeds()).unwrap();
                std::fs::write(&path, &seed).unwrap();
            }
            assert!(std::fs::read(path).unwrap() == seed, "{name}");
        }
    }
}
