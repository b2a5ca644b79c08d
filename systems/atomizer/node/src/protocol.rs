//! What is said on connections, in the layouts of the published system: little-endian numbers, a list behind its count
//! (u64), one of several kinds behind its tag (u8), and around each message a frame with its length (u64). The README
//! gives the form byte by byte. Anybody can send anything: what is not of this form is an error with a reason, never a
//! panic, and bounded.

pub mod block;
pub mod entry;
pub mod errors;
mod fuzz;
pub mod request;
pub mod status;
#[cfg(test)]
mod tests;
pub mod transaction;

pub use fuzz::fuzz_messages;

/// Bytes of a frame in front of its payload.
pub const FRAME_HEADER_BYTES: usize = 8;

/// The longest request to an atomizer: a transaction with as many inputs and outputs as may be.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// The longest block. At a quarter of a second and 176 bytes a transaction, one and a half million a second.
pub const BLOCK_BYTES_MAX: usize = 64 << 20;

/// The longest list of errors in one frame.
pub const ERRORS_BYTES_MAX: usize = 4 << 20;

/// The longest question to a watchtower, and the longest answer.
pub const STATUS_BYTES_MAX: usize = 16 << 20;

/// The name of a transaction or of an output: a SHA-256.
pub type Hash = [u8; 32];

/// Why bytes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Malformed {
    /// The message ends before what it says it holds.
    Truncated,
    /// A count is more than may be, or none where one must be.
    Count,
    /// There is no such kind.
    Tag,
    /// A frame is longer than any message.
    Length,
    /// Bytes stand behind the message.
    Rest,
    /// An input is vouched for that the transaction has not.
    Input,
    /// A block is not what its hash says.
    Hash,
}

impl Malformed {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Truncated,
        Self::Count,
        Self::Tag,
        Self::Length,
        Self::Rest,
        Self::Input,
        Self::Hash,
    ];

    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Count => "count",
            Self::Tag => "tag",
            Self::Length => "length",
            Self::Rest => "rest",
            Self::Input => "input",
            Self::Hash => "hash",
        }
    }
}

/// How often bytes were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Malformed::ALL.len()]);

impl Refusals {
    /// Counts one.
    pub fn count(&mut self, why: Malformed) {
        self.0[why as usize] += 1;
    }

    /// How many for this reason.
    #[must_use]
    pub const fn of(&self, why: Malformed) -> u64 {
        self.0[why as usize]
    }

    /// How many for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// All of them in Prometheus's text format, under this name.
    pub(crate) fn text(&self, name: &str) -> String {
        let mut text = format!(
            "# HELP {name} Connections closed for what they sent, by reason.\n# TYPE {name} counter\n"
        );
        for why in Malformed::ALL {
            text.push_str(&format!("{name}{{reason=\"{}\"}} {}\n", why.name(), self.of(why)));
        }
        text
    }
}

/// A frame at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What is in it.
    pub payload: &'a [u8],
    /// How many bytes it takes with its length.
    pub used: usize,
}

/// The first frame, if all of it is there.
///
/// # Errors
/// When its length is more than `bytes_max`: before a byte of it is waited for.
#[inline]
pub fn next_frame(bytes: &[u8], bytes_max: usize) -> Result<Option<Frame<'_>>, Malformed> {
    let Some(length) = frame_length(bytes, bytes_max)? else { return Ok(None) };
    let used = FRAME_HEADER_BYTES + length;
    Ok(bytes.get(FRAME_HEADER_BYTES..used).map(|payload| Frame { payload, used }))
}

/// How long the payload of the first frame is, once that can be read.
///
/// # Errors
/// When it is more than `bytes_max`.
#[inline]
pub fn frame_length(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, Malformed> {
    let Some(head) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
    let length = usize::try_from(u64::from_le_bytes(*head)).map_err(|_| Malformed::Length)?;
    if length > bytes_max { Err(Malformed::Length) } else { Ok(Some(length)) }
}

/// Appends a frame whose payload `write` appends.
pub fn write_frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    write(out);
    let length = (out.len() - start - FRAME_HEADER_BYTES) as u64;
    out[start..start + FRAME_HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        let (first, rest) = self.0.split_first_chunk::<8>().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*first))
    }

    #[inline]
    pub(crate) fn hash(&mut self) -> Result<&'a Hash, Malformed> {
        let (first, rest) = self.0.split_first_chunk::<32>().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(first)
    }

    /// A count of things, each of `bytes` bytes at least, of which there may be `max`.
    #[inline]
    pub(crate) fn count(&mut self, max: usize, bytes: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u64()?).map_err(|_| Malformed::Count)?;
        if count > max {
            return Err(Malformed::Count);
        }
        if count * bytes > self.0.len() { Err(Malformed::Truncated) } else { Ok(count) }
    }

    /// Hashes behind their count.
    #[inline]
    pub(crate) fn hashes(&mut self, max: usize) -> Result<&'a [Hash], Malformed> {
        let count = self.count(max, 32)?;
        let (first, rest) = self.0.split_at(count * 32);
        self.0 = rest;
        Ok(first.as_chunks::<32>().0)
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Rest) }
    }
}

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_hashes(out: &mut Vec<u8>, hashes: &[Hash]) {
    put_u64(out, hashes.len() as u64);
    out.extend_from_slice(hashes.as_flattened());
}
