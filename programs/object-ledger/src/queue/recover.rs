//! The queue as its log left it.

use std::collections::{BTreeMap, VecDeque};

use process::Stored;

use super::{Counts, DONE, MADE, Open, Queue, SUBMITTED, Settings};
use crate::data::{Batch, BatchId, Malformed, Reader};
use crate::service::{Doors, Later};

/// What is on the disk is no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "record {record} of the queue's log cannot be ({why}); it was damaged or is of something else"
)]
pub struct NoQueue {
    /// Which record.
    pub record: u64,
    /// Why not.
    pub why: Malformed,
}

impl Queue {
    /// A queue as its log left it.
    ///
    /// # Errors
    /// When what is there is no queue.
    pub fn new(settings: Settings, stored: &Stored) -> Result<Self, NoQueue> {
        let mut queue = Self {
            settings,
            pending: VecDeque::new(),
            open: BTreeMap::new(),
            firsts: BTreeMap::new(),
            bytes: 0,
            waiting: VecDeque::new(),
            pops: VecDeque::new(),
            patience: Later::default(),
            doors: Doors::default(),
            counts: Counts::default(),
        };
        for (record, bytes) in stored.logs.iter().flat_map(|log| log.iter()) {
            queue.again(record, bytes).map_err(|why| NoQueue { record, why })?;
        }
        Ok(queue)
    }

    fn again(&mut self, number: u64, record: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(record);
        match reader.array()? {
            [SUBMITTED] => self.add(number, reader.rest()),
            [MADE] => {
                let (id, last) = (reader.array()?, reader.u64()?);
                reader.end()?;
                self.made(id, last);
            }
            [DONE] => {
                let id: BatchId = reader.array()?;
                reader.end()?;
                let open = self.firsts.remove(&id).and_then(|first| self.open.remove(&first));
                let transactions = open.iter().flat_map(|open| &open.batch.transactions);
                self.bytes -= transactions.map(Vec::len).sum::<usize>();
            }
            _ => return Err(Malformed::Tag),
        }
        Ok(())
    }

    /// Batches take transactions in their order, so the last number says which these were. Of one that is done the first may
    /// be trimmed; then the record that it is done follows.
    fn made(&mut self, id: BatchId, last: u64) {
        let mut transactions = Vec::new();
        let mut first = None;
        while self.pending.front().is_some_and(|next| next.number <= last) {
            let Some(next) = self.pending.pop_front() else { break };
            first.get_or_insert(next.number);
            transactions.push(next.transaction);
        }
        if let Some(first) = first {
            self.firsts.insert(id, first);
            let batch = Batch { id, transactions };
            self.open.insert(first, Open { batch, attempt: 1, is_durable: true, lent: None });
        }
    }
}
