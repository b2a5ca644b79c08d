//! What a node finds on its disk when it starts. It is made before the node, which is made from it.

/// The content of logs and cells, in the order in which they were given to what runs the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The logs.
    pub logs: Vec<StoredLog>,
    /// The cells: nothing in those that were never replaced.
    pub cells: Vec<Option<Vec<u8>>>,
}

/// The records of a log that can be read, up to the first that was not written whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredLog {
    first: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    torn_bytes: usize,
}

impl StoredLog {
    /// An empty log whose next record has this number.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// Bytes behind the last record that were cut off because they were no whole record: of a write that was under way when
    /// the process ended and that was never acknowledged, unless the disk has damaged the last one since.
    #[must_use]
    pub const fn torn_bytes(&self) -> usize {
        self.torn_bytes
    }

    pub(crate) fn set_torn_bytes(&mut self, bytes: usize) {
        self.torn_bytes = bytes;
    }

    /// Adds the next record.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// Forgets the first records until the rest have so many bytes at most; the last one stays.
    pub fn keep_last(&mut self, bytes_max: usize) {
        let too_many = self.bytes.len().saturating_sub(bytes_max);
        let last = self.ends.len().saturating_sub(1);
        let forgotten = if too_many == 0 {
            0
        } else {
            (self.ends.partition_point(|end| *end < too_many) + 1).min(last)
        };
        let Some(cut) = forgotten.checked_sub(1).map(|at| self.ends[at]) else { return };
        self.first += forgotten as u64;
        self.bytes.drain(..cut);
        self.ends.drain(..forgotten);
        self.ends.iter_mut().for_each(|end| *end -= cut);
    }

    /// The number that the next record will have.
    ///
    /// # Panics
    /// Never: a log of more than 2⁶⁴ records cannot be held.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.first + u64::try_from(self.ends.len()).expect("fits")
    }

    /// Number and bytes of each record, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let records = starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end]);
        (self.first..).zip(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: of records the last ones that fit are kept, with their numbers, and one at least.
    #[test]
    fn the_last_ones() {
        let whole = || {
            let mut log = StoredLog::new(7);
            (0..5_u8).for_each(|it| log.push(&[it; 10]));
            log
        };
        for (bytes_max, first) in [(usize::MAX, 7), (50, 7), (49, 8), (40, 8), (11, 11), (0, 11)] {
            let mut log = whole();
            log.keep_last(bytes_max);
            let (number, record) = log.iter().next().unwrap();
            assert_eq!((number, u64::from(record[0]) + 7, log.next()), (first, first, 12));
            assert_eq!(log.iter().count() as u64, 12 - first);
        }
        let mut empty = StoredLog::new(3);
        empty.keep_last(0);
        assert_eq!((empty.next(), empty.iter().count()), (3, 0));
    }
}
