//! Frames: a payload behind its length, as an unsigned 32-bit little-endian number.
//!
//! The reader works on whatever has arrived so far and keeps nothing: it either finds a whole frame or asks
//! for more. It never copies a payload and never waits for one that is longer than [`PAYLOAD_BYTES_MAX`].

/// Bytes of the length in front of each payload.
pub const LENGTH_BYTES: usize = 4;

/// The longest payload. 16 MiB holds any batch that this project sends, and bounds what one peer can make
/// the other side buffer.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// Bytes that are not frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length says more than may be.
    #[error(
        "a frame announces {bytes} bytes, more than the {PAYLOAD_BYTES_MAX} allowed; the peer does not speak this protocol"
    )]
    TooLong {
        /// What it says.
        bytes: u32,
    },
}

/// A whole frame at the beginning of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it carries.
    pub payload: &'a [u8],
    /// Bytes that it took, length included: the next frame begins there.
    pub used: usize,
}

/// The frame at the beginning of `bytes`; `None` while it is incomplete.
///
/// # Errors
/// When its length is beyond [`PAYLOAD_BYTES_MAX`]; known as soon as the length is there.
pub fn next_frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, FrameError> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let announced = u32::from_le_bytes(*length);
    let length = announced as usize;
    if length > PAYLOAD_BYTES_MAX {
        return Err(FrameError::TooLong { bytes: announced });
    }
    Ok(rest.get(..length).map(|payload| Frame { payload, used: LENGTH_BYTES + length }))
}

/// Appends a frame to `out`; `body` writes its payload straight behind the length, so nothing is copied.
///
/// # Panics
/// If the payload is longer than [`PAYLOAD_BYTES_MAX`], or if `body` shortens the buffer.
pub fn write_frame(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    body(out);
    let length = out
        .len()
        .checked_sub(start + LENGTH_BYTES)
        .expect("a payload is appended, nothing is taken away");
    assert!(length <= PAYLOAD_BYTES_MAX, "a payload of {length} bytes is beyond the bound");
    let length = u32::try_from(length).expect("the bound fits 32 bits");
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what is written is read back, whatever the cut between two receipts.
    #[test]
    fn frames_round_trip_at_every_cut() {
        let payloads: [&[u8]; 4] = [b"one", b"", b"a longer payload", &[0xff; 300]];
        let mut bytes = Vec::new();
        for payload in payloads {
            write_frame(&mut bytes, |out| out.extend_from_slice(payload));
        }
        for cut in 0..=bytes.len() {
            let (mut found, mut at) = (Vec::new(), 0);
            for end in [cut, bytes.len()] {
                while let Some(frame) = next_frame(&bytes[at..end]).unwrap() {
                    found.push(frame.payload.to_vec());
                    at += frame.used;
                }
            }
            assert_eq!(found, payloads, "cut at {cut}");
            assert_eq!(at, bytes.len());
        }
    }

    /// Claim: a length beyond the bound is refused before any payload has come.
    #[test]
    fn an_absurd_length_is_refused_at_once() {
        let bytes = u32::to_le_bytes(u32::try_from(PAYLOAD_BYTES_MAX).unwrap() + 1);
        assert_eq!(next_frame(&bytes), Err(FrameError::TooLong { bytes: 16_777_217 }));
        assert_eq!(next_frame(&bytes[..3]), Ok(None));
    }
}
