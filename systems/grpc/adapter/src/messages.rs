//! Messages in the body of a call (gRPC over HTTP2, "Length-Prefixed-Message"): a flag, four bytes of length, the message. Bytes
//! in, whole messages out, on any cut; a message that is too long is refused before it is kept.

/// The bytes before each message.
pub(crate) const PREFIX_BYTES: usize = 5;

/// Why a body is not messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageError {
    /// A compressed message, where no encoding was accepted.
    Compressed,
    /// A flag that is neither 0 nor 1.
    Flag(u8),
    /// One beyond the bound.
    TooLong(u32),
    /// The body ends within a message.
    Truncated,
}

impl std::fmt::Display for MessageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compressed => f.write_str("a compressed message, and no encoding was accepted"),
            Self::Flag(flag) => write!(f, "a message with the flag {flag}, which has no meaning"),
            Self::TooLong(bytes) => {
                write!(f, "a message of {bytes} bytes, more than workload.message_bytes_max")
            }
            Self::Truncated => f.write_str("the answer ends within a message"),
        }
    }
}

/// Appends a message with its prefix.
pub(crate) fn write(out: &mut Vec<u8>, message: &[u8]) {
    let length = u32::try_from(message.len()).expect("a text of at most 16 MiB made it");
    out.push(0);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
}

/// The reader of one answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageReader {
    prefix: [u8; PREFIX_BYTES],
    prefix_bytes: usize,
    /// Bytes of the message that are still to come.
    left: usize,
    message: Vec<u8>,
}

impl MessageReader {
    /// Begins with another answer.
    pub(crate) fn reset(&mut self) {
        self.prefix_bytes = 0;
        self.left = 0;
        self.message.clear();
    }

    /// Reads what has arrived, and gives every whole message, or nothing of it unless it `keeps` them.
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        bytes_max: usize,
        keeps: bool,
        whole: &mut dyn FnMut(&[u8]),
    ) -> Result<(), MessageError> {
        loop {
            while self.prefix_bytes < PREFIX_BYTES {
                let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
                self.prefix[self.prefix_bytes] = *first;
                self.prefix_bytes += 1;
                bytes = rest;
                if self.prefix_bytes == PREFIX_BYTES {
                    self.left = self.admit(bytes_max)?;
                }
            }
            let (part, rest) = bytes.split_at(self.left.min(bytes.len()));
            bytes = rest;
            if keeps {
                self.message.extend_from_slice(part);
            }
            self.left -= part.len();
            if self.left > 0 {
                return Ok(());
            }
            whole(&self.message);
            self.reset();
        }
    }

    /// Whether the answer may end here.
    pub(crate) fn end(&self) -> Result<(), MessageError> {
        if self.prefix_bytes == 0 { Ok(()) } else { Err(MessageError::Truncated) }
    }

    fn admit(&self, bytes_max: usize) -> Result<usize, MessageError> {
        let [flag, length @ ..] = self.prefix;
        let length = u32::from_be_bytes(length);
        match flag {
            0 => {}
            1 => return Err(MessageError::Compressed),
            flag => return Err(MessageError::Flag(flag)),
        }
        usize::try_from(length)
            .ok()
            .filter(|length| *length <= bytes_max)
            .ok_or(MessageError::TooLong(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Result<(), MessageError>) {
        let (mut reader, mut found) = (MessageReader::default(), Vec::new());
        for piece in bytes.chunks(piece.max(1)) {
            let result = reader.read(piece, 100, true, &mut |one| found.push(one.to_vec()));
            if result.is_err() {
                return (found, result);
            }
        }
        (found, reader.end())
    }

    /// Claim: messages come out whole on any cut, empty ones too, and what is written is read.
    #[test]
    fn messages_come_out_whole() {
        let mut bytes = Vec::new();
        for message in [&b"ab"[..], b"", b"cdefg"] {
            write(&mut bytes, message);
        }
        for piece in 1..=bytes.len() {
            let (found, result) = read(&bytes, piece);
            assert_eq!((found, result), (vec![b"ab".to_vec(), vec![], b"cdefg".to_vec()], Ok(())));
        }
    }

    /// Claim: each malformed prefix is refused for its own reason, before the message is kept.
    #[test]
    fn malformed_messages() {
        for (bytes, expected) in [
            (&b"\x01\0\0\0\x02ab"[..], MessageError::Compressed),
            (b"\x07\0\0\0\x02ab", MessageError::Flag(7)),
            (b"\0\0\0\0\x65", MessageError::TooLong(101)),
            (b"\0\xff\xff\xff\xff", MessageError::TooLong(u32::MAX)),
            (b"\0\0\0\0\x03ab", MessageError::Truncated),
            (b"\0\0\0", MessageError::Truncated),
        ] {
            for piece in 1..=bytes.len() {
                assert_eq!(read(bytes, piece).1, Err(expected.clone()), "{bytes:?}");
            }
        }
    }
}
