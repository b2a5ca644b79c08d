//! The desk between the thread that asks a store for something and the threads that do it: batches go one way, news of what
//! is done the other. It has no part in the work.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::StoreError;
use crate::host;

/// How long a full disk is left alone before it is asked again.
pub(super) const FULL_PAUSE: Duration = Duration::from_millis(100);

/// News for the node.
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

/// The orders of one turn of the node to the disk.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) stores: Vec<host::Store>,
    pub(super) records: Vec<u8>,
}

/// Orders and results on the desk.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) pending: Vec<Batch>,
    pub(super) spent: Vec<Batch>,
    pub(super) done: Vec<Done>,
    pub(super) failed: Option<StoreError>,
    /// Something has failed, whether or not that was taken: nothing is written any more.
    pub(super) has_failed: bool,
    /// The thread has something to do.
    pub(super) is_busy: bool,
    pub(super) is_ending: bool,
}

/// The part that both sides see.
#[derive(Debug)]
pub(super) struct Desk {
    state: Mutex<State>,
    pub(super) asked: Condvar,
    /// Readable when there is something in `done`, or the writer has failed.
    pub(super) told: OwnedFd,
}

impl Desk {
    pub(super) fn new(store_folder: &Path) -> Result<Arc<Self>, StoreError> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| StoreError::system("watching", store_folder)(error.into()))?;
        Ok(Arc::new(Self { state: Mutex::default(), asked: Condvar::new(), told }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
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

    /// One wake-up for all that is told until the shell looks.
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
