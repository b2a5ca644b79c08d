//! Transactions prepared ahead of their due times, each worker its own. Encoding and signing happen here, not
//! between a due time and its send. It never decides when anything is due.

use std::collections::VecDeque;

use model::TxId;
use sut::{Made, Workload};

/// A transaction whose payload is ready.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub id: TxId,
    /// Its number in its stream on this worker.
    pub number: u64,
    pub made: Made,
    pub payload: Vec<u8>,
}

/// The transactions of one stream of one worker, in the order of their numbers.
pub(crate) struct Source {
    workload: Box<dyn Workload>,
    ahead: VecDeque<Prepared>,
    ahead_max: usize,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    next_number: u64,
    numbers_max: u64,
    first_id: TxId,
    stride: u64,
    /// Taken since the last [`Source::fill`].
    taken: usize,
    /// Times that a transaction had to be prepared when it was already due.
    pub dry: u64,
}

impl Source {
    /// Transaction `n` of the stream has the id `first_id + n · stride`; there are at most `numbers_max`.
    pub(crate) fn new(
        workload: Box<dyn Workload>,
        ahead_max: u32,
        first_id: TxId,
        stride: u64,
        numbers_max: u64,
    ) -> Self {
        let ahead_max = (ahead_max as usize).max(1);
        Self {
            workload,
            ahead: VecDeque::with_capacity(ahead_max.min(1 << 16)),
            ahead_max,
            spare: Vec::new(),
            next_number: 0,
            numbers_max,
            first_id,
            stride,
            taken: 0,
            dry: 0,
        }
    }

    /// The next transaction.
    pub(crate) fn take(&mut self) -> Prepared {
        if self.ahead.is_empty() {
            self.dry += 1;
            self.prepare();
        }
        self.taken += 1;
        self.ahead.pop_front().expect("prepared above")
    }

    /// Takes a payload's buffer back.
    pub(crate) fn recycle(&mut self, mut payload: Vec<u8>) {
        if payload.capacity() > 0 && self.spare.len() < self.ahead_max {
            payload.clear();
            self.spare.push(payload);
        }
    }

    /// Whether every transaction that there may be was taken.
    pub(crate) fn is_used_up(&self) -> bool {
        self.ahead.is_empty() && self.next_number >= self.numbers_max
    }

    /// How many there are still to prepare, and how many were taken since the last filling.
    pub(crate) fn missing(&self) -> (usize, usize) {
        let left = usize::try_from(self.numbers_max - self.next_number).unwrap_or(usize::MAX);
        ((self.ahead_max - self.ahead.len().min(self.ahead_max)).min(left), self.taken)
    }

    /// Prepares `count` more.
    pub(crate) fn fill(&mut self, count: usize) {
        self.taken = 0;
        for _ in 0..count {
            self.prepare();
        }
    }

    fn prepare(&mut self) {
        let number = self.next_number;
        self.next_number += 1;
        let id = self.first_id + number * self.stride;
        let mut payload = self.spare.pop().unwrap_or_default();
        let made = self.workload.next(id, None, &mut payload);
        self.ahead.push_back(Prepared { id, number, made, payload });
    }
}
