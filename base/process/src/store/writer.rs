//! The thread that writes logs. It takes everything that was asked for since its last sync, and tells what is
//! durable a batch at a time. Cells go to a thread of their own, so that no record waits for a large one.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::Clock;
use rustix::event::{EventfdFlags, eventfd};

use super::log::Log;
use super::replacer::Replacer;
use super::segments::Maker;
use super::{Store, StoreCounters, StoreError, count};
use crate::host;

/// How long a full disk is left alone before it is asked again.
pub(super) const FULL_PAUSE: Duration = Duration::from_millis(100);
/// Emptied batches that are kept for the next.
const SPENT_MAX: usize = 4;

/// What the node is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Persisted { log: usize, below: u64 },
    Replaced { cell: usize },
    Full { log: Option<usize> },
}

/// What one turn of the node asked of the disk.
#[derive(Debug, Default)]
struct Batch {
    stores: Vec<host::Store>,
    records: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<Batch>,
    spent: Vec<Batch>,
    done: Vec<Done>,
    failed: Option<StoreError>,
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
        self.lock().failed.get_or_insert(error);
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

/// A store at work, as the shell sees it.
#[derive(Debug)]
pub(crate) struct Writer {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(store: Store, clock: Clock) -> Result<Self, StoreError> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| StoreError::system("watching", &store.folder)(error.into()))?;
        let desk = Arc::new(Desk { state: Mutex::default(), asked: Condvar::new(), told });
        let theirs = Arc::clone(&desk);
        let thread = std::thread::spawn(move || {
            let ended = Ended(Arc::clone(&theirs));
            let mut worker = Worker::new(store, clock, theirs);
            if let Err(error) = worker.run() {
                ended.0.fail(error);
            }
        });
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Readable when [`Writer::take`] has something to give.
    pub(crate) fn told(&self) -> &OwnedFd {
        &self.desk.told
    }

    /// Hands over what a turn has asked for; gives empty lists back in its place.
    pub(crate) fn submit(&self, stores: &mut Vec<host::Store>, records: &mut Vec<u8>) {
        let mut state = self.desk.lock();
        let mut batch = state.spent.pop().unwrap_or_default();
        std::mem::swap(&mut batch.stores, stores);
        std::mem::swap(&mut batch.records, records);
        state.pending.push(batch);
        drop(state);
        self.desk.asked.notify_one();
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

struct Worker {
    clock: Clock,
    desk: Arc<Desk>,
    logs: Vec<Log>,
    replacer: Replacer,
    maker: Maker,
    counters: Arc<StoreCounters>,
    done: Vec<Done>,
    _lock: File,
}

/// Why the thread stops in the middle of a batch.
enum Stop {
    Failed(StoreError),
    /// The process ends while the disk is full.
    Ending,
}

impl Worker {
    fn new(store: Store, clock: Clock, desk: Arc<Desk>) -> Self {
        let Store { logs, cells, options, counters, _lock, .. } = store;
        let folders = logs.iter().map(|log| log.folder.clone()).collect();
        let maker = Maker::start(folders, options.segment_bytes, Arc::clone(&counters));
        let replacer = Replacer::start(cells, Arc::clone(&desk), Arc::clone(&counters));
        Self { clock, desk, logs, replacer, maker, counters, done: Vec::new(), _lock }
    }

    fn run(&mut self) -> Result<(), StoreError> {
        for (index, log) in self.logs.iter_mut().enumerate() {
            log.order_next(index, &self.maker);
        }
        let mut batches = Vec::new();
        while self.wait(&mut batches) {
            match self.carry_out(&mut batches) {
                Ok(()) => {}
                Err(Stop::Ending) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(error),
            }
            self.give_back(&mut batches);
        }
        Ok(())
    }

    /// Waits for something to do; gives whether there is.
    fn wait(&self, batches: &mut Vec<Batch>) -> bool {
        let mut state = self.desk.lock();
        while state.pending.is_empty() && !state.is_ending {
            state = self.desk.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.pending, batches);
        !batches.is_empty()
    }

    fn give_back(&self, batches: &mut Vec<Batch>) {
        let mut state = self.desk.lock();
        for mut batch in batches.drain(..) {
            if state.spent.len() < SPENT_MAX {
                batch.stores.clear();
                batch.records.clear();
                state.spent.push(batch);
            }
        }
    }

    /// All records of all batches that were there are one write and one sync of each log that they go to.
    fn carry_out(&mut self, batches: &mut [Batch]) -> Result<(), Stop> {
        for batch in &mut *batches {
            begin_others(&mut batch.stores, &mut self.logs, &self.maker, &self.replacer);
        }
        for batch in batches {
            for store in &batch.stores {
                if let host::Store::Append { log, number, bytes } = store {
                    self.append(*log, *number, &batch.records[bytes.clone()])?;
                }
            }
        }
        let are_behind = self.logs.iter().any(Log::is_behind);
        count(&self.counters.batches, u64::from(are_behind));
        (0..self.logs.len()).try_for_each(|log| self.sync(log))
    }

    fn append(&mut self, log: usize, number: u64, record: &[u8]) -> Result<(), Stop> {
        if self.logs[log].is_full_for(record.len()) {
            self.sync(log)?;
            self.retry(log, |worker| worker.logs[log].switch(log, &worker.maker))?;
        }
        match self.logs[log].append(number, record) {
            // The record is framed, and only its write has failed.
            Err(error) if error.is_full() => self.retry(log, |worker| worker.logs[log].write()),
            other => other.map_err(Stop::Failed),
        }
    }

    fn sync(&mut self, log: usize) -> Result<(), Stop> {
        if !self.logs[log].is_behind() {
            return Ok(());
        }
        self.retry(log, |worker| worker.logs[log].write())?;
        let below = self.logs[log].sync(self.clock).map_err(Stop::Failed)?;
        self.logs[log].order_next(log, &self.maker);
        self.done.push(Done::Persisted { log, below });
        self.desk.tell(&mut self.done);
        Ok(())
    }

    /// Does something until the disk has room for it; says once that it has not.
    fn retry(
        &mut self,
        log: usize,
        mut attempt: impl FnMut(&mut Self) -> Result<(), StoreError>,
    ) -> Result<(), Stop> {
        let mut is_told = false;
        loop {
            match attempt(self) {
                Err(error) if error.is_full() => {}
                other => return other.map_err(Stop::Failed),
            }
            if !is_told {
                is_told = true;
                count(&self.counters.full, 1);
                self.done.push(Done::Full { log: Some(log) });
                self.desk.tell(&mut self.done);
            }
            if self.pause() {
                return Err(Stop::Ending);
            }
        }
    }

    /// Waits a while; what else is asked for meanwhile is begun, because it may make room. Gives whether the
    /// process ends.
    fn pause(&mut self) -> bool {
        let state = self.desk.lock();
        let waited = self.desk.asked.wait_timeout(state, FULL_PAUSE);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        for batch in &mut state.pending {
            begin_others(&mut batch.stores, &mut self.logs, &self.maker, &self.replacer);
        }
        state.is_ending
    }
}

/// Lets go of what is trimmed, and hands over the cells; records are left. Neither waits for a record: a log that
/// has no room may be waiting for just that.
fn begin_others(
    stores: &mut Vec<host::Store>,
    logs: &mut [Log],
    maker: &Maker,
    replacer: &Replacer,
) {
    stores.retain_mut(|store| match store {
        host::Store::Append { .. } => true,
        host::Store::Trim { log, below } => {
            logs[*log].trim(*below, *log, maker);
            false
        }
        host::Store::Replace { cell, content } => {
            replacer.replace(*cell, std::mem::take(content));
            false
        }
    });
}
