//! Blocks: read as a whole, or bit by bit as they come. Each says of which ledger it is, has the hash of the block before it,
//! and its own: so that a gap, a block of another chain, and an order that was changed are found by anybody who has it.

use std::fmt;

use blake3::Hasher;

use super::transaction::Transaction;
use super::{
    BLOCK_BYTES_MAX, FRAME_HEADER_BYTES, Hash, Malformed, Reader, frame_length, put_u64,
    write_frame,
};

/// Bytes of a block in front of its transactions.
pub const HEAD_BYTES: usize = 8 + 8 + 32 + 32 + 8;
/// The least that a transaction takes.
const TRANSACTION_BYTES_MIN: usize = 48;

/// Bytes of what is said instead of a block that is forgotten.
const PRUNED_BYTES: usize = 16;

/// What stands in front of a block's transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its height: 1, 2, 3, …
    pub height: u64,
    /// The ledger that it is of: a number that was drawn when the ledger began, never 0.
    pub ledger: u64,
    /// The hash of the block before it; zeros: it is the first.
    pub previous: Hash,
    /// Its own.
    pub hash: Hash,
    /// How many transactions.
    pub count: u64,
}

impl Head {
    /// Whether this can be the block behind `last`; of the first block there is none.
    #[must_use]
    pub fn follows(&self, last: Option<&Self>) -> bool {
        match last {
            None => self.ledger != 0 && self.height == 1 && self.previous == [0; 32],
            Some(last) => {
                self.ledger == last.ledger
                    && last.height.checked_add(1) == Some(self.height)
                    && self.previous == last.hash
            }
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            height: reader.u64()?,
            ledger: reader.u64()?,
            previous: *reader.hash()?,
            hash: *reader.hash()?,
            count: reader.u64()?,
        })
    }
}

/// So much is hashed at once: enough that a processor's widest registers are filled.
const HASHED_BYTES: usize = 16 << 10;

/// A block's hash in the making: BLAKE3 of its transactions' bytes in order, its ledger, its height, how many transactions
/// there are (each u64), and the hash of the block before.
#[derive(Clone, Default)]
pub struct Hashing {
    hasher: Hasher,
    waiting: Vec<u8>,
}

impl fmt::Debug for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hashing").finish_non_exhaustive()
    }
}

impl Hashing {
    /// The bytes of the next transactions.
    #[inline]
    pub fn add(&mut self, transactions: &[u8]) {
        if self.waiting.is_empty() && transactions.len() >= HASHED_BYTES {
            self.hasher.update(transactions);
            return;
        }
        self.waiting.extend_from_slice(transactions);
        if self.waiting.len() >= HASHED_BYTES {
            let full = self.waiting.len() / HASHED_BYTES * HASHED_BYTES;
            self.hasher.update(&self.waiting[..full]);
            self.waiting.drain(..full);
        }
    }

    /// The hash of the block whose transactions were added; that of `head` is not looked at. What comes next is another block.
    #[must_use]
    pub fn end(&mut self, head: &Head) -> Hash {
        for number in [head.ledger, head.height, head.count] {
            self.waiting.extend_from_slice(&number.to_le_bytes());
        }
        self.waiting.extend_from_slice(&head.previous);
        self.hasher.update(&self.waiting);
        let hash = self.hasher.finalize().into();
        self.hasher.reset();
        self.waiting.clear();
        hash
    }
}

/// A block whose bytes are all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// What it says of itself.
    pub head: Head,
    /// Its transactions' bytes.
    pub bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Its transactions, in order.
    pub fn transactions(&self) -> impl Iterator<Item = Transaction<'a>> + use<'a> {
        let mut reader = Reader(self.bytes);
        (0..self.head.count).map_while(move |_| Transaction::take(&mut reader).ok())
    }

    /// Whether it is what its hash says.
    #[must_use]
    pub fn is_as_hashed(&self) -> bool {
        let mut hashing = Hashing::default();
        hashing.add(self.bytes);
        hashing.end(&self.head) == self.head.hash
    }
}

/// Reads a block, and each of its transactions once. Whether its hash is right is not looked at.
///
/// # Errors
/// When the bytes are none.
pub fn read_block(payload: &[u8]) -> Result<Block<'_>, Malformed> {
    if payload.len() > BLOCK_BYTES_MAX {
        return Err(Malformed::Length);
    }
    let mut reader = Reader(payload);
    let head = Head::take(&mut reader)?;
    let bytes = reader.0;
    if head.count > (BLOCK_BYTES_MAX / TRANSACTION_BYTES_MIN) as u64 {
        return Err(Malformed::Count);
    }
    for _ in 0..head.count {
        Transaction::take(&mut reader)?;
    }
    reader.end()?;
    Ok(Block { head, bytes })
}

/// What stands in front of a block's transactions; `None`: the bytes are too few.
#[must_use]
pub fn read_head(payload: &[u8]) -> Option<Head> {
    Head::take(&mut Reader(payload)).ok()
}

/// Appends what stands in front of a block's transactions, its frame included, where they take `bytes`.
pub fn write_block_head(out: &mut Vec<u8>, head: &Head, bytes: u64) {
    put_u64(out, HEAD_BYTES as u64 + bytes);
    put_u64(out, head.height);
    put_u64(out, head.ledger);
    out.extend_from_slice(&head.previous);
    out.extend_from_slice(&head.hash);
    put_u64(out, head.count);
}

/// Says instead of a block that was asked for that all below `below` are forgotten. It is shorter than any block.
pub fn write_pruned(out: &mut Vec<u8>, below: u64) {
    write_frame(out, |out| {
        put_u64(out, 0);
        put_u64(out, below);
    });
}

/// Below which height blocks are forgotten, if that is what was said instead of a block.
#[must_use]
pub fn read_pruned(payload: &[u8]) -> Option<u64> {
    let payload = payload.first_chunk::<PRUNED_BYTES>().filter(|it| it.len() == payload.len())?;
    let mut reader = Reader(payload);
    (reader.u64().ok()? == 0).then(|| reader.u64().ok()).flatten()
}

/// A part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A block begins.
    Begin {
        /// Its height.
        height: u64,
        /// How many transactions it will have.
        count: u64,
    },
    /// The next of its transactions.
    Transaction(Transaction<'a>),
    /// It has ended.
    End {
        /// Its height.
        height: u64,
    },
    /// There is no such block any more.
    Pruned {
        /// Nor any below this height.
        below: u64,
    },
}

/// Reads a row of blocks bit by bit, so that none has to be held as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    inside: Option<Inside>,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    height: u64,
    /// Transactions that are still to come.
    count: u64,
    /// Bytes that are still to come.
    bytes: usize,
}

impl Stream {
    /// Reads what is whole, each part told to `each`. Gives how many bytes were read: the rest is to be offered again with
    /// more behind it.
    ///
    /// # Errors
    /// When they are no blocks; nothing can be read behind that.
    pub fn read(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Part<'_>),
    ) -> Result<usize, Malformed> {
        let mut used = 0;
        loop {
            let Some(inside) = &mut self.inside else {
                if let Some(below) = Self::pruned(&bytes[used..])? {
                    each(Part::Pruned { below });
                    used += FRAME_HEADER_BYTES + PRUNED_BYTES;
                    continue;
                }
                let Some(inside) = Self::begin(&bytes[used..])? else { return Ok(used) };
                each(Part::Begin { height: inside.height, count: inside.count });
                used += FRAME_HEADER_BYTES + HEAD_BYTES;
                self.inside = Some(inside);
                continue;
            };
            used += inside.read(&bytes[used..], &mut each)?;
            if inside.count > 0 {
                return Ok(used);
            }
            if inside.bytes > 0 {
                return Err(Malformed::Rest);
            }
            each(Part::End { height: inside.height });
            self.inside = None;
        }
    }

    /// What is said instead of a block, once all of it is there.
    fn pruned(bytes: &[u8]) -> Result<Option<u64>, Malformed> {
        if frame_length(bytes, BLOCK_BYTES_MAX)? != Some(PRUNED_BYTES) {
            return Ok(None);
        }
        let payload = bytes.get(FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + PRUNED_BYTES);
        payload.map(|it| read_pruned(it).ok_or(Malformed::Tag)).transpose()
    }

    fn begin(bytes: &[u8]) -> Result<Option<Inside>, Malformed> {
        let Some(length) = frame_length(bytes, BLOCK_BYTES_MAX)? else { return Ok(None) };
        if length == PRUNED_BYTES {
            return Ok(None);
        }
        let left = length.checked_sub(HEAD_BYTES).ok_or(Malformed::Truncated)?;
        let Some(head) = bytes.get(FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + HEAD_BYTES) else {
            return Ok(None);
        };
        let Head { height, count, .. } = Head::take(&mut Reader(head))?;
        if count > (left / TRANSACTION_BYTES_MIN) as u64 {
            return Err(Malformed::Count);
        }
        Ok(Some(Inside { height, count, bytes: left }))
    }
}

impl Inside {
    /// Reads transactions as far as they are whole.
    fn read(&mut self, bytes: &[u8], each: &mut impl FnMut(Part<'_>)) -> Result<usize, Malformed> {
        let own = &bytes[..bytes.len().min(self.bytes)];
        let is_all = own.len() == self.bytes;
        let mut reader = Reader(own);
        while self.count > 0 {
            let before = reader;
            match Transaction::take(&mut reader) {
                Ok(transaction) => {
                    self.count -= 1;
                    each(Part::Transaction(transaction));
                }
                Err(Malformed::Truncated) if !is_all => {
                    reader = before;
                    break;
                }
                Err(why) => return Err(why),
            }
        }
        let used = own.len() - reader.0.len();
        self.bytes -= used;
        Ok(used)
    }
}
