//! Where a head ends, and what its headers say about the body behind it. Shared by both directions; strict
//! wherever two readers of the same bytes could disagree (RFC 9112 §6.3 and §11).

use super::limits::{HttpError, Limits};

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Everything until the connection ends. Answers only.
    UntilClose,
}

/// Looks for the end of the head at the beginning of `bytes`; remembers in `scanned` how far it has looked,
/// so that a head that comes byte by byte is not scanned again and again. Gives the head's length, CR LF CR LF
/// included.
///
/// # Errors
/// On a bare line feed, and when the head is longer than its bound.
pub(super) fn find_end(
    bytes: &[u8],
    scanned: &mut usize,
    limits: &Limits,
) -> Result<Option<usize>, HttpError> {
    let window = &bytes[..bytes.len().min(limits.head_bytes_max)];
    while let Some(at) = line_feed(&window[*scanned..]) {
        let feed = *scanned + at;
        if feed == 0 || window[feed - 1] != b'\r' {
            return Err(HttpError::BareLineFeed);
        }
        *scanned = feed + 1;
        if feed == 1 || window[feed - 2] == b'\n' {
            return Ok(Some(feed + 1));
        }
    }
    *scanned = window.len();
    if window.len() == limits.head_bytes_max {
        return Err(HttpError::HeadTooLong(limits.head_bytes_max));
    }
    Ok(None)
}

/// The first line feed. Blocks without one are passed over as vectors; byte by byte it would be the dearest
/// part of a parse.
fn line_feed(bytes: &[u8]) -> Option<usize> {
    const BLOCK_BYTES: usize = 32;
    let is_feed = |byte: &u8| *byte == b'\n';
    let blocks = bytes.chunks_exact(BLOCK_BYTES);
    let clear = blocks.take_while(|block| !block.iter().fold(false, |found, b| found | is_feed(b)));
    let start = clear.count() * BLOCK_BYTES;
    bytes[start..].iter().position(is_feed).map(|at| start + at)
}

const CONTENT_LENGTH: &str = "content-length";
const TRANSFER_ENCODING: &str = "transfer-encoding";
const CONNECTION: &str = "connection";
pub(super) const LOCATION: &str = "location";

/// Whether a header has the name. The length decides first, in line: most headers are none of ours.
#[inline]
pub(super) fn is_name(name: &str, known: &str) -> bool {
    name.len() == known.len() && name.eq_ignore_ascii_case(known)
}

/// What the headers of one message say about its body and its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    length: Option<u64>,
    has_transfer_encoding: bool,
    is_chunked: bool,
    closes: bool,
    keeps: bool,
}

impl Signals {
    /// Whether a header of this name says anything here. Only these keep a head from being recognised when
    /// their values change.
    pub(super) fn concern(name: &str) -> bool {
        is_name(name, CONTENT_LENGTH)
            || is_name(name, TRANSFER_ENCODING)
            || is_name(name, CONNECTION)
            || is_name(name, LOCATION)
    }

    /// Takes a header into account.
    pub(super) fn header(&mut self, name: &str, value: &[u8]) -> Result<(), HttpError> {
        if is_name(name, CONTENT_LENGTH) {
            self.content_length(value)
        } else if is_name(name, TRANSFER_ENCODING) {
            self.transfer_encoding(value)
        } else {
            if is_name(name, CONNECTION) {
                self.connection(value);
            }
            Ok(())
        }
    }

    /// Values may repeat (RFC 9110 §8.6) but not differ.
    fn content_length(&mut self, value: &[u8]) -> Result<(), HttpError> {
        for item in list(value) {
            let length = decimal(item).ok_or(HttpError::ContentLength)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(HttpError::ConflictingLengths);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// `chunked` must be the last coding and stand there once.
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), HttpError> {
        for item in list(value) {
            if self.is_chunked || item.is_empty() {
                return Err(HttpError::TransferEncoding);
            }
            self.has_transfer_encoding = true;
            self.is_chunked = item.eq_ignore_ascii_case(b"chunked");
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for item in list(value) {
            self.closes |= item.eq_ignore_ascii_case(b"close");
            self.keeps |= item.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Whether the connection outlives the message: the rule of HTTP/1.1, or that of 1.0.
    pub(super) const fn keeps_alive(&self, minor_version: u8) -> bool {
        !self.closes && (minor_version >= 1 || self.keeps)
    }

    /// The framing that the headers give; `None`: they give none.
    pub(super) const fn framing(&self, minor_version: u8) -> Result<Option<Framing>, HttpError> {
        match (self.has_transfer_encoding, self.length) {
            (true, Some(_)) => Err(HttpError::AmbiguousLength),
            // HTTP/1.0 has no transfer codings; a message that has one has been altered on the way.
            (true, None) if !self.is_chunked || minor_version == 0 => {
                Err(HttpError::TransferEncoding)
            }
            (true, None) => Ok(Some(Framing::Chunked)),
            (false, Some(length)) => Ok(Some(Framing::Length(length))),
            (false, None) => Ok(None),
        }
    }
}

/// Items of a comma-separated list, without the space around them.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Digits only: no sign, no space, no empty text, nothing beyond 64 bits.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}
