//! Blocks: read as a whole, or bit by bit as they come.

use super::transaction::Transaction;
use super::{BLOCK_BYTES_MAX, FRAME_HEADER_BYTES, Malformed, Reader, frame_length, put_u64};

/// Bytes of a block in front of its transactions.
pub const HEAD_BYTES: usize = 16;
/// The least that a transaction takes.
const TRANSACTION_BYTES_MIN: usize = 48;

/// A block whose bytes are all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Its height: 1, 2, 3, …
    pub height: u64,
    /// How many transactions.
    pub count: u64,
    /// Their bytes.
    pub bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Its transactions, in order.
    pub fn transactions(&self) -> impl Iterator<Item = Transaction<'a>> + use<'a> {
        let mut reader = Reader(self.bytes);
        (0..self.count).map_while(move |_| Transaction::take(&mut reader).ok())
    }
}

/// Reads a block, and each of its transactions once.
///
/// # Errors
/// When the bytes are none.
pub fn read_block(payload: &[u8]) -> Result<Block<'_>, Malformed> {
    if payload.len() > BLOCK_BYTES_MAX {
        return Err(Malformed::Length);
    }
    let mut reader = Reader(payload);
    let height = reader.u64()?;
    let count = reader.count(BLOCK_BYTES_MAX, TRANSACTION_BYTES_MIN)? as u64;
    let bytes = reader.0;
    for _ in 0..count {
        Transaction::take(&mut reader)?;
    }
    reader.end()?;
    Ok(Block { height, count, bytes })
}

/// Appends what stands in front of a block's transactions, its frame included, where they take `bytes`.
pub fn write_block_head(out: &mut Vec<u8>, height: u64, count: u64, bytes: u64) {
    put_u64(out, HEAD_BYTES as u64 + bytes);
    put_u64(out, height);
    put_u64(out, count);
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

    fn begin(bytes: &[u8]) -> Result<Option<Inside>, Malformed> {
        let Some(length) = frame_length(bytes, BLOCK_BYTES_MAX)? else { return Ok(None) };
        let left = length.checked_sub(HEAD_BYTES).ok_or(Malformed::Truncated)?;
        let Some(head) = bytes.get(FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + HEAD_BYTES) else {
            return Ok(None);
        };
        let mut reader = Reader(head);
        let (height, count) = (reader.u64()?, reader.u64()?);
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
