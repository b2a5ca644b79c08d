//! Bodies, read incrementally: counted always, kept only up to a bound. One state machine for all framings;
//! it never buffers, so a body costs no memory however long it is.

use super::head::Framing;
use super::limits::{HttpError, Limits};

/// The reader of one body.
#[derive(Clone, Copy, Debug)]
pub struct BodyReader {
    state: State,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Done,
    Fixed { left: u64 },
    UntilClose,
    ChunkLine { size: u64, digits: u8, part: LinePart, line_bytes: usize },
    ChunkData { left: u64 },
    ChunkEnd { saw_return: bool },
    Trailer { part: TrailerPart, bytes: usize },
}

/// Where in the line in front of a chunk the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePart {
    Size,
    Space,
    Extension,
    Return,
}

/// Where in a trailer line the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrailerPart {
    LineStart,
    Name,
    Value,
    Return,
    LastReturn,
}

const CHUNK_START: State =
    State::ChunkLine { size: 0, digits: 0, part: LinePart::Size, line_bytes: 0 };

impl BodyReader {
    /// A reader for a body with the given framing.
    ///
    /// # Errors
    /// When its length is already known to be beyond the bound.
    pub const fn new(framing: Framing, limits: &Limits) -> Result<Self, HttpError> {
        let state = match framing {
            Framing::Length(length) if length > limits.body_bytes_max => {
                return Err(HttpError::BodyTooLong(limits.body_bytes_max));
            }
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(left) => State::Fixed { left },
            Framing::Chunked => CHUNK_START,
            Framing::UntilClose => State::UntilClose,
        };
        Ok(Self { state, bytes: 0 })
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether only the end of the connection can complete it.
    #[must_use]
    pub fn ends_with_connection(&self) -> bool {
        self.state == State::UntilClose
    }

    /// Body bytes so far, without chunk lines and trailers.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads what has arrived; appends to `kept` while it holds less than the bound. Gives how many bytes
    /// belonged to the body: all of them, unless it ended.
    ///
    /// # Errors
    /// When the bytes are not a body of this framing, or beyond a bound.
    pub fn read(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        kept: &mut Vec<u8>,
    ) -> Result<usize, HttpError> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            at += match self.state {
                State::Done => unreachable!("the loop ends with it"),
                State::Fixed { left } => {
                    let (taken, left) = self.data(&bytes[at..], left, limits, kept);
                    self.state = if left == 0 { State::Done } else { State::Fixed { left } };
                    taken
                }
                State::ChunkData { left } => {
                    let (taken, left) = self.data(&bytes[at..], left, limits, kept);
                    self.state = if left == 0 {
                        State::ChunkEnd { saw_return: false }
                    } else {
                        State::ChunkData { left }
                    };
                    taken
                }
                State::UntilClose => {
                    let left = limits.body_bytes_max - self.bytes;
                    let (taken, left) = self.data(&bytes[at..], left, limits, kept);
                    if left == 0 && at + taken < bytes.len() {
                        return Err(HttpError::BodyTooLong(limits.body_bytes_max));
                    }
                    taken
                }
                _ => {
                    self.state = self.between(bytes[at], limits)?;
                    1
                }
            };
        }
        Ok(at)
    }

    /// Takes as much as there is of `left` data bytes.
    fn data(
        &mut self,
        bytes: &[u8],
        left: u64,
        limits: &Limits,
        kept: &mut Vec<u8>,
    ) -> (usize, u64) {
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let room = limits.body_kept_max.saturating_sub(kept.len()).min(taken);
        kept.extend_from_slice(&bytes[..room]);
        self.bytes += taken as u64;
        (taken, left - taken as u64)
    }

    /// One byte of what stands between data: chunk lines, chunk ends, trailers.
    fn between(&self, byte: u8, limits: &Limits) -> Result<State, HttpError> {
        match self.state {
            State::ChunkLine { size, digits, part, line_bytes } => {
                if line_bytes >= limits.chunk_line_bytes_max {
                    return Err(HttpError::ChunkLineTooLong(limits.chunk_line_bytes_max));
                }
                self.chunk_line(byte, (size, digits, part, line_bytes + 1), limits)
            }
            State::ChunkEnd { saw_return } => match (saw_return, byte) {
                (false, b'\r') => Ok(State::ChunkEnd { saw_return: true }),
                (true, b'\n') => Ok(CHUNK_START),
                _ => Err(HttpError::ChunkEnd),
            },
            State::Trailer { part, bytes } => trailer(byte, part, bytes, limits),
            other => Ok(other),
        }
    }

    fn chunk_line(
        &self,
        byte: u8,
        (size, digits, part, line_bytes): (u64, u8, LinePart, usize),
        limits: &Limits,
    ) -> Result<State, HttpError> {
        let to = |part| Ok(State::ChunkLine { size, digits, part, line_bytes });
        match (part, byte) {
            (LinePart::Size, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).expect("a hexadecimal digit");
                // 15 digits are 2^60: no server means more, and nothing can overflow.
                if digits == 15 {
                    return Err(HttpError::ChunkSize);
                }
                let size = size * 16 + u64::from(digit);
                Ok(State::ChunkLine { size, digits: digits + 1, part, line_bytes })
            }
            (LinePart::Size | LinePart::Space, b' ' | b'\t') if digits > 0 => to(LinePart::Space),
            (LinePart::Size | LinePart::Space, b';') if digits > 0 => to(LinePart::Extension),
            (LinePart::Size | LinePart::Space, b'\r') if digits > 0 => to(LinePart::Return),
            (LinePart::Extension, b'\r') => to(LinePart::Return),
            (LinePart::Extension, byte) if byte != b'\n' => to(LinePart::Extension),
            (LinePart::Return, b'\n') if size == 0 => {
                Ok(State::Trailer { part: TrailerPart::LineStart, bytes: 0 })
            }
            (LinePart::Return, b'\n') => {
                if size > limits.body_bytes_max - self.bytes {
                    return Err(HttpError::BodyTooLong(limits.body_bytes_max));
                }
                Ok(State::ChunkData { left: size })
            }
            _ => Err(HttpError::ChunkSize),
        }
    }
}

fn trailer(byte: u8, part: TrailerPart, bytes: usize, limits: &Limits) -> Result<State, HttpError> {
    let bytes = bytes + 1;
    if bytes > limits.trailer_bytes_max {
        return Err(HttpError::Trailers(limits.trailer_bytes_max));
    }
    let part = match (part, byte) {
        (TrailerPart::LineStart, b'\r') => TrailerPart::LastReturn,
        (TrailerPart::LastReturn, b'\n') => return Ok(State::Done),
        (TrailerPart::LineStart | TrailerPart::Name, byte)
            if byte.is_ascii_graphic() && byte != b':' =>
        {
            TrailerPart::Name
        }
        (TrailerPart::Name, b':') => TrailerPart::Value,
        (TrailerPart::Value, b'\r') => TrailerPart::Return,
        (TrailerPart::Value, b'\t' | 0x20..=0x7e | 0x80..) => TrailerPart::Value,
        (TrailerPart::Return, b'\n') => TrailerPart::LineStart,
        _ => return Err(HttpError::Trailers(limits.trailer_bytes_max)),
    };
    Ok(State::Trailer { part, bytes })
}
