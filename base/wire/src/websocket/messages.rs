//! Messages, as they come out of frames. The reader takes payload as it arrives, so that a long message that
//! comes in many receipts is looked at once; a message that has arrived whole in one frame is not copied.

use super::frame::{CONTROL_BYTES_MAX, Header, Opcode, apply_mask, read_header};
use super::limits::{Limits, WebSocketError};

/// Whose frames are read: the client's are masked, the server's are not (RFC 6455 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A client.
    Client,
    /// A server.
    Server,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message of text.
    Text(&'a str),
    /// A whole message of bytes.
    Binary(&'a [u8]),
    /// A ping, to be answered by a pong with the same payload.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The end. Nothing behind it is read.
    Close {
        /// Why, as a number of RFC 6455 §7.4; `None` if the peer gave none.
        code: Option<u16>,
        /// Why, in the peer's words.
        reason: &'a str,
    },
}

/// What one call of [`MessageReader::read`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Bytes that were used.
    pub used: usize,
    /// What was found; `None`: more bytes are needed.
    pub event: Option<Event<'a>>,
}

/// The reader of one direction of a connection, behind the handshake.
#[derive(Clone, Debug)]
pub struct MessageReader {
    limits: Limits,
    sender: Sender,
    /// The frame whose payload is being read, and how much of it was.
    frame: Option<(Header, u64)>,
    /// What the message is whose first frame was not its last.
    begun: Option<Opcode>,
    message: Vec<u8>,
    is_given: bool,
    control: Vec<u8>,
    is_closed: bool,
}

impl MessageReader {
    /// A reader of what `sender` sends.
    #[must_use]
    pub fn new(sender: Sender, limits: Limits) -> Self {
        Self {
            limits,
            sender,
            frame: None,
            begun: None,
            message: Vec::new(),
            is_given: false,
            control: Vec::with_capacity(CONTROL_BYTES_MAX),
            is_closed: false,
        }
    }

    /// Reads on: `bytes` begins with what the last call left unused. Call again with the rest while it gives
    /// events.
    ///
    /// # Errors
    /// When the bytes are not of the protocol, or go beyond a bound; the connection is then lost.
    pub fn read<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Progress<'a>, WebSocketError> {
        if self.is_closed {
            return Ok(Progress { used: bytes.len(), event: None });
        }
        if self.is_given {
            self.message.clear();
            self.is_given = false;
        }
        let mut used = 0;
        loop {
            let (header, before) = match self.frame {
                Some(frame) => frame,
                None => {
                    let Some(header) = read_header(&bytes[used..])? else {
                        return Ok(Progress { used, event: None });
                    };
                    self.admit(&header)?;
                    used += header.header_bytes;
                    (header, 0)
                }
            };
            let rest = &bytes[used..];
            let left =
                usize::try_from(header.payload_bytes - before).expect("bounded when admitted");
            let part = &rest[..left.min(rest.len())];
            used += part.len();
            if part.len() < left {
                self.keep(&header, before, part);
                let read = before + u64::try_from(part.len()).expect("a length fits 64 bits");
                self.frame = Some((header, read));
                return Ok(Progress { used, event: None });
            }
            self.frame = None;
            if self.is_whole(&header, before) {
                let event = Some(data(header.opcode, part)?);
                return Ok(Progress { used, event });
            }
            self.keep(&header, before, part);
            if header.opcode.is_control() {
                self.is_closed = header.opcode == Opcode::Close;
                let event = Some(control(header.opcode, &self.control)?);
                return Ok(Progress { used, event });
            }
            let kind = self.begun.unwrap_or(header.opcode);
            self.begun = Some(kind);
            if header.is_final {
                self.begun = None;
                self.is_given = true;
                return Ok(Progress { used, event: Some(data(kind, &self.message)?) });
            }
        }
    }

    /// Forgets the connection and keeps the memory.
    pub fn reset(&mut self) {
        self.frame = None;
        self.begun = None;
        self.message.clear();
        self.is_given = false;
        self.is_closed = false;
    }

    /// Whether all of a message lies in the bytes that were offered, so that it need not be kept.
    fn is_whole(&self, header: &Header, before: u64) -> bool {
        let is_first = before == 0 && self.begun.is_none();
        is_first && header.is_final && header.mask.is_none() && !header.opcode.is_control()
    }

    /// Refuses what may not come now, before any of its payload is kept.
    fn admit(&mut self, header: &Header) -> Result<(), WebSocketError> {
        if header.mask.is_some() != (self.sender == Sender::Client) {
            return Err(WebSocketError::Mask);
        }
        if header.opcode.is_control() {
            self.control.clear();
            return Ok(());
        }
        if self.begun.is_some() != (header.opcode == Opcode::Continuation) {
            return Err(WebSocketError::Fragmentation);
        }
        if header.payload_bytes > self.limits.frame_bytes_max {
            return Err(WebSocketError::FrameTooLong(header.payload_bytes));
        }
        let bytes_max = self.limits.message_bytes_max;
        let left = u64::try_from(bytes_max.saturating_sub(self.message.len()));
        if header.payload_bytes > left.expect("a length fits 64 bits") {
            return Err(WebSocketError::MessageTooLong(bytes_max));
        }
        Ok(())
    }

    fn keep(&mut self, header: &Header, before: u64, part: &[u8]) {
        let into = if header.opcode.is_control() { &mut self.control } else { &mut self.message };
        let start = into.len();
        into.extend_from_slice(part);
        if let Some(mask) = header.mask {
            let offset = usize::try_from(before % 4).expect("below 4");
            apply_mask(&mut into[start..], mask, offset);
        }
    }
}

fn data(kind: Opcode, payload: &[u8]) -> Result<Event<'_>, WebSocketError> {
    if kind == Opcode::Binary {
        return Ok(Event::Binary(payload));
    }
    let text = std::str::from_utf8(payload).map_err(|_| WebSocketError::Text)?;
    Ok(Event::Text(text))
}

fn control(opcode: Opcode, payload: &[u8]) -> Result<Event<'_>, WebSocketError> {
    match opcode {
        Opcode::Ping => Ok(Event::Ping(payload)),
        Opcode::Pong => Ok(Event::Pong(payload)),
        _ => close(payload),
    }
}

/// A close frame has no body, or a code that may be sent and a reason in UTF-8 (§5.5.1, §7.4).
fn close(payload: &[u8]) -> Result<Event<'_>, WebSocketError> {
    if payload.is_empty() {
        return Ok(Event::Close { code: None, reason: "" });
    }
    let (code, reason) = payload.split_first_chunk::<2>().ok_or(WebSocketError::CloseBody)?;
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(WebSocketError::CloseBody);
    }
    let reason = std::str::from_utf8(reason).map_err(|_| WebSocketError::CloseBody)?;
    Ok(Event::Close { code: Some(code), reason })
}
