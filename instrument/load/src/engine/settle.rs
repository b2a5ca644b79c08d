//! The end of a transaction: marks into its row, its outcome, and the row on its way to the record. Every
//! transaction that fell due gets exactly one row; what the system says beyond that is counted, not recorded.

use std::sync::mpsc::{Receiver, SyncSender};

use model::facts::{Event, WorkerFacts};
use model::{NO_STAMP, Outcome, PROBE_BASE, Row, STAGES_MAX, Stamp, TxId};
use sut::Abandon;

use super::observe::{Seen, Spare};
use super::receive::{Found, What};
use super::{Engine, Stream};
use crate::connection::{Connection, Phase};
use crate::pending::{Known, NONE};
use crate::recorder::{BATCH_ROWS, BATCHES_MAX, Message};

/// Why what was given up has no answer, in the row.
const NO_ANSWER_IN_TIME: &str = "no answer within the timeout";
/// Why what is left at the end has no answer.
const STILL_OUTSTANDING: &str = "still outstanding when the drain ended";
/// Rows that are this old leave in the next turn, of which there are ten a second at least.
const ROWS_AGE_NS_MAX: i64 = 50_000_000;

impl Engine<'_> {
    /// The worker that owns a transaction's pending entry, if it has one.
    pub(super) fn owner_of(&self, tx: TxId) -> u32 {
        if tx >= PROBE_BASE {
            return 0;
        }
        u32::try_from(tx % u64::from(self.trial.workers)).expect("smaller than a u32")
    }

    /// A mark for a transaction of this worker.
    pub(super) fn settle(&mut self, found: Found) {
        let tx = found.tx;
        let stream = usize::from(tx >= PROBE_BASE);
        if self.is_called(stream) {
            return;
        }
        if stream >= self.streams.len() {
            return self.count_phantom(tx);
        }
        let is_of_no_interest = self.is_of_no_interest(stream, found.what);
        let at = &mut self.streams[stream];
        let number = (tx - if stream == 0 { 0 } else { at.first_id }) / at.stride;
        match at.pending.find(number) {
            Known::Outstanding(slot) => self.mark(stream, slot, found),
            Known::Never => self.count_phantom(tx),
            Known::Unanswered => self.count_late(tx),
            Known::Answered | Known::Forgotten if is_of_no_interest => {}
            Known::Forgotten => {
                self.facts.undecided_answers += 1;
                self.event("undecided_answer", Some(tx), || {
                    "answered so long after it ended that how is no longer known".to_owned()
                });
            }
            Known::Answered if at.has_repeated(number) => self.facts.repeated_answers += 1,
            // Of a client whose turn has not come: numbers are given out before they are sent.
            Known::Answered if at.is_out_of_order() && at.source.holds(number) => {
                self.count_phantom(tx);
            }
            Known::Answered => self.count_duplicate(tx),
        }
    }

    /// Whether this stream goes through a client library: an observer sees its transactions, too, and what counts of
    /// them is what the calls say.
    fn is_called(&self, stream: usize) -> bool {
        let links = &self.trial.links;
        if stream == 0 { links.is_main_called } else { links.is_probe_called }
    }

    fn mark(&mut self, stream: usize, slot: u32, found: Found) {
        let final_stage = self.final_stage(stream);
        let here = &mut self.streams[stream];
        let timeout_ns = here.timeout_ns;
        let row = here.pending.row_mut(slot);
        let (at, receive_lag) = self.receipts.arrival(&found, row.sent);
        if at - row.due >= timeout_ns {
            return self.mark_late(stream, slot, found);
        }
        match found.what {
            What::Reached { stage, code, bytes_in } => {
                let stage = usize::from(stage);
                assert!(stage < STAGES_MAX, "an adapter's stages fit the row");
                if row.marks[stage] != NO_STAMP {
                    if row.attempts > 1 {
                        self.facts.repeated_answers += 1;
                        return;
                    }
                    return self.count_duplicate(found.tx);
                }
                row.marks[stage] = at;
                row.code = code;
                row.bytes_in = row.bytes_in.saturating_add(bytes_in);
                if stage == final_stage {
                    row.receive_lag = receive_lag;
                    self.wake_ups.answered(at - row.due);
                    self.answered(stream, slot, at, Outcome::Committed);
                }
            }
            What::Ended { outcome, code, error, bytes_in } => {
                row.code = code;
                row.error = error;
                row.bytes_in = row.bytes_in.saturating_add(bytes_in);
                row.receive_lag = receive_lag;
                self.answered(stream, slot, at, outcome);
            }
        }
    }

    /// A mark that came when the timeout had passed since its transaction was due, which is still in the table: it was
    /// sent late, or both fell into one turn. It is late all the same; what it ends is unknown.
    fn mark_late(&mut self, stream: usize, slot: u32, found: Found) {
        let is_last = match found.what {
            What::Reached { stage, .. } => usize::from(stage) == self.final_stage(stream),
            What::Ended { .. } => true,
        };
        if !is_last {
            // The rest of its way is not followed: it is given up in this turn.
            return;
        }
        self.count_late(found.tx);
        let entry = self.streams[stream].pending.entry(slot);
        let (number, entry_connection) = (entry.number(), entry.connection());
        self.streams[stream].pending.row_mut(slot).error = self.texts.index(NO_ANSWER_IN_TIME);
        let outcome = self.unanswered(entry_connection);
        self.answered(stream, slot, found.read, outcome);
        // The next one repeats it.
        self.streams[stream].pending.note_answered(number);
    }

    fn answered(&mut self, stream: usize, slot: u32, at: Stamp, outcome: Outcome) {
        let entry = self.streams[stream].pending.entry(slot);
        let (connection, attempts, tx) = (entry.connection(), entry.row.attempts, entry.row.tx);
        if connection == NONE {
            return self.end(stream, slot, at, outcome);
        }
        let carrier = &mut self.connections[connection as usize];
        carrier.is_proven = true;
        carrier.answers += 1;
        self.end(stream, slot, at, outcome);
        if attempts > 1 && self.heard_elsewhere(connection) {
            self.call_off(tx, connection);
        }
    }

    /// Ends an outstanding transaction: out of the table, room on its connection, its row to the record.
    pub(super) fn end(&mut self, stream: usize, slot: u32, at: Stamp, outcome: Outcome) {
        let here = &mut self.streams[stream];
        let entry = here.pending.entry(slot);
        let (connection, number) = (entry.connection(), entry.number());
        let carrier = here.resends.as_ref().map_or(connection, |resends| resends.carrier(slot));
        let carrier = &mut self.connections[carrier as usize];
        let was_full = carrier.is_full();
        let homes = here.backlog.homes();
        let list = match &mut here.resends {
            Some(resends) if connection == NONE && homes.is_none() => resends.waiting(),
            Some(_) if connection == NONE => &mut carrier.again,
            _ => &mut carrier.list,
        };
        let mut row = here.pending.remove(slot, list);
        if let Some(resends) = &mut here.resends {
            here.source.recycle(resends.release(slot));
        }
        row.connection = carrier.index;
        // A mark that came by another way may bear a later stamp than the one that ended it.
        row.end = row.marks.iter().fold(at, |end, mark| end.max(*mark));
        row.outcome = outcome;
        // What follows an answer follows its reading: how long that took is the client's, and no part of what comes next. What
        // was due and waited for room could have gone when the answer arrived.
        let read = at + row.receive_lag_ns().unwrap_or(0);
        let free_at = if here.demand.is_saturating() { read } else { at };
        if connection != NONE {
            if let Some(batching) = &mut here.batching
                && carrier.phase == Phase::Open
            {
                batching.ended(slot, connection, carrier.room(), free_at);
            }
            here.made_room(connection, carrier, was_full, free_at);
        }
        if row.sent == NO_STAMP {
            here.pending.note_unsent(number);
            self.facts.refused += 1;
        } else if outcome == Outcome::Unknown {
            here.pending.note_unanswered(number);
            self.facts.unanswered += 1;
        } else {
            self.facts.answered += 1;
        }
        if !here.goes_on(&row, outcome, read) {
            here.demand.client_is_back(row.client, read);
        }
        self.rows.push(row, &mut self.facts);
    }

    /// Gives up what has had no answer within the timeout since it was due.
    pub(super) fn expire(&mut self) {
        for stream in 0..self.streams.len() {
            if self.streams[stream].resends.is_some() {
                self.look(stream);
                continue;
            }
            loop {
                let at = &self.streams[stream];
                let slot = at.pending.oldest();
                if slot == NONE || self.now - at.pending.entry(slot).row.due < at.timeout_ns {
                    break;
                }
                self.give_up(stream, slot);
            }
        }
    }

    pub(super) fn give_up(&mut self, stream: usize, slot: u32) {
        let entry = self.streams[stream].pending.entry(slot);
        let (connection, tx, number) = (entry.connection(), entry.row.tx, entry.number());
        let is_carried = connection != NONE;
        let verdict = match is_carried {
            true => self.connections[connection as usize].session.abandon(tx),
            false => Abandon::Keep,
        };
        let error = self.texts.index(NO_ANSWER_IN_TIME);
        self.streams[stream].pending.row_mut(slot).error = error;
        let outcome = self.unanswered(connection);
        self.end(stream, slot, self.now, outcome);
        if outcome != Outcome::Unknown {
            // Whoever failed, what is said of it from now on comes late.
            self.streams[stream].pending.note_unanswered(number);
        }
        if verdict == Abandon::Close {
            self.drop_connection(connection, "the connection was closed after a timeout");
        }
    }

    /// The outcome of a transaction on this connection that has no answer.
    fn unanswered(&self, connection: u32) -> Outcome {
        match self.connections.get(connection as usize) {
            Some(at) => at.place.unanswered(),
            None => Outcome::Unknown,
        }
    }

    /// Ends everything that is outstanding or waits. Gives how many that were.
    pub(super) fn end_everything(&mut self) -> u64 {
        let mut count = 0;
        for stream in 0..self.streams.len() {
            while let Some(waiting) = self.streams[stream].backlog.pop_due(Stamp::MAX) {
                self.end_unsent(stream, waiting, Outcome::Shed, "");
                count += 1;
            }
            count += self.end_follow_ups(stream);
            count += self.end_waiting(stream, Outcome::Shed, "");
            count += self.end_parked(stream, STILL_OUTSTANDING);
            for connection in 0..self.connections.len() {
                while usize::from(self.connections[connection].stream) == stream
                    && self.connections[connection].list.first() != NONE
                {
                    let slot = self.connections[connection].list.first();
                    let error = self.texts.index(STILL_OUTSTANDING);
                    self.streams[stream].pending.row_mut(slot).error = error;
                    let outcome = match self.streams[stream].pending.is_sent(slot) {
                        true => self.connections[connection].place.unanswered(),
                        false => sut::REFUSED,
                    };
                    self.end(stream, slot, self.now, outcome);
                    count += 1;
                }
            }
        }
        count
    }

    /// The index of the stage at which a stream's transactions end.
    pub(super) fn final_stage(&self, stream: usize) -> usize {
        let ends = self.trial.setup.final_stages;
        if stream == 0 { ends.load } else { ends.probe }
    }

    /// A stage above the one that the experiment calls final for the stream; or one below it that took another way than the
    /// observer connection which saw the end. Neither is a fault of the system.
    fn is_of_no_interest(&self, stream: usize, what: What) -> bool {
        let What::Reached { stage, .. } = what else { return false };
        let (stage, last) = (usize::from(stage), self.final_stage(stream));
        stage > last || (stage < last && self.trial.setup.system.observers() > 0)
    }

    fn count_late(&mut self, tx: TxId) {
        self.facts.late_answers += 1;
        self.event("late_answer", Some(tx), || "answered after its time".to_owned());
    }

    pub(super) fn count_phantom(&mut self, tx: TxId) {
        self.facts.phantom_answers += 1;
        self.event("phantom_answer", Some(tx), || "answered, and never sent".to_owned());
    }

    fn count_duplicate(&mut self, tx: TxId) {
        self.facts.duplicate_answers += 1;
        self.event("duplicate_answer", Some(tx), || "answered again".to_owned());
    }
}

impl Stream {
    /// A connection has room that it may not have had; `was_full`: it had none, and has it since `at`.
    pub(super) fn made_room(
        &mut self,
        connection: u32,
        carrier: &mut Connection,
        was_full: bool,
        at: Stamp,
    ) {
        if carrier.phase != Phase::Open {
            return;
        }
        if was_full {
            carrier.freed_at = at;
        }
        if !carrier.is_queued_idle {
            carrier.is_queued_idle = true;
            self.idle.push_back(connection);
        }
    }
}

/// Rows on their way to the recorder, in buffers that come back.
pub(crate) struct Rows {
    worker: u32,
    buffer: Vec<Row>,
    since: Stamp,
    to: SyncSender<Message>,
    spare: Spare<Vec<Row>>,
    /// Rows written so far.
    pub count: u64,
    /// The observations beside them.
    pub seen: Seen,
}

impl Rows {
    pub(crate) fn new(worker: u32, to: SyncSender<Message>, spare: Receiver<Vec<Row>>) -> Self {
        let buffer = Vec::with_capacity(BATCH_ROWS);
        let seen = Seen::new(to.clone());
        let spare = Spare::new(spare, BATCHES_MAX);
        Self { worker, buffer, since: 0, to, spare, count: 0, seen }
    }

    pub(crate) fn push(&mut self, row: Row, facts: &mut WorkerFacts) {
        if self.buffer.is_empty() {
            self.since = row.end;
        }
        self.buffer.push(row);
        self.count += 1;
        if self.buffer.len() >= BATCH_ROWS {
            self.hand_over(facts);
        }
    }

    /// Says whether something has waited long enough to be handed over.
    pub(crate) fn are_aged(&self, now: Stamp) -> bool {
        let until = now - ROWS_AGE_NS_MAX;
        (!self.buffer.is_empty() && self.since <= until) || self.seen.waits_since(until)
    }

    /// Hands rows over that have waited long enough.
    pub(crate) fn hand_over_aged(&mut self, now: Stamp, facts: &mut WorkerFacts) {
        if !self.buffer.is_empty() && now - self.since >= ROWS_AGE_NS_MAX {
            self.hand_over(facts);
        }
        self.seen.hand_over_since(now - ROWS_AGE_NS_MAX, facts);
    }

    /// Hands over everything, at the end.
    pub(crate) fn hand_over_all(&mut self, facts: &mut WorkerFacts) {
        self.hand_over(facts);
        self.seen.hand_over(facts);
    }

    fn hand_over(&mut self, facts: &mut WorkerFacts) {
        if self.buffer.is_empty() {
            return;
        }
        let next = self.spare.next(|| Vec::with_capacity(BATCH_ROWS), facts);
        let rows = std::mem::replace(&mut self.buffer, next);
        self.tell(Message::Rows { worker: self.worker, rows });
    }

    pub(crate) fn event(&self, event: Event) {
        self.tell(Message::Event(event));
    }

    pub(crate) fn tell(&self, message: Message) {
        self.to.send(message).expect("the recorder outlives the workers");
    }
}
