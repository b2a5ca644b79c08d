//! Promises that a random transaction seldom tries: sessions, bounds, and bytes that are no transaction.

use super::super::compose::Composer;
use super::super::fuzz::{copy_of, fuzz_transaction};
use super::super::group::{self, Group};
use super::super::results::{Given, GivenValue, ResultReader};
use super::super::transaction::{DEPTH_MAX, Literal};
use super::super::{Applied, Database, Limits, RESULT_BYTES_MAX, Status};

fn add_one() -> Vec<u8> {
    let mut out = Vec::new();
    Composer::begin(&mut out, &[b"t"]).add(0, &[b"n"], 1, 0);
    out
}

fn number(database: &Database) -> i64 {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    Composer::begin(&mut bytes, &[b"t"]).get(0, &[b"n"]);
    assert_eq!(database.read(&bytes, &mut out), Status::Done);
    match ResultReader::read(&out).unwrap().next().unwrap() {
        Some(Given::Value(_, GivenValue::Integer(number))) => number,
        other => panic!("{other:?}"),
    }
}

fn apply(database: &mut Database, since: u64, client: u64, sequence: u64) -> (Applied, Vec<u8>) {
    let mut out = Vec::new();
    let applied = database.apply(since, client, sequence, &add_one(), &mut out);
    (applied, out)
}

/// Claim: a transaction that is sent again happens once and has its first result, an older one is too late, and each
/// client has its own sequence; also where the database was written and read in between.
#[test]
fn exactly_once_for_each_client() {
    let mut database = Database::new(Limits::default());
    let (first, result) = apply(&mut database, 0, 1, 5);
    assert_eq!(first, Applied::Executed(Status::Done));
    apply(&mut database, 0, 2, 5);
    let mut copy = copy_of(&database);
    for database in [&mut database, &mut copy] {
        assert_eq!(apply(database, 0, 1, 5), (Applied::Repeated, result.clone()));
        assert_eq!(number(database), 2);
        assert_eq!(apply(database, 0, 1, 4).0, Applied::Refused(Status::TooLate));
        assert_eq!(apply(database, 0, 1, 9).0, Applied::Executed(Status::Done));
        assert_eq!(number(database), 3);
        assert_eq!((database.position(), database.counts().repeated), (3, 1));
    }
    assert_eq!(copy.digest(), database.digest());
}

/// Claim: sessions are bounded; a new client takes the place of one that was idle for long enough and of no other; and a
/// client that may have been forgotten is told so and its transaction is not executed again.
#[test]
fn idle_sessions_are_forgotten_and_nothing_is_executed_twice() {
    let limits = Limits { sessions_max: 3, session_idle_min: 10, ..Limits::default() };
    let mut database = Database::new(limits);
    for client in 1..=3 {
        assert_eq!(apply(&mut database, 0, client, 1).0, Applied::Executed(Status::Done));
    }
    assert_eq!(apply(&mut database, 0, 4, 1).0, Applied::Refused(Status::TooManySessions));
    for sequence in 2..=12 {
        apply(&mut database, 0, 2, sequence);
    }
    let fresh = database.position();
    assert_eq!(apply(&mut database, fresh, 4, 1).0, Applied::Executed(Status::Done));
    let counts = database.counts();
    assert_eq!((counts.sessions, counts.sessions_forgotten), (3, 1));
    let before = number(&database);
    let idle = [1, 3].map(|client| apply(&mut database, 0, client, 1).0);
    let expired = Applied::Refused(Status::SessionExpired);
    assert!(idle.contains(&expired) && idle.contains(&Applied::Repeated), "{idle:?}");
    assert_eq!(number(&database), before, "what may have been executed is not executed");
    assert_eq!(apply(&mut database, 0, 2, 12).0, Applied::Repeated, "the busy one is known");
    assert_eq!(copy_of(&database).digest(), database.digest());
}

/// Claim: from the bound on memory on nothing is stored, while reads and deletions are served, and what is deleted makes
/// room again.
#[test]
fn memory_is_bounded() {
    let limits = Limits { bytes_max: 100_000, ..Limits::default() };
    let mut database = Database::new(limits);
    let value = vec![1; 1000];
    let store = |sequence: u64| {
        let mut out = Vec::new();
        let key = sequence.to_le_bytes();
        let value = Literal::Bytes(&value);
        Composer::begin(&mut out, &[b"t"]).store(0, &[&key], value);
        out
    };
    let mut stored = 0;
    for sequence in 1..1000 {
        let mut out = Vec::new();
        let applied = database.apply(0, 1, sequence, &store(sequence), &mut out);
        match applied {
            Applied::Executed(Status::Done) => stored = sequence,
            other => assert_eq!(other, Applied::Executed(Status::Full)),
        }
    }
    assert!((80..100).contains(&stored), "{stored} values of 1000 bytes in 100000");
    assert!(database.bytes() < 102_000);
    let (mut delete, mut out) = (Vec::new(), Vec::new());
    Composer::begin(&mut delete, &[b"t"]).delete(0, &[&1_u64.to_le_bytes()]);
    let applied = database.apply(0, 1, 1000, &delete, &mut out);
    assert_eq!(applied, Applied::Executed(Status::Done));
    let applied = database.apply(0, 1, 1001, &store(1001), &mut out);
    assert_eq!(applied, Applied::Executed(Status::Done));
}

/// Claim: what reads leave with their sessions counts, too: once the bound is reached nothing long is kept, and what is short
/// is still answered.
#[test]
fn kept_results_are_bounded() {
    let mut database = Database::new(Limits { bytes_max: 100_000, ..Limits::default() });
    let (mut store, mut get, mut check) = (Vec::new(), Vec::new(), Vec::new());
    Composer::begin(&mut store, &[b"t"]).put(0, &[b"k"], Literal::Bytes(&[1; 50_000]));
    Composer::begin(&mut get, &[b"t"]).get(0, &[b"k"]);
    Composer::begin(&mut check, &[b"t"]).check_version(0, &[b"k"], 1);
    database.apply(0, 1, 1, &store, &mut Vec::new());
    let statuses: Vec<Applied> =
        (2..100).map(|client| database.apply(0, client, 1, &get, &mut Vec::new())).collect();
    assert_eq!(statuses.first(), Some(&Applied::Executed(Status::Done)));
    assert_eq!(statuses.last(), Some(&Applied::Executed(Status::Full)));
    assert!(database.bytes() < 300_000, "{}", database.bytes());
    let applied = database.apply(0, 200, 1, &check, &mut Vec::new());
    assert_eq!(applied, Applied::Executed(Status::Done));
    let mut out = Vec::new();
    assert_eq!(database.read(&get, &mut out), Status::Done);
}

/// Claim: a map at the deepest place that there is comes back from a snapshot.
#[test]
fn the_deepest_map_is_read_again() {
    let mut database = Database::new(Limits::default());
    let path: [&[u8]; DEPTH_MAX] = [b"k"; DEPTH_MAX];
    let mut put = Vec::new();
    Composer::begin(&mut put, &[b"t"]).put(0, &path, Literal::Map);
    let applied = database.apply(0, 1, 1, &put, &mut Vec::new());
    assert_eq!(applied, Applied::Executed(Status::Done));
    assert_eq!(copy_of(&database).digest(), database.digest());
}

/// Claim: what is counted is what is held, whatever took the place of a map or took one out, also in a transaction that is
/// taken back.
#[test]
fn maps_that_go_are_counted() {
    let mut database = Database::new(Limits::default());
    let mut sequence = 0;
    let mut apply = |database: &mut Database, transaction: &[u8]| {
        sequence += 1;
        database.apply(0, 1, sequence, transaction, &mut Vec::new())
    };
    let (mut fill, mut fail, mut replace, mut delete) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut filling = Composer::begin(&mut fill, &[b"t"]);
    for key in 0..50_u8 {
        filling.put(0, &[b"m", &[key]], Literal::Bytes(&[key; 100]));
    }
    Composer::begin(&mut fail, &[b"t"])
        .store(0, &[b"m"], Literal::Integer(1))
        .delete(0, &[b"m"])
        .check_version(0, &[b"m"], 99);
    Composer::begin(&mut replace, &[b"t"]).store(0, &[b"m"], Literal::Integer(1));
    Composer::begin(&mut delete, &[b"t"]).delete(0, &[b"m"]);
    // The failed one last, which changes nothing: its result is short.
    let mut held_after = |database: &mut Database, transaction: &[u8]| {
        assert_eq!(apply(database, transaction), Applied::Executed(Status::Done));
        let held = database.bytes();
        assert_eq!(apply(database, &fail), Applied::Executed(Status::CheckFailed));
        (held, database.bytes())
    };
    let (small, _) = held_after(&mut database, &replace);
    let (empty, _) = held_after(&mut database, &delete);
    let (_, full) = held_after(&mut database, &fill);
    assert!(full > empty + 50 * 100 && small > empty, "{empty} {small} {full}");
    assert_eq!(held_after(&mut database, &replace), (small, small));
    assert_eq!(held_after(&mut database, &delete), (empty, empty));
    assert_eq!(held_after(&mut database, &fill).1, full);
    assert_eq!(held_after(&mut database, &delete), (empty, empty));
}

/// Claim: a read that would be longer than a result may be says so, is bounded while it is made, and its transaction
/// leaves no trace.
#[test]
fn results_are_bounded() {
    let mut database = Database::new(Limits::default());
    let value = vec![1; 400_000];
    for sequence in 1..=4 {
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        Composer::begin(&mut bytes, &[b"t"])
            .append(0, &[b"l"], Literal::Bytes(&value))
            .get(0, &[b"l"])
            .get(0, &[]);
        let applied = database.apply(0, 1, sequence, &bytes, &mut out);
        let status = if sequence == 1 { Status::Done } else { Status::ResultTooLong };
        assert_eq!(applied, Applied::Executed(status));
        assert!(out.len() <= RESULT_BYTES_MAX);
        assert!(database.bytes() < 2 * RESULT_BYTES_MAX as u64);
    }
}

/// Claim: a group gives back its requests, and any cut or lengthened group is refused.
#[test]
fn groups_round_trip() {
    let mut bytes = Vec::new();
    group::begin(&mut bytes, 7);
    for client in 1..=3_u8 {
        let write = |out: &mut Vec<u8>| out.extend(std::iter::repeat_n(client, client.into()));
        group::push(&mut bytes, 0, client.into(), 40 + u64::from(client), write);
    }
    let read = Group::read(&bytes).unwrap();
    assert_eq!((read.since, read.count()), (7, 3));
    let lengths: Vec<(u64, u64, usize)> =
        read.requests().map(|r| (r.client, r.sequence, r.transaction.len())).collect();
    assert_eq!(lengths, [(1, 41, 1), (2, 42, 2), (3, 43, 3)]);
    for cut in 0..bytes.len() {
        assert!(Group::read(&bytes[..cut]).is_err());
    }
    bytes.push(0);
    assert!(Group::read(&bytes).is_err());
}

/// Claim: of the fuzz target's seeds, whole and with any one byte changed, none breaks what the target asserts.
#[test]
fn near_the_fuzz_seeds() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fuzz/seeds/kv_transactions");
    let mut count = 0;
    for seed in std::fs::read_dir(folder).unwrap() {
        let seed = std::fs::read(seed.unwrap().path()).unwrap();
        fuzz_transaction(&seed);
        for at in 0..seed.len() {
            for change in [1, 0x80, 0xff] {
                let mut near = seed.clone();
                near[at] ^= change;
                fuzz_transaction(&near);
            }
        }
        count += 1;
    }
    assert!(count >= 3, "there are {count} seeds");
}

/// Writes the seeds of the fuzz target: run with `KV_SEEDS=1` when the form changes.
#[test]
fn seeds_are_of_this_form() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fuzz/seeds/kv_transactions");
    let mut published = Vec::new();
    Composer::begin(&mut published, &[b"7", b"8"])
        .store(0, &[b"1"], Literal::String(b"1"))
        .store(0, &[b"23456"], Literal::Map)
        .store(0, &[b"23456", b"nested-list"], Literal::List)
        .append(0, &[b"23456", b"nested-list"], Literal::String(b"1111111111"))
        .add(1, &[b"n"], 5, 0)
        .delete(0, &[b"1"])
        .get(0, &[b"23456"]);
    let mut failing = Vec::new();
    Composer::begin(&mut failing, &[b"t"])
        .put(0, &[b"x", b"y"], Literal::Integer(3))
        .append(0, &[b"l"], Literal::Bytes(&[1; 30]))
        .delete(0, &[b"a"])
        .check_version(0, &[b"l"], 99);
    let mut grouped = Vec::new();
    group::begin(&mut grouped, 0);
    group::push(&mut grouped, 0, 3, 1, |out| out.extend_from_slice(&published));
    group::push(&mut grouped, 0, 3, 2, |out| out.extend_from_slice(&failing));
    for (name, bytes) in [("published", published), ("failing", failing), ("group", grouped)] {
        let path = folder.join(name);
        if std::env::var_os("KV_SEEDS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(path).unwrap(), bytes, "{name}: renew with KV_SEEDS=1");
    }
}
