//! From bytes to marks. All marks of one receipt carry two stamps: the kernel's of its last byte, where there is one, and
//! when it was read (with io_uring all receipts of a turn at once, with epoll each by a system call). What a session says of
//! a transaction is carried to the worker that owns it.

use clock::WallTime;
use model::{NO_STAMP, Outcome, Stamp, TxId};
use sut::{Mark, Marks};

use super::Engine;
use crate::connection::Phase;
use crate::driver::Key;

/// A mark with its stamp: all that its owner needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub tx: TxId,
    /// When it was read.
    pub read: Stamp,
    /// When it had arrived at this host, by the kernel; [`NO_STAMP`]: unknown.
    pub arrived: Stamp,
    pub what: What,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Reached { stage: u8, code: u16, bytes_in: u32 },
    Ended { outcome: Outcome, code: u16, error: u16, bytes_in: u32 },
}

impl Engine<'_> {
    /// Bytes have arrived on a connection; when, as far as the kernel was asked and knows.
    pub(super) fn received(
        &mut self,
        connection: u32,
        key: Key,
        bytes: &[u8],
        arrived: Option<WallTime>,
    ) {
        let at = &mut self.connections[connection as usize];
        if at.key != Some(key) {
            return;
        }
        self.received_bytes += bytes.len();
        match at.is_stamped {
            true => self.receipts.take(arrived, self.now, self.origin),
            false => self.receipts.pass(),
        }
        let Some(tls) = &mut at.tls else { return self.deliver(connection, bytes) };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        match tls.receive(bytes, &mut plain) {
            Ok(()) => {
                if at.phase == Phase::Securing {
                    self.advance(connection);
                }
                if !plain.is_empty() {
                    self.deliver(connection, &plain);
                } else {
                    self.send_soon(connection);
                }
            }
            Err(text) => {
                if !tls.is_handshaking() {
                    self.breaks_protocol(connection, &text);
                }
                self.drop_connection(connection, &text);
            }
        }
        self.plain = plain;
    }

    fn deliver(&mut self, connection: u32, bytes: &[u8]) {
        let mut marks = std::mem::take(&mut self.marks);
        marks.clear();
        let result = self.connections[connection as usize].deliver(bytes, &mut marks);
        self.connections[connection as usize].is_draining |= marks.wants_drain();
        self.apply(connection, &marks);
        self.facts.connections.unasked_bytes += marks.unasked_bytes();
        if let Err(error) = result {
            self.breaks_protocol(connection, &error.0);
            let text = format!("not the protocol: {}", error.0);
            self.drop_connection(connection, &text);
        } else if marks.wants_close() || self.connections[connection as usize].is_drained() {
            self.facts.connections.closed += 1;
            self.drop_connection(connection, "the connection was closed by the system");
        } else if self.connections[connection as usize].phase == Phase::Greeting {
            self.advance(connection);
        } else {
            self.send_soon(connection);
        }
        self.marks = marks;
    }

    /// What came is not of the protocol. Where one answer ends and the next begins can then have been mistaken before, so
    /// that any answer of this life may have been another transaction's.
    pub(super) fn breaks_protocol(&mut self, connection: u32, text: &str) {
        if self.connections[connection as usize].place.channel().is_some() {
            // A program's own failure, and not the system's; its answers name their transactions, and those before were right.
            return;
        }
        self.facts.protocol_errors += 1;
        self.facts.connections.doubtful += self.connections[connection as usize].answers;
        self.event("protocol_error", None, || text.to_owned());
    }

    /// Bytes that a session wrote while it received leave with this turn's flush.
    fn send_soon(&mut self, connection: u32) {
        let at = &mut self.connections[connection as usize];
        let has_bytes = !at.out.is_empty() || at.tls.as_ref().is_some_and(|tls| tls.wants_send());
        let is_written_back = has_bytes && !at.is_dirty && at.phase == Phase::Open;
        self.answers_are_alone &= !(is_written_back && self.is_loading);
        if has_bytes && !at.is_dirty && at.key.is_some() {
            at.is_dirty = true;
            self.dirty.push(connection);
        }
    }

    /// Takes the findings of a connection's session, in their order.
    pub(super) fn apply(&mut self, connection: u32, marks: &Marks) {
        self.heard_on = connection;
        let arrived = self.receipts.at;
        let at = if arrived == NO_STAMP { self.now } else { arrived };
        self.rows.seen.take(marks, at, &mut self.facts);
        for mark in marks.list() {
            let (tx, what) = match *mark {
                Mark::Reached { tx, stage, code, bytes_in } => {
                    (tx, What::Reached { stage, code, bytes_in })
                }
                Mark::Ended { tx, answer } => {
                    let error = self.texts.index(marks.text(&answer));
                    let (outcome, code) = (answer.outcome, answer.code);
                    (tx, What::Ended { outcome, code, error, bytes_in: answer.bytes_in })
                }
            };
            let found = Found { tx, read: self.now, arrived: self.receipts.at, what };
            let owner = self.owner_of(tx);
            if owner == self.worker {
                match marks.follow_up(tx) {
                    None => self.settle(found),
                    Some((next, payload)) => self.settle_followed(found, next, payload),
                }
            } else if self.trial.here.contains(&owner) {
                self.routes.send(owner - self.trial.here.start, found);
            } else {
                // A transaction of another part, which no session here has sent.
                self.count_phantom(tx);
            }
        }
    }
}
