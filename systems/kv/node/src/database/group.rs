//! Groups: transactions of many clients as they stand in a request and, unchanged, in the log.
//!
//! `since u64 | count u32 | count × (client u64, sequence u64, length u32, transaction)`, little-endian.

use super::transaction::{Malformed, Reader, TRANSACTION_BYTES_MAX};

/// Bytes in front of the transactions.
pub const HEAD_BYTES: usize = 12;

/// Transactions that a group may have.
pub const REQUESTS_MAX: u32 = 1 << 16;

/// A group.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The position that its sender had learned before it sent anything for these clients.
    pub since: u64,
    count: u32,
    rest: &'a [u8],
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Whose.
    pub client: u64,
    /// Which of the client's.
    pub sequence: u64,
    /// What; not looked into.
    pub transaction: &'a [u8],
}

impl<'a> Group<'a> {
    /// Reads the head, and looks that the requests fill the bytes exactly: later readers rely on it.
    ///
    /// # Errors
    /// When they do not.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let since = reader.u64()?;
        let count = reader.u32()?;
        let rest = reader.0;
        if count > REQUESTS_MAX {
            return Err(Malformed);
        }
        for _ in 0..count {
            let request = read_request(&mut reader)?;
            if request.transaction.len() > TRANSACTION_BYTES_MAX {
                return Err(Malformed);
            }
        }
        if !reader.0.is_empty() {
            return Err(Malformed);
        }
        Ok(Self { since, count, rest })
    }

    /// How many requests it has.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The requests.
    pub fn requests(&self) -> impl Iterator<Item = Request<'a>> + use<'a> {
        let mut reader = Reader(self.rest);
        (0..self.count).map(move |_| read_request(&mut reader).expect("read with the head"))
    }
}

fn read_request<'a>(reader: &mut Reader<'a>) -> Result<Request<'a>, Malformed> {
    let (client, sequence) = (reader.u64()?, reader.u64()?);
    Ok(Request { client, sequence, transaction: reader.long()? })
}

/// Begins a group behind what `out` holds; [`push`] adds to it.
pub fn begin(out: &mut Vec<u8>, since: u64) {
    out.extend_from_slice(&since.to_le_bytes());
    out.extend_from_slice(&0_u32.to_le_bytes());
}

/// Adds a request to the group that begins at `start`; `write` appends its transaction.
///
/// # Panics
/// If the group has as many as it may, or the transaction is too long.
pub fn push(
    out: &mut Vec<u8>,
    start: usize,
    client: u64,
    sequence: u64,
    write: impl FnOnce(&mut Vec<u8>),
) {
    out.extend_from_slice(&client.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = out.len() - length_at - 4;
    assert!(length <= TRANSACTION_BYTES_MAX, "a transaction of {length} bytes");
    let length = u32::try_from(length).expect("checked above");
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    let count: &mut [u8; 4] =
        (&mut out[start + 8..start + HEAD_BYTES]).try_into().expect("four bytes");
    let number = u32::from_le_bytes(*count) + 1;
    assert!(number <= REQUESTS_MAX, "a group of {number} transactions");
    *count = number.to_le_bytes();
}
