//! Segment files: made ahead on a thread of their own, so that no record waits for zeros, and used again when
//! what they hold is not needed any more.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::direct::{BLOCK_BYTES, Blocks};
use super::files::{Files, OpenFile, sync_folder};
use super::{StoreCounters, StoreError, cell, count};

/// Zeros are written in parts of this size, each synced, so that a record's sync beside them waits for few: with 4 MiB one
/// answer in a hundred of a replicated log took 7 to 10 ms while segments were made, with this 2 to 4.
const PART_BYTES: usize = 256 << 10;
/// Segments of a log that are kept to be used again; more are removed. As many as one snapshot of a replica sets free, at
/// the usual sizes: new zeros are as much to write as records.
const SPARE_MAX: usize = 5;

/// The file of a log's segment.
pub(super) fn path_of(log: &Path, sequence: u64) -> PathBuf {
    log.join(format!("{sequence:016}.segment"))
}

/// The segment whose file this is, if it is one.
pub(super) fn sequence_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".segment")?.parse().ok()
}

/// The cell that holds the first segment that is needed: without it a missing first segment would look trimmed.
pub(super) fn start_path(log: &Path) -> PathBuf {
    log.join("start.cell")
}

/// Makes a folder, and its name durable.
pub(super) fn make_folder(files: &dyn Files, folder: &Path) -> Result<(), StoreError> {
    files.make_folder(folder).map_err(StoreError::system("making", folder))?;
    sync_folder(
        files,
        folder.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")),
    )
}

/// A new file of zeros, durable with its name. None is left behind if there is no room for it.
pub(super) fn make(
    files: &dyn Files,
    path: &Path,
    bytes: usize,
) -> Result<Box<dyn OpenFile>, StoreError> {
    let made = zeros(files, path, bytes).map_err(StoreError::system("making", path));
    if made.is_err() {
        let _ = files.remove(path);
    }
    let file = made?;
    sync_folder(files, path.parent().unwrap_or(Path::new(".")))?;
    Ok(file)
}

fn zeros(files: &dyn Files, path: &Path, bytes: usize) -> std::io::Result<Box<dyn OpenFile>> {
    let file = files.create(path)?;
    let part = Blocks::zeros(PART_BYTES.min(bytes));
    let mut is_direct = bytes.is_multiple_of(BLOCK_BYTES) && file.set_direct(true);
    let mut at = 0;
    while at < bytes {
        let count = part.len().min(bytes - at);
        match file.write_all_at(&part.content()[..count], u64::try_from(at).expect("fits")) {
            Err(error) if is_direct && error.kind() == std::io::ErrorKind::InvalidInput => {
                is_direct = file.set_direct(false);
                continue;
            }
            written => written?,
        }
        file.sync_data()?;
        at += count;
    }
    file.set_direct(false);
    file.sync_all()?;
    Ok(file)
}

/// What the thread is asked for.
#[derive(Debug)]
enum Order {
    /// The file of this segment.
    Make { log: usize, sequence: u64 },
    /// The segments before this one are not needed any more.
    Retire { log: usize, start: u64, retired: Vec<PathBuf> },
}

/// Where a log's segments come out.
#[derive(Debug)]
struct Made {
    comes: Receiver<Result<Box<dyn OpenFile>, StoreError>>,
    /// One that has come and was not taken.
    is_there: Option<Result<Box<dyn OpenFile>, StoreError>>,
}

/// The thread that makes segments, and where they come out, by log.
#[derive(Debug)]
pub(super) struct Maker {
    orders: Option<Sender<Order>>,
    /// Without a thread: who carries out each order as it is given.
    by_hand: Option<Mutex<Makers>>,
    made: Vec<Made>,
    thread: Option<JoinHandle<()>>,
}

impl Maker {
    pub(super) fn start(
        files: &Arc<dyn Files>,
        folders: Vec<PathBuf>,
        bytes: usize,
        counters: Arc<StoreCounters>,
        has_thread: bool,
    ) -> Self {
        let (sends, made): (Vec<_>, Vec<_>) = folders.iter().map(|_| channel()).unzip();
        let logs = folders.into_iter().zip(sends).map(|(folder, made)| Making {
            files: Arc::clone(files),
            folder,
            made,
            spare: Vec::new(),
            retired: Vec::new(),
        });
        let mut makers = Makers { logs: logs.collect(), bytes, counters };
        let made = made.into_iter().map(|comes| Made { comes, is_there: None }).collect();
        if !has_thread {
            return Self { orders: None, by_hand: Some(Mutex::new(makers)), made, thread: None };
        }
        let (orders, ordered) = channel();
        let thread = std::thread::spawn(move || ordered.into_iter().for_each(|it| makers.obey(it)));
        Self { orders: Some(orders), by_hand: None, made, thread: Some(thread) }
    }

    fn order(&self, order: Order) {
        if let Some(makers) = &self.by_hand {
            return makers.lock().unwrap_or_else(PoisonError::into_inner).obey(order);
        }
        // Its thread ends only with this value.
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// Asks for a segment; [`Maker::take`] gives it.
    pub(super) fn make(&self, log: usize, sequence: u64) {
        self.order(Order::Make { log, sequence });
    }

    /// Says that the segments before `start` are not needed any more.
    pub(super) fn retire(&self, log: usize, start: u64, retired: Vec<PathBuf>) {
        self.order(Order::Retire { log, start, retired });
    }

    /// Whether [`Maker::take`] gives it at once.
    pub(super) fn is_made(&mut self, log: usize) -> bool {
        let Made { comes, is_there } = &mut self.made[log];
        if is_there.is_none() {
            *is_there = comes.try_recv().ok();
        }
        is_there.is_some()
    }

    /// The segment that was asked for, when it is there.
    pub(super) fn take(&mut self, log: usize) -> Result<Box<dyn OpenFile>, StoreError> {
        let Made { comes, is_there } = &mut self.made[log];
        if let Some(made) = is_there.take() {
            return made;
        }
        comes.recv().unwrap_or_else(|gone| {
            let why = std::io::Error::other(gone);
            Err(StoreError::system("waiting for the thread that makes segments of", "the log")(why))
        })
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// All logs as the thread sees them.
#[derive(Debug)]
struct Makers {
    logs: Vec<Making>,
    /// The bytes of a segment.
    bytes: usize,
    counters: Arc<StoreCounters>,
}

impl Makers {
    fn obey(&mut self, order: Order) {
        match order {
            Order::Make { log, sequence } => {
                self.logs[log].make(sequence, self.bytes, &self.counters);
            }
            Order::Retire { log, start, retired } => self.logs[log].retire(start, retired),
        }
    }
}

/// A log as the thread sees it.
#[derive(Debug)]
struct Making {
    files: Arc<dyn Files>,
    folder: PathBuf,
    made: Sender<Result<Box<dyn OpenFile>, StoreError>>,
    /// Files to be used again.
    spare: Vec<PathBuf>,
    /// Files that are not needed, which the disk does not know yet.
    retired: Vec<PathBuf>,
}

impl Making {
    fn make(&mut self, sequence: u64, bytes: usize, counters: &StoreCounters) {
        let path = path_of(&self.folder, sequence);
        let made = match self.spare.pop() {
            Some(old) => self.reuse(&old, &path, counters),
            None => make(&*self.files, &path, bytes),
        };
        count(&counters.segments, 1);
        let _ = self.made.send(made);
    }

    /// What the file holds stays; nothing of it has the stamp that its new life will have.
    fn reuse(
        &self,
        old: &Path,
        path: &Path,
        counters: &StoreCounters,
    ) -> Result<Box<dyn OpenFile>, StoreError> {
        count(&counters.recycled, 1);
        self.files.rename(old, path).map_err(StoreError::system("renaming", old))?;
        sync_folder(&*self.files, &self.folder)?;
        self.files.open(path).map_err(StoreError::system("opening", path))
    }

    fn retire(&mut self, start: u64, retired: Vec<PathBuf>) {
        self.retired.extend(retired);
        // With the disk full this fails: the files stay, and are retired with the next.
        if cell::replace(&*self.files, &start_path(&self.folder), &start.to_le_bytes()).is_err() {
            return;
        }
        for path in self.retired.drain(..) {
            if self.spare.len() < SPARE_MAX {
                self.spare.push(path);
            } else {
                let _ = self.files.remove(&path);
            }
        }
    }
}
