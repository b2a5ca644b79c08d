//! Counters of one engine thread, and how its connections and batches were used.

use serde::{Deserialize, Serialize};

use super::{ConnectionFacts, ReceiveFacts};

/// Counters of one engine thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerFacts {
    /// Transactions that fell due.
    pub due: u64,
    /// Sent.
    pub sent: u64,
    /// Ended by an answer.
    pub answered: u64,
    /// Ended by the timeout or with a lost connection.
    pub unanswered: u64,
    /// Due, never sent: the backlog was full or its wait exceeded the timeout.
    pub shed: u64,
    /// Due, never sent: no connection could be opened (rejected as transport or client).
    pub refused: u64,
    /// Answers that came after their transaction had ended, or after its timeout.
    pub late_answers: u64,
    /// Answers for a stage that the transaction had already reached.
    pub duplicate_answers: u64,
    /// Answers beyond the first of transactions that were sent more than once: of each attempt one may come.
    pub repeated_answers: u64,
    /// Times that a transaction was sent again.
    pub resent: u64,
    /// Answers for a transaction that was never given to a session.
    pub phantom_answers: u64,
    /// Answers to transactions that ended so long ago that how is no longer known: late, repeated or unsolicited.
    pub undecided_answers: u64,
    /// Bytes on the wire that were not of the protocol.
    pub protocol_errors: u64,
    /// Connections opened, the first ones included.
    pub connects: u64,
    /// The connections of the main load, as far as they are this thread's.
    pub pool: PoolFacts,
    /// Connections that could not be opened.
    pub connect_failures: u64,
    /// How those fared that were.
    pub connections: ConnectionFacts,
    /// How late what had arrived was read.
    pub receive: ReceiveFacts,
    /// Times that the text of an error had to be looked up in the table that the threads share: once for each text.
    pub error_lookups: u64,
    /// Times that a due transaction was not yet prepared.
    pub lookahead_dry: u64,
    /// The most transactions that waited for a connection.
    pub backlog_max: u64,
    /// Times that the backlog was full.
    pub backlog_full: u64,
    /// Batches, where the plan has them.
    pub batches: BatchFacts,
    /// Processor time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// Time that the thread was blocked in the driver, nanoseconds.
    pub idle_ns: u64,
    /// Time that the thread spun on purpose, nanoseconds.
    pub spin_ns: u64,
    /// Wall time of the thread, nanoseconds.
    pub wall_ns: u64,
    /// System calls of the driver.
    pub enters: u64,
    /// Completions that these returned.
    pub completions: u64,
    /// Time that the thread was runnable and not run (`/proc/thread-self/schedstat`), nanoseconds.
    pub run_queue_ns: u64,
    /// The thread's nice value: below zero where the host let the engine take precedence.
    pub nice: i32,
    /// Row batches that the recorder could not take at once.
    pub record_waits: u64,
    /// Observations: what transactions were seen to return.
    pub observations: u64,
    /// Observations that were longer than is kept, or that one receipt had no room for. They are nowhere.
    pub observations_left_out: u64,
}

impl WorkerFacts {
    /// The counters of transactions and of connections of all threads together. Counts of a damaged record stop at the
    /// largest number; times, and what only one thread has, are left out.
    #[must_use]
    pub fn total(workers: &[Self]) -> Self {
        let mut total = Self::default();
        for worker in workers {
            for (sum, count) in total.counters().into_iter().zip(worker.clone().counters()) {
                *sum = sum.saturating_add(*count);
            }
            total.connections = total.connections.with(&worker.connections);
            total.backlog_max = total.backlog_max.max(worker.backlog_max);
        }
        total
    }

    fn counters(&mut self) -> [&mut u64; 15] {
        [
            &mut self.due,
            &mut self.sent,
            &mut self.answered,
            &mut self.unanswered,
            &mut self.shed,
            &mut self.refused,
            &mut self.late_answers,
            &mut self.duplicate_answers,
            &mut self.phantom_answers,
            &mut self.undecided_answers,
            &mut self.protocol_errors,
            &mut self.connect_failures,
            &mut self.lookahead_dry,
            &mut self.backlog_full,
            &mut self.record_waits,
        ]
    }
}

/// The connections of the main load on one engine thread, or the callers of a client library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolFacts {
    /// Opened before the load.
    pub first: u32,
    /// The most that there could be: what the plan allows, or what the limit of open files and the adapter leave of it.
    pub bound: u32,
    /// The most transactions that each carries at a time.
    pub carries: u32,
    /// Opened during the load because all others were busy.
    pub grown: Vec<Grown>,
    /// Transactions that fell due while all were open and busy and there could be no more: they waited for one of them.
    pub blocked: u64,
}

/// Connections that were added in one second of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// The second, counted from the trial's start.
    pub second: u64,
    /// How many.
    pub count: u32,
}

/// Batches that were sent, by why they left. The four reasons add up to their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchFacts {
    /// Batches.
    pub count: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Transactions in the largest.
    pub size_max: u64,
    /// As many waited as a batch holds.
    pub full: u64,
    /// A batch had come back while something waited.
    pub completion: u64,
    /// The oldest had waited for the longest delay.
    pub delay: u64,
    /// The load was over.
    pub drain: u64,
}
