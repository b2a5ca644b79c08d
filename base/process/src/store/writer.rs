//! How logs are written: all that was asked for since the last sync is one write and one sync, and what is durable is told
//! a batch at a time. Either a thread of its own does it, or the node's, which hands over to the other what it would have to
//! wait for: room on a full disk, a segment that is not made yet. Cells go to a thread of their own, so that no
//! record waits for a large one.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::Clock;
use rustix::event::{EventfdFlags, eventfd};

use super::worker::{Stop, Worker};
use super::{LogThread, Store, StoreError};
use crate::host;

/// How long a full disk is left alone before it is asked again.
pub(super) const FULL_PAUSE: Duration = Duration::from_millis(100);
/// Emptied batches that are kept for the next.
const SPENT_MAX: usize = 4;

/// More than this the node's thread does not write itself: the disk takes longer for it than waking another thread does.
const NODE_BATCH_BYTES_MAX: usize = 1 << 20;

/// What the node is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The records of a log below this number are durable.
    Persisted {
        /// Which log.
        log: usize,
        /// The first that is not.
        below: u64,
    },
    /// A cell's content is durable.
    Replaced {
        /// Which cell.
        cell: usize,
    },
    /// A part of what a cell is to hold next is written.
    Extended {
        /// Which cell.
        cell: usize,
    },
    /// A part of what a cell holds.
    Part {
        /// Which cell.
        cell: usize,
        /// From which byte on.
        offset: u64,
        /// The bytes: fewer than were asked for at the content's end only.
        bytes: Vec<u8>,
    },
    /// The disk is full.
    Full {
        /// The log that waits; none: a cell.
        log: Option<usize>,
    },
}

/// What one turn of the node asked of the disk.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) stores: Vec<host::Store>,
    pub(super) records: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<Batch>,
    spent: Vec<Batch>,
    done: Vec<Done>,
    failed: Option<StoreError>,
    /// Something has failed, whether or not that was taken: nothing is written any more.
    has_failed: bool,
    /// The thread has something to do.
    is_busy: bool,
    is_ending: bool,
}

/// What both sides see.
#[derive(Debug)]
pub(super) struct Desk {
    state: Mutex<State>,
    asked: Condvar,
    /// Readable when there is something in `done`, or the writer has failed.
    told: OwnedFd,
}

impl Desk {
    fn new(store: &Store) -> Result<Arc<Self>, StoreError> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| StoreError::system("watching", &store.folder)(error.into()))?;
        Ok(Arc::new(Self { state: Mutex::default(), asked: Condvar::new(), told }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked holding it ends the process by that.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process ends.
    pub(super) fn is_ending(&self) -> bool {
        self.lock().is_ending
    }

    /// Nothing goes on after this.
    pub(super) fn fail(&self, error: StoreError) {
        let mut state = self.lock();
        state.failed.get_or_insert(error);
        state.has_failed = true;
        drop(state);
        self.signal();
    }

    /// One wake-up for all that is told until somebody looks.
    pub(super) fn tell(&self, done: &mut Vec<Done>) {
        if done.is_empty() {
            return;
        }
        let mut state = self.lock();
        let is_first = state.done.is_empty();
        state.done.append(done);
        drop(state);
        if is_first {
            self.signal();
        }
    }

    fn signal(&self) {
        let _ = rustix::io::write(&self.told, &1_u64.to_ne_bytes());
    }
}

/// A store at work without threads: all that is asked for is done, or has failed, when the call returns. For simulations,
/// whose files fail where they please.
#[derive(Debug)]
pub struct ByHand {
    desk: Arc<Desk>,
    worker: Worker,
}

impl ByHand {
    /// # Errors
    /// When the system has no descriptor left.
    pub fn start(store: Store, clock: Clock) -> Result<Self, StoreError> {
        let desk = Desk::new(&store)?;
        let worker = Worker::new(store, clock, Arc::clone(&desk), false);
        Ok(Self { desk, worker })
    }

    /// One batch: its records, which lie in `records`, are one write and one sync of each log. Adds to `done` what is durable,
    /// also where something failed; nothing goes on after that.
    ///
    /// # Errors
    /// The first failure.
    pub fn submit(
        &mut self,
        stores: Vec<host::Store>,
        records: Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<(), StoreError> {
        self.worker.take().push(Batch { stores, records });
        let stopped = self.worker.go_on(true);
        self.worker.take().clear();
        let mut state = self.desk.lock();
        done.append(&mut state.done);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        match stopped {
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Full | Stop::NotMade) => {
                let why = std::io::Error::from(std::io::ErrorKind::StorageFull);
                Err(StoreError::system("keeping records in", "the store")(why))
            }
            Ok(()) => Ok(()),
        }
    }
}

/// A store at work, as the shell sees it.
#[derive(Debug)]
pub(crate) struct Writer {
    desk: Arc<Desk>,
    /// Its thread has it where that is busy, and all the time where it writes everything.
    worker: Arc<Mutex<Worker>>,
    /// Whether the node's thread writes what it need not wait for.
    is_inline: bool,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(store: Store, clock: Clock) -> Result<Self, StoreError> {
        let desk = Desk::new(&store)?;
        let is_inline = store.log_thread == LogThread::Node;
        let worker = Arc::new(Mutex::new(Worker::new(store, clock, Arc::clone(&desk), true)));
        let (theirs, their_worker) = (Arc::clone(&desk), Arc::clone(&worker));
        let thread = std::thread::spawn(move || {
            let ended = Ended(Arc::clone(&theirs));
            if let Err(error) = run(&theirs, &their_worker) {
                ended.0.fail(error);
            }
        });
        Ok(Self { desk, worker, is_inline, thread: Some(thread) })
    }

    /// Readable when [`Writer::take`] has something to give.
    pub(crate) fn told(&self) -> &OwnedFd {
        &self.desk.told
    }

    /// Hands over what a turn has asked for; gives empty lists back in its place. What was done at once is in `done`; the
    /// rest is told later.
    pub(crate) fn submit(
        &self,
        stores: &mut Vec<host::Store>,
        records: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<(), StoreError> {
        done.clear();
        let mut state = self.desk.lock();
        if state.has_failed {
            stores.clear();
            records.clear();
            return Ok(());
        }
        let mut batch = state.spent.pop().unwrap_or_default();
        std::mem::swap(&mut batch.stores, stores);
        std::mem::swap(&mut batch.records, records);
        state.pending.push(batch);
        let is_short =
            state.pending.iter().map(|it| it.records.len()).sum::<usize>() <= NODE_BATCH_BYTES_MAX;
        if self.is_inline && !state.is_busy && is_short {
            let mut worker = lock(&self.worker);
            std::mem::swap(&mut state.pending, worker.take());
            drop(state);
            let stopped = worker.go_on(false);
            worker.take_done(done);
            match stopped {
                Ok(()) => {
                    give_back(&mut self.desk.lock(), worker.take());
                    return Ok(());
                }
                Err(Stop::Failed(error)) => {
                    self.desk.lock().has_failed = true;
                    return Err(error);
                }
                // The thread goes on from here.
                Err(Stop::Full | Stop::NotMade) => state = self.desk.lock(),
            }
        }
        let was_busy = std::mem::replace(&mut state.is_busy, true);
        drop(state);
        if !was_busy {
            self.desk.asked.notify_one();
        }
        Ok(())
    }

    /// What is to be told since the last call; exchanged with an empty list.
    pub(crate) fn take(&self, done: &mut Vec<Done>) -> Result<(), StoreError> {
        done.clear();
        let _ = rustix::io::read(&self.desk.told, &mut [0; 8]);
        let mut state = self.desk.lock();
        std::mem::swap(&mut state.done, done);
        state.failed.take().map_or(Ok(()), Err)
    }

    /// Waits until all that was asked for is durable, or the disk is full.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.end();
        self.desk.lock().failed.take().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        self.desk.lock().is_ending = true;
        self.desk.asked.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tells the shell that the thread is gone, also when it panics.
struct Ended(Arc<Desk>);

impl Drop for Ended {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = std::io::Error::other("its thread panicked");
            self.0.fail(StoreError::system("keeping records in", "the store")(why));
        }
    }
}

fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    // Whoever panicked holding it ends the process by that.
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread: everything, or what the node's thread would have had to wait for.
fn run(desk: &Desk, worker: &Mutex<Worker>) -> Result<(), StoreError> {
    while wait(desk) {
        let mut worker = lock(worker);
        loop {
            {
                let mut state = desk.lock();
                if worker.take().is_empty() {
                    std::mem::swap(&mut state.pending, worker.take());
                }
                if worker.take().is_empty() {
                    state.is_busy = false;
                    break;
                }
            }
            match worker.go_on(true) {
                Ok(()) => give_back(&mut desk.lock(), worker.take()),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Full | Stop::NotMade) => {
                    if pause(desk, &mut worker) {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

/// Waits for something to do; gives whether there is.
fn wait(desk: &Desk) -> bool {
    let mut state = desk.lock();
    while !state.is_busy && !state.is_ending {
        state = desk.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    state.is_busy
}

fn give_back(state: &mut State, batches: &mut Vec<Batch>) {
    for mut batch in batches.drain(..) {
        if state.spent.len() < SPENT_MAX {
            batch.stores.clear();
            batch.records.clear();
            state.spent.push(batch);
        }
    }
}

/// Waits a while for room on the disk; what else is asked for meanwhile is begun, because it may make room. Gives whether
/// the process ends.
fn pause(desk: &Desk, worker: &mut Worker) -> bool {
    let state = desk.lock();
    let waited = desk.asked.wait_timeout(state, FULL_PAUSE);
    let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    for batch in &mut state.pending {
        worker.begin_others(&mut batch.stores);
    }
    state.is_ending
}
