//! The thread that replaces cells: one after the other, in the order in which each was asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::writer::{Desk, Done, FULL_PAUSE};
use super::{StoreCounters, StoreError, cell, count};

/// The thread, as long as this lives.
#[derive(Debug)]
pub(super) struct Replacer {
    orders: Option<Sender<(usize, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Replacer {
    pub(super) fn start(
        cells: Vec<PathBuf>,
        desk: Arc<Desk>,
        counters: Arc<StoreCounters>,
    ) -> Self {
        let (orders, ordered) = channel();
        let thread = std::thread::spawn(move || {
            if let Err(error) = run(&cells, &ordered, &desk, &counters) {
                desk.fail(error);
            }
        });
        Self { orders: Some(orders), thread: Some(thread) }
    }

    /// Asks for new content of a cell.
    pub(super) fn replace(&self, cell: usize, content: Vec<u8>) {
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

fn run(
    cells: &[PathBuf],
    ordered: &Receiver<(usize, Vec<u8>)>,
    desk: &Desk,
    counters: &StoreCounters,
) -> Result<(), StoreError> {
    for (cell, content) in ordered {
        let mut is_told = false;
        while let Err(error) = cell::replace(&cells[cell], &content) {
            if !error.is_full() {
                return Err(error);
            }
            if !std::mem::replace(&mut is_told, true) {
                count(&counters.full, 1);
                desk.tell(&mut vec![Done::Full { log: None }]);
            }
            if desk.is_ending() {
                return Ok(());
            }
            std::thread::sleep(FULL_PAUSE);
        }
        desk.tell(&mut vec![Done::Replaced { cell }]);
    }
    Ok(())
}
