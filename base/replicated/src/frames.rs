//! What goes over a connection between replicas: a greeting (magic, version, the service, and who speaks), then frames of one
//! message each.

use consensus::{DecodeError, Message, ReplicaId, VALUE_BYTES_MAX};

use crate::identity::Identity;

const MAGIC: [u8; 4] = *b"rplc";
const VERSION: u8 = 2;
/// Bytes of a greeting before who speaks: magic, version, service.
const GREETING_BYTES: usize = 4 + 1 + 8;
/// The first byte of a frame that gives a newcomer its id; no message of consensus has it.
const SEAT: u8 = 0xE0;
/// The only byte of a frame that says nothing.
const HERE: u8 = 0xE1;
/// The longest frame: a message of one value of the greatest length, and its head; or one of many small ones.
pub(crate) const FRAME_BYTES_MAX: usize = VALUE_BYTES_MAX + (1 << 20);

/// Why a connection between replicas is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("it does not begin as a connection between replicas does")]
    NoReplica,
    #[error("it speaks version {0} between replicas, and this is version {VERSION}")]
    Version(u8),
    #[error("it is of service {found}, and this is {own}")]
    Service { found: u64, own: u64 },
    #[error("it does not say who it is")]
    Nobody,
    #[error(
        "replica {number} is of group {found:016x}, and this is group {own:016x}: start each with the folder and the peers of its own group"
    )]
    Cluster { number: u8, found: u64, own: u64 },
    #[error(
        "replica {number} was started with the replicas {found:?}, and this one with {own:?}: start all with the same --peer numbers"
    )]
    Numbers { number: u8, found: Vec<u8>, own: Vec<u8> },
    #[error(
        "it says that it is replica {said}, and its certificate says {certified}: give each replica its own"
    )]
    Certificate { said: u8, certified: u8 },
    #[error("a message of a replica whose folder is not formatted")]
    Blank,
    #[error("a frame of {0} bytes, and the most is {FRAME_BYTES_MAX}")]
    Length(usize),
    #[error("a message that cannot be read: {0}")]
    Message(#[from] DecodeError),
}

pub(crate) fn put_greeting(service: u64, identity: &Identity, out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&service.to_le_bytes());
    identity.write(out);
}

/// Who speaks, once the whole greeting is there, and how long it is.
pub(crate) fn greeting(bytes: &[u8], own: u64) -> Result<Option<(Identity, usize)>, FrameError> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(FrameError::NoReplica);
    }
    if let Some(version) = bytes.get(4).filter(|version| **version != VERSION) {
        return Err(FrameError::Version(*version));
    }
    let Some(head) = bytes.get(..GREETING_BYTES) else { return Ok(None) };
    let found = u64::from_le_bytes(head[5..].try_into().expect("eight bytes"));
    if found != own {
        return Err(FrameError::Service { found, own });
    }
    let read = Identity::read(&bytes[GREETING_BYTES..]).map_err(|_| FrameError::Nobody)?;
    Ok(read.map(|(identity, used)| (identity, GREETING_BYTES + used)))
}

/// What a frame brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Message(Message),
    /// Whoever has this disk is called so from now on.
    Seat {
        disk: u64,
        id: ReplicaId,
    },
    /// The sender is there: it is sent so that a connection whose other end is gone without a word is found to be.
    Here,
}

pub(crate) fn put_here(out: &mut Vec<u8>) {
    out.extend_from_slice(&1_u32.to_le_bytes());
    out.push(HERE);
}

pub(crate) fn put_seat(disk: u64, id: ReplicaId, out: &mut Vec<u8>) {
    out.extend_from_slice(&10_u32.to_le_bytes());
    out.push(SEAT);
    out.extend_from_slice(&disk.to_le_bytes());
    out.push(id.0);
}

pub(crate) fn put_message(message: &Message, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    message.encode(out);
    let length = u32::try_from(out.len() - start - 4).expect("bounded by the longest value");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// The first frame, and how many bytes it takes; nothing while it is not all there.
pub(crate) fn frame(bytes: &[u8]) -> Result<Option<(Frame, usize)>, FrameError> {
    let Some(head) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*head)).expect("32 bits");
    if length > FRAME_BYTES_MAX {
        return Err(FrameError::Length(length));
    }
    let Some(body) = bytes.get(4..4 + length) else { return Ok(None) };
    let frame = match body {
        [SEAT, disk @ .., id] if disk.len() == 8 => Frame::Seat {
            disk: u64::from_le_bytes(disk.try_into().expect("eight bytes")),
            id: ReplicaId(*id),
        },
        [HERE] => Frame::Here,
        _ => Frame::Message(Message::decode(body)?),
    };
    Ok(Some((frame, 4 + length)))
}

/// Entry point for fuzzing: any bytes as a greeting and as frames. What is read of them is asserted to lie in them, and
/// what is cut off to be waited for or refused.
///
/// # Panics
/// If one of the claims does not hold.
pub fn fuzz_frames(bytes: &[u8]) {
    let _ = greeting(bytes, 7);
    let mut rest = bytes;
    while let Ok(Some((read, used))) = frame(rest) {
        assert!((4..=rest.len()).contains(&used), "more was read than there is");
        assert!(!matches!(frame(&rest[..used - 1]), Ok(Some(_))), "a part of it was enough");
        let mut written = Vec::new();
        match &read {
            Frame::Message(message) => put_message(message, &mut written),
            Frame::Seat { disk, id } => put_seat(*disk, *id, &mut written),
            Frame::Here => put_here(&mut written),
        }
        assert!(written == rest[..used], "{read:?} is written differently");
        rest = &rest[used..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consensus::Members;

    /// Claim: a greeting cut anywhere is waited for; one of another group, version or protocol is refused at once.
    #[test]
    fn greetings() {
        let mut bytes = Vec::new();
        let members = Members::new(&[ReplicaId(1), ReplicaId(2)]).unwrap();
        let identity = Identity::blank(2, 5, &members);
        put_greeting(7, &identity, &mut bytes);
        for cut in 0..bytes.len() {
            assert_eq!(greeting(&bytes[..cut], 7), Ok(None), "{cut}");
        }
        assert_eq!(greeting(&bytes, 7), Ok(Some((identity, bytes.len()))));
        assert_eq!(greeting(&bytes, 8), Err(FrameError::Service { found: 7, own: 8 }));
        bytes[4] = 1;
        assert_eq!(greeting(&bytes, 7), Err(FrameError::Version(1)));
        assert_eq!(greeting(b"GET / HTTP/1.1", 7), Err(FrameError::NoReplica));
    }

    /// Claim: a length beyond the bound is refused before a byte of it is waited for; half a frame is waited for.
    #[test]
    fn lengths() {
        assert_eq!(frame(&[0xff; 4]), Err(FrameError::Length(0xffff_ffff)));
        assert_eq!(frame(&[1, 0]), Ok(None));
        assert_eq!(frame(&[8, 0, 0, 0, 1]), Ok(None));
        assert!(matches!(frame(&[1, 0, 0, 0, 0xee]), Err(FrameError::Message(_))));
    }
}
