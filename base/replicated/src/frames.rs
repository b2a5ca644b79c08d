//! What goes over a connection between replicas: a greeting, then frames of one message each.

use consensus::{DecodeError, Message, ReplicaId, VALUE_BYTES_MAX};

const MAGIC: [u8; 4] = *b"rplc";
const VERSION: u8 = 1;
/// Bytes of a greeting: magic, version, group, sender.
pub(crate) const GREETING_BYTES: usize = 4 + 1 + 8 + 1;
/// The longest frame: a message of one value of the greatest length, and its head; or one of many small ones.
pub(crate) const FRAME_BYTES_MAX: usize = VALUE_BYTES_MAX + (1 << 20);

/// Why a connection between replicas is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("it does not begin as a connection between replicas does")]
    NoReplica,
    #[error("it speaks version {0} between replicas, and this is version {VERSION}")]
    Version(u8),
    #[error("it is of group {found}, and this is group {own}")]
    Group { found: u64, own: u64 },
    #[error("a frame of {0} bytes, and the most is {FRAME_BYTES_MAX}")]
    Length(usize),
    #[error("a message that cannot be read: {0}")]
    Message(#[from] DecodeError),
}

pub(crate) fn put_greeting(group: u64, id: ReplicaId, out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&group.to_le_bytes());
    out.push(id.0);
}

/// Who speaks, once the whole greeting is there.
pub(crate) fn greeting(bytes: &[u8], own: u64) -> Result<Option<ReplicaId>, FrameError> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(FrameError::NoReplica);
    }
    let Some(bytes) = bytes.get(..GREETING_BYTES) else { return Ok(None) };
    if bytes[4] != VERSION {
        return Err(FrameError::Version(bytes[4]));
    }
    let found = u64::from_le_bytes(bytes[5..13].try_into().expect("eight bytes"));
    if found != own {
        return Err(FrameError::Group { found, own });
    }
    Ok(Some(ReplicaId(bytes[13])))
}

pub(crate) fn put_message(message: &Message, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    message.encode(out);
    let length = u32::try_from(out.len() - start - 4).expect("bounded by the longest value");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// The first message, and how many bytes it takes; nothing while it is not all there.
pub(crate) fn message(bytes: &[u8]) -> Result<Option<(Message, usize)>, FrameError> {
    let Some(head) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*head)).expect("32 bits");
    if length > FRAME_BYTES_MAX {
        return Err(FrameError::Length(length));
    }
    match bytes.get(4..4 + length) {
        Some(body) => Ok(Some((Message::decode(body)?, 4 + length))),
        None => Ok(None),
    }
}

/// Entry point for fuzzing: any bytes as a greeting and as frames. What is read of them is asserted to lie in them, and
/// what is cut off to be waited for or refused.
///
/// # Panics
/// If one of the claims does not hold.
pub fn fuzz_frames(bytes: &[u8]) {
    let _ = greeting(bytes, 7);
    let mut rest = bytes;
    while let Ok(Some((read, used))) = message(rest) {
        assert!((4..=rest.len()).contains(&used), "more was read than there is");
        assert!(!matches!(message(&rest[..used - 1]), Ok(Some(_))), "a part of it was enough");
        let mut written = Vec::new();
        put_message(&read, &mut written);
        assert!(written == rest[..used], "{read:?} is written differently");
        rest = &rest[used..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a greeting cut anywhere is waited for; one of another group, version or protocol is refused at once.
    #[test]
    fn greetings() {
        let mut bytes = Vec::new();
        put_greeting(7, ReplicaId(2), &mut bytes);
        for cut in 0..bytes.len() {
            assert_eq!(greeting(&bytes[..cut], 7), Ok(None), "{cut}");
        }
        assert_eq!(greeting(&bytes, 7), Ok(Some(ReplicaId(2))));
        assert_eq!(greeting(&bytes, 8), Err(FrameError::Group { found: 7, own: 8 }));
        bytes[4] = 9;
        assert_eq!(greeting(&bytes, 7), Err(FrameError::Version(9)));
        assert_eq!(greeting(b"GET / HTTP/1.1", 7), Err(FrameError::NoReplica));
    }

    /// Claim: a length beyond the bound is refused before a byte of it is waited for; half a frame is waited for.
    #[test]
    fn lengths() {
        assert_eq!(message(&[0xff; 4]), Err(FrameError::Length(0xffff_ffff)));
        assert_eq!(message(&[1, 0]), Ok(None));
        assert_eq!(message(&[8, 0, 0, 0, 1]), Ok(None));
        assert!(matches!(message(&[1, 0, 0, 0, 0xee]), Err(FrameError::Message(_))));
    }
}
