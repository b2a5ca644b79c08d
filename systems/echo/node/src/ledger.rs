//! The ledger: an append-only list of what was committed, in a file or in memory. A record's place is its
//! position; it carries the run's mark, the transaction, the checksum that it was submitted with, and one of
//! its own, so that whoever reads it can tell whose it is.
//!
//! Appending is buffered: what is acknowledged is in the file within 100 ms, at a sync, or at a graceful end,
//! whichever is first. A node that is killed may lose that much, as a store without a write-ahead log does. A node
//! that syncs ([`Ledger::sync_to_disk`]) loses nothing that it has acknowledged, not even with its power.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::bytes::{u32_at, u64_at};

/// Bytes of a record: run, tx, the submission's checksum, the record's own.
pub const RECORD_BYTES: usize = 24;

/// Buffered before it is written: one call for thousands of records.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The run's mark.
    pub run: u64,
    /// The transaction.
    pub tx: u64,
    /// The checksum that the transaction was submitted with.
    pub submit_crc: u32,
    /// Whether it is logged as refused. Its record's own checksum is then the complement of what it would be.
    pub is_refused: bool,
}

impl Record {
    /// Appends the record's bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.run.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.tx.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.submit_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..20]);
        let crc = if self.is_refused { !crc } else { crc };
        bytes[20..].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Reads a record; `None` if its checksum does not hold.
    #[must_use]
    pub fn read(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (crc, found) = (crc32fast::hash(&bytes[..20]), u32_at(bytes, 20));
        (found == crc || found == !crc).then(|| Self {
            run: u64_at(bytes, 0),
            tx: u64_at(bytes, 8),
            submit_crc: u32_at(bytes, 16),
            is_refused: found == !crc,
        })
    }
}

/// The ledger of a node.
#[derive(Debug)]
pub struct Ledger {
    store: Store,
    buffer: Vec<u8>,
    stored_bytes: u64,
    /// Something was appended since the disk was last synced.
    is_unsynced: bool,
}

#[derive(Debug)]
enum Store {
    Memory(Vec<u8>),
    File(File),
    /// For a server that is only a sink: nothing is kept.
    Nowhere,
}

impl Ledger {
    /// A ledger in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::on(Store::Memory(Vec::new()))
    }

    /// A ledger that keeps nothing but its count.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::on(Store::Nowhere)
    }

    /// A new ledger in a file, which must not exist: another run's entries would be this one's phantoms.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create_new(true).read(true).append(true).open(path)?;
        Ok(Self::on(Store::File(file)))
    }

    /// The ledger in a file that a node before this one wrote, or a new one. A record that was being written when
    /// that node died is cut off.
    ///
    /// # Errors
    /// When the file cannot be opened or cut.
    pub fn go_on(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        let whole = bytes - bytes % RECORD_BYTES as u64;
        file.set_len(whole)?;
        Ok(Self { stored_bytes: whole, ..Self::on(Store::File(file)) })
    }

    fn on(store: Store) -> Self {
        let buffer = Vec::with_capacity(BUFFER_BYTES_MAX + RECORD_BYTES);
        Self { store, buffer, stored_bytes: 0, is_unsynced: false }
    }

    /// Appends a record.
    pub(crate) fn push(&mut self, record: &Record) {
        record.write(&mut self.buffer);
        self.is_unsynced = true;
        if self.buffer.len() >= BUFFER_BYTES_MAX {
            self.flush();
        }
    }

    /// Whether something is buffered.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Writes what is buffered.
    ///
    /// # Panics
    /// When the file cannot be written to: a node that cannot store must not go on acknowledging.
    pub(crate) fn flush(&mut self) {
        match &mut self.store {
            Store::Memory(bytes) => bytes.extend_from_slice(&self.buffer),
            Store::Nowhere => {}
            Store::File(file) => {
                if let Err(error) = file.write_all(&self.buffer) {
                    panic!("appending to the ledger: {error}; is the disk full?");
                }
            }
        }
        self.stored_bytes += u64::try_from(self.buffer.len()).expect("a buffer fits 64 bits");
        self.buffer.clear();
    }

    /// Writes what is buffered and waits until it is on the disk. Nothing is asked of the disk if nothing was appended.
    ///
    /// # Panics
    /// When the disk cannot be written to: a node that cannot store must not go on acknowledging.
    pub(crate) fn sync_to_disk(&mut self) {
        if !std::mem::take(&mut self.is_unsynced) {
            return;
        }
        self.flush();
        if let Store::File(file) = &self.store
            && let Err(error) = file.sync_data()
        {
            panic!("syncing the ledger: {error}; what was acknowledged may not be stored");
        }
    }

    /// Whether entries can be read back.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        !matches!(self.store, Store::Nowhere)
    }

    /// Entries so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        let buffered = u64::try_from(self.buffer.len()).expect("a buffer fits 64 bits");
        (self.stored_bytes + buffered) / RECORD_BYTES as u64
    }

    /// Appends the bytes of stored entries from position `from`, at most `count_max`, to `out`.
    pub(crate) fn copy(&self, from: u64, count_max: usize, out: &mut Vec<u8>) {
        let stored = self.stored_bytes / RECORD_BYTES as u64;
        let count = usize::try_from(stored.saturating_sub(from)).unwrap_or(usize::MAX);
        let bytes = count.min(count_max) * RECORD_BYTES;
        let start = from.saturating_mul(RECORD_BYTES as u64);
        match &self.store {
            Store::Nowhere => {}
            Store::Memory(all) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(all.len());
                out.extend_from_slice(&all[start..start + bytes]);
            }
            Store::File(file) => {
                let begin = out.len();
                out.resize(begin + bytes, 0);
                if let Err(error) = file.read_exact_at(&mut out[begin..], start) {
                    panic!("reading the ledger back at byte {start}: {error}");
                }
            }
        }
    }
}

/// The records in a ledger's bytes: positions in order, `None` where a record's checksum does not hold.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = Option<Record>> {
    bytes.chunks_exact(RECORD_BYTES).map(|chunk| Record::read(chunk.try_into().expect("exact")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a node that is started again goes on behind the last whole record, and a new one refuses the file.
    #[test]
    fn a_ledger_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let record = |tx| Record { run: 1, tx, submit_crc: 7, is_refused: tx == 2 };
        let mut ledger = Ledger::go_on(&path).unwrap();
        ledger.push(&record(1));
        ledger.push(&record(2));
        ledger.flush();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(&[9; 11]);
        std::fs::write(&path, &bytes).unwrap();
        assert!(Ledger::create(&path).is_err());
        let mut ledger = Ledger::go_on(&path).unwrap();
        assert_eq!(ledger.entries(), 2);
        ledger.push(&record(3));
        ledger.flush();
        let bytes = std::fs::read(&path).unwrap();
        let found: Vec<u64> = records(&bytes).map(|record| record.unwrap().tx).collect();
        assert_eq!(found, [1, 2, 3]);
        let refused: Vec<bool> = records(&bytes).map(|record| record.unwrap().is_refused).collect();
        assert_eq!(refused, [false, true, false]);
    }
}
