//! Who listens: blocks and errors go to them as fast as they take them, and nobody waits for one that is slow.

use std::collections::VecDeque;
use std::sync::Arc;

use process::{Connection, Outputs};

use crate::chain::{Block, Cursor};
use crate::machine::Discarded;
use crate::protocol::ERRORS_BYTES_MAX;
use crate::protocol::block::write_pruned;
use crate::protocol::errors::write_errors;

/// About so much of a block is written at a time: it stays in the processor's cache on its way to the kernel.
const PIECE_BYTES: usize = 512 << 10;

/// Blocks that wait for a slow listener; of more the oldest is left out, which the listener sees by the heights.
const WAITING_MAX: usize = 8;

/// With more than this unsent to it, a listener to errors misses some.
const ERRORS_UNSENT_MAX: usize = 16 << 20;

#[derive(Debug)]
struct Listener {
    connection: Connection,
    wants_errors: bool,
    /// Blocks that go to it, the first as far as the cursor says.
    blocks: VecDeque<Arc<Block>>,
    cursor: Cursor,
    /// It is to be told that the blocks below this are forgotten.
    pruned: Option<u64>,
}

/// Numbers that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Blocks that were left out for a slow listener.
    pub blocks: u64,
    /// Errors that were left out for a slow listener.
    pub errors: u64,
}

/// All who listen.
#[derive(Debug, Default)]
pub struct Subscribers {
    listeners: Vec<Listener>,
    missed: Missed,
}

impl Subscribers {
    /// Somebody begins to listen.
    pub fn add(&mut self, connection: Connection, wants_errors: bool) {
        let (blocks, cursor) = (VecDeque::new(), Cursor::default());
        let pruned = None;
        self.listeners.push(Listener { connection, wants_errors, blocks, cursor, pruned });
    }

    /// Somebody has gone.
    pub fn remove(&mut self, connection: Connection) {
        self.listeners.retain(|it| it.connection != connection);
    }

    /// What was missed.
    #[must_use]
    pub const fn missed(&self) -> Missed {
        self.missed
    }

    /// A block goes to all who listen to blocks.
    pub fn broadcast(&mut self, block: &Arc<Block>, out: &mut Outputs) {
        for listener in self.listeners.iter_mut().filter(|it| !it.wants_errors) {
            self.missed.blocks += listener.push(block);
            listener.send(out);
        }
    }

    /// A block goes to one of them.
    pub fn give(&mut self, connection: Connection, block: &Arc<Block>, out: &mut Outputs) {
        if let Some(listener) = self.listeners.iter_mut().find(|it| it.connection == connection) {
            self.missed.blocks += listener.push(block);
            listener.send(out);
        }
    }

    /// One of them asked for a block that is forgotten, as are all below `below`.
    pub fn say_pruned(&mut self, connection: Connection, below: u64, out: &mut Outputs) {
        if let Some(listener) = self.listeners.iter_mut().find(|it| it.connection == connection) {
            listener.pruned = Some(below);
            listener.send(out);
        }
    }

    /// A connection takes more.
    pub fn drained(&mut self, connection: Connection, out: &mut Outputs) {
        if let Some(listener) = self.listeners.iter_mut().find(|it| it.connection == connection) {
            listener.send(out);
        }
    }

    /// Whether anybody listens to errors.
    #[must_use]
    pub fn want_errors(&self) -> bool {
        self.listeners.iter().any(|it| it.wants_errors)
    }

    /// Errors go to all who listen to errors.
    pub fn send_errors(&mut self, discarded: &mut Discarded, out: &mut Outputs) {
        if discarded.count == 0 {
            return;
        }
        for listener in self.listeners.iter().filter(|it| it.wants_errors) {
            for (count, bytes) in discarded.frames() {
                if out.unsent(listener.connection) + bytes.len() > ERRORS_UNSENT_MAX {
                    self.missed.errors += count;
                } else {
                    write_errors(out.send(listener.connection), count, bytes);
                }
            }
        }
        discarded.clear();
    }

    /// Whether what was discarded is as much as one frame takes.
    #[must_use]
    pub const fn is_frame(discarded: &Discarded) -> bool {
        discarded.bytes.len() >= ERRORS_BYTES_MAX / 2
    }
}

impl Listener {
    /// Gives how many were left out for it.
    fn push(&mut self, block: &Arc<Block>) -> u64 {
        self.blocks.push_back(Arc::clone(block));
        if self.blocks.len() <= WAITING_MAX {
            return 0;
        }
        // The first may be half sent.
        self.blocks.remove(1);
        1
    }

    /// Writes on until so much is unsent that the kernel will tell when it has gone.
    fn send(&mut self, out: &mut Outputs) {
        loop {
            // Between blocks, never within one.
            if self.cursor.is_at_start()
                && let Some(below) = self.pruned.take()
            {
                write_pruned(out.send(self.connection), below);
            }
            let Some(block) = self.blocks.front() else { return };
            let unsent = out.unsent(self.connection);
            if unsent >= PIECE_BYTES {
                return;
            }
            let is_end = block.write_some(&mut self.cursor, PIECE_BYTES, out.send(self.connection));
            if is_end {
                self.blocks.pop_front();
                self.cursor = Cursor::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use replicated::Value;

    use super::*;
    use crate::protocol::block::{Part, Stream};
    use crate::protocol::errors::{Error, Why, read_errors};
    use crate::protocol::transaction::Transaction;
    use crate::protocol::{entry, next_frame};

    /// A block of more than is written at a time.
    fn block(height: u64) -> Arc<Block> {
        let mut entry = Vec::new();
        entry::begin_transactions(&mut entry);
        let outputs = [[7; 32]; 4_000];
        let it = Transaction { id: &[1; 32], inputs: &[], outputs: &outputs };
        (0..8).for_each(|_| entry::push_transaction(&mut entry, 0, &it));
        entry::set_count(&mut entry, 8);
        let mut block = Block::of_entry(&Value::from(entry)).unwrap();
        block.height = height;
        Arc::new(block)
    }

    /// Claim: of what waits for a slow listener a block that is half sent is never left out, nor is anything said within it:
    /// what it reads in the end are whole blocks, with a gap behind the first.
    #[test]
    fn half_sent() {
        let (mut all, mut out) = (Subscribers::default(), Outputs::default());
        let slow = Connection::new(0, 1);
        out.open(slow);
        all.add(slow, false);
        for height in 1..=12 {
            all.broadcast(&block(height), &mut out);
        }
        all.say_pruned(slow, 5, &mut out);
        assert_eq!(all.missed().blocks, 4);
        let (mut stream, mut bytes, mut said) = (Stream::default(), Vec::new(), Vec::new());
        loop {
            let pending = std::mem::take(out.pending(slow).unwrap().0);
            if pending.is_empty() {
                break;
            }
            bytes.extend_from_slice(&pending);
            all.drained(slow, &mut out);
        }
        let each = |part: Part<'_>| match part {
            Part::Begin { height, .. } => said.push(height),
            Part::Pruned { below } => said.push(1_000 + below),
            _ => {}
        };
        assert_eq!(stream.read(&bytes, each), Ok(bytes.len()));
        assert_eq!(said, [1, 1_005, 6, 7, 8, 9, 10, 11, 12]);
    }

    /// Claim: errors of any number go in frames of which none has more bytes than its readers take.
    #[test]
    fn frames_of_errors() {
        let (mut all, mut out) = (Subscribers::default(), Outputs::default());
        let reader = Connection::new(0, 1);
        out.open(reader);
        all.add(reader, true);
        let mut discarded = Discarded::default();
        for _ in 0..200_000 {
            discarded.push(&Error { id: &[1; 32], why: Why::Incomplete });
        }
        assert!(discarded.bytes.len() > ERRORS_BYTES_MAX);
        all.send_errors(&mut discarded, &mut out);
        let bytes = std::mem::take(out.pending(reader).unwrap().0);
        let (mut used, mut count) = (0, 0);
        while let Some(frame) = next_frame(&bytes[used..], ERRORS_BYTES_MAX).unwrap() {
            used += frame.used;
            count += read_errors(frame.payload).unwrap().iter().count();
        }
        assert_eq!((used, count, all.missed().errors), (bytes.len(), 200_000, 0));
    }
}
