//! Frames of the queue (systems/object-ledger/README.md, "Connections"): length (4 bytes, of what follows), kind (1), number
//! of the asker (8), payload; all numbers big-endian. Written here once more: the instrument shares no code with the system.

/// Bytes of a frame in front of its payload.
const HEAD_BYTES: usize = 13;
/// An answer to what is asked here has at most so many bytes of payload.
const ANSWER_PAYLOAD_MAX: usize = 16;
/// The longest answer.
pub(crate) const ANSWER_BYTES_MAX: usize = HEAD_BYTES + ANSWER_PAYLOAD_MAX;

const SUBMIT: u8 = 0x01;
const STANDING: u8 = 0x04;

/// What the queue says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The transaction is durable in the queue.
    Accepted,
    /// Transactions that are in no batch, and batches that are not done.
    Stands { pending: u64, open: u64 },
    /// It is refused, with this reason.
    Refused(u8),
}

/// An answer, to the question with this number, in so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) number: u64,
    pub(crate) answer: Answer,
    pub(crate) used: usize,
}

/// A submission.
pub(crate) fn write_submit(out: &mut Vec<u8>, number: u64, transaction: &[u8]) {
    write(out, SUBMIT, number, transaction);
}

/// The question how much stands in the queue.
pub(crate) fn write_standing(out: &mut Vec<u8>, number: u64) {
    write(out, STANDING, number, &[]);
}

fn write(out: &mut Vec<u8>, kind: u8, number: u64, payload: &[u8]) {
    let length = u32::try_from(HEAD_BYTES - 4 + payload.len()).expect("bounded by the options");
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The first answer, if all of it is there.
///
/// # Errors
/// When the bytes are none, in words: as soon as their length says so.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Answered>, String> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if !(HEAD_BYTES - 4..=ANSWER_BYTES_MAX - 4).contains(&length) {
        return Err("a frame of a length that no answer has".to_owned());
    }
    // The kind is looked at before the rest is waited for.
    let known = rest.first().map_or(Some(0), |kind| payload_of(*kind));
    if known.is_none() {
        return Err("a frame of a kind that is no answer".to_owned());
    }
    let Some(([kind, number @ ..], payload)) =
        rest.get(..length).and_then(<[u8]>::split_first_chunk::<9>)
    else {
        return Ok(None);
    };
    if payload_of(*kind) != Some(payload.len()) {
        return Err("a frame with a payload that its kind has not".to_owned());
    }
    let answer = match payload {
        [reason] => Answer::Refused(*reason),
        [pending @ .., _, _, _, _, _, _, _, _] if payload.len() == 16 => {
            let open = payload.last_chunk().expect("sixteen bytes");
            let pending = pending.first_chunk().expect("eight are left");
            let [pending, open] = [*pending, *open].map(u64::from_be_bytes);
            Answer::Stands { pending, open }
        }
        _ => Answer::Accepted,
    };
    Ok(Some(Answered { number: u64::from_be_bytes(*number), answer, used: 4 + length }))
}

/// How many bytes of payload an answer of this kind has.
const fn payload_of(kind: u8) -> Option<usize> {
    match kind {
        // Accepted: the queue's number of it. Standing: two numbers. Refused: the reason.
        0x81 => Some(8),
        0x89 => Some(16),
        0xFF => Some(1),
        _ => None,
    }
}
