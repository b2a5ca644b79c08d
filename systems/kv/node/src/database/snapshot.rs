//! The database as bytes, in chunks of bounded size, and back. The bytes are a function of what is held alone: two
//! replicas at the same position write the same.
//!
//! A chunk is its length (u32) and records; the last record carries a checksum of all before it. The database may change
//! between the first chunk and the last: a [`Freeze`] keeps what it was of all that changes before it is written, and no
//! more. So a snapshot neither stops its maker nor takes the database's memory once more.

mod aside;
mod freeze;
mod reader;
#[cfg(test)]
mod tests;
mod unit;

use std::hash::Hasher as _;

use super::Database;
use super::hash::Mix;
use super::sessions::Session;
use super::text::Text;
use super::transaction::TRANSACTION_BYTES_MAX;

pub(super) use freeze::Change;
pub use freeze::Freeze;
pub use reader::SnapshotReader;

/// A chunk ends with the first record that reaches this.
pub const CHUNK_BYTES: usize = 256 << 10;

/// No chunk is longer: the last record may be a value of a whole transaction, or a kept result.
pub const CHUNK_BYTES_MAX: usize = CHUNK_BYTES + 2 * TRANSACTION_BYTES_MAX;

/// Pieces of lists.
const PIECE_BYTES: usize = 64 << 10;

const MAGIC: &[u8; 8] = b"kv snap1";

mod record {
    pub const HEAD: u8 = 1;
    pub const SESSION: u8 = 2;
    pub const TABLE: u8 = 3;
    pub const SCALAR: u8 = 4;
    pub const LIST: u8 = 5;
    pub const PIECE: u8 = 6;
    pub const LIST_END: u8 = 7;
    pub const MAP: u8 = 8;
    pub const MAP_END: u8 = 9;
    pub const END: u8 = 10;
}

/// Writes a database that does not change meanwhile, chunk by chunk.
pub struct SnapshotWriter<'d> {
    database: &'d Database,
    freeze: Freeze,
}

impl<'d> SnapshotWriter<'d> {
    /// At its beginning.
    #[must_use]
    pub fn new(database: &'d Database) -> Self {
        Self { database, freeze: Freeze::new(database) }
    }

    /// At its first table: for comparing what is stored.
    #[must_use]
    pub(super) fn of_tables(database: &'d Database) -> Self {
        Self { database, freeze: Freeze::of_tables(database) }
    }

    /// Appends the next chunk to `out`; `false`: there was none.
    pub fn next_chunk(&mut self, out: &mut Vec<u8>) -> bool {
        if self.freeze.is_over() {
            return false;
        }
        self.freeze.next_chunk(&self.database.tables, &self.database.sessions, out);
        true
    }
}

/// See [`Database::digest`].
pub(super) fn digest(database: &Database) -> u64 {
    let mut writer = SnapshotWriter::new(database);
    let mut mix = Mix::default();
    let mut chunk = Vec::new();
    while writer.next_chunk(&mut chunk) {
        mix.write(&chunk);
        chunk.clear();
    }
    mix.finish()
}

/// Appends the length (u32) of what `write` appends, and that; gives what it says.
fn framed<T>(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let said = write(out);
    let length = u32::try_from(out.len() - start - 4).expect("bounded");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    said
}

fn session(session: &Session, out: &mut Vec<u8>) {
    out.push(record::SESSION);
    for number in [session.client, session.sequence, session.used] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    long(out, session.result.bytes());
}

fn key(out: &mut Vec<u8>, record: u8, key: &Text, version: u64) {
    out.push(record);
    let bytes = key.bytes();
    out.push(u8::try_from(bytes.len()).expect("names and keys have at most 255 bytes"));
    out.extend_from_slice(bytes);
    out.extend_from_slice(&version.to_le_bytes());
}

fn long(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).expect("bounded").to_le_bytes());
    out.extend_from_slice(bytes);
}
