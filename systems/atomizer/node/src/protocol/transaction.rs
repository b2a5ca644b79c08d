//! A compact transaction: its name, the outputs that it spends and those that it makes, by their names alone.

use super::{Hash, Malformed, Reader, put_hashes};

/// Most inputs of a transaction.
pub const INPUTS_MAX: usize = 128;
/// Most outputs.
pub const OUTPUTS_MAX: usize = 4096;

/// A compact transaction as it lies in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction<'a> {
    /// Its name.
    pub id: &'a Hash,
    /// What it spends.
    pub inputs: &'a [Hash],
    /// What it makes.
    pub outputs: &'a [Hash],
}

impl<'a> Transaction<'a> {
    /// Bytes that it takes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        32 + 8 + 32 * self.inputs.len() + 8 + 32 * self.outputs.len()
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.id);
        put_hashes(out, self.inputs);
        put_hashes(out, self.outputs);
    }

    /// The one that the bytes begin with.
    ///
    /// # Errors
    /// When there is none, or not all of it ([`Malformed::Truncated`]).
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::take(&mut Reader(bytes))
    }

    #[inline]
    pub(crate) fn take(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            id: reader.hash()?,
            inputs: reader.hashes(INPUTS_MAX)?,
            outputs: reader.hashes(OUTPUTS_MAX)?,
        })
    }
}
