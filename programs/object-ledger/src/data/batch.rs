//! A batch: transactions and the id that stays with them however often they are tried.

use super::{Malformed, Reader};

/// A transaction has at most so many bytes, and at least one.
pub const TRANSACTION_BYTES_MAX: usize = 64 << 10;
/// A batch has at most so many transactions.
pub const COUNT_MAX: usize = 1 << 16;
/// Anything that is stored as one object has at most so many bytes.
pub const WHOLE_BYTES_MAX: usize = 16 << 20;

const TAG: [u8; 4] = *b"BAT1";

/// The random id of a batch (the published `u`).
pub type BatchId = [u8; 16];

/// The pair (T, u): transactions in their order, and their id. Encoded: tag, id, count (4 bytes), and of each transaction its
/// length (4 bytes) and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// Its transactions; at least one.
    pub transactions: Vec<Vec<u8>>,
}

impl Batch {
    /// Bytes that an encoded batch has beside those of its transactions.
    pub const HEAD_BYTES: usize = 24;
    /// Bytes that each transaction adds beside its own.
    pub const EACH_BYTES: usize = 4;

    /// Its bytes.
    ///
    /// # Panics
    /// If it has more or larger transactions than a batch may have.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        let each = self.transactions.iter().map(|it| it.len() + Self::EACH_BYTES);
        let mut bytes = Vec::with_capacity(Self::HEAD_BYTES + each.sum::<usize>());
        bytes.extend_from_slice(&TAG);
        bytes.extend_from_slice(&self.id);
        let count = u32::try_from(self.transactions.len()).expect("bounded by COUNT_MAX");
        bytes.extend_from_slice(&count.to_be_bytes());
        for it in &self.transactions {
            let length = u32::try_from(it.len()).expect("bounded by TRANSACTION_BYTES_MAX");
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(it);
        }
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are not those of a batch, to the last one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > WHOLE_BYTES_MAX {
            return Err(Malformed::Range);
        }
        let mut reader = Reader::new(bytes);
        reader.tag(TAG)?;
        let id = reader.array()?;
        let count = usize::try_from(reader.u32()?).map_err(|_| Malformed::Range)?;
        if count == 0 || count > COUNT_MAX {
            return Err(Malformed::Range);
        }
        // A count alone takes no memory: each transaction has five bytes at least.
        let mut transactions = Vec::with_capacity(count.min(reader.rest().len() / 5));
        for _ in 0..count {
            let length = usize::try_from(reader.u32()?).map_err(|_| Malformed::Range)?;
            if length == 0 || length > TRANSACTION_BYTES_MAX {
                return Err(Malformed::Range);
            }
            transactions.push(reader.bytes(length)?.to_vec());
        }
        reader.end()?;
        Ok(Self { id, transactions })
    }
}
