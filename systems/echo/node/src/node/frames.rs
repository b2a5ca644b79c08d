//! The binary protocol: requests read and answered, submissions taken, refused or kept until they are served.

use std::time::Duration;

use clock::Instant;
use process::{Connection, Outputs};
use wire::frames::next_frame;

use super::http::UNSENT_BYTES_MAX;
use super::{EchoNode, RECORDS_MAX, What};
use crate::commits::Commit;
use crate::events::Stage;
use crate::faults::Lie;
use crate::ledger::Record;
use crate::protocol::{
    Answer, Code, Request, Submit, read_request, write_answer, write_checked, write_entries,
    write_subscribed, write_synced, write_value,
};
use crate::registers::Key;

impl EchoNode {
    pub(super) fn read_frames(
        &mut self,
        now: Instant,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        let read: Result<(), ()> = out.read_pieces(bytes, |rest, out| {
            let Some(frame) = next_frame(rest).map_err(drop)? else { return Ok(None) };
            if out.unsent(connection) > UNSENT_BYTES_MAX {
                return Err(());
            }
            let request = read_request(frame.payload).map_err(drop)?;
            self.request(now, connection, request, out);
            Ok(Some(frame.used))
        });
        if read.is_err() {
            self.hang_up(connection, out);
        }
    }

    fn request(
        &mut self,
        now: Instant,
        connection: Connection,
        request: Request<'_>,
        out: &mut Outputs,
    ) {
        match request {
            Request::Submit(submit) => self.submit(now, connection, None, &submit, out),
            Request::OfClient(client, submit) if self.clients.is_some() => {
                self.submit(now, connection, Some(client), &submit, out);
            }
            Request::Batch(batch) if self.options.batches => {
                self.batch(now, connection, &batch, out);
            }
            // Not words of the protocol, unless they were asked for.
            Request::Batch(_) | Request::OfClient(..) => self.hang_up(connection, out),
            Request::Subscribe { run } => {
                if self.commits.subscribe(connection, run) {
                    write_subscribed(out.send(connection), run);
                } else {
                    self.hang_up(connection, out);
                }
            }
            Request::Status { run, ids } => {
                let ids = ids
                    .chunks_exact(8)
                    .map(|id| u64::from_le_bytes(id.try_into().expect("exact chunks")));
                match self.thaw(now) {
                    at if at > now => {
                        self.leave(at, connection, What::Status(run, ids.collect()));
                    }
                    _ => self.commits.status(connection, run, ids, out),
                }
            }
            Request::Sync => {
                self.commits.sync(now);
                let ledger = &self.commits.ledger;
                write_synced(out.send(connection), ledger.entries(), ledger.is_kept());
            }
            Request::Ledger { from, count_max } => {
                let count = usize::try_from(count_max).unwrap_or(usize::MAX).min(RECORDS_MAX);
                let ledger = &self.commits.ledger;
                write_entries(out.send(connection), from, |out| ledger.copy(from, count, out));
            }
            Request::Check { kind } => {
                let is_taken = self.options.faults.refused_kind != Some(kind);
                write_checked(out.send(connection), kind, is_taken);
            }
        }
    }

    fn submit(
        &mut self,
        now: Instant,
        connection: Connection,
        client: Option<u32>,
        submit: &Submit<'_>,
        out: &mut Outputs,
    ) {
        self.commits.events.stamp(Stage::Received, submit.tx, now, now);
        let is_valid = submit.is_intact && self.options.faults.refused_kind != Some(submit.kind);
        let tx = submit.tx;
        let is_in_order = match (&mut self.clients, client) {
            // What was read together with something that closed the connection has none any more.
            (Some(_), Some(_)) if self.lines[connection.index()].is_closed => false,
            (Some(clients), Some(client)) => clients.admit(connection, submit.run, client, tx),
            // Nobody's has no order.
            (Some(_), None) => false,
            (None, _) => true,
        };
        let admitted = match (is_valid, is_in_order) {
            (false, _) => Err((Code::Invalid, Duration::ZERO)),
            (true, false) => Err((Code::Conflict, Duration::ZERO)),
            (true, true) => self.take(now),
        };
        match admitted {
            Err((code, wait)) => {
                if code == Code::Invalid && self.options.faults.logs_refused {
                    let (run, submit_crc) = (submit.run, submit.crc);
                    let record = Record { run, tx, submit_crc, is_refused: true };
                    self.commits.ledger.push(&record);
                }
                let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
                self.say(now, connection, Answer { code, wait_ms, tx }, out);
            }
            Ok(served) if self.options.reads == Some(submit.kind) => {
                self.announce(now, connection, tx, served.start, false, out);
                let (run, submit_crc) = (submit.run, submit.crc);
                let record = Record { run, tx, submit_crc, is_refused: false };
                let key = Key::of(run, submit.payload);
                if served.departure > now {
                    self.leave(served.departure, connection, What::Read(record, key));
                } else {
                    self.read(connection, &record, key, out);
                }
            }
            Ok(served) => {
                let struck = self.liar.strike();
                self.announce(now, connection, tx, served.start, struck.by(Lie::Unordered), out);
                let (run, submit_crc) = (submit.run, submit.crc);
                let record = Record { run, tx, submit_crc, is_refused: false };
                let key = Key::of(run, submit.payload);
                let (started, served) = (served.start, served.departure);
                let commit = Commit { record, key, struck, received: now, started, served };
                if served > now {
                    self.leave(served, connection, What::Commit(commit));
                } else {
                    self.committed(now, connection, &commit, out);
                }
            }
        }
    }

    /// Says the stages below committed, each at its time.
    fn announce(
        &mut self,
        now: Instant,
        connection: Connection,
        tx: u64,
        start: Instant,
        is_unordered: bool,
        out: &mut Outputs,
    ) {
        let answer = |code| Answer { code, wait_ms: 0, tx };
        match (self.options.stages, is_unordered) {
            (2, false) => self.say(now, connection, answer(Code::Accepted), out),
            (3, false) => {
                self.say(now, connection, answer(Code::Accepted), out);
                if start > now {
                    self.leave(start, connection, What::Say(answer(Code::Started)));
                } else {
                    self.say(now, connection, answer(Code::Started), out);
                }
            }
            // Accepted is said with the commit.
            (3, true) => self.say(now, connection, answer(Code::Started), out),
            _ => {}
        }
    }

    /// Closes a connection, with which its clients are gone from it.
    fn hang_up(&mut self, connection: Connection, out: &mut Outputs) {
        out.close(connection);
        let line = &mut self.lines[connection.index()];
        line.is_closed |= line.generation == connection.generation();
        if let Some(clients) = &mut self.clients {
            clients.forget(connection);
        }
    }

    pub(super) fn say(
        &mut self,
        now: Instant,
        connection: Connection,
        answer: Answer,
        out: &mut Outputs,
    ) {
        match self.thaw(now) {
            at if at > now => self.leave(at, connection, What::Say(answer)),
            _ => write_answer(out.send(connection), answer),
        }
    }

    pub(super) fn committed(
        &mut self,
        now: Instant,
        connection: Connection,
        commit: &Commit,
        out: &mut Outputs,
    ) {
        self.served += 1;
        self.commits.store(now, self.store_thaw(now), commit);
        if self.options.reads.is_some() {
            self.registers.write(commit.key, commit.record.tx);
        }
        if commit.struck.by(Lie::Late) {
            self.commits.confess(Lie::Late, commit.record.tx);
            self.leave(now.plus(self.options.faults.late_by), connection, What::Late(*commit));
        } else {
            self.commits.answer(now, connection, commit, out);
            if commit.struck.by(Lie::Close) && !commit.struck.by(Lie::Drop) {
                self.hang_up(connection, out);
            }
        }
    }

    /// Says what a key holds, or lies about it.
    pub(super) fn read(
        &mut self,
        connection: Connection,
        record: &Record,
        key: Key,
        out: &mut Outputs,
    ) {
        let tx = record.tx;
        if self.options.faults.logs_reads {
            self.commits.ledger.push(record);
        }
        let stale = if self.liar.strike_read() { self.registers.stale(key) } else { None };
        if stale.is_some() {
            self.liar.gave_stale();
            self.commits.confess(Lie::Stale, tx);
        }
        let value = stale.or_else(|| self.registers.read(key));
        write_value(out.send(connection), tx, value);
    }
}
