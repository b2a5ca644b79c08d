//! How logs are written: all that was asked for since the last sync is one write and one sync, and what is durable is told
//! a batch at a time. Either a thread of its own does it, or the node's, which hands over to the other what it would have to
//! wait for: room on a full disk, a segment that is not made yet. Cells go to a thread of their own, so that no
//! record waits for a large one.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use clock::Clock;

use super::desk::{Batch, Desk, Done, FULL_PAUSE, State};
use super::worker::{Stop, Worker};
use super::{LogThread, Store, StoreError};
use crate::host;

/// Emptied batches that are kept for the next.
const SPENT_MAX: usize = 4;

/// More than this the node's thread does not write itself: the disk takes longer for it than waking another thread does.
const NODE_BATCH_BYTES_MAX: usize = 1 << 20;

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
        let desk = Desk::new(&store.folder)?;
        let worker = Worker::new(store, clock, Arc::clone(&desk), false);
        Ok(Self { desk, worker })
    }

    /// One batch: the records in `records` are one write and one sync of each log. Adds the durable ones to `done`, also
    /// where a later one failed; after a failure nothing more is written.
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
        let desk = Desk::new(&store.folder)?;
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
