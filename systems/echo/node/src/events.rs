//! What the node stamps of itself: one record of 32 bytes for each stage that a transaction passes, in a file or in
//! memory, or nowhere. It says when, by this host's calendar, and how long the stage took.
//!
//! Appending is buffered as the ledger's is: a node that is killed loses what it held, and may leave a record cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use clock::{Instant, WallTime};

use crate::bytes::{u32_at, u64_at};

/// Bytes of a record: end (Unix, ns), length (ns), transaction, stage, checksum.
pub const EVENT_BYTES: usize = 32;

/// Buffered before it is written.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// A stage of the node's pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A submission has been read, whatever becomes of it. From its arrival: no time at all.
    Received,
    /// A server has begun with it. From received: the wait in the queue.
    Started,
    /// It stands in the ledger. From started: the service, and what storing waited for.
    Stored,
    /// Its commit was told. From the end of its service.
    Answered,
}

impl Stage {
    /// All stages, in the order of the pipeline.
    pub const ALL: [Self; 4] = [Self::Received, Self::Started, Self::Stored, Self::Answered];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Started => "started",
            Self::Stored => "stored",
            Self::Answered => "answered",
        }
    }

    /// What has been done to a transaction that passed it.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Received => "a submission was read",
            Self::Started => "a server began with it, after its wait in the queue",
            Self::Stored => "it stands in the ledger",
            Self::Answered => "its commit was told",
        }
    }
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When the stage was passed, nanoseconds after the Unix epoch.
    pub at_unix_ns: i64,
    /// How long it took, nanoseconds.
    pub took_ns: u64,
    /// The transaction.
    pub tx: u64,
    /// The stage.
    pub stage: Stage,
}

impl Event {
    fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; EVENT_BYTES];
        bytes[..8].copy_from_slice(&self.at_unix_ns.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.took_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.tx.to_le_bytes());
        bytes[24..28].copy_from_slice(&(self.stage as u32).to_le_bytes());
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Reads a record; `None` if its checksum does not hold or there is no such stage.
    #[must_use]
    pub fn read(bytes: &[u8; EVENT_BYTES]) -> Option<Self> {
        if crc32fast::hash(&bytes[..28]) != u32_at(bytes, 28) {
            return None;
        }
        let stage = usize::try_from(u32_at(bytes, 24)).ok()?;
        Some(Self {
            at_unix_ns: u64_at(bytes, 0).cast_signed(),
            took_ns: u64_at(bytes, 8),
            tx: u64_at(bytes, 16),
            stage: *Stage::ALL.get(stage)?,
        })
    }
}

/// Where a node stamps its stages.
#[derive(Debug)]
pub struct Events {
    to: To,
    /// The calendar's reading at the origin of the node's line.
    origin: WallTime,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum To {
    Nobody,
    Memory,
    File(File),
}

impl Events {
    /// Nothing is stamped.
    #[must_use]
    pub const fn none() -> Self {
        Self { to: To::Nobody, origin: WallTime::from_unix_ns(0), buffer: Vec::new() }
    }

    /// A list in memory, as if the node's line began at the Unix epoch.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { to: To::Memory, ..Self::none() }
    }

    /// A file, where a node before this one may have begun: records go behind its last whole one if `is_again`, else
    /// there must be none.
    ///
    /// # Errors
    /// When the file cannot be made, opened or cut.
    pub fn in_file(path: &Path, is_again: bool, origin: WallTime) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(is_again).create_new(!is_again);
        let file = options.open(path)?;
        let bytes = file.metadata()?.len();
        file.set_len(bytes - bytes % EVENT_BYTES as u64)?;
        Ok(Self {
            to: To::File(file),
            origin,
            buffer: Vec::with_capacity(BUFFER_BYTES_MAX + EVENT_BYTES),
        })
    }

    /// What is in memory.
    #[must_use]
    pub fn list(&self) -> Vec<Event> {
        let (records, _) = self.buffer.as_chunks::<EVENT_BYTES>();
        records.iter().filter_map(Event::read).collect()
    }

    /// Stamps that a transaction passed a stage which began for it at `from`.
    pub(crate) fn stamp(&mut self, stage: Stage, tx: u64, from: Instant, to: Instant) {
        if matches!(self.to, To::Nobody) {
            return;
        }
        let event = Event {
            at_unix_ns: self.origin.unix_ns().saturating_add(to.as_ns()),
            took_ns: u64::try_from(to.ns_since(from)).unwrap_or(0),
            tx,
            stage,
        };
        event.write(&mut self.buffer);
        if self.buffer.len() >= BUFFER_BYTES_MAX {
            self.flush();
        }
    }

    /// Whether something is buffered that belongs in a file.
    pub(crate) fn is_dirty(&self) -> bool {
        matches!(self.to, To::File(_)) && !self.buffer.is_empty()
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) {
        let To::File(file) = &mut self.to else { return };
        if let Err(error) = file.write_all(&self.buffer) {
            panic!("writing the events: {error}; is the disk full?");
        }
        self.buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a record comes back as it was, and none with a byte changed does; a node that is started again goes on
    /// behind the last whole record, and a new one refuses the file.
    #[test]
    fn records_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let origin = WallTime::from_unix_ns(1_000);
        let mut events = Events::in_file(&path, false, origin).unwrap();
        events.stamp(Stage::Stored, 7, Instant::from_ns(5), Instant::from_ns(25));
        events.flush();
        let bytes = std::fs::read(&path).unwrap();
        let record: [u8; EVENT_BYTES] = bytes.clone().try_into().unwrap();
        let event = Event { at_unix_ns: 1_025, took_ns: 20, tx: 7, stage: Stage::Stored };
        assert_eq!(Event::read(&record), Some(event));
        for at in 0..EVENT_BYTES {
            let mut damaged = record;
            damaged[at] ^= 1;
            assert_eq!(Event::read(&damaged), None, "{at}");
        }
        std::fs::write(&path, [&bytes[..], &[9; 11]].concat()).unwrap();
        assert!(Events::in_file(&path, false, origin).is_err());
        let mut events = Events::in_file(&path, true, origin).unwrap();
        events.stamp(Stage::Answered, 8, Instant::ZERO, Instant::ZERO);
        events.flush();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 2 * EVENT_BYTES as u64);
    }
}
