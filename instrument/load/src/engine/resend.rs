//! Sending again what is unknown: what a lost connection carried, and what had no answer for a time. The same id and
//! payload, on another connection if one is free, never more often than the plan says and never later than the load's
//! timeout after it was due. Without `load.resend` nothing here exists. Where there are batches, what is sent again leaves in
//! one (`batch.rs`).
//!
//! An earlier attempt is not taken back: its answer counts whenever it comes, and a second answer of a transaction that
//! was sent twice is no fault of the system.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::plan::ResendPlan;
use model::{Outcome, Stamp};
use sut::{Abandon, Transaction};

use super::{Engine, Stream};
use crate::connection::OBSERVER;
use crate::numbers::NumberSet;
use crate::pending::{NONE, OnConnection, Pending};
use crate::trial::whole_ns;

/// The resends of one stream.
pub(super) struct Resends {
    attempts_max: u8,
    after_ns: i64,
    /// The copy of each outstanding transaction, by its slot.
    kept: Vec<Kept>,
    /// When to look at a transaction: one entry for each time that one was sent, so that there are at most as many as
    /// are sent in the longer of `after` and the timeout.
    looks: BinaryHeap<Reverse<(Stamp, u64)>>,
    /// Those that wait to be sent again on any connection, in their order.
    waiting: OnConnection,
    /// Numbers that were sent more than once.
    repeated: NumberSet,
}

/// The parts that a resend needs.
#[derive(Default)]
struct Kept {
    payload: Vec<u8>,
    /// When it was sent last.
    sent: Stamp,
    /// The connection that carried it last, by the worker's own index.
    connection: u32,
}

impl Resends {
    pub(super) fn new(plan: &ResendPlan) -> Self {
        Self {
            attempts_max: plan.attempts_max,
            after_ns: whole_ns(plan.after),
            kept: Vec::new(),
            looks: BinaryHeap::new(),
            waiting: OnConnection::default(),
            repeated: NumberSet::default(),
        }
    }

    /// Keeps the payload of a transaction that was given to a connection. Gives a buffer that is free for it.
    pub(super) fn keep(&mut self, slot: u32, connection: u32, payload: Vec<u8>) -> Vec<u8> {
        let slot = slot as usize;
        if slot >= self.kept.len() {
            self.kept.resize_with(slot + 1, Kept::default);
        }
        let kept = &mut self.kept[slot];
        kept.connection = connection;
        std::mem::replace(&mut kept.payload, payload)
    }

    /// Gives the payload of a transaction that has ended.
    pub(super) fn release(&mut self, slot: u32) -> Vec<u8> {
        std::mem::take(&mut self.kept[slot as usize].payload)
    }

    /// The connection that carried it last.
    pub(super) fn carrier(&self, slot: u32) -> u32 {
        self.kept[slot as usize].connection
    }

    /// Those that wait to be sent again on any connection.
    pub(super) fn waiting(&mut self) -> &mut OnConnection {
        &mut self.waiting
    }

    /// How many wait to be sent again on any connection.
    pub(super) fn count(&self) -> u32 {
        self.waiting.count
    }

    /// Whether none waits to be sent again on any connection.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.first() == NONE
    }

    /// When something is to be looked at next.
    pub(super) fn next_look(&self) -> Option<Stamp> {
        self.looks.peek().map(|Reverse((at, _))| *at)
    }

    /// Notes what leaves on a connection now. Gives how many are sent again.
    pub(super) fn leaves(
        &mut self,
        pending: &Pending,
        list: &OnConnection,
        now: Stamp,
        timeout_ns: i64,
    ) -> u64 {
        let mut again = 0;
        for slot in pending.unsent(list) {
            let entry = pending.entry(slot);
            self.kept[slot as usize].sent = now;
            let over = entry.row.due.saturating_add(timeout_ns);
            let at = now.saturating_add(self.after_ns).min(over);
            self.looks.push(Reverse((at, entry.number())));
            if entry.row.attempts > 0 {
                again += 1;
                self.repeated.insert(entry.number());
            }
        }
        again
    }

    /// Of one that it has forgotten it says so, too: nothing is called a duplicate that may be a second attempt's.
    fn has_repeated(&self, number: u64) -> bool {
        self.repeated.holds(number) || self.repeated.has_forgotten(number)
    }
}

impl Stream {
    /// Whether a number was sent more than once, or may have been, as far as that is remembered.
    pub(super) fn has_repeated(&self, number: u64) -> bool {
        self.resends.as_ref().is_some_and(|resends| resends.has_repeated(number))
    }

    /// Whether nothing waits to be sent again on any connection.
    pub(super) fn resends_nothing(&self) -> bool {
        self.resends.as_ref().is_none_or(|resends| resends.is_idle())
    }
}

/// The state of a transaction that is still outstanding.
enum Look {
    /// Its time is over.
    Over,
    /// It is sent again.
    Again,
    /// It is looked at again then.
    Later(Stamp),
}

impl Engine<'_> {
    /// Whether a transaction that its connection has lost is sent again.
    pub(super) fn may_resend(&self, stream: usize, slot: u32) -> bool {
        let at = &self.streams[stream];
        let Some(resends) = &at.resends else { return false };
        let row = &at.pending.entry(slot).row;
        row.attempts < resends.attempts_max && self.now - row.due < at.timeout_ns
    }

    /// Takes a transaction from its connection, to be sent again: on that one where its client stays there, else on any.
    pub(super) fn park(&mut self, stream: usize, slot: u32) {
        let at = &mut self.streams[stream];
        let row = &at.pending.entry(slot).row;
        let (connection, number) = (row.connection, at.pending.entry(slot).number());
        let over = row.due.saturating_add(at.timeout_ns);
        let is_unsent = row.attempts == 0;
        let carrier = &mut self.connections[connection as usize];
        let Some(resends) = &mut at.resends else { return };
        if is_unsent {
            resends.looks.push(Reverse((over, number)));
        }
        let to = match at.backlog.homes() {
            Some(_) => &mut carrier.again,
            None => &mut resends.waiting,
        };
        at.pending.give_to(slot, NONE, &mut carrier.list, to);
    }

    /// Sends again what waits for that, oldest first, where any connection will do.
    pub(super) fn resend(&mut self, index: usize) {
        loop {
            let stream = &mut self.streams[index];
            let Some(resends) = &stream.resends else { return };
            let slot = resends.waiting.first();
            if slot == NONE {
                return;
            }
            let carrier = resends.carrier(slot);
            let Some(connection) = stream.idle_but(carrier, &mut self.connections) else { return };
            self.submit_again(index, connection);
        }
    }

    /// Sends again what waits for that on this connection, as far as it has room.
    pub(super) fn resend_on(&mut self, index: usize, connection: u32) {
        loop {
            let at = &self.connections[connection as usize];
            if at.again.first() == NONE || !at.has_room() {
                return;
            }
            self.submit_again(index, connection);
        }
    }

    /// Gives the oldest of what waits for that to this connection once more. Gives its slot.
    pub(super) fn submit_again(&mut self, index: usize, connection: u32) -> Option<u32> {
        let stream = &mut self.streams[index];
        let resends = stream.resends.as_mut()?;
        let at = &mut self.connections[connection as usize];
        let from = match stream.backlog.homes() {
            Some(_) => &mut at.again,
            None => &mut resends.waiting,
        };
        let slot = Some(from.first()).filter(|slot| *slot != NONE)?;
        stream.pending.give_to(slot, connection, from, &mut at.list);
        let kept = &mut resends.kept[slot as usize];
        kept.connection = connection;
        let row = stream.pending.entry(slot).row;
        let wall = |stamp| self.trial.wall_at(self.origin, stamp);
        let transaction = Transaction {
            id: row.tx,
            client: row.client,
            kind: row.kind,
            payload: &kept.payload,
            due: wall(row.due),
            given: wall(self.now),
            attempt: row.attempts + 1,
        };
        at.session.submit(&transaction, &mut at.out);
        if stream.batching.is_none() {
            stream.occupied(connection, at);
        }
        if !at.is_dirty {
            at.is_dirty = true;
            self.dirty.push(connection);
        }
        Some(slot)
    }

    /// Looks at what was due to be looked at: gives up what has had the timeout since it was due, and sends again what
    /// has had no answer for long enough.
    pub(super) fn look(&mut self, index: usize) {
        loop {
            let stream = &mut self.streams[index];
            let Some(resends) = &mut stream.resends else { return };
            let Some(Reverse((at, number))) = resends.looks.peek().copied() else { return };
            if at > self.now {
                return;
            }
            resends.looks.pop();
            let slot = stream.pending.slot(number);
            if slot == NONE {
                continue;
            }
            match self.judge(index, slot) {
                Look::Over => self.give_up(index, slot),
                Look::Again => self.retry(index, slot),
                Look::Later(at) => {
                    if let Some(resends) = &mut self.streams[index].resends {
                        resends.looks.push(Reverse((at, number)));
                    }
                }
            }
        }
    }

    fn judge(&self, index: usize, slot: u32) -> Look {
        let stream = &self.streams[index];
        let Some(resends) = &stream.resends else { return Look::Over };
        let row = &stream.pending.entry(slot).row;
        let over = row.due.saturating_add(stream.timeout_ns);
        let next = resends.kept[slot as usize].sent.saturating_add(resends.after_ns);
        if self.now >= over {
            Look::Over
        } else if row.connection == NONE || row.attempts >= resends.attempts_max {
            Look::Later(over)
        } else if self.now < next {
            Look::Later(next.min(over))
        } else {
            Look::Again
        }
    }

    /// No answer for long enough: the connection gives it up, and it waits to be sent again.
    fn retry(&mut self, index: usize, slot: u32) {
        let row = self.streams[index].pending.entry(slot).row;
        let connection = row.connection;
        let verdict = self.connections[connection as usize].session.abandon(row.tx);
        let was_full = self.connections[connection as usize].is_full();
        self.park(index, slot);
        let carrier = &mut self.connections[connection as usize];
        if let Some(batching) = &mut self.streams[index].batching {
            // Its batch no longer waits for it.
            batching.ended(slot, connection, carrier.room(), self.now);
        }
        self.streams[index].made_room(connection, carrier, was_full, self.now);
        if verdict == Abandon::Close {
            self.drop_connection(
                connection,
                "the connection was closed to send again what it owed",
            );
        }
    }

    /// Whether the findings that are being taken came on another connection for transactions than this one.
    pub(super) fn heard_elsewhere(&self, connection: u32) -> bool {
        let heard_on = self.heard_on;
        heard_on != NONE
            && heard_on != connection
            && self.connections[heard_on as usize].stream != OBSERVER
    }

    /// A transaction was answered on another connection than the one that carries it now: that one's session is to know
    /// that no wait for it is left there.
    pub(super) fn call_off(&mut self, tx: u64, carrier: u32) {
        if self.connections[carrier as usize].session.abandon(tx) == Abandon::Close {
            self.drop_connection(carrier, "the connection was closed: its answer came by another");
        }
    }

    /// Ends what waits to be sent again. Gives how many that were.
    pub(super) fn end_parked(&mut self, index: usize, text: &str) -> u64 {
        let mut count = 0;
        loop {
            let stream = &mut self.streams[index];
            let Some(resends) = &stream.resends else { return count };
            let mut slot = resends.waiting.first();
            if let (NONE, Some(homes)) = (slot, stream.backlog.homes()) {
                let parked = self.connections[..homes as usize].iter().map(|at| at.again.first());
                slot = parked.into_iter().find(|slot| *slot != NONE).unwrap_or(NONE);
            }
            if slot == NONE {
                return count;
            }
            let was_sent = stream.pending.is_sent(slot);
            stream.pending.row_mut(slot).error = self.texts.index(text);
            let outcome = if was_sent { Outcome::Unknown } else { sut::REFUSED };
            self.end(index, slot, self.now, outcome);
            count += 1;
        }
    }
}
