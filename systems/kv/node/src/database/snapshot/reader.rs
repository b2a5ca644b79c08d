//! Reads a database back.

use crc32fast::Hasher as Crc;

use super::{CHUNK_BYTES_MAX, MAGIC, record};
use crate::database::list::List;
use crate::database::map::{Entry, Map, Value};
use crate::database::sessions::Session;
use crate::database::text::Text;
use crate::database::transaction::{DEPTH_MAX, Literal, Malformed, Reader};
use crate::database::{Database, Limits};

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
            // The table's own is one of them.
            if self.maps.len() > DEPTH_MAX {
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
