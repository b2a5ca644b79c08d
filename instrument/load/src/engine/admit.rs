//! From a due time to a connection: admit, queue or shed, submit, flush. A pending entry exists before the
//! driver sees the first byte of its transaction.

use model::{Class, NO_STAMP, Outcome, Stamp};
use sut::{Made, Transaction};

use super::{Engine, Stream, Waiting, fresh_row};
use crate::connection::{Connection, REPLIES_MAX};
use crate::driver::Driver;
use crate::source::Prepared;

/// Connections that one stream may be opening at a time because all are busy.
const GROW_MAX: u32 = 32;
/// Those that it begins to open in one turn. Opening a socket takes some 50 µs, and what falls due meanwhile is late by
/// as much: with one a turn the sends of others come in between, and ten thousand a second can be opened all the same.
const GROW_TURN_MAX: u32 = 1;
/// Sends are not held back by preparing that takes longer than this: a system call more costs less. Sixteen cheap
/// transactions, as many as one wake-up serves at most, take no longer.
const HELD_NS_MAX: i64 = 2_000;
/// Preparing one transaction in less is a small part of what sending one costs.
const CHEAP_NS: i64 = 500;
/// So many at once are measured each time; a few cheap ones once in so many times: two looks at the clock cost as much as
/// they do.
const MEASURED_COUNT: usize = 8;
const UNMEASURED_MAX: u32 = 16;
/// One measurement counts for no more than so many times the estimate: another thread may have had the processor.
const OUTLIER_TIMES: i64 = 8;

impl Engine<'_> {
    /// Takes every due time that has come, then gives what waits to connections with room.
    pub(super) fn admit(&mut self) {
        for index in 0..self.streams.len() {
            if self.streams[index].batching.is_some() {
                self.batch(index);
                continue;
            }
            self.resend(index);
            self.take_follow_ups(index);
            if self.is_loading {
                self.take_due(index, self.now);
                self.saturate(index);
            }
            self.dispatch(index);
            self.grow(index);
        }
    }

    /// Takes what was due at `until` or before.
    pub(super) fn take_due(&mut self, index: usize, until: Stamp) {
        while let Some((due, client)) = self.streams[index].demand.take_due(until) {
            self.facts.due += 1;
            let stream = &mut self.streams[index];
            stream.last_due = due;
            let prepared = stream.source.take(client);
            self.place(index, Waiting { prepared, due });
        }
    }

    /// Gives a due transaction to a connection if it need not wait for one.
    pub(super) fn place(&mut self, index: usize, waiting: Waiting) {
        let stream = &mut self.streams[index];
        let home = self.trial.home(waiting.prepared.made.client, stream.backlog.homes());
        let free = match home {
            Some(home) => {
                let at = &self.connections[home as usize];
                let is_first = stream.backlog.is_empty_for(home) && at.owes_nothing();
                (is_first && at.has_room()).then_some(home)
            }
            None if stream.backlog.is_empty() && stream.resends_nothing() => {
                stream.idle(&mut self.connections)
            }
            None => None,
        };
        if let Some(connection) = free {
            self.submit(index, connection, waiting.prepared, waiting.due);
        } else if stream.backlog.len() < stream.backlog_max || stream.demand.is_clients() {
            self.facts.pool.blocked += u64::from(stream.is_blocked());
            stream.backlog.push(home, waiting);
            let waiting = stream.backlog.len() as u64;
            self.facts.backlog_max = self.facts.backlog_max.max(waiting);
        } else {
            self.facts.pool.blocked += u64::from(stream.is_blocked());
            self.facts.backlog_full += 1;
            self.end_unsent(index, waiting, Outcome::Shed, "");
        }
    }

    /// A saturating load: whatever has room gets a transaction, due when the room appeared.
    fn saturate(&mut self, index: usize) {
        while let Some(connection) = self.streams[index].idle(&mut self.connections) {
            let freed_at = self.connections[connection as usize].freed_at;
            let stream = &mut self.streams[index];
            let Some(due) = stream.demand.take_for_free_connection(freed_at, self.now) else {
                break;
            };
            self.facts.due += 1;
            stream.last_due = stream.last_due.max(due);
            let prepared = stream.source.take(None);
            self.submit(index, connection, prepared, due);
        }
    }

    /// Takes waiting transactions, oldest first, to connections with room. One that has waited for longer than the timeout is shed.
    fn dispatch(&mut self, index: usize) {
        if self.streams[index].backlog.homes().is_some() {
            self.shed_expired(index);
            return self.dispatch_home(index);
        }
        if self.streams[index].backlog.is_empty() {
            return;
        }
        self.shed_expired(index);
        while !self.streams[index].backlog.is_empty() {
            let stream = &mut self.streams[index];
            let Some(connection) = stream.idle(&mut self.connections) else { break };
            let waiting = stream.backlog.pop(connection).expect("looked at above");
            self.submit(index, connection, waiting.prepared, waiting.due);
        }
    }

    /// Serves connections that have got room since: first with resends, then with new transactions.
    fn dispatch_home(&mut self, index: usize) {
        while let Some(connection) = self.streams[index].idle.pop_front() {
            self.connections[connection as usize].is_queued_idle = false;
            self.resend_on(index, connection);
            while self.connections[connection as usize].has_room() {
                let Some(waiting) = self.streams[index].backlog.pop(connection) else { break };
                self.submit(index, connection, waiting.prepared, waiting.due);
            }
        }
    }

    fn shed_expired(&mut self, index: usize) {
        let until = self.now - self.streams[index].timeout_ns;
        while let Some(waiting) = self.streams[index].backlog.pop_due(until) {
            self.end_unsent(index, waiting, Outcome::Shed, "");
        }
    }

    /// Opens more connections for what waits, up to the plan's bound.
    fn grow(&mut self, index: usize) {
        for _ in 0..self.streams[index].wanted_connections().min(GROW_TURN_MAX) {
            if !self.add_connection(index) {
                break;
            }
        }
    }

    /// Gives a transaction to a connection. Its bytes leave with the flush of this turn.
    fn submit(&mut self, index: usize, connection: u32, prepared: Prepared, due: Stamp) {
        let ready = due.max(self.connections[connection as usize].freed_at);
        self.give(index, connection, Waiting { prepared, due }, ready);
        let (stream, at) = (&mut self.streams[index], &mut self.connections[connection as usize]);
        stream.occupied(connection, at);
    }

    /// Has a session encode a transaction that could have gone at `ready`. Gives its slot in the pending table.
    pub(super) fn give(
        &mut self,
        index: usize,
        connection: u32,
        waiting: Waiting,
        ready: Stamp,
    ) -> u32 {
        let Waiting { prepared: Prepared { id, number, made, payload }, due } = waiting;
        let mut row = fresh_row(self.worker, self.streams[index].index, id, made, due);
        let at = &mut self.connections[connection as usize];
        row.ready = ready;
        row.connection = at.index;
        let wall = |stamp| self.trial.wall_at(self.origin, stamp);
        let (due, given) = (wall(due), wall(self.now));
        let Made { kind, client } = made;
        let transaction =
            Transaction { id, client, kind, payload: &payload, due, given, attempt: 1 };
        row.bytes_out = at.session.submit(&transaction, &mut at.out);
        let stream = &mut self.streams[index];
        let slot = stream.pending.insert(number, row, connection, &mut at.list);
        let payload = match &mut stream.resends {
            Some(resends) => resends.keep(slot, connection, payload),
            None => payload,
        };
        stream.source.recycle(payload);
        if !at.is_dirty {
            at.is_dirty = true;
            self.dirty.push(connection);
        }
        slot
    }

    /// Hands what connections have to send to the driver, and stamps it.
    pub(super) fn flush<D: Driver>(&mut self, driver: &mut D) {
        if self.dirty.is_empty() {
            return;
        }
        for index in &self.dirty {
            let connection = &mut self.connections[*index as usize];
            // Each batch was closed where it left.
            let is_open = |stream: u8| self.streams[usize::from(stream)].batching.is_none();
            if connection.list.has_unsent() && is_open(connection.stream) {
                connection.session.gathered(&mut connection.out);
            }
            // Encrypting is the client's own work, and over before the stamp.
            if let Some(tls) = &mut connection.tls {
                tls.send(&mut connection.out, &mut connection.wire);
            }
        }
        self.read_clock();
        let mut swamped = Vec::new();
        for index in 0..self.dirty.len() {
            let connection = &mut self.connections[self.dirty[index] as usize];
            connection.is_dirty = false;
            let Some(key) = connection.key else { continue };
            if connection.list.has_unsent() {
                let stream = &mut self.streams[usize::from(connection.stream)];
                let sent = self.now;
                if let Some(resends) = &mut stream.resends {
                    self.facts.resent +=
                        resends.leaves(&stream.pending, &connection.list, sent, stream.timeout_ns);
                }
                self.facts.sent += stream.pending.mark_sent(&mut connection.list, sent);
            }
            // Looked at before more is handed over, because a driver may hold that until it waits.
            let is_taken = driver.unsent(key) == 0;
            send(driver, connection, key);
            if is_taken {
                connection.replies = 0;
            } else if connection.replies > REPLIES_MAX {
                swamped.push(self.dirty[index]);
            }
            if !D::GATHERS && index + 1 < self.dirty.len() {
                // Each send was a system call of microseconds: the next one's stamp is its own.
                self.now = self.trial.setup.deployment.clock.now().ns_since(self.origin);
            }
        }
        self.dirty.clear();
        for connection in swamped {
            let text = "the system asks without end and takes no answer";
            self.breaks_protocol(connection, text);
            self.drop_connection(connection, text);
        }
    }

    /// Ends what waits for this connection, or for any of the stream, because none can be had.
    pub(super) fn refuse_waiting(
        &mut self,
        index: usize,
        connection: u32,
        class: Class,
        text: &str,
    ) {
        while let Some(waiting) = self.streams[index].backlog.pop(connection) {
            self.end_unsent(index, waiting, Outcome::Rejected(class), text);
        }
    }

    /// One row for a transaction that never had a connection.
    pub(super) fn end_unsent(
        &mut self,
        index: usize,
        waiting: Waiting,
        outcome: Outcome,
        text: &str,
    ) {
        let Waiting { prepared, due } = waiting;
        let stream = &mut self.streams[index];
        stream.pending.note_unsent(prepared.number);
        stream.source.recycle(prepared.payload);
        let mut row = fresh_row(self.worker, stream.index, prepared.id, prepared.made, due);
        row.end = self.now;
        row.outcome = outcome;
        row.error = self.texts.index(text);
        match outcome {
            Outcome::Shed => self.facts.shed += 1,
            _ => self.facts.refused += 1,
        }
        debug_assert_eq!(row.sent, NO_STAMP);
        self.streams[index].demand.client_is_back(row.client, self.now);
        self.rows.push(row, &mut self.facts);
    }

    /// Prepares the first transactions, and finds out how long one takes. The very first takes longer than the others.
    pub(super) fn prepare_first(&mut self) {
        for index in 0..self.streams.len() {
            let (missing, _) = self.streams[index].source.missing();
            self.streams[index].source.fill(missing.min(1));
            if missing > 1 {
                let each_ns = self.fill(index, missing - 1);
                self.prepare_ns = self.prepare_ns.max(each_ns);
            }
        }
    }

    /// Tops the prepared transactions up, as far as the time to the next due one allows. Sends leave before,
    /// where that takes a while.
    pub(super) fn prepare_ahead<D: Driver>(&mut self, driver: &mut D) {
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            let (missing, taken) = stream.source.missing();
            if missing == 0 {
                continue;
            }
            let gap_ns = stream.demand.next_due().map_or(i64::MAX, |due| due - self.now);
            // Two microseconds stay for the sending itself. Cheap workloads keep up with what was taken even
            // without a gap.
            let fits = usize::try_from((gap_ns - 2_000) / self.prepare_ns.max(50)).unwrap_or(0);
            let is_cheap = self.prepare_ns < CHEAP_NS;
            let least = if is_cheap { taken + 1 } else { 0 };
            let count = fits.min(64).max(least).min(missing);
            if count == 0 {
                continue;
            }
            let takes_ns = self.prepare_ns.saturating_mul(i64::try_from(count).expect("a few"));
            if takes_ns > HELD_NS_MAX {
                driver.hand_over();
            }
            if count < MEASURED_COUNT && is_cheap && self.unmeasured < UNMEASURED_MAX {
                self.unmeasured += 1;
                self.streams[index].source.fill(count);
                continue;
            }
            self.unmeasured = 0;
            let most_ns = OUTLIER_TIMES * self.prepare_ns.max(CHEAP_NS);
            let each_ns = self.fill(index, count).min(most_ns);
            self.prepare_ns = (self.prepare_ns * 7 + each_ns) / 8;
        }
    }

    /// Prepares so many, and gives the nanoseconds that one took.
    fn fill(&mut self, index: usize, count: usize) -> i64 {
        let before = self.read_clock();
        self.streams[index].source.fill(count);
        (self.read_clock() - before) / i64::try_from(count).expect("transactions are counted")
    }
}

impl Stream {
    /// How many more connections it wants opened, for what waits beyond those that are on their way. None while one of
    /// them cannot be had: what waits then waits for the system, and more attempts would be refused like the last.
    pub(super) fn wanted_connections(&self) -> u32 {
        let room = self.connections_max - self.connections;
        if room == 0 || self.failing > 0 {
            return 0;
        }
        let again = self.resends.as_ref().map_or(0, |resends| resends.count());
        let waiting = u32::try_from(self.backlog.len()).unwrap_or(u32::MAX).saturating_add(again);
        let wanted = waiting.saturating_sub(self.connections - self.open);
        wanted.min(room).min(GROW_MAX.saturating_sub(self.opening))
    }

    /// Whether there are as many connections as there may be and none of them is wanting: what finds none free then
    /// waits for the number of connections. Where a client stays on its connection it waits for that one.
    fn is_blocked(&self) -> bool {
        let is_full = self.connections >= self.connections_max && self.failing == 0;
        self.index == 0 && is_full && self.backlog.homes().is_none()
    }

    /// The connection that has been idle longest; it stays at the front of the queue until it is occupied.
    fn idle(&mut self, connections: &mut [Connection]) -> Option<u32> {
        while let Some(&connection) = self.idle.front() {
            let at = &mut connections[connection as usize];
            if at.has_room() {
                return Some(connection);
            }
            at.is_queued_idle = false;
            self.idle.pop_front();
        }
        None
    }

    /// One that is idle, and another than `carrier` if there is one.
    pub(super) fn idle_but(&mut self, carrier: u32, connections: &mut [Connection]) -> Option<u32> {
        let first = self.idle(connections)?;
        let other = |other: &&u32| **other != carrier && connections[**other as usize].has_room();
        Some(self.idle.iter().find(other).copied().unwrap_or(first))
    }

    /// A connection was given a transaction.
    pub(super) fn occupied(&mut self, connection: u32, at: &mut Connection) {
        if self.idle.front() != Some(&connection) {
            // It was not the longest idle; its entry is checked when it comes to the front.
            return;
        }
        self.idle.pop_front();
        if at.has_room() {
            self.idle.push_back(connection);
        } else {
            at.is_queued_idle = false;
        }
    }
}

fn send<D: Driver>(driver: &mut D, connection: &mut Connection, key: crate::driver::Key) {
    match &connection.tls {
        None => driver.send(key, &mut connection.out),
        Some(_) => driver.send(key, &mut connection.wire),
    }
}
