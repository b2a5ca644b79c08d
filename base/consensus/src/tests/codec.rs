//! The bytes of messages and records.

use super::group::members;
use crate::{
    Accepted, Ballot, DecodeError, Entry, Message, Proposal, Record, ReplicaId, SnapshotHead,
};

fn ballot(counter: u64) -> Ballot {
    Ballot { counter, replica: ReplicaId(3) }
}

fn proposals() -> Vec<Proposal> {
    let value = |bytes: &[u8]| Entry::Value(bytes.into());
    let entries = [value(b"one"), Entry::Noop, value(b""), Entry::Members(members(&[1, 2, 9]))];
    entries.map(|entry| Proposal { origin: ballot(5), follows: ballot(4), entry }).to_vec()
}

/// One of each kind.
fn messages() -> Vec<Message> {
    let ballot = ballot(7);
    let accepted = |proposal| Accepted { ballot, proposal };
    let entries = proposals().into_iter().map(accepted).collect();
    let head = SnapshotHead { through: 9, origin: ballot, members: members(&[1]) };
    vec![
        Message::AskForVotes { ballot, last: 1, chosen: 2 },
        Message::Vote { ballot, granted: true, promised: ballot },
        Message::Prepare { ballot, first: 3 },
        Message::Promise { ballot, first: 3, chosen: 2, is_last: false, entries },
        Message::Accept { ballot, chosen: 1, first: 2, entries: proposals() },
        Message::Accepted { ballot, through: 4, expected: 5, is_gap: true },
        Message::Rejected { ballot, promised: ballot },
        Message::Heartbeat { ballot, chosen: 5, round: 6 },
        Message::Heard { ballot, round: 6, through: 7, expected: 8 },
        Message::Decide { ballot, chosen: 1, first: 2, entries: proposals() },
        Message::Snapshot { ballot, head, offset: 4, is_last: true, bytes: b"part"[..].into() },
        Message::SnapshotWanted { ballot, through: 9, offset: 8 },
    ]
}

fn records() -> Vec<Record> {
    let snapshot = SnapshotHead { through: 9, origin: ballot(2), members: members(&[1, 4]) };
    let mut records = vec![
        Record::Promised { ballot: ballot(1) },
        Record::Head { promised: ballot(3), chosen: 12, snapshot },
    ];
    for proposal in proposals() {
        records.push(Record::Accepted { instance: 1, ballot: ballot(8), chosen: 0, proposal });
    }
    records
}

/// Claim: every message and record is read as what was written, from one piece or from head and bodies; no part of it is,
/// and nothing may follow it.
#[test]
fn what_is_written_is_read() {
    for message in messages() {
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        message.encode(&mut whole);
        message.encode_head(&mut parts);
        message.bodies().for_each(|body| parts.extend_from_slice(body));
        assert_eq!(whole, parts);
        assert_eq!(Message::decode(&whole).as_ref(), Ok(&message));
        // The last field of a snapshot's part is as long as what is there: a frame says how long that is.
        if !matches!(message, Message::Snapshot { .. }) {
            for end in 0..whole.len() {
                assert!(Message::decode(&whole[..end]).is_err(), "{message:?} cut at {end}");
            }
            whole.push(0);
            assert_eq!(Message::decode(&whole), Err(DecodeError::LeftOver { count: 1 }));
        }
    }
    for record in records() {
        let mut whole = Vec::new();
        record.encode(&mut whole);
        assert_eq!(Record::decode(&whole).as_ref(), Ok(&record));
        for end in 0..whole.len() {
            assert!(Record::decode(&whole[..end]).is_err(), "{record:?} cut at {end}");
        }
        whole.push(0);
        assert_eq!(Record::decode(&whole), Err(DecodeError::LeftOver { count: 1 }));
    }
}

/// Claim: a message that carries values shares their memory.
#[test]
fn values_are_not_copied() {
    let value: crate::Value = vec![1; 1000].into();
    let entry = Entry::Value(value.clone());
    let entries = vec![Proposal { origin: ballot(1), follows: ballot(1), entry }];
    let message = Message::Accept { ballot: ballot(1), chosen: 0, first: 1, entries };
    assert!(std::ptr::eq(message.clone().bodies().next().unwrap(), &*value));
}

/// Claim: counts and numbers that cannot be are refused before anything is reserved for them.
#[test]
fn impossible_numbers_are_refused() {
    let mut bytes = Vec::new();
    Message::Accept { ballot: ballot(1), chosen: 0, first: 1, entries: vec![] }.encode(&mut bytes);
    let count = bytes.len() - 4;
    bytes[count..].copy_from_slice(&u32::MAX.to_le_bytes());
    let wrong = Message::decode(&bytes).unwrap_err();
    assert_eq!(wrong.to_string(), "the number of entries is 4294967295, more than the 0 allowed");
    let mut bytes = Vec::new();
    Message::Prepare { ballot: ballot(1), first: u64::MAX }.encode(&mut bytes);
    assert!(matches!(Message::decode(&bytes), Err(DecodeError::TooLarge { .. })));
    assert!(matches!(Message::decode(&[77; 40]), Err(DecodeError::TooLarge { .. })));
    let mut bytes = vec![99];
    bytes.extend([0; 9]);
    let wrong = Message::decode(&bytes).unwrap_err().to_string();
    assert!(wrong.starts_with("the kind of a message cannot be 99"), "{wrong}");
}

/// The names and bytes that fuzzing begins from: one of each message and record, and a log with messages behind it.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let (mut seeds, mut told) = (Vec::new(), Vec::new());
    for (number, message) in messages().iter().enumerate() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        told.push(u8::try_from(bytes.len()).unwrap());
        told.extend_from_slice(&bytes);
        seeds.push((format!("message-{:02}", number + 1), bytes));
    }
    let mut log = Vec::new();
    for (number, record) in records().iter().enumerate() {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        log.push(u8::try_from(bytes.len()).unwrap());
        log.extend_from_slice(&bytes);
        seeds.push((format!("record-{:02}", number + 1), bytes));
    }
    seeds.push(("log".to_owned(), log.clone()));
    log.extend(told);
    seeds.push(("log-and-messages".to_owned(), log));
    seeds
}

/// Claim: fuzzing begins from seeds that are what is written today, and all of them pass. `ASSAY_TEST_BLESS=1` writes them
/// anew.
#[test]
fn seeds_of_fuzzing() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/consensus_bytes");
    let folder = std::path::Path::new(folder);
    for (name, bytes) in seeds() {
        if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(&name), &bytes).unwrap();
        }
        let there = std::fs::read(folder.join(&name)).unwrap();
        assert!(there == bytes, "the seed {name} is not what is written now");
        crate::fuzz_consensus(&there);
    }
}

/// Claim: damaged messages, records and logs are refused or make sense, and no replica panics of them. Fuzzing goes further.
#[test]
fn damaged_bytes_panic_nobody() {
    let mut random = 1_u64;
    let mut below = move |end: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % end
    };
    let seeds = seeds();
    let times = std::env::var("CONSENSUS_SEEDS").map_or(2_000, |times| times.parse().unwrap());
    for _ in 0..times {
        let mut bytes =
            seeds[if below(2) == 0 { seeds.len() - 1 } else { below(seeds.len()) }].1.clone();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            match below(5) {
                0 => bytes[at] = u8::try_from(below(256)).unwrap(),
                1 => bytes[at] ^= 1 << below(8),
                2 => bytes[at] = u8::try_from(below(4)).unwrap(),
                3 => bytes.truncate(at + 1),
                _ => bytes.extend_from_within(at..),
            }
        }
        crate::fuzz_consensus(&bytes);
    }
}
