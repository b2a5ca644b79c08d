//! The queue as a value: transactions in, batches out, each batch until it is done.
//!
//! A transaction is acknowledged when it is durable. A batch is given out when it is durable which transactions it has: they
//! and its id never change again, however often it is given out. It is given out again when its lease has run out, when the
//! connection that it was given to has closed, and after a restart.

mod recover;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs};
use wire::metrics::Number;

use crate::data::{Batch, BatchId, Domain, TRANSACTION_BYTES_MAX, WHOLE_BYTES_MAX, hash};
use crate::protocol::{Frame, Pop, Refused, kind, write_frame, write_refused};
use crate::service::{Answering, Asked, Doors, Later};

pub use recover::NoQueue;

/// Its log.
pub const LOG: &str = "queue";
/// Pops that may wait for transactions; what comes beyond is answered at once.
const POPS_MAX: usize = 1_024;
/// A pop waits at most so long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What the queue is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// It never holds more bytes of transactions than this; what comes beyond is refused.
    pub bytes_max: usize,
    /// A batch has at most so many transactions, however many are asked for.
    pub count_max: u32,
    /// From what ids of batches are made: another one each time that the queue starts.
    pub nonce: [u8; 16],
    /// What is broken on purpose, for tests of tests.
    #[doc(hidden)]
    pub broken: Option<Broken>,
}

/// What a queue may do wrong on purpose.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It acknowledges before the disk has it.
    Acknowledges,
    /// It gives a batch out before the disk has which transactions it has.
    Gives,
}

/// A transaction that is in no batch yet.
#[derive(Debug)]
struct Pending {
    /// The number of its record, which is its number.
    number: u64,
    transaction: Vec<u8>,
}

/// A batch that is not done.
#[derive(Debug)]
struct Open {
    batch: Batch,
    attempt: u32,
    /// Its transactions are durable. Before that it is given to no pipeline: after a crash they would be in another batch.
    is_durable: bool,
    /// Until when it is lent, and to whom.
    lent: Option<(Instant, Connection)>,
}

/// Waits for the disk.
#[derive(Debug)]
enum Waiting {
    Accepted {
        asked: Asked,
        number: u64,
    },
    Given {
        asked: Asked,
        first: u64,
    },
    /// What stands before `oldest` is not needed once it is durable that it is done.
    Trim {
        oldest: u64,
    },
}

/// A queue. Its log has a record for each transaction, each batch that was made, and each that is done.
#[derive(Debug)]
pub struct Queue {
    settings: Settings,
    pending: VecDeque<Pending>,
    /// By the number of their first transaction.
    open: BTreeMap<u64, Open>,
    /// Where a batch is, by its id.
    firsts: BTreeMap<BatchId, u64>,
    bytes: usize,
    /// By the number of the record that has to be durable.
    waiting: VecDeque<(u64, Waiting)>,
    pops: VecDeque<(Asked, Pop)>,
    patience: Later<Asked>,
    doors: Doors,
    counts: Counts,
}

/// Numbers that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions acknowledged.
    pub accepted: u64,
    /// Transactions refused.
    pub refused: u64,
    /// Batches given out for the first time.
    pub given: u64,
    /// Batches given out again.
    pub again: u64,
    /// Batches done.
    pub done: u64,
    /// Transactions in them.
    pub done_transactions: u64,
}

const SUBMITTED: u8 = 1;
const MADE: u8 = 2;
const DONE: u8 = 3;

impl Queue {
    /// Its numbers.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Transactions that are in no batch, and batches that are not done.
    #[must_use]
    pub fn standing(&self) -> (usize, usize) {
        (self.pending.len(), self.open.len())
    }

    fn submit(&mut self, asked: Asked, transaction: &[u8], out: &mut Outputs) {
        let refused = if transaction.is_empty() || transaction.len() > TRANSACTION_BYTES_MAX {
            Some(Refused::Size)
        } else if self.bytes + transaction.len() > self.settings.bytes_max {
            Some(Refused::Full)
        } else {
            None
        };
        if let Some(why) = refused {
            self.counts.refused += 1;
            return write_refused(out.send(asked.connection), asked.id, why);
        }
        let number = out.append_parts(0, &[&[SUBMITTED], transaction]);
        self.add(number, transaction);
        if self.settings.broken == Some(Broken::Acknowledges) {
            let number = number.to_be_bytes();
            return write_frame(out.send(asked.connection), kind::ACCEPTED, asked.id, &[&number]);
        }
        self.waiting.push_back((number, Waiting::Accepted { asked, number }));
    }

    fn add(&mut self, number: u64, transaction: &[u8]) {
        self.bytes += transaction.len();
        self.pending.push_back(Pending { number, transaction: transaction.to_vec() });
    }

    fn done(&mut self, asked: Asked, id: BatchId, out: &mut Outputs) {
        let is_given = |first: &u64| self.open[first].is_durable;
        let Some(first) = self.firsts.get(&id).copied().filter(is_given) else {
            return write_refused(out.send(asked.connection), asked.id, Refused::NoSuchBatch);
        };
        self.firsts.remove(&id);
        let open = self.open.remove(&first).expect("it is in both");
        self.bytes -= open.batch.transactions.iter().map(Vec::len).sum::<usize>();
        self.counts.done += 1;
        self.counts.done_transactions += open.batch.transactions.len() as u64;
        // The answer does not wait for the disk: a batch that is given out once more is found on the main chain and done once
        // more. The room does: a batch must never come back with less transactions.
        let number = out.append_parts(0, &[&[DONE], &id]);
        write_frame(out.send(asked.connection), kind::NOTED, asked.id, &[]);
        let oldest_open = self.open.first_key_value().map(|(first, _)| *first);
        let oldest = oldest_open.into_iter().chain(self.pending.front().map(|it| it.number)).min();
        let oldest = oldest.unwrap_or(number);
        self.waiting.push_back((number, Waiting::Trim { oldest }));
    }

    /// Gives batches to who waits for them: first those that were given out before, then new ones.
    fn give(&mut self, now: Instant, out: &mut Outputs) {
        while !self.pops.is_empty() {
            let again = self.open.iter_mut().find(|(_, open)| open.is_free(now));
            if again.is_none() && self.pending.is_empty() {
                return;
            }
            let (asked, pop) = self.pops.pop_front().expect("looked");
            let until = now.plus(Duration::from_millis(pop.lease_ms.into()));
            if let Some((first, open)) = again {
                open.attempt += 1;
                open.lent = Some((until, asked.connection));
                self.counts.again += 1;
                write_batch(asked, *first, open, out);
                continue;
            }
            let (first, last, batch) = self.make(pop.count_max.min(self.settings.count_max));
            let record = [&[MADE][..], &batch.id, &last.to_be_bytes()];
            let number = out.append_parts(0, &record);
            self.firsts.insert(batch.id, first);
            let lent = Some((until, asked.connection));
            let is_broken = self.settings.broken == Some(Broken::Gives);
            let open = Open { batch, attempt: 1, is_durable: is_broken, lent };
            if is_broken {
                write_batch(asked, first, &open, out);
            }
            self.open.insert(first, open);
            self.counts.given += 1;
            if !is_broken {
                self.waiting.push_back((number, Waiting::Given { asked, first }));
            }
        }
    }

    /// The next transactions as a batch; first and last number.
    fn make(&mut self, count_max: u32) -> (u64, u64, Batch) {
        let first = self.pending.front().expect("looked").number;
        let id = hash(Domain::Root, &[&self.settings.nonce, &first.to_be_bytes()]);
        let id = *id.first_chunk().expect("a hash has more bytes");
        let (mut transactions, mut bytes, mut last) = (Vec::new(), Batch::HEAD_BYTES, first);
        while let Some(next) = self.pending.front()
            && transactions.len() < count_max as usize
            && bytes + Batch::EACH_BYTES + next.transaction.len() <= WHOLE_BYTES_MAX
        {
            bytes += Batch::EACH_BYTES + next.transaction.len();
            last = next.number;
            let next = self.pending.pop_front().expect("looked");
            transactions.push(next.transaction);
        }
        (first, last, Batch { id, transactions })
    }

    fn persisted(&mut self, below: u64, out: &mut Outputs) {
        while self.waiting.front().is_some_and(|(number, _)| *number < below) {
            let Some((_, waiting)) = self.waiting.pop_front() else { return };
            match waiting {
                Waiting::Trim { oldest } => out.trim(0, oldest),
                Waiting::Accepted { asked, number } => {
                    self.counts.accepted += 1;
                    let number = number.to_be_bytes();
                    write_frame(out.send(asked.connection), kind::ACCEPTED, asked.id, &[&number]);
                }
                Waiting::Given { asked, first } => {
                    let open =
                        self.open.get_mut(&first).expect("nothing is done before it is given");
                    open.is_durable = true;
                    // Its connection may have closed, and then it is free for another.
                    if open.lent.is_some_and(|(_, to)| to == asked.connection) {
                        write_batch(asked, first, open, out);
                    }
                }
            }
        }
    }

    fn closed(&mut self, connection: Connection) {
        self.pops.retain(|(asked, _)| asked.connection != connection);
        let lent = self.open.values_mut();
        for open in lent.filter(|open| open.lent.is_some_and(|(_, to)| to == connection)) {
            open.lent = None;
        }
    }

    /// Who has waited long enough is told that there is nothing.
    fn lose_patience(&mut self, now: Instant, out: &mut Outputs) {
        while let Some(asked) = self.patience.take(now) {
            let before = self.pops.len();
            self.pops.retain(|(waits, _)| *waits != asked);
            if self.pops.len() < before {
                write_frame(out.send(asked.connection), kind::EMPTY, asked.id, &[]);
            }
        }
    }
}

impl Open {
    fn is_free(&self, now: Instant) -> bool {
        self.is_durable && self.lent.is_none_or(|(until, _)| until <= now)
    }
}

fn write_batch(asked: Asked, first: u64, open: &Open, out: &mut Outputs) {
    let (attempt, first) = (open.attempt.to_be_bytes(), first.to_be_bytes());
    let parts = [&attempt[..], &first, &open.batch.encoded()];
    write_frame(out.send(asked.connection), kind::BATCH, asked.id, &parts);
}

impl Answering for Queue {
    fn doors(&mut self) -> &mut Doors {
        &mut self.doors
    }

    fn metrics(&self) -> Vec<Number> {
        let counts = self.counts;
        vec![
            ("ledger_accepted_total", true, "Transactions acknowledged.", counts.accepted),
            ("ledger_refused_total", true, "Transactions refused.", counts.refused),
            ("ledger_batches_total", true, "Batches given out for the first time.", counts.given),
            ("ledger_batches_again_total", true, "Batches given out again.", counts.again),
            ("ledger_batches_done_total", true, "Batches done.", counts.done),
            (
                "ledger_done_total",
                true,
                "Transactions in batches that are done.",
                counts.done_transactions,
            ),
            (
                "ledger_pending",
                false,
                "Transactions that are in no batch yet.",
                self.pending.len() as u64,
            ),
            ("ledger_batches_open", false, "Batches that are not done.", self.open.len() as u64),
            (
                "ledger_queue_bytes",
                false,
                "Bytes of transactions that are not done.",
                self.bytes as u64,
            ),
        ]
    }

    fn is_guarded(&self, kind: u8) -> bool {
        matches!(kind, kind::POP | kind::DONE)
    }

    fn asked(&mut self, now: Instant, asked: Asked, frame: Frame<'_>, out: &mut Outputs) {
        match frame.kind {
            kind::SUBMIT => self.submit(asked, frame.payload, out),
            kind::POP => match Pop::parse(frame.payload) {
                Ok(pop) if self.pops.len() < POPS_MAX => {
                    let patience = Duration::from_millis(pop.wait_ms.into()).min(WAIT_MAX);
                    self.patience.add(now.plus(patience), asked);
                    self.pops.push_back((asked, pop));
                }
                Ok(_) => write_refused(out.send(asked.connection), asked.id, Refused::Full),
                Err(_) => write_refused(out.send(asked.connection), asked.id, Refused::Malformed),
            },
            kind::STANDING => {
                let (pending, open) = self.standing();
                let numbers = [pending, open].map(|it| (it as u64).to_be_bytes());
                let parts = [&numbers[0][..], &numbers[1][..]];
                write_frame(out.send(asked.connection), kind::STANDS, asked.id, &parts);
            }
            kind::DONE => match BatchId::try_from(frame.payload) {
                Ok(batch) => self.done(asked, batch, out),
                Err(_) => write_refused(out.send(asked.connection), asked.id, Refused::Malformed),
            },
            _ => write_refused(out.send(asked.connection), asked.id, Refused::Malformed),
        }
    }
}

impl Node for Queue {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Closed(connection) => self.closed(connection),
            Input::Persisted { log: 0, below } => self.persisted(below, out),
            Input::Opened { .. } | Input::Bytes(..) => self.hear(now, input, out),
            _ => {}
        }
        self.give(now, out);
        self.lose_patience(now, out);
        let leases = self.open.values().filter_map(|open| open.lent.map(|(until, _)| until));
        let leases = leases.filter(|until| *until > now && !self.pops.is_empty());
        if let Some(at) = leases.chain(self.patience.first()).min() {
            out.wake_at(at);
        }
    }
}

#[cfg(test)]
mod tests;
