//! Observations on their way to the recorder, in buffers that come back. What a read returned is kept beside the rows
//! and not in them; a trial that observes nothing never comes here and takes no memory for it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use model::facts::WorkerFacts;
use model::observation::{OBSERVATION_BYTES_MAX, Observation, Observations};
use model::{Stamp, TxId};
use sut::Marks;

use crate::recorder::Message;

/// A batch leaves when it has this many bytes, or this many observations, and when its oldest has waited as long as
/// rows do.
const BATCH_BYTES: usize = 64 << 10;
const BATCH_COUNT: usize = 1_024;
/// Batches that a worker may have under way. One is as long as [`BATCH_BYTES`] and what one receipt brings.
const BATCHES_MAX: usize = 16;

/// Observations of a worker that were not handed over yet.
pub(crate) struct Seen {
    buffer: Observations,
    since: Stamp,
    to: SyncSender<Message>,
    back: SyncSender<Observations>,
    spare: Spare<Observations>,
}

/// Buffers that come back from the recorder.
pub(super) struct Spare<T> {
    back: Receiver<T>,
    /// Buffers made so far, and at most.
    made: usize,
    most: usize,
}

impl<T: Default> Spare<T> {
    /// For a worker that has made one.
    pub(super) const fn new(back: Receiver<T>, most: usize) -> Self {
        Self { back, made: 1, most }
    }

    /// One to go on with: one that came back, or a new one while there may be more.
    pub(super) fn next(&mut self, make: impl FnOnce() -> T, facts: &mut WorkerFacts) -> T {
        match self.back.try_recv() {
            Ok(buffer) => buffer,
            Err(_) if self.made < self.most => {
                self.made += 1;
                make()
            }
            Err(_) => {
                facts.record_waits += 1;
                // The recorder is late by all buffers: waiting shows as send lag, and dropping would not show.
                self.back.recv().unwrap_or_default()
            }
        }
    }
}

impl Seen {
    pub(crate) fn new(to: SyncSender<Message>) -> Self {
        let (back, spare) = sync_channel(BATCHES_MAX);
        let spare = Spare::new(spare, BATCHES_MAX);
        Self { buffer: Observations::default(), since: 0, to, back, spare }
    }

    /// Takes what a receipt brought, stamped with its time.
    pub(crate) fn take(&mut self, marks: &Marks, at: Stamp, facts: &mut WorkerFacts) {
        facts.observations_left_out += marks.observations_left_out();
        let found = marks.observations();
        if found.is_empty() {
            return;
        }
        self.begin(at);
        facts.observations += found.len() as u64;
        self.buffer.push_all_at(found, at);
        self.hand_over_full(facts);
    }

    /// Takes one that a client library's call returned.
    pub(crate) fn take_one(&mut self, tx: TxId, bytes: &[u8], at: Stamp, facts: &mut WorkerFacts) {
        if bytes.len() > OBSERVATION_BYTES_MAX {
            facts.observations_left_out += 1;
            return;
        }
        self.begin(at);
        facts.observations += 1;
        self.buffer.push(Observation { tx, at, bytes });
        self.hand_over_full(facts);
    }

    /// Says whether something has waited since `until` or before.
    #[inline]
    pub(crate) fn waits_since(&self, until: Stamp) -> bool {
        !self.buffer.is_empty() && self.since <= until
    }

    /// Hands over what has waited since `until` or before.
    #[inline]
    pub(crate) fn hand_over_since(&mut self, until: Stamp, facts: &mut WorkerFacts) {
        if self.waits_since(until) {
            self.hand_over(facts);
        }
    }

    pub(crate) fn hand_over(&mut self, facts: &mut WorkerFacts) {
        if self.buffer.is_empty() {
            return;
        }
        let next = self.spare.next(Observations::default, facts);
        let observations = std::mem::replace(&mut self.buffer, next);
        let message = Message::Observations { observations, back: self.back.clone() };
        self.to.send(message).expect("the recorder outlives the workers");
    }

    fn begin(&mut self, at: Stamp) {
        if self.buffer.is_empty() {
            self.since = at;
        }
    }

    fn hand_over_full(&mut self, facts: &mut WorkerFacts) {
        if self.buffer.byte_count() >= BATCH_BYTES || self.buffer.len() >= BATCH_COUNT {
            self.hand_over(facts);
        }
    }
}
