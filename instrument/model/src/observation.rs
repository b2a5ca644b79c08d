//! Results of reads: bytes that a session or a client saw for a transaction, kept beside the rows.
//!
//! A list keeps its memory when it is emptied, so that nothing is allocated on the path of a transaction once it
//! has grown to its size. It never interprets a byte.

use crate::row::{Stamp, TxId};

/// The longest observation that is kept: a list of some thousand numbers. A longer one is left out and counted; half
/// of an answer would be taken for another answer.
pub const OBSERVATION_BYTES_MAX: usize = 64 << 10;

/// The result that one transaction was seen to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation<'a> {
    /// The transaction.
    pub tx: TxId,
    /// When it was seen, nanoseconds after the trial's start.
    pub at: Stamp,
    /// The returned bytes, in the system's own form.
    pub bytes: &'a [u8],
}

/// Observations one after the other, in memory that is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    /// Transaction, stamp, and where its bytes end.
    list: Vec<(TxId, Stamp, usize)>,
    bytes: Vec<u8>,
}

impl Observations {
    /// Adds one.
    pub fn push(&mut self, one: Observation<'_>) {
        self.bytes.extend_from_slice(one.bytes);
        self.list.push((one.tx, one.at, self.bytes.len()));
    }

    /// Adds all of another list, stamped with `at`.
    pub fn push_all_at(&mut self, others: &Self, at: Stamp) {
        for one in others.iter() {
            self.push(Observation { at, ..one });
        }
    }

    /// All of them, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Observation<'_>> {
        let starts = std::iter::once(0).chain(self.list.iter().map(|(_, _, end)| *end));
        self.list.iter().zip(starts).map(|(&(tx, at, end), start)| Observation {
            tx,
            at,
            bytes: &self.bytes[start..end],
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes of all of them together.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: observations come back whole and in order, the empty one among them, and a list that was emptied holds
    /// nothing of before.
    #[test]
    fn they_come_back() {
        let mut list = Observations::default();
        for (tx, bytes) in [(1, &b"one"[..]), (2, b""), (3, b"three")] {
            list.push(Observation { tx, at: 7, bytes });
        }
        let mut stamped = Observations::default();
        stamped.push_all_at(&list, 9);
        let found: Vec<_> = stamped.iter().map(|one| (one.tx, one.at, one.bytes)).collect();
        assert_eq!(found, [(1, 9, &b"one"[..]), (2, 9, b""), (3, 9, b"three")]);
        assert_eq!((stamped.len(), stamped.byte_count()), (3, 8));
        stamped.clear();
        assert!(stamped.is_empty() && stamped.iter().next().is_none());
    }
}
