//! Blocks as an atomizer holds them: not their bytes but the entries of the log that these lie in, and which of the
//! transactions there were admitted. A block is written to a connection straight from the log's bytes, as much at a time as
//! the connection takes.

use std::collections::VecDeque;
use std::sync::Arc;

use replicated::Value;

use crate::protocol::block::{HEAD_BYTES, Hashing, Head, write_block_head};
use crate::protocol::entry;
use crate::protocol::transaction::Transaction;
use crate::protocol::{FRAME_HEADER_BYTES, Hash};

/// Transactions of a block that lie in one entry.
#[derive(Clone, Debug)]
struct Part {
    entry: Value,
    /// Where those that were admitted begin.
    at: Vec<u32>,
}

/// A block, or what is going to be one.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Its height; 0: it is none yet.
    pub height: u64,
    /// The ledger that it is of.
    pub ledger: u64,
    /// The hash of the block before it.
    pub previous: Hash,
    /// Its own.
    pub hash: Hash,
    /// How many transactions.
    pub count: u64,
    /// Bytes that they take.
    pub bytes: u64,
    parts: Vec<Part>,
}

impl Block {
    /// Takes up to `count` transactions of an entry from now on.
    pub fn begin_part(&mut self, entry: &Value, count: u64) {
        let at = Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(1 << 16));
        self.parts.push(Part { entry: entry.clone(), at });
    }

    /// Takes the transaction that begins at `at` in the entry of the last part.
    #[inline]
    pub fn push(&mut self, at: usize, bytes: usize) {
        let part = self.parts.last_mut().expect("a part was begun");
        part.at.push(u32::try_from(at).expect("an entry is shorter"));
        self.count += 1;
        self.bytes += bytes as u64;
    }

    /// No more comes of the last part.
    pub fn end_part(&mut self) {
        if self.parts.last().is_some_and(|part| part.at.is_empty()) {
            self.parts.pop();
        }
    }

    /// Its transactions, in order.
    pub fn transactions(&self) -> impl Iterator<Item = Transaction<'_>> {
        let of = |part: &'_ Part, at: u32| at as usize..part.entry.len();
        self.parts.iter().flat_map(move |part| {
            part.at.iter().map(move |at| {
                Transaction::read(&part.entry[of(part, *at)]).expect("it was read before")
            })
        })
    }

    /// What it says of itself.
    #[must_use]
    pub const fn head(&self) -> Head {
        let Self { height, ledger, previous, hash, count, .. } = *self;
        Head { height, ledger, previous, hash, count }
    }

    /// The hash of its transactions so far, to which more can be added.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        let mut hashing = Hashing::default();
        for part in &self.parts {
            for at in &part.at {
                let rest = &part.entry[*at as usize..];
                let transaction = Transaction::read(rest).expect("it was read before");
                hashing.add(&rest[..transaction.bytes()]);
            }
        }
        hashing
    }

    /// Appends it in its frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_some(&mut Cursor::default(), usize::MAX, out);
    }

    /// Appends it from the cursor on, its frame first, about `bytes_max` bytes. Gives whether that was the end.
    pub fn write_some(&self, cursor: &mut Cursor, bytes_max: usize, out: &mut Vec<u8>) -> bool {
        let end = out.len().saturating_add(bytes_max);
        if !cursor.is_begun {
            cursor.is_begun = true;
            write_block_head(out, &self.head(), self.bytes);
        }
        while let Some(part) = self.parts.get(cursor.part) {
            while let Some(at) = part.at.get(cursor.place) {
                if out.len() >= end {
                    return false;
                }
                let rest = &part.entry[*at as usize..];
                let transaction = Transaction::read(rest).expect("it was read before");
                out.extend_from_slice(&rest[..transaction.bytes()]);
                cursor.place += 1;
            }
            *cursor = Cursor { is_begun: true, part: cursor.part + 1, place: 0 };
        }
        true
    }

    /// Bytes of it in its frame.
    #[must_use]
    pub const fn frame_bytes(&self) -> u64 {
        (FRAME_HEADER_BYTES + HEAD_BYTES) as u64 + self.bytes
    }

    /// Appends its transactions as an entry of the log: for snapshots.
    pub(crate) fn write_entry(&self, out: &mut Vec<u8>) {
        let start = out.len();
        entry::begin_transactions(out);
        self.transactions().for_each(|it| entry::push_transaction(out, 0, &it));
        entry::set_count(&mut out[start..], self.count);
    }

    /// A block whose transactions are all those of an entry, and which says nothing else of itself; `None`: they are not what
    /// the entry says.
    pub(crate) fn of_entry(value: &Value) -> Option<Self> {
        let Ok(entry::Entry::Transactions(batch)) = entry::read_entry(value) else { return None };
        let mut block = Self::default();
        block.begin_part(value, batch.count());
        batch.iter().for_each(|it| block.push(it.at, it.transaction.bytes()));
        let is_whole = block.count == batch.count();
        block.end_part();
        is_whole.then_some(block)
    }

    /// Does with a block what the published system does on its way from the state machine to the peers: it is copied into the
    /// map of blocks and into the answer, written for the log, read again and written again. Gives how many bytes that made.
    #[must_use]
    pub fn copy_as_published(&self) -> usize {
        struct Copied {
            id: Hash,
            inputs: Vec<Hash>,
            outputs: Vec<Hash>,
        }
        let copy = |it: Transaction<'_>| Copied {
            id: *it.id,
            inputs: it.inputs.to_vec(),
            outputs: it.outputs.to_vec(),
        };
        let of = |it: &'_ Copied| (it.id, it.inputs.clone(), it.outputs.clone());
        let pending: Vec<Copied> = self.transactions().map(copy).collect();
        let kept: Vec<_> = pending.iter().map(of).collect();
        let answer: Vec<_> = kept.clone();
        let mut bytes = Vec::new();
        for (id, inputs, outputs) in &answer {
            Transaction { id, inputs, outputs }.write(&mut bytes);
        }
        let mut read = Vec::new();
        let mut rest = &bytes[..];
        while let Ok(it) = Transaction::read(rest) {
            rest = &rest[it.bytes()..];
            read.push(copy(it));
        }
        let mut again = Vec::new();
        for Copied { id, inputs, outputs } in &read {
            Transaction { id, inputs, outputs }.write(&mut again);
        }
        std::hint::black_box(again.len())
    }
}

/// How far a block has been written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    is_begun: bool,
    part: usize,
    place: usize,
}

impl Cursor {
    /// Whether nothing of the block is written yet.
    pub(crate) const fn is_at_start(&self) -> bool {
        !self.is_begun
    }
}

/// Blocks that may still be asked for, in order of their heights without a gap.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    blocks: VecDeque<Arc<Block>>,
    bytes: u64,
}

impl Kept {
    /// Adds the next one.
    pub fn push(&mut self, block: Arc<Block>) {
        self.bytes += block.frame_bytes();
        self.blocks.push_back(block);
    }

    /// The one of this height.
    #[must_use]
    pub fn get(&self, height: u64) -> Option<&Arc<Block>> {
        let first = self.blocks.front()?.height;
        self.blocks.get(usize::try_from(height.checked_sub(first)?).ok()?)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Block>> {
        self.blocks.iter()
    }

    /// Bytes that they take in their frames.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets those below `height`.
    pub fn prune(&mut self, height: u64) {
        while self.blocks.front().is_some_and(|block| block.height < height) {
            let block = self.blocks.pop_front().expect("looked at");
            self.bytes -= block.frame_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::block::read_block;

    /// Claim: a block written in pieces of any size is the same as written whole, has what was admitted and nothing else, and
    /// comes back out of an entry.
    #[test]
    fn in_pieces() {
        let (inputs, outputs) = ([[7; 32]; 2], [[8; 32]; 3]);
        let mut log = Vec::new();
        entry::begin_transactions(&mut log);
        for number in 0..20 {
            let id = [number; 32];
            let it = Transaction { id: &id, inputs: &inputs, outputs: &outputs };
            entry::push_transaction(&mut log, 1, &it);
        }
        entry::set_count(&mut log, 20);
        let value = Value::from(log);
        let Ok(entry::Entry::Transactions(batch)) = entry::read_entry(&value) else { panic!() };
        let mut block = Block { height: 3, ..Block::default() };
        block.begin_part(&value, 20);
        for it in batch.iter().filter(|it| it.transaction.id[0] % 3 == 0) {
            block.push(it.at, it.transaction.bytes());
        }
        block.end_part();
        let mut whole = Vec::new();
        block.write(&mut whole);
        let read = read_block(&whole[FRAME_HEADER_BYTES..]).unwrap();
        let ids: Vec<u8> = read.transactions().map(|it| it.id[0]).collect();
        assert_eq!((read.head.height, ids), (3, vec![0, 3, 6, 9, 12, 15, 18]));
        assert_eq!(whole.len() as u64, block.frame_bytes());
        for bytes_max in [1, 100, 300, 5000] {
            let (mut cursor, mut pieces) = (Cursor::default(), Vec::new());
            while !block.write_some(&mut cursor, bytes_max, &mut pieces) {}
            assert_eq!(pieces, whole);
        }
        let mut entry = Vec::new();
        block.write_entry(&mut entry);
        let again = Block::of_entry(&Value::from(entry)).unwrap();
        let again = Block { height: 3, ..again };
        let mut bytes = Vec::new();
        again.write(&mut bytes);
        assert_eq!(bytes, whole);
        assert_eq!(block.copy_as_published() as u64, block.bytes);
    }

    /// Claim: blocks are found by height until they are pruned.
    #[test]
    fn kept() {
        let mut kept = Kept::default();
        (5..9).for_each(|height| kept.push(Arc::new(Block { height, ..Block::default() })));
        assert!(kept.get(4).is_none() && kept.get(9).is_none());
        assert_eq!(kept.get(7).unwrap().height, 7);
        kept.prune(7);
        assert_eq!((kept.get(6).is_none(), kept.iter().len(), kept.bytes()), (true, 2, 2 * 96));
    }
}
