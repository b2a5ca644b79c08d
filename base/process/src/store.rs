//! Records and cells on a real disk: what a node appended is durable when it is told so, and what was durable is
//! found again after a crash at any moment.
//!
//! A store is a folder with a folder for each log and a file for each cell. A log is a row of segments of one
//! size, zeroed before they are used, so that a write changes no metadata of the file system; [`format`] says how
//! records lie in them. Logs and cells become durable beside one another, in no order. Everything that a node appends while a sync is under way is one write and one sync (group
//! commit). Segments whose records are trimmed are used again. Where the file system can, records go around the kernel's
//! cache ([`direct`]).
//!
//! It never tells anybody of a record before the kernel has said that it is durable, never cuts anything but the
//! torn end of the last write, and never goes on after a failed sync.

mod cell;
mod desk;
pub mod direct;
mod error;
pub mod files;
pub mod format;
mod log;
mod open;
mod replacer;
mod segments;
#[cfg(test)]
mod tests;
mod worker;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use desk::Done;
pub use error::StoreError;
pub use log::draw;
pub use writer::ByHand;
pub(crate) use writer::Writer;

use self::files::{DiskFiles, Files};
use crate::Stored;

/// When a record is called durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// After fdatasync: the record and what is needed to find it.
    #[default]
    Data,
    /// After fsync of the whole segment, its times included: as systems do it that keep a mapped file.
    Whole,
    /// When the kernel has it: gone after a loss of power. For measuring what durability costs.
    None,
}

/// How a store keeps what it is given.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// When a record is called durable.
    pub sync: Sync,
    /// Bytes of a segment; no record may be longer than fits.
    pub segment_bytes: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { sync: Sync::Data, segment_bytes: 64 << 20 }
    }
}

/// Which thread writes logs and syncs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogThread {
    /// One of the store's own: the node goes on while the disk works.
    #[default]
    Own,
    /// The node's. Nobody has to be woken twice for each batch, and what arrives meanwhile is one turn, and so one batch; but
    /// the node does nothing while its disk works, also where others' disks would have been quicker. What is more than a
    /// sync (room on a full disk, a segment that is not made yet) is left to the store's own thread.
    Node,
}

/// What a store has done, counted as it goes on.
#[derive(Debug, Default)]
pub struct StoreCounters {
    syncs: AtomicU64,
    sync_ns: AtomicU64,
    bytes: AtomicU64,
    records: AtomicU64,
    batches: AtomicU64,
    segments: AtomicU64,
    recycled: AtomicU64,
    full: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Syncs of log files, whatever [`Sync`] says they are.
    pub syncs: u64,
    /// Time spent in them, nanoseconds.
    pub sync_ns: u64,
    /// Bytes written to logs, their framing included.
    pub bytes: u64,
    /// Records that were told to be durable.
    pub records: u64,
    /// Batches: what was appended while the one before was under way.
    pub batches: u64,
    /// Segments made, those that were used again included.
    pub segments: u64,
    /// Segments used again.
    pub recycled: u64,
    /// Times that the disk was found full.
    pub full: u64,
}

impl StoreCounters {
    /// Reads them.
    #[must_use]
    pub fn read(&self) -> StoreCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreCounts {
            syncs: of(&self.syncs),
            sync_ns: of(&self.sync_ns),
            bytes: of(&self.bytes),
            records: of(&self.records),
            batches: of(&self.batches),
            segments: of(&self.segments),
            recycled: of(&self.recycled),
            full: of(&self.full),
        }
    }
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// An opened store, to be given to the shell that runs the node made from its [`Stored`].
#[derive(Debug)]
pub struct Store {
    files: Arc<dyn Files>,
    folder: PathBuf,
    /// Held for as long as the store is.
    _lock: Option<File>,
    logs: Vec<log::Log>,
    cells: Vec<PathBuf>,
    options: StoreOptions,
    log_thread: LogThread,
    counters: Arc<StoreCounters>,
}

impl Store {
    /// Opens the store in `folder`, which is made if it is not there, with logs and cells of these names, and
    /// reads what they hold.
    ///
    /// # Errors
    /// When the folder cannot be had, or what was durable in it is missing or damaged.
    pub fn open(
        folder: &Path,
        logs: &[&str],
        cells: &[&str],
        options: StoreOptions,
    ) -> Result<(Self, Stored), StoreError> {
        Self::open_recent(folder, logs, cells, options, usize::MAX)
    }

    /// As [`Store::open`], and of each log's records only the last ones are given, of so many bytes together: for a log that
    /// is never trimmed. All of them are looked at.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_recent(
        folder: &Path,
        logs: &[&str],
        cells: &[&str],
        options: StoreOptions,
        recent_bytes: usize,
    ) -> Result<(Self, Stored), StoreError> {
        let files: Arc<dyn Files> = Arc::new(DiskFiles);
        segments::make_folder(&*files, folder)?;
        let lock = open::lock(folder)?;
        let (mut store, stored) = Self::open_on(files, folder, logs, cells, options, recent_bytes)?;
        store._lock = Some(lock);
        Ok((store, stored))
    }

    /// As [`Store::open_recent`], on these files, of which this process is the only user.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(
        files: Arc<dyn Files>,
        folder: &Path,
        logs: &[&str],
        cells: &[&str],
        options: StoreOptions,
        recent_bytes: usize,
    ) -> Result<(Self, Stored), StoreError> {
        segments::make_folder(&*files, folder)?;
        let counters = Arc::new(StoreCounters::default());
        let mut stored = Stored::default();
        let mut opened = Vec::new();
        for name in logs {
            let (log, records) =
                open::log(&files, &folder.join(name), options, &counters, recent_bytes)?;
            opened.push(log);
            stored.logs.push(records);
        }
        let cells: Vec<PathBuf> =
            cells.iter().map(|name| folder.join(format!("{name}.cell"))).collect();
        for path in &cells {
            stored.cells.push(cell::read(&*files, path)?);
        }
        let folder = folder.to_owned();
        let log_thread = LogThread::default();
        let store =
            Self { files, folder, _lock: None, logs: opened, cells, options, log_thread, counters };
        Ok((store, stored))
    }

    /// Has its logs written by this thread.
    #[must_use]
    pub const fn written_by(mut self, log_thread: LogThread) -> Self {
        self.log_thread = log_thread;
        self
    }

    /// What it has done, to be read while it is at it.
    #[must_use]
    pub fn counters(&self) -> Arc<StoreCounters> {
        Arc::clone(&self.counters)
    }

    /// The number of the next record of each log.
    pub(crate) fn next(&self) -> impl Iterator<Item = u64> {
        self.logs.iter().map(log::Log::next)
    }
}
