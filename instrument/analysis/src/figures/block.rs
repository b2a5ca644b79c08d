//! A few rows at a time: what they are counted with stays at hand, and what can be done once for all is.

/// Rows that are counted together: few enough to stay in the processor's nearest cache (9 KiB).
pub(crate) const BLOCK_ROWS: usize = 64;

/// One number a row, of those rows of a block that have it. Kept by whoever uses it, and emptied for each block: making it
/// anew would write it once more.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    values: [i64; BLOCK_ROWS],
    count: usize,
}

impl Values {
    /// Forgets what is in it.
    #[inline]
    pub fn clear(&mut self) -> &mut Self {
        self.count = 0;
        self
    }

    /// Adds `value`, if it `is` one. There is no branch: whether a row has a number may be anybody's guess.
    #[inline]
    pub fn push_if(&mut self, is: bool, value: i64) {
        self.values[self.count] = value;
        self.count += usize::from(is);
    }

    pub fn all(&self) -> &[i64] {
        &self.values[..self.count]
    }
}

impl Default for Values {
    fn default() -> Self {
        Self { values: [0; BLOCK_ROWS], count: 0 }
    }
}
