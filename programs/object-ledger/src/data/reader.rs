//! Reading bytes that anybody may have written.

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// They end too early.
    #[error("it ends too early")]
    Short,
    /// More bytes follow.
    #[error("bytes follow that do not belong to it")]
    Trailing,
    /// They are of something else.
    #[error("it does not begin with the four bytes that say what it is")]
    Tag,
    /// A number is not one that may stand there.
    #[error("a number is out of its range")]
    Range,
}

/// Reads from the front.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Of all these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next so many bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next bytes, as many as the array has.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A number of four bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of eight bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// The four bytes that say what follows.
    ///
    /// # Errors
    /// When they are others.
    pub fn tag(&mut self, tag: [u8; 4]) -> Result<(), Malformed> {
        if self.array()? == tag { Ok(()) } else { Err(Malformed::Tag) }
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// When something does.
    pub const fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}
