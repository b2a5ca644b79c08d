//! What stands in the log that atomizers agree on.

use super::transaction::Transaction;
use super::{Malformed, Reader, put_u64};

mod tag {
    pub const TRANSACTIONS: u8 = 0;
    pub const MAKE_BLOCK: u8 = 1;
    pub const PRUNE: u8 = 3;
    pub const LEDGER: u8 = 4;
}

/// Bytes in front of an entry's transactions.
pub const HEAD_BYTES: usize = 9;
/// The least that a transaction takes with its height.
const TRANSACTION_BYTES_MIN: usize = 56;

/// An entry of the log.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// Transactions whose inputs are all vouched for.
    Transactions(Batch<'a>),
    /// What has gathered becomes a block.
    MakeBlock,
    /// Blocks below this height may be forgotten.
    Prune(u64),
    /// The ledger begins, and this is its number.
    Ledger(u64),
}

/// A transaction whose inputs are all vouched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complete<'a> {
    /// The oldest height at which an input was seen unspent.
    pub height: u64,
    /// The transaction.
    pub transaction: Transaction<'a>,
    /// Where the transaction's bytes begin in the entry.
    pub at: usize,
}

/// Transactions of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    count: u64,
    entry: &'a [u8],
}

impl<'a> Batch<'a> {
    /// How many.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Them, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Complete<'a>> + use<'a> {
        let (mut reader, length) = (Reader(&self.entry[HEAD_BYTES..]), self.entry.len());
        (0..self.count).map_while(move |_| {
            let height = reader.u64().ok()?;
            let at = length - reader.0.len();
            let transaction = Transaction::take(&mut reader).ok()?;
            Some(Complete { height, transaction, at })
        })
    }
}

/// Reads an entry. Of transactions only their count: whoever reads them finds out whether they are all there.
///
/// # Errors
/// When the bytes are none.
pub fn read_entry(bytes: &[u8]) -> Result<Entry<'_>, Malformed> {
    let mut reader = Reader(bytes);
    let entry = match reader.byte()? {
        tag::TRANSACTIONS => {
            let count = reader.count(usize::MAX / 64, TRANSACTION_BYTES_MIN)? as u64;
            return Ok(Entry::Transactions(Batch { count, entry: bytes }));
        }
        tag::MAKE_BLOCK => Entry::MakeBlock,
        tag::PRUNE => Entry::Prune(reader.u64()?),
        tag::LEDGER => Entry::Ledger(reader.u64()?),
        _ => return Err(Malformed::Tag),
    };
    reader.end()?;
    Ok(entry)
}

/// Begins an entry of transactions, whose count [`set_count`] says later.
pub fn begin_transactions(out: &mut Vec<u8>) {
    out.push(tag::TRANSACTIONS);
    put_u64(out, 0);
}

/// Appends a transaction to such an entry.
#[inline]
pub fn push_transaction(out: &mut Vec<u8>, height: u64, transaction: &Transaction<'_>) {
    put_u64(out, height);
    transaction.write(out);
}

/// Says how many transactions the entry in `out` has.
pub fn set_count(out: &mut [u8], count: u64) {
    out[1..HEAD_BYTES].copy_from_slice(&count.to_le_bytes());
}

/// The entry that makes a block.
#[must_use]
pub fn make_block() -> Vec<u8> {
    vec![tag::MAKE_BLOCK]
}

/// The entry that lets blocks be forgotten.
#[must_use]
pub fn prune(below: u64) -> Vec<u8> {
    numbered(tag::PRUNE, below)
}

/// The entry with which a ledger begins, with a number that no other has: not 0.
#[must_use]
pub fn ledger(number: u64) -> Vec<u8> {
    numbered(tag::LEDGER, number)
}

fn numbered(tag: u8, number: u64) -> Vec<u8> {
    let mut bytes = vec![tag];
    put_u64(&mut bytes, number);
    bytes
}
