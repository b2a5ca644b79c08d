//! The ledger: every transaction that was executed, in the order of execution, with whose it was. It is for whoever audits
//! the database; the database itself never reads it, so it is written around the kernel's cache. A replica keeps one if it is asked to: in a file, which grows by some 33
//! bytes and the transaction for each. What is written is not synced: the log is what must not be lost, and a replica that
//! starts again writes what its file lacks as the log is carried out anew.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use process::store::direct::{BLOCK_BYTES, Blocks};
use process::store::files;

use crate::database::group::Request;
use crate::database::transaction::{Malformed, Reader};

/// Bytes in front of an entry's transaction.
pub const HEAD_BYTES: usize = 29;

/// What waits to be written to the file at most.
const BUFFER_BYTES: usize = 1 << 20;

/// A block, where the file counts.
const BLOCK: u64 = BLOCK_BYTES as u64;

/// One executed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its position.
    pub position: u64,
    /// Whose.
    pub client: u64,
    /// Which of the client's.
    pub sequence: u64,
    /// What became of it: [`crate::database::Status`] as a number; other than 0 it had no effect.
    pub status: u8,
    /// What.
    pub transaction: &'a [u8],
}

/// The entry at the beginning of `bytes` and how long it is; `None` while it is incomplete.
#[must_use]
pub fn read_entry(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let mut reader = Reader(bytes);
    let read = |reader: &mut Reader<'_>| -> Result<(u64, u64, u64, u8, usize), Malformed> {
        let numbers = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (status, length) = (reader.byte()?, reader.u32()?);
        Ok((numbers.0, numbers.1, numbers.2, status, usize::try_from(length).unwrap_or(usize::MAX)))
    };
    let (position, client, sequence, status, length) = read(&mut reader).ok()?;
    let transaction = reader.bytes(length).ok()?;
    let entry = Entry { position, client, sequence, status, transaction };
    Some((entry, HEAD_BYTES + length))
}

/// The ledger of a replica.
#[derive(Debug, Default)]
pub struct Ledger {
    /// `None`: everything stays in `buffer`, for tests.
    file: Option<File>,
    is_kept: bool,
    /// Bytes in the file before those in `buffer`: whole blocks.
    written: u64,
    buffer: Blocks,
    /// How many bytes of `buffer` are in the file, too.
    in_file: usize,
    /// The position of the last entry.
    last: u64,
    /// Entries are missing between this position and the next.
    gap_at: Option<u64>,
}

impl Ledger {
    /// None is kept.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::default()
    }

    /// One in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { is_kept: true, ..Self::default() }
    }

    /// One in a file, which goes on if it is there; what is not a whole entry at its end is cut off.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn in_file(path: &Path) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut ledger = Self { is_kept: true, ..Self::default() };
        let mut unread = Vec::new();
        loop {
            let before = unread.len();
            (&mut file).take(BUFFER_BYTES as u64).read_to_end(&mut unread)?;
            let is_end = unread.len() == before;
            let mut used = 0;
            while let Some((entry, length)) = read_entry(&unread[used..]) {
                ledger.note(entry.position);
                used += length;
            }
            ledger.written += used as u64;
            unread.drain(..used);
            if is_end {
                break;
            }
        }
        file.set_len(ledger.written)?;
        // The last block is written again with what comes behind it.
        let length = ledger.written % BLOCK;
        ledger.written -= length;
        ledger.in_file = usize::try_from(length).expect("less than a block");
        let start = ledger.buffer.buffer(BLOCK_BYTES);
        (&file).seek(SeekFrom::Start(ledger.written))?;
        (&file).take(length).read_to_end(start)?;
        ledger.file = Some(file);
        Ok(ledger)
    }

    /// Whether one is kept.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Adds what was executed; what it has already is left out.
    ///
    /// # Panics
    /// If the file cannot be written: a ledger that lacks something would accuse the database.
    pub fn push(&mut self, position: u64, request: &Request<'_>, status: u8) {
        if !self.is_kept || position <= self.last {
            return;
        }
        self.note(position);
        let buffer = self.buffer.buffer(HEAD_BYTES + request.transaction.len());
        for number in [position, request.client, request.sequence] {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        buffer.push(status);
        let length = u32::try_from(request.transaction.len()).expect("a transaction is shorter");
        buffer.extend_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(request.transaction);
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_blocks();
        }
    }

    /// Writes what is whole blocks.
    fn write_blocks(&mut self) {
        let Some(file) = &self.file else { return };
        let length = self.buffer.len() / BLOCK_BYTES * BLOCK_BYTES;
        if length == 0 {
            return;
        }
        files::OpenFile::set_direct(file, true);
        let blocks = &self.buffer.content()[..length];
        let written = file.write_all_at(blocks, self.written).or_else(|error| {
            // A file system may not know how to write without the cache.
            files::OpenFile::set_direct(file, false);
            if error.kind() != io::ErrorKind::InvalidInput {
                return Err(error);
            }
            file.write_all_at(blocks, self.written)
        });
        files::OpenFile::set_direct(file, false);
        written.expect("the ledger's file must be written");
        self.buffer.forget(length);
        self.written += length as u64;
        self.in_file = self.in_file.saturating_sub(length);
    }

    /// Up to which position nothing is missing.
    #[must_use]
    pub fn whole_to(&self) -> u64 {
        self.gap_at.unwrap_or(self.last)
    }

    /// How long it is, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes what is held back.
    ///
    /// # Panics
    /// As [`Ledger::push`].
    pub fn flush(&mut self) {
        self.write_blocks();
        let Some(file) = &self.file else { return };
        let rest = &self.buffer.content()[self.in_file..];
        let written = file.write_all_at(rest, self.written + self.in_file as u64);
        written.expect("the ledger's file must be written");
        self.in_file = self.buffer.len();
    }

    /// Appends at most `bytes_max` bytes of it from byte `from` on.
    ///
    /// # Panics
    /// As [`Ledger::push`].
    pub fn copy(&mut self, from: u64, bytes_max: usize, out: &mut Vec<u8>) {
        self.flush();
        let Some(mut file) = self.file.as_ref() else {
            let buffer = self.buffer.content();
            let from = usize::try_from(from).unwrap_or(usize::MAX).min(buffer.len());
            let to = from.saturating_add(bytes_max).min(buffer.len());
            out.extend_from_slice(&buffer[from..to]);
            return;
        };
        let read = file
            .seek(SeekFrom::Start(from.min(self.length())))
            .and_then(|_| file.take(bytes_max as u64).read_to_end(out));
        read.expect("the ledger's file must be read");
    }

    fn note(&mut self, position: u64) {
        if position != self.last + 1 {
            self.gap_at.get_or_insert(self.last);
        }
        self.last = position;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(ledger: &mut Ledger, position: u64) {
        let transaction = vec![7; usize::try_from(position).unwrap()];
        let request = Request { client: 3, sequence: position + 10, transaction: &transaction };
        ledger.push(position, &request, u8::try_from(position % 3).unwrap());
    }

    fn positions(ledger: &mut Ledger) -> Vec<u64> {
        let (mut bytes, mut found, mut at) = (Vec::new(), Vec::new(), 0);
        ledger.copy(0, usize::MAX >> 1, &mut bytes);
        while let Some((entry, length)) = read_entry(&bytes[at..]) {
            assert_eq!(entry.transaction.len() as u64, entry.position);
            assert_eq!((entry.client, entry.sequence), (3, entry.position + 10));
            found.push(entry.position);
            at += length;
        }
        assert_eq!(at, bytes.len());
        found
    }

    /// Claim: a ledger in a file goes on where its last whole entry ended, takes nothing twice, and knows from where on
    /// something is missing.
    #[test]
    fn it_goes_on_where_it_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = Ledger::in_file(&path).unwrap();
        (1..=5).for_each(|position| push(&mut ledger, position));
        ledger.flush();
        drop(ledger);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let mut ledger = Ledger::in_file(&path).unwrap();
        assert_eq!((positions(&mut ledger), ledger.whole_to()), (vec![1, 2, 3, 4], 4));
        (3..=6).for_each(|position| push(&mut ledger, position));
        assert_eq!(positions(&mut ledger), [1, 2, 3, 4, 5, 6]);
        assert_eq!((ledger.whole_to(), ledger.length()), (6, 6 * 29 + 21));
        push(&mut ledger, 9);
        assert_eq!(ledger.whole_to(), 6, "7 and 8 are missing");
    }

    /// Claim: where none is kept, nothing is.
    #[test]
    fn nowhere_is_nothing() {
        let mut ledger = Ledger::nowhere();
        push(&mut ledger, 1);
        assert_eq!((ledger.length(), ledger.is_kept()), (0, false));
        let mut ledger = Ledger::in_memory();
        push(&mut ledger, 1);
        assert_eq!(positions(&mut ledger), [1]);
    }
}
