//! One log as it is written: where its next record goes, and which of its segments are still needed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use clock::Clock;

use super::direct::{BLOCK_BYTES, Blocks};
use super::files::{DiskFiles, Files, OpenFile};
use super::format::{self, Header};
use super::segments::{Maker, path_of};
use super::{StoreCounters, StoreError, StoreOptions, Sync, count};

/// What is framed is written when it has so much, so that memory has a bound; it is synced with the rest.
const FRAMED_BYTES_MAX: usize = 4 << 20;

/// A segment that is full or was cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed {
    pub(super) sequence: u64,
    /// The number behind its last record.
    pub(super) next: u64,
}

/// A log.
#[derive(Debug)]
pub(super) struct Log {
    files: Arc<dyn Files>,
    pub(super) folder: PathBuf,
    options: StoreOptions,
    counters: Arc<StoreCounters>,
    sealed: VecDeque<Sealed>,
    header: Header,
    file: Box<dyn OpenFile>,
    /// Whether writes go around the kernel's cache: then they are whole blocks.
    is_direct: bool,
    /// Where in the file the next write goes.
    at: usize,
    /// Framed records that were not written yet, behind what they share a block with.
    framed: Blocks,
    /// Whether all that is framed has been written.
    is_written: bool,
    next: u64,
    /// The first number that is not durable.
    durable: u64,
    /// Whether the segment's header is durable.
    is_begun: bool,
    /// Whether the segment behind this one was asked for.
    is_next_ordered: bool,
}

impl Log {
    /// A log that goes on in a new and empty segment, whose header is durable.
    pub(super) fn new(
        files: &Arc<dyn Files>,
        folder: PathBuf,
        options: StoreOptions,
        counters: &Arc<StoreCounters>,
        sealed: VecDeque<Sealed>,
        (file, header): (Box<dyn OpenFile>, Header),
    ) -> Self {
        let is_direct = is_of_blocks(&options) && file.set_direct(true);
        let mut framed = Blocks::default();
        if is_direct {
            // The first block is written again.
            format::write_header(&header, framed.buffer(format::HEADER_BYTES));
        }
        Self {
            files: Arc::clone(files),
            folder,
            options,
            counters: Arc::clone(counters),
            sealed,
            header,
            file,
            is_direct,
            at: if is_direct { 0 } else { format::HEADER_BYTES },
            framed,
            is_written: true,
            next: header.first,
            durable: header.first,
            is_begun: true,
            is_next_ordered: false,
        }
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Whether a record of this length has no room behind those that the segment has.
    pub(super) fn is_full_for(&self, length: usize) -> bool {
        self.at + self.framed.len() + format::record_bytes(length) > self.options.segment_bytes
    }

    /// Adds a record, for which there is room. What was framed before may be written, and is not durable yet. After an error
    /// the same can be tried again.
    ///
    /// # Panics
    /// If the record is longer than a segment, or not the next one.
    pub(super) fn append(&mut self, number: u64, record: &[u8]) -> Result<(), StoreError> {
        assert!(!self.is_full_for(record.len()), "a record is longer than a segment");
        assert_eq!(number, self.next, "records come in the order of their numbers");
        if self.framed.len() >= FRAMED_BYTES_MAX {
            self.write()?;
        }
        let framed = self.framed.buffer(format::record_bytes(record.len()));
        format::write_record(self.header.stamp, number, self.durable, record, framed);
        self.is_written = false;
        self.next += 1;
        Ok(())
    }

    /// Writes what is framed. After an error the same can be tried again.
    pub(super) fn write(&mut self) -> Result<(), StoreError> {
        if self.is_written {
            return Ok(());
        }
        let before = self.framed.len();
        let mut written = self.write_framed();
        if self.is_direct
            && matches!(&written, Err(error) if error.kind() == std::io::ErrorKind::InvalidInput)
        {
            // A file system that takes the wish and not the writes.
            self.is_direct = self.file.set_direct(false);
            written = self.write_framed();
        }
        let path = || path_of(&self.folder, self.header.sequence);
        self.at += written.map_err(|error| StoreError::system("writing", path())(error))?;
        self.is_written = true;
        count(&self.counters.bytes, u64::try_from(before).expect("fits"));
        Ok(())
    }

    /// Gives how far the next write goes on behind this one.
    fn write_framed(&mut self) -> std::io::Result<usize> {
        let offset = u64::try_from(self.at).expect("a segment's size fits");
        if self.is_direct {
            return self.framed.write(&*self.file, offset);
        }
        let length = self.framed.len();
        self.file.write_all_at(self.framed.content(), offset)?;
        self.framed.forget(length);
        Ok(length)
    }

    /// Whether there is anything that is not durable.
    pub(super) const fn is_behind(&self) -> bool {
        self.durable < self.next
    }

    /// Makes what was written durable; gives the first number that is not.
    pub(super) fn sync(&mut self, clock: Clock) -> Result<u64, StoreError> {
        assert!(self.is_written, "what is not written cannot be synced");
        let before = clock.now();
        let synced = match self.options.sync {
            Sync::Data => self.file.sync_data(),
            Sync::Whole => self.file.sync_all(),
            Sync::None => Ok(()),
        };
        synced.map_err(|source| StoreError::Sync {
            path: path_of(&self.folder, self.header.sequence),
            source,
        })?;
        if self.options.sync != Sync::None {
            let ns = clock.now().ns_since(before);
            count(&self.counters.syncs, 1);
            count(&self.counters.sync_ns, u64::try_from(ns).unwrap_or(0));
        }
        count(&self.counters.records, self.next - self.durable);
        self.durable = self.next;
        self.is_begun = true;
        Ok(self.durable)
    }

    /// Asks for the segment behind this one, once.
    pub(super) fn order_next(&mut self, index: usize, maker: &Maker) {
        if !self.is_next_ordered {
            self.is_next_ordered = true;
            maker.make(index, self.header.sequence + 1);
        }
    }

    /// Goes on in the next segment, which waits for it to be made. Everything before is durable.
    pub(super) fn switch(&mut self, index: usize, maker: &mut Maker) -> Result<(), StoreError> {
        self.order_next(index, maker);
        let made = maker.take(index);
        // Asked for again after an error, and ahead of the one after next otherwise.
        self.is_next_ordered = false;
        let file = made?;
        self.sealed.push_back(Sealed { sequence: self.header.sequence, next: self.next });
        let [drawn, next_stamp] = draw_stamps(&*self.files)?;
        let stamp = Some(self.header.next_stamp).filter(|stamp| *stamp != 0).unwrap_or(drawn);
        let sequence = self.header.sequence + 1;
        self.header = Header { sequence, first: self.next, stamp, next_stamp };
        self.file = file;
        self.is_direct = is_of_blocks(&self.options) && self.file.set_direct(true);
        self.at = 0;
        self.is_begun = false;
        // It is written and synced with the first records. What the segment before ended with stays there.
        self.framed.forget(self.framed.len());
        format::write_header(&self.header, self.framed.buffer(format::HEADER_BYTES));
        self.is_written = false;
        Ok(())
    }

    /// Records below `below` are not needed. A segment is let go of when none of its records is, and the one
    /// behind it is durable.
    pub(super) fn trim(&mut self, below: u64, index: usize, maker: &Maker) {
        let mut retired = Vec::new();
        while let Some(oldest) = self.sealed.front().copied() {
            let is_followed = self.sealed.len() > 1 || self.is_begun;
            if oldest.next > below || !is_followed {
                break;
            }
            self.sealed.pop_front();
            retired.push(path_of(&self.folder, oldest.sequence));
        }
        if !retired.is_empty() {
            let start = self.sealed.front().map_or(self.header.sequence, |oldest| oldest.sequence);
            maker.retire(index, start, retired);
        }
    }
}

/// Whether a segment is so many whole blocks: else its last one cannot be written as such.
fn is_of_blocks(options: &StoreOptions) -> bool {
    options.segment_bytes.is_multiple_of(BLOCK_BYTES)
}

/// Two numbers that no segment's file has held before, as good as certainly.
pub(super) fn draw_stamps(files: &dyn Files) -> Result<[u32; 2], StoreError> {
    let drawn = files.draw().map_err(StoreError::system("drawing", "a number"))?;
    let [a, b, c, d, e, f, g, h] = drawn.to_le_bytes();
    Ok([[a, b, c, d], [e, f, g, h]].map(|half| u32::from_le_bytes(half).max(1)))
}

/// A number that was never drawn before, as good as certainly.
///
/// # Errors
/// When the system gives none.
pub fn draw() -> Result<u64, StoreError> {
    DiskFiles.draw().map_err(StoreError::system("drawing", "a number"))
}
