//! What a node wants: bytes to send, connections to open and close, records to keep, messages to its other
//! machines, when to be woken. Nothing else can come out of one.
//!
//! Buffers are kept and reused: sending allocates nothing once a connection's buffer has grown to its size.
//!
//! A node asks by the methods of the first block; what runs a node carries out by those of [`host`].

pub mod host;

use std::collections::VecDeque;
use std::convert::Infallible;

use clock::Instant;

use crate::Connection;

/// What a record counts for beside its bytes, so that many empty ones are not for nothing.
const RECORD_WEIGHT: usize = 64;

/// What a step asks for, and what earlier steps asked for that has not been carried out yet.
#[derive(Debug)]
pub struct Outputs<M = Infallible> {
    used: usize,
    wake: Option<Instant>,
    /// The node wants to be told of the turn's end.
    awaits_turn_end: bool,
    /// One entry a place in the table of connections.
    slots: Vec<Slot>,
    /// Bytes for connections that have ended: emptied at the next such call, never sent.
    dropped: Vec<u8>,
    /// Places with something new to carry out, each once.
    touched: Vec<Connection>,
    /// Peers to be dialled.
    dials: Vec<usize>,
    /// What was asked of the disk, in order.
    stores: Vec<host::Store>,
    /// Bytes of the records in `stores`, one behind the other.
    records: Vec<u8>,
    /// The next number of each log.
    numbers: Vec<u64>,
    /// Of each log the records that are not durable yet: the number behind each, and what it counts for.
    behind: Vec<VecDeque<(u64, usize)>>,
    /// What all of them count for together.
    unpersisted: usize,
    /// What goes to other machines, in order.
    passes: Vec<(usize, M)>,
    /// How much each machine's queue can still take.
    room: Vec<usize>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Whose the place is; sends to others are dropped.
    generation: Option<u32>,
    bytes: Vec<u8>,
    /// Bytes that what runs the node has taken and the peer has not: counted, not kept here.
    behind: usize,
    closes: bool,
    is_touched: bool,
    /// The number of the name that the peer's certificate has.
    certified: Option<u8>,
}

impl<M> Outputs<M> {
    /// How many bytes of the [`crate::Input::Bytes`] of this step the node has read. Not called: none.
    pub fn used(&mut self, bytes: usize) {
        self.used = bytes;
    }

    /// Reads the [`crate::Input::Bytes`] of this step piece by piece, and says that they are read. `piece` takes one from
    /// the beginning of what is left and gives its length; `None`: not all of it has come.
    ///
    /// # Errors
    /// Those of `piece`: what comes after is not read.
    pub fn read_pieces<E>(
        &mut self,
        bytes: &[u8],
        mut piece: impl FnMut(&[u8], &mut Self) -> Result<Option<usize>, E>,
    ) -> Result<(), E> {
        let mut used = 0;
        let ended = loop {
            match piece(&bytes[used..], self) {
                Ok(Some(length)) => used += length,
                Ok(None) => break Ok(()),
                Err(why) => {
                    used = bytes.len();
                    break Err(why);
                }
            }
        };
        self.used(used);
        ended
    }

    /// The buffer of what is to be sent on `connection`; append to it. What is sent on a connection that has
    /// ended is dropped, as it would be on a wire.
    pub fn send(&mut self, connection: Connection) -> &mut Vec<u8> {
        if !self.takes(connection) {
            self.dropped.clear();
            return &mut self.dropped;
        }
        &mut self.touch(connection).bytes
    }

    /// Closes `connection` after what has been sent on it.
    pub fn close(&mut self, connection: Connection) {
        if self.takes(connection) {
            self.touch(connection).closes = true;
        }
    }

    /// Asks for [`crate::Input::Wake`] at `at` (at once if that has passed); replaces what was asked before.
    /// After a wake nothing is asked until this is called again.
    pub fn wake_at(&mut self, at: Instant) {
        self.wake = Some(at);
    }

    /// When the node wants to be woken.
    #[must_use]
    pub const fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// Asks for [`crate::Input::TurnEnd`], once, when all that has arrived by now has been told.
    pub fn at_turn_end(&mut self) {
        self.awaits_turn_end = true;
    }

    /// How many bytes wait to be sent on `connection`, those of this step included: what its peer has not
    /// taken. A node that has much to send keeps to a bound by looking here.
    #[must_use]
    pub fn unsent(&self, connection: Connection) -> usize {
        self.slots.get(connection.index()).map_or(0, |slot| {
            let is_its = slot.generation == Some(connection.generation());
            if is_its { slot.bytes.len() + slot.behind } else { 0 }
        })
    }

    /// Which of the names that the listener asks for is in the certificate of whoever opened the connection, in their order;
    /// nothing where it asks for none.
    #[must_use]
    pub fn certified(&self, connection: Connection) -> Option<u8> {
        let slot = self.slots.get(connection.index())?;
        slot.certified.filter(|_| slot.generation == Some(connection.generation()))
    }

    /// Asks for a connection to a peer: [`crate::Input::Dialled`] or [`crate::Input::Unreachable`] follows, once.
    pub fn dial(&mut self, peer: usize) {
        self.dials.push(peer);
    }

    /// Adds a record to the end of a log; gives its number, which is one more than that of the record before
    /// it. What is appended while a write is under way becomes one write with one sync.
    /// [`crate::Input::Persisted`] says when it is durable. What is not durable yet is kept in memory; the node sees by
    /// [`Outputs::unpersisted`] how much that is and holds back those who ask it, and beyond a bound of the shell's
    /// nothing is read from connections that were accepted until the disk has caught up.
    pub fn append(&mut self, log: usize, record: &[u8]) -> u64 {
        self.append_parts(log, &[record])
    }

    /// As [`Outputs::append`], of a record that lies in pieces.
    pub fn append_parts(&mut self, log: usize, parts: &[&[u8]]) -> u64 {
        let start = self.records.len();
        for part in parts {
            self.records.extend_from_slice(part);
        }
        if self.numbers.len() <= log {
            self.numbers.resize(log + 1, 0);
        }
        let number = self.numbers[log];
        self.numbers[log] += 1;
        let weight = self.records.len() - start + RECORD_WEIGHT;
        if self.behind.len() <= log {
            self.behind.resize_with(log + 1, VecDeque::new);
        }
        self.behind[log].push_back((number + 1, weight));
        self.unpersisted += weight;
        self.stores.push(host::Store::Append { log, number, bytes: start..self.records.len() });
        number
    }

    /// The number that the next record of a log will have.
    #[must_use]
    pub fn next_number(&self, log: usize) -> u64 {
        self.numbers.get(log).copied().unwrap_or(0)
    }

    /// How many bytes of records, of all logs, are not durable yet; each counts some more than it has.
    #[must_use]
    pub const fn unpersisted(&self) -> usize {
        self.unpersisted
    }

    /// The records of a log with numbers below `below` are not needed any more: their room may be used again.
    /// They may still be there after a restart.
    pub fn trim(&mut self, log: usize, below: u64) {
        self.stores.push(host::Store::Trim { log, below });
    }

    /// Replaces the whole content of a cell, a small file of its own: after a loss of power it is either the
    /// old or the new, never a mixture. [`crate::Input::Replaced`] follows.
    pub fn replace(&mut self, cell: usize, content: Vec<u8>) {
        self.stores.push(host::Store::Replace { cell, content });
    }

    /// Adds a part to what a cell is to hold next, for content too long to be held in memory: [`Outputs::replace`] adds the
    /// last part, and from then on the cell holds all of them. [`crate::Input::Extended`] follows once for each part; a node
    /// that waits for it before it makes the next one goes as fast as the disk does. After a crash the parts are gone.
    pub fn extend(&mut self, cell: usize, part: Vec<u8>) {
        self.stores.push(host::Store::Extend { cell, part });
    }

    /// Forgets the parts that a cell was given and does not hold yet.
    pub fn drop_parts(&mut self, cell: usize) {
        self.stores.push(host::Store::DropParts { cell });
    }

    /// Reads what a cell holds, from `offset` on: [`crate::Input::Part`] follows, with at most so many bytes.
    pub fn read(&mut self, cell: usize, offset: u64, bytes_max: usize) {
        self.stores.push(host::Store::Read { cell, offset, bytes_max });
    }

    /// Hands `message` to another machine of this node.
    ///
    /// # Errors
    /// Gives it back when that machine's queue is full; [`crate::Input::Room`] says when it is not.
    pub fn pass(&mut self, machine: usize, message: M) -> Result<(), M> {
        match self.room.get_mut(machine) {
            Some(room) if *room > 0 => {
                *room -= 1;
                self.passes.push((machine, message));
                Ok(())
            }
            _ => Err(message),
        }
    }

    fn takes(&self, connection: Connection) -> bool {
        let slot = self.slots.get(connection.index());
        slot.is_some_and(|slot| slot.generation == Some(connection.generation()) && !slot.closes)
    }

    fn touch(&mut self, connection: Connection) -> &mut Slot {
        let slot = &mut self.slots[connection.index()];
        if !slot.is_touched {
            slot.is_touched = true;
            self.touched.push(connection);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::Outputs;

    /// Claim: pieces are read up to the one that has not come whole, which stays; after an error nothing stays.
    #[test]
    fn pieces() {
        // A piece is its length and as many letters; none begins with nine.
        let piece = |rest: &[u8], _: &mut Outputs| match rest.first() {
            Some(9) => Err("nine"),
            Some(length) => Ok(Some(1 + usize::from(*length)).filter(|whole| *whole <= rest.len())),
            None => Ok(None),
        };
        let mut out = Outputs::default();
        assert_eq!(out.read_pieces(b"\x02ab\x01c\x03de", piece), Ok(()));
        assert_eq!(out.take_used(), 5);
        assert_eq!(out.read_pieces(b"\x02ab\x09cd", piece), Err("nine"));
        assert_eq!(out.take_used(), 6);
    }
}
