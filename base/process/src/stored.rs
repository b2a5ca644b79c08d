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
}

impl StoredLog {
    /// An empty log whose next record has this number.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// Adds the next record.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
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
