//! The thread that replaces cells and reads them: one order after the other, as each was asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::cell::{self, Next};
use super::desk::{Desk, Done, FULL_PAUSE};
use super::files::Files;
use super::{StoreCounters, StoreError, count};
use crate::host;

/// Bytes of a cell's content that are written and synced at once.
const PART_BYTES: usize = 4 << 20;

/// The thread, as long as this lives.
#[derive(Debug)]
pub(super) struct Replacer {
    orders: Option<Sender<host::Store>>,
    /// Without a thread: each order is carried out as it is given.
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
        let next = cells.iter().map(|_| None).collect();
        let mut replacing = Replacing { files, cells, next, desk, counters };
        if !has_thread {
            return Self { orders: None, by_hand: Some(replacing), thread: None };
        }
        let (orders, ordered): (_, Receiver<host::Store>) = channel();
        let thread = std::thread::spawn(move || {
            if let Err(error) = ordered.iter().try_for_each(|order| replacing.carry_out(order)) {
                replacing.desk.fail(error);
            }
        });
        Self { orders: Some(orders), by_hand: None, thread: Some(thread) }
    }

    /// Asks for something to be done with a cell.
    pub(super) fn order(&mut self, order: host::Store) {
        match (&mut self.by_hand, &self.orders) {
            (Some(replacing), _) => {
                if let Err(error) = replacing.carry_out(order) {
                    replacing.desk.fail(error);
                }
            }
            // Its thread is gone only after a failure, which has been told.
            (None, Some(orders)) => drop(orders.send(order)),
            (None, None) => {}
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
    /// Of each cell what it is to hold next, where that comes in parts.
    next: Vec<Option<Next>>,
    desk: Arc<Desk>,
    counters: Arc<StoreCounters>,
}

impl Replacing {
    fn carry_out(&mut self, order: host::Store) -> Result<(), StoreError> {
        let done = match order {
            host::Store::Extend { cell, part } => {
                self.extend(cell, &part)?.then_some(Done::Extended { cell })
            }
            host::Store::Replace { cell, content } => {
                self.replace(cell, &content)?.then_some(Done::Replaced { cell })
            }
            host::Store::Read { cell, offset, bytes_max } => {
                let bytes = cell::read_part(&*self.files, &self.cells[cell], offset, bytes_max)?;
                Some(Done::Part { cell, offset, bytes })
            }
            host::Store::DropParts { cell } => {
                if let Some(next) = self.next[cell].take() {
                    next.give_up(&*self.files)?;
                }
                None
            }
            host::Store::Append { .. } | host::Store::Trim { .. } => None,
        };
        self.desk.tell(&mut done.into_iter().collect());
        Ok(())
    }

    /// Writes a part; `false`: the process ends before there is room for it.
    fn extend(&mut self, cell: usize, part: &[u8]) -> Result<bool, StoreError> {
        let Some(mut next) = self.begun(cell)? else { return Ok(false) };
        for piece in part.chunks(PART_BYTES) {
            next.push(piece);
            if !self.until_room(|_| next.write())? {
                return Ok(false);
            }
        }
        self.next[cell] = Some(next);
        Ok(true)
    }

    fn replace(&mut self, cell: usize, last: &[u8]) -> Result<bool, StoreError> {
        if self.next[cell].is_none() {
            return self.until_room(|files| cell::replace(files, &self.cells[cell], last));
        }
        if !self.extend(cell, last)? {
            return Ok(false);
        }
        match self.next[cell].take() {
            Some(mut next) => self.until_room(|files| next.finish(files)),
            None => Ok(false),
        }
    }

    /// The next content of a cell, as far as it has come.
    fn begun(&mut self, cell: usize) -> Result<Option<Next>, StoreError> {
        if let Some(next) = self.next[cell].take() {
            return Ok(Some(next));
        }
        let path = self.cells[cell].clone();
        let mut begun = None;
        self.until_room(|files| Next::begin(files, &path).map(|next| begun = Some(next)))?;
        Ok(begun)
    }

    /// Tries again while the disk is full; `false`: the process ends before there is room.
    fn until_room(
        &self,
        mut act: impl FnMut(&dyn Files) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let mut is_told = false;
        while let Err(error) = act(&*self.files) {
            if !error.is_full() {
                return Err(error);
            }
            if !std::mem::replace(&mut is_told, true) {
                count(&self.counters.full, 1);
                self.desk.tell(&mut vec![Done::Full { log: None }]);
            }
            if self.desk.is_ending() {
                return Ok(false);
            }
            std::thread::sleep(FULL_PAUSE);
        }
        Ok(true)
    }
}
