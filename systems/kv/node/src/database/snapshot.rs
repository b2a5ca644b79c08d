//! The whole database as bytes, in chunks of bounded size, and back. The bytes are a function of what is held alone: two
//! replicas at the same position write the same.
//!
//! A chunk is its length (u32) and records; the last record carries a checksum of all before it. The database must not
//! change between the first chunk and the last, which the borrow sees to.

use std::hash::Hasher as _;

use crc32fast::Hasher as Crc;

use super::hash::Mix;
use super::list::List;
use super::map::{Entry, Map, Value};
use super::sessions::Session;
use super::text::Text;
use super::transaction::{DEPTH_MAX, Literal, Malformed, Reader, TRANSACTION_BYTES_MAX};
use super::{Database, Limits};

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

/// Where the writer is.
enum Stage {
    Head,
    Sessions(usize),
    Tables(usize),
    Over,
}

/// Writes a database chunk by chunk.
pub struct SnapshotWriter<'d> {
    database: &'d Database,
    stage: Stage,
    /// The maps that are being written, each with its next entry.
    maps: Vec<(&'d Map, usize)>,
    /// The list that is being written: its bytes that are still to come.
    list: Option<Box<dyn Iterator<Item = &'d [u8]> + 'd>>,
    /// Of the list's segment at hand, what is still to come.
    segment: &'d [u8],
    crc: Crc,
}

impl<'d> SnapshotWriter<'d> {
    /// At its beginning.
    #[must_use]
    pub fn new(database: &'d Database) -> Self {
        Self {
            database,
            stage: Stage::Head,
            maps: Vec::new(),
            list: None,
            segment: &[],
            crc: Crc::new(),
        }
    }

    /// At its first table: for comparing what is stored.
    #[must_use]
    pub(super) fn of_tables(database: &'d Database) -> Self {
        Self { stage: Stage::Tables(0), ..Self::new(database) }
    }

    /// Appends the next chunk to `out`; `false`: there was none.
    pub fn next_chunk(&mut self, out: &mut Vec<u8>) -> bool {
        if matches!(self.stage, Stage::Over) {
            return false;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        while out.len() - start < CHUNK_BYTES && !matches!(self.stage, Stage::Over) {
            let record = out.len();
            self.write_record(out);
            self.crc.update(&out[record..]);
        }
        if matches!(self.stage, Stage::Over) {
            out.push(record::END);
            out.extend_from_slice(&self.crc.clone().finalize().to_le_bytes());
        }
        let length = u32::try_from(out.len() - start - 4).expect("bounded above");
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        true
    }

    fn write_record(&mut self, out: &mut Vec<u8>) {
        if self.list.is_some() {
            self.write_piece(out);
        } else if let Some((map, at)) = self.maps.last_mut() {
            let map: &'d Map = map;
            let entry = map.entries().get(*at);
            *at += 1;
            match entry {
                Some(entry) => self.write_entry(entry, out),
                None => {
                    self.maps.pop();
                    out.push(record::MAP_END);
                }
            }
        } else {
            self.write_stage(out);
        }
    }

    fn write_stage(&mut self, out: &mut Vec<u8>) {
        let database = self.database;
        match self.stage {
            Stage::Head => {
                out.push(record::HEAD);
                out.extend_from_slice(MAGIC);
                let [cursor, forgotten_to, forgotten] = database.sessions.counters();
                let numbers =
                    [database.position, database.repeated, cursor, forgotten_to, forgotten];
                for number in numbers {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                self.stage = Stage::Sessions(0);
            }
            Stage::Sessions(at) => {
                let Some(session) = database.sessions.all().get(at) else {
                    self.stage = Stage::Tables(0);
                    return;
                };
                out.push(record::SESSION);
                for number in [session.client, session.sequence, session.used] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                long(out, session.result.bytes());
                self.stage = Stage::Sessions(at + 1);
            }
            Stage::Tables(at) => {
                let Some(table) = database.tables.all().get(at) else {
                    self.stage = Stage::Over;
                    return;
                };
                key(out, record::TABLE, &table.name, table.version);
                self.maps.push((&table.root, 0));
                self.stage = Stage::Tables(at + 1);
            }
            Stage::Over => {}
        }
    }

    fn write_entry(&mut self, entry: &'d Entry, out: &mut Vec<u8>) {
        let scalar = match &entry.value {
            Value::Integer(number) => Literal::Integer(*number),
            Value::String(text) => Literal::String(text.bytes()),
            Value::Bytes(text) => Literal::Bytes(text.bytes()),
            Value::List(list) => {
                key(out, record::LIST, &entry.key, entry.version);
                out.extend_from_slice(&list.elements().to_le_bytes());
                self.list = Some(Box::new(list.segments()));
                return;
            }
            Value::Map(map) => {
                key(out, record::MAP, &entry.key, entry.version);
                self.maps.push((map, 0));
                return;
            }
        };
        key(out, record::SCALAR, &entry.key, entry.version);
        scalar.write(out);
    }

    /// Pieces are cut by bytes, not as segments happen to lie, so that the bytes say nothing of how a list came to be.
    fn write_piece(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(record::PIECE);
        out.extend_from_slice(&[0; 4]);
        let mut left = PIECE_BYTES;
        while left > 0 {
            if self.segment.is_empty() {
                match self.list.as_mut().and_then(|segments| segments.next()) {
                    Some(segment) => self.segment = segment,
                    None => break,
                }
            }
            let (piece, rest) = self.segment.split_at(left.min(self.segment.len()));
            out.extend_from_slice(piece);
            self.segment = rest;
            left -= piece.len();
        }
        if left == PIECE_BYTES {
            out.truncate(start);
            out.push(record::LIST_END);
            self.list = None;
            return;
        }
        let length = u32::try_from(PIECE_BYTES - left).expect("bounded");
        out[start + 1..start + 5].copy_from_slice(&length.to_le_bytes());
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

/// A map that is being read: its key and version in the map around it.
struct Open {
    key: Text,
    version: u64,
    map: Map,
}

/// Reads a database, whatever the cuts between the pieces of its bytes.
pub struct SnapshotReader {
    database: Database,
    unread: Vec<u8>,
    crc: Crc,
    has_head: bool,
    is_over: bool,
    maps: Vec<Open>,
    list: Option<(Text, u64, List, u32)>,
}

impl SnapshotReader {
    /// At the beginning of a snapshot.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            database: Database::new(limits),
            unread: Vec::new(),
            crc: Crc::new(),
            has_head: false,
            is_over: false,
            maps: Vec::new(),
            list: None,
        }
    }

    /// Takes more bytes.
    ///
    /// # Errors
    /// When they are not a snapshot's: the reader cannot go on.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.unread.extend_from_slice(bytes);
        let unread = std::mem::take(&mut self.unread);
        let mut rest = &unread[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
            if length > CHUNK_BYTES_MAX {
                return Err(Malformed);
            }
            let Some((chunk, behind)) = behind.split_at_checked(length) else { break };
            self.chunk(chunk)?;
            rest = behind;
        }
        self.unread = rest.to_vec();
        Ok(())
    }

    /// The database, when all of it has been read.
    ///
    /// # Errors
    /// When something is missing.
    pub fn finish(self) -> Result<Database, Malformed> {
        if self.is_over && self.unread.is_empty() { Ok(self.database) } else { Err(Malformed) }
    }

    fn chunk(&mut self, chunk: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader(chunk);
        while !reader.0.is_empty() {
            let before = reader.0;
            self.record(&mut reader)?;
            self.crc.update(&before[..before.len() - reader.0.len()]);
        }
        Ok(())
    }

    fn record(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let kind = reader.byte()?;
        if self.is_over || self.has_head == (kind == record::HEAD) {
            return Err(Malformed);
        }
        let is_of_list = matches!(kind, record::PIECE | record::LIST_END);
        if self.list.is_some() != is_of_list {
            return Err(Malformed);
        }
        match kind {
            record::HEAD => self.head(reader),
            record::SESSION => self.session(reader),
            record::TABLE => self.table(reader),
            record::SCALAR | record::LIST | record::MAP => self.entry(kind, reader),
            record::PIECE => {
                let piece = reader.long()?;
                let (_, _, list, _) = self.list.as_mut().ok_or(Malformed)?;
                list.append_many(0, piece.len(), |out| out.extend_from_slice(piece));
                Ok(())
            }
            record::LIST_END => {
                let (key, version, mut list, elements) = self.list.take().ok_or(Malformed)?;
                list.append_many(elements, 0, |_| {});
                self.push(Entry { key, version, value: Value::List(Box::new(list)) })
            }
            record::MAP_END => self.map_end(),
            record::END => {
                let crc = reader.u32()?;
                self.is_over = self.maps.is_empty() && crc == self.crc.clone().finalize();
                if self.is_over { Ok(()) } else { Err(Malformed) }
            }
            _ => Err(Malformed),
        }
    }

    fn head(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        if reader.array::<8>()? != *MAGIC {
            return Err(Malformed);
        }
        self.has_head = true;
        self.database.position = reader.u64()?;
        self.database.repeated = reader.u64()?;
        self.database.sessions.set_counters([reader.u64()?, reader.u64()?, reader.u64()?]);
        Ok(())
    }

    fn session(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let (client, sequence, used) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let result = Text::new(reader.long()?);
        let session = Session { client, sequence, used, table_hint: u32::MAX, result };
        if self.database.sessions.restore(session) { Ok(()) } else { Err(Malformed) }
    }

    fn table(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let (name, version) = (reader.short()?, reader.u64()?);
        if !self.maps.is_empty() || self.database.tables.find(name, u32::MAX).is_some() {
            return Err(Malformed);
        }
        self.database.tables.make(name, version);
        self.maps.push(Open { key: Text::new(&[]), version, map: Map::default() });
        Ok(())
    }

    fn entry(&mut self, kind: u8, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let (key, version) = (Text::new(reader.short()?), reader.u64()?);
        if self.maps.is_empty() {
            return Err(Malformed);
        }
        if kind == record::LIST {
            self.list = Some((key, version, List::default(), reader.u32()?));
            return Ok(());
        }
        if kind == record::MAP {
            if self.maps.len() >= DEPTH_MAX {
                return Err(Malformed);
            }
            self.maps.push(Open { key, version, map: Map::default() });
            return Ok(());
        }
        let value = match reader.literal()? {
            Literal::Integer(number) => Value::Integer(number),
            Literal::String(bytes) => Value::String(Text::new(bytes)),
            Literal::Bytes(bytes) => Value::Bytes(Text::new(bytes)),
            Literal::Absent | Literal::List | Literal::Map => return Err(Malformed),
        };
        self.push(Entry { key, version, value })
    }

    fn map_end(&mut self) -> Result<(), Malformed> {
        let Open { key, version, map } = self.maps.pop().ok_or(Malformed)?;
        if !self.maps.is_empty() {
            return self.push(Entry { key, version, value: Value::Map(Box::new(map)) });
        }
        let cost = map.entries().iter().map(Entry::cost).sum();
        let last = self.database.tables.all().len().checked_sub(1).ok_or(Malformed)?;
        let place = u32::try_from(last).map_err(|_| Malformed)?;
        self.database.tables.count(cost);
        self.database.tables.at_mut(place).root = map;
        Ok(())
    }

    fn push(&mut self, entry: Entry) -> Result<(), Malformed> {
        let map = &mut self.maps.last_mut().ok_or(Malformed)?.map;
        if map.get(entry.key.bytes()).is_some() {
            return Err(Malformed);
        }
        map.push(entry);
        Ok(())
    }
}
