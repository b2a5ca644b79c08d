//! What is submitted, and recognising it again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Seed;
use model::facts::LedgerEntry;
use sut::Workload as _;

use super::RUN_MARK;
use crate::ledger::{Place, entry};
use crate::settle::Use;
use crate::transaction::{BYTES_MIN, HEAD_BYTES, Key, KeyValues};

fn transaction(tx: u64, bytes: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    KeyValues::new(Seed(3), 0, RUN_MARK, bytes).next(tx, None, &mut payload);
    payload
}

/// Claim: a transaction has its size to the byte, exactly one `=` and no `:` (what the application takes), and
/// says whose it is.
#[test]
fn transactions_describe_themselves() {
    for bytes in [BYTES_MIN, 64, 250, 1024, 10_000] {
        for tx in [0, 1, 1 << 40, u64::MAX] {
            let payload = transaction(tx, bytes);
            assert_eq!(payload.len(), bytes);
            assert_eq!(payload.iter().filter(|byte| **byte == b'=').count(), 1);
            assert!(payload.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':'));
            let key = Key::read(&payload[..HEAD_BYTES]).unwrap();
            assert_eq!((key.run_mark, key.tx), (RUN_MARK, tx));
            assert!(key.holds(&payload));
        }
    }
    assert!(transaction(7, 43).starts_with(b"a0123456789abcdef0000000000000007"));
}

/// The fifth transaction of a block of ours.
const PLACE: Place = Place { height: 3, recorded: None, run_mark: RUN_MARK, usage: Use::Own };
const POSITION: u64 = (3 << 24) + 5;

/// Claim: any single byte that is altered makes the ledger's entry nobody's, and no damage is a panic.
#[test]
fn an_altered_transaction_is_nobodys() {
    let payload = transaction(42, 80);
    let read = |bytes: &[u8]| {
        let found = entry(&STANDARD.encode(bytes), 5, PLACE).unwrap();
        found.expect("nothing is left out of a chain of one's own")
    };
    let whole = LedgerEntry { block: 3, ..LedgerEntry::new(POSITION, 42, true) };
    assert_eq!(read(&payload), whole);
    for at in 0..payload.len() {
        for flip in [1, 0x20, 0x80] {
            let mut altered = payload.clone();
            altered[at] ^= flip;
            assert!(!read(&altered).ours, "byte {at} ^ {flip:#x}");
        }
        assert!(!read(&payload[..at]).ours, "cut at {at}");
    }
    assert!(entry("no base64!", 1, PLACE).is_err());
}

/// Claim: in a chain that others use too, what does not carry the run's mark is theirs; what carries it and is
/// altered is still an entry, and nobody's.
#[test]
fn others_transactions_are_left_out_of_a_shared_chain() {
    let payload = transaction(42, 80);
    let read = |bytes: &[u8], run_mark, usage| {
        let place = Place { run_mark, usage, ..PLACE };
        entry(&STANDARD.encode(bytes), 5, place).unwrap().map(|entry| entry.ours)
    };
    for (usage, of_others) in [(Use::Own, Some(false)), (Use::Shared, None)] {
        assert_eq!(read(&payload, RUN_MARK, usage), Some(true));
        assert_eq!(read(&payload, RUN_MARK + 1, usage), of_others);
        assert_eq!(read(b"a=b", RUN_MARK, usage), of_others);
        assert_eq!(read(&payload[..60], RUN_MARK, usage), Some(false));
    }
}
