//! What became of transactions that are in no block.

use super::transaction::INPUTS_MAX;
use super::{ERRORS_BYTES_MAX, Hash, Malformed, Reader, put_hashes, put_u64};

/// The least that an error takes.
const ERROR_BYTES_MIN: usize = 33;

/// Why a transaction is in no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why<'a> {
    /// It was not taken up: too much waited, or whoever led does not any more. Nothing of it was or will be done.
    NotTaken,
    /// These inputs do not exist.
    Unknown(&'a [Hash]),
    /// The height of those that vouch for it is too old, or not there yet.
    Range,
    /// Not all of its inputs were vouched for in time.
    Incomplete,
    /// These inputs are spent.
    Spent(&'a [Hash]),
}

impl Why<'_> {
    const fn tag(&self) -> u8 {
        match self {
            Self::NotTaken => 0,
            Self::Unknown(_) => 1,
            Self::Range => 2,
            Self::Incomplete => 3,
            Self::Spent(_) => 4,
        }
    }
}

/// What became of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error<'a> {
    /// The transaction's name.
    pub id: &'a Hash,
    /// Why.
    pub why: Why<'a>,
}

impl<'a> Error<'a> {
    /// Appends it, without a frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.id);
        out.push(self.why.tag());
        if let Why::Unknown(hashes) | Why::Spent(hashes) = self.why {
            put_hashes(out, hashes);
        }
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let id = reader.hash()?;
        let why = match reader.byte()? {
            0 => Why::NotTaken,
            1 => Why::Unknown(reader.hashes(INPUTS_MAX)?),
            2 => Why::Range,
            3 => Why::Incomplete,
            4 => Why::Spent(reader.hashes(INPUTS_MAX)?),
            _ => return Err(Malformed::Tag),
        };
        Ok(Self { id, why })
    }
}

/// Errors behind their count.
#[derive(Clone, Copy, Debug)]
pub struct Errors<'a> {
    count: u64,
    rest: &'a [u8],
}

impl<'a> Errors<'a> {
    /// How many.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Error<'a>> + use<'a> {
        let mut reader = Reader(self.rest);
        (0..self.count).map_while(move |_| Error::take(&mut reader).ok())
    }
}

/// Reads a list of errors, and each of them once.
///
/// # Errors
/// When the bytes are none.
pub fn read_errors(payload: &[u8]) -> Result<Errors<'_>, Malformed> {
    if payload.len() > ERRORS_BYTES_MAX {
        return Err(Malformed::Length);
    }
    let mut reader = Reader(payload);
    let count = reader.count(ERRORS_BYTES_MAX, ERROR_BYTES_MIN)? as u64;
    let rest = reader.0;
    for _ in 0..count {
        Error::take(&mut reader)?;
    }
    reader.end()?;
    Ok(Errors { count, rest })
}

/// Appends a frame of `count` errors that were written one behind the other.
pub fn write_errors(out: &mut Vec<u8>, count: u64, errors: &[u8]) {
    put_u64(out, 8 + errors.len() as u64);
    put_u64(out, count);
    out.extend_from_slice(errors);
}
