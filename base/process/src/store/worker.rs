//! Batches on their way into the logs. Whoever holds a [`Worker`] moves it on, and what stopped one goes on where it was: a
//! full disk is met in the middle of a batch.

use std::fs::File;
use std::sync::Arc;

use clock::Clock;

use super::desk::{Batch, Desk, Done};
use super::log::Log;
use super::replacer::Replacer;
use super::segments::Maker;
use super::{Store, StoreCounters, StoreError, count};
use crate::host;

/// Why not everything that was asked for is durable.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(StoreError),
    /// The disk has no room.
    Full,
    /// The next segment is not there yet, and one does not wait for it.
    NotMade,
}

/// A store's logs, and what is to be written to them.
#[derive(Debug)]
pub(super) struct Worker {
    clock: Clock,
    desk: Arc<Desk>,
    logs: Vec<Log>,
    replacer: Replacer,
    maker: Maker,
    counters: Arc<StoreCounters>,
    batches: Vec<Batch>,
    /// The next record: in which batch, and where in it.
    at: (usize, usize),
    /// All of them are in the logs, and what is left is to sync those.
    are_appended: bool,
    /// It has been told that the disk is full, and nothing has become durable since.
    is_told_full: bool,
    done: Vec<Done>,
    _lock: Option<File>,
}

impl Worker {
    pub(super) fn new(store: Store, clock: Clock, desk: Arc<Desk>, has_threads: bool) -> Self {
        let Store { files, mut logs, cells, options, counters, _lock, .. } = store;
        let folders = logs.iter().map(|log| log.folder.clone()).collect();
        let maker = Maker::start(
            &files,
            folders,
            options.segment_bytes,
            Arc::clone(&counters),
            has_threads,
        );
        let replacer =
            Replacer::start(files, cells, Arc::clone(&desk), Arc::clone(&counters), has_threads);
        for (index, log) in logs.iter_mut().enumerate() {
            log.order_next(index, &maker);
        }
        Self {
            clock,
            desk,
            logs,
            replacer,
            maker,
            counters,
            batches: Vec::new(),
            at: (0, 0),
            are_appended: false,
            is_told_full: false,
            done: Vec::new(),
            _lock,
        }
    }

    /// What it works at: given to it when it is done with all before, and then taken back.
    pub(super) const fn take(&mut self) -> &mut Vec<Batch> {
        &mut self.batches
    }

    /// What is to be told, where it was not told at once.
    pub(super) fn take_done(&mut self, done: &mut Vec<Done>) {
        done.append(&mut self.done);
    }

    /// All records of all batches are one write and one sync of each log that they go to. On a thread of its own it waits
    /// for segments, and tells at once what is done.
    pub(super) fn go_on(&mut self, is_own_thread: bool) -> Result<(), Stop> {
        let stopped = self.keep(is_own_thread);
        let stopped = stopped.map_err(|(log, stop)| {
            if matches!(stop, Stop::Full) && !self.is_told_full {
                self.is_told_full = true;
                count(&self.counters.full, 1);
                self.done.push(Done::Full { log: Some(log) });
            }
            stop
        });
        if is_own_thread {
            self.desk.tell(&mut self.done);
        }
        stopped
    }

    fn keep(&mut self, is_own_thread: bool) -> Result<(), (usize, Stop)> {
        if self.at == (0, 0) {
            let mut batches = std::mem::take(&mut self.batches);
            for batch in &mut batches {
                self.begin_others(&mut batch.stores);
            }
            self.batches = batches;
        }
        while let Some(batch) = self.batches.get(self.at.0) {
            let Some(store) = batch.stores.get(self.at.1) else {
                self.at = (self.at.0 + 1, 0);
                continue;
            };
            if let host::Store::Append { log, .. } = *store {
                self.append(is_own_thread).map_err(|stop| (log, stop))?;
            }
            self.at.1 += 1;
        }
        if !std::mem::replace(&mut self.are_appended, true) {
            let are_behind = self.logs.iter().any(Log::is_behind);
            count(&self.counters.batches, u64::from(are_behind));
        }
        for log in 0..self.logs.len() {
            self.sync(log, is_own_thread).map_err(|stop| (log, stop))?;
        }
        self.at = (0, 0);
        self.are_appended = false;
        Ok(())
    }

    /// The record that is next.
    fn append(&mut self, is_own_thread: bool) -> Result<(), Stop> {
        let batch = &self.batches[self.at.0];
        let host::Store::Append { log, number, bytes } = &batch.stores[self.at.1] else {
            return Ok(());
        };
        let (log, number, bytes) = (*log, *number, bytes.clone());
        if self.logs[log].is_full_for(bytes.len()) {
            self.sync(log, is_own_thread)?;
            if !is_own_thread && !self.maker.is_made(log) {
                return Err(Stop::NotMade);
            }
            self.logs[log].switch(log, &mut self.maker).map_err(why)?;
        }
        let record = &self.batches[self.at.0].records[bytes];
        self.logs[log].append(number, record).map_err(why)
    }

    fn sync(&mut self, log: usize, is_own_thread: bool) -> Result<(), Stop> {
        if !self.logs[log].is_behind() {
            return Ok(());
        }
        self.logs[log].write().map_err(why)?;
        let below = self.logs[log].sync(self.clock).map_err(Stop::Failed)?;
        self.logs[log].order_next(log, &self.maker);
        self.is_told_full = false;
        self.done.push(Done::Persisted { log, below });
        if is_own_thread {
            self.desk.tell(&mut self.done);
        }
        Ok(())
    }

    /// Lets go of what is trimmed, and hands over the cells; records are left. Neither waits for a record: a log that
    /// has no room may be waiting for just that.
    pub(super) fn begin_others(&mut self, stores: &mut Vec<host::Store>) {
        stores.retain_mut(|store| match store {
            host::Store::Append { .. } => true,
            host::Store::Trim { log, below } => {
                self.logs[*log].trim(*below, *log, &self.maker);
                false
            }
            _ => {
                let order = std::mem::replace(store, host::Store::DropParts { cell: 0 });
                self.replacer.order(order);
                false
            }
        });
    }
}

fn why(error: StoreError) -> Stop {
    if error.is_full() { Stop::Full } else { Stop::Failed(error) }
}
