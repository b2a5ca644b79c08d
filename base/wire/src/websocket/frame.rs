//! One frame: its header read, itself written, its payload masked (RFC 6455 §5.2 and §5.3). Nothing is kept.

use super::limits::WebSocketError;

/// The longest payload of a control frame (RFC 6455 §5.5).
pub const CONTROL_BYTES_MAX: usize = 125;

/// The longest header: two bytes, a length of eight, a mask of four.
const HEADER_BYTES_MAX: usize = 14;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message that was begun.
    Continuation,
    /// Text, or the beginning of it.
    Text,
    /// Bytes, or the beginning of them.
    Binary,
    /// The end of the connection.
    Close,
    /// A question whether the other end is there.
    Ping,
    /// Its answer.
    Pong,
}

impl Opcode {
    const fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    const fn of_number(number: u8) -> Result<Self, WebSocketError> {
        match number {
            0 => Ok(Self::Continuation),
            1 => Ok(Self::Text),
            2 => Ok(Self::Binary),
            8 => Ok(Self::Close),
            9 => Ok(Self::Ping),
            10 => Ok(Self::Pong),
            _ => Err(WebSocketError::ReservedOpcode(number)),
        }
    }

    pub(super) const fn is_control(self) -> bool {
        self.number() >= 8
    }
}

/// What stands in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub is_final: bool,
    pub opcode: Opcode,
    pub mask: Option<[u8; 4]>,
    pub payload_bytes: u64,
    /// Its own length.
    pub header_bytes: usize,
}

/// The header at the beginning of `bytes`; `None` while it is incomplete.
pub(super) fn read_header(bytes: &[u8]) -> Result<Option<Header>, WebSocketError> {
    let [first, second, ..] = *bytes else { return Ok(None) };
    if first & 0x70 != 0 {
        return Err(WebSocketError::ReservedBits);
    }
    let (is_final, opcode) = (first & 0x80 != 0, Opcode::of_number(first & 0x0f)?);
    let (is_masked, short) = (second & 0x80 != 0, second & 0x7f);
    if opcode.is_control() && (!is_final || usize::from(short) > CONTROL_BYTES_MAX) {
        return Err(WebSocketError::ControlFrame);
    }
    let Some((payload_bytes, length_end)) = read_length(short, bytes)? else { return Ok(None) };
    let mut header =
        Header { is_final, opcode, mask: None, payload_bytes, header_bytes: length_end };
    if is_masked {
        let Some(mask) = bytes[length_end..].first_chunk::<4>() else { return Ok(None) };
        header.mask = Some(*mask);
        header.header_bytes += 4;
    }
    Ok(Some(header))
}

/// The length, and where what is behind it begins. It must be in its shortest form (§5.2).
fn read_length(short: u8, bytes: &[u8]) -> Result<Option<(u64, usize)>, WebSocketError> {
    let (length, end, shortest) = match short {
        126 => {
            let Some(length) = bytes[2..].first_chunk::<2>() else { return Ok(None) };
            (u64::from(u16::from_be_bytes(*length)), 4, 126)
        }
        127 => {
            let Some(length) = bytes[2..].first_chunk::<8>() else { return Ok(None) };
            (u64::from_be_bytes(*length), 10, 1 << 16)
        }
        _ => (u64::from(short), 2, 0),
    };
    if length < shortest || length >> 63 != 0 {
        return Err(WebSocketError::Length);
    }
    Ok(Some((length, end)))
}

/// Appends a whole frame to `out`: final, of this opcode, masked where a mask is given (a client must, a server
/// must not). `body` writes the payload straight into the buffer.
///
/// # Panics
/// If `body` shortens the buffer, or a control frame's payload is longer than [`CONTROL_BYTES_MAX`].
pub fn write_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    // How long the header is depends on the payload, so the payload is written behind the longest and moved up:
    // a copy of what is in the cache already, and no second buffer.
    out.extend_from_slice(&[0; HEADER_BYTES_MAX]);
    body(out);
    let payload_start = start + HEADER_BYTES_MAX;
    let length = out.len().checked_sub(payload_start).expect("a body only appends");
    assert!(
        !opcode.is_control() || length <= CONTROL_BYTES_MAX,
        "a control frame of {length} bytes is longer than the protocol allows"
    );
    if let Some(mask) = mask {
        apply_mask(&mut out[payload_start..], mask, 0);
    }
    let mut header = [0; HEADER_BYTES_MAX];
    let header_bytes = write_header(&mut header, opcode, mask, length);
    out[start..start + header_bytes].copy_from_slice(&header[..header_bytes]);
    out.copy_within(payload_start.., start + header_bytes);
    out.truncate(start + header_bytes + length);
}

fn write_header(
    header: &mut [u8; HEADER_BYTES_MAX],
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    length: usize,
) -> usize {
    header[0] = 0x80 | opcode.number();
    let mut end = match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => {
            header[1] = short;
            2
        }
        (_, Ok(medium)) => {
            header[1] = 126;
            header[2..4].copy_from_slice(&medium.to_be_bytes());
            4
        }
        _ => {
            let long = u64::try_from(length).expect("a length fits 64 bits");
            header[1] = 127;
            header[2..10].copy_from_slice(&long.to_be_bytes());
            10
        }
    };
    if let Some(mask) = mask {
        header[1] |= 0x80;
        header[end..end + 4].copy_from_slice(&mask);
        end += 4;
    }
    end
}

/// Masks or unmasks (it is the same) bytes that begin `offset` bytes into a payload.
pub(super) fn apply_mask(bytes: &mut [u8], mask: [u8; 4], offset: usize) {
    let mut turned = mask;
    turned.rotate_left(offset % 4);
    // Four at a time: the compiler makes vectors of it.
    let mut groups = bytes.chunks_exact_mut(4);
    for group in &mut groups {
        for (byte, key) in group.iter_mut().zip(turned) {
            *byte ^= key;
        }
    }
    for (byte, key) in groups.into_remainder().iter_mut().zip(turned) {
        *byte ^= key;
    }
}
