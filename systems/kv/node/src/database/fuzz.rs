//! Entry point for fuzzing: any bytes as a transaction, as a group and as a snapshot. What is claimed is asserted: what is
//! refused changes nothing, and a database that was written is read back the same.

use super::compose::Composer;
use super::group::Group;
use super::results::ResultReader;
use super::snapshot::{SnapshotReader, SnapshotWriter};
use super::transaction::Literal;
use super::{Applied, Database, Limits, Status};

/// Any bytes.
///
/// # Panics
/// If one of the claims does not hold.
pub fn fuzz_transaction(bytes: &[u8]) {
    let mut database = Database::new(Limits::default());
    let (mut seed, mut out) = (Vec::new(), Vec::new());
    let mut composer = Composer::begin(&mut seed, &[b"t"]);
    composer.put(0, &[b"a", b"b"], Literal::Integer(1)).append(0, &[b"l"], Literal::Integer(2));
    database.apply(0, 1, 1, &seed, &mut out);
    one(&mut database, bytes, 1);
    if let Ok(group) = Group::read(bytes) {
        for (request, sequence) in group.requests().zip(2..) {
            one(&mut database, request.transaction, sequence);
        }
    }
    let mut reader = SnapshotReader::new(Limits::default());
    if reader.take(bytes).is_ok() {
        let _ = reader.finish();
    }
    let copy = copy_of(&database);
    assert_eq!(copy.digest(), database.digest(), "a snapshot is the database");
    assert_eq!(copy.bytes(), database.bytes(), "a snapshot counts as much as the database");
}

/// One transaction: a failed one leaves what is stored as it was, and a read changes nothing.
fn one(database: &mut Database, transaction: &[u8], sequence: u64) {
    let (mut result, mut read) = (Vec::new(), Vec::new());
    let before = (database.digest(), database.tables.bytes());
    database.read(transaction, &mut read);
    assert_eq!(before, (database.digest(), database.tables.bytes()), "a read changes nothing");
    let contents = contents_of(database);
    let applied = database.apply(0, 2, sequence, transaction, &mut result);
    if !matches!(applied, Applied::Executed(Status::Done)) {
        assert!(contents == contents_of(database), "a failed transaction leaves no trace");
        assert_eq!(before.1, database.tables.bytes());
    }
    let mut reader = ResultReader::read(&result).expect("what is written is read");
    while reader.next().expect("what is written is read").is_some() {}
    let mut again = Vec::new();
    assert_eq!(database.apply(0, 2, sequence, transaction, &mut again), Applied::Repeated);
    assert_eq!(again, result, "a repeated transaction has its first result");
}

/// What all tables hold.
pub(super) fn contents_of(database: &Database) -> Vec<u8> {
    let mut writer = SnapshotWriter::of_tables(database);
    let mut contents = Vec::new();
    while writer.next_chunk(&mut contents) {}
    contents
}

/// The database, written and read.
pub(super) fn copy_of(database: &Database) -> Database {
    let mut writer = SnapshotWriter::new(database);
    let mut reader = SnapshotReader::new(database.limits);
    let mut chunk = Vec::new();
    while writer.next_chunk(&mut chunk) {
        reader.take(&chunk).expect("what is written is read");
        chunk.clear();
    }
    reader.finish().expect("what is written is whole")
}
