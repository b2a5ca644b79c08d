//! The thread that replaces cells: one after the other, in the order in which each was asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::files::Files;
use super::writer::{Desk, Done, FULL_PAUSE};
use super::{StoreCounters, StoreError, cell, count};

/// The thread, as long as this lives.
#[derive(Debug)]
pub(super) struct Replacer {
    orders: Option<Sender<(usize, Vec<u8>)>>,
    /// Without a thread: each is replaced as it is asked for.
    by_hand: Option<Replacing>,
    thread: Option<JoinHandle<()>>,
}

impl Replacer {
    pub(super) fn start(
        files: Arc<dyn Files>,
        cells: Vec<PathBuf>,
        desk: Arc<Desk>,
        counters: Arc<StoreCounters>,
        has_thread: bool,
    ) -> Self {
        let replacing = Replacing { files, cells, desk, counters };
        if !has_thread {
            return Self { orders: None, by_hand: Some(replacing), thread: None };
        }
        let (orders, ordered): (_, Receiver<(usize, Vec<u8>)>) = channel();
        let thread = std::thread::spawn(move || {
            if let Err(error) = ordered.iter().try_for_each(|it| replacing.replace(it.0, &it.1)) {
                replacing.desk.fail(error);
            }
        });
        Self { orders: Some(orders), by_hand: None, thread: Some(thread) }
    }

    /// Asks for new content of a cell.
    pub(super) fn replace(&self, cell: usize, content: Vec<u8>) {
        if let Some(replacing) = &self.by_hand
            && let Err(error) = replacing.replace(cell, &content)
        {
            replacing.desk.fail(error);
        }
        // Its thread is gone only after a failure, which has been told.
        if let Some(orders) = &self.orders {
            let _ = orders.send((cell, content));
        }
    }
}

impl Drop for Replacer {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Replacing {
    files: Arc<dyn Files>,
    cells: Vec<PathBuf>,
    desk: Arc<Desk>,
    counters: Arc<StoreCounters>,
}

impl Replacing {
    /// Waits while the disk is full.
    fn replace(&self, cell: usize, content: &[u8]) -> Result<(), StoreError> {
        let mut is_told = false;
        while let Err(error) = cell::replace(&*self.files, &self.cells[cell], content) {
            if !error.is_full() {
                return Err(error);
            }
            if !std::mem::replace(&mut is_told, true) {
                count(&self.counters.full, 1);
                self.desk.tell(&mut vec![Done::Full { log: None }]);
            }
            if self.desk.is_ending() {
                return Ok(());
            }
            std::thread::sleep(FULL_PAUSE);
        }
        self.desk.tell(&mut vec![Done::Replaced { cell }]);
        Ok(())
    }
}
