//! Batches: several submissions in one frame, and the one frame that answers all of them.

use wire::frames::{PAYLOAD_BYTES_MAX, next_frame, write_frame};

use super::{
    ANSWER, ANSWER_BYTES, ANSWERS, Answer, BATCH, Mistake, REPLY_BYTES_MAX, Submit, answer_body,
    read_answer_body, read_submit, u32_at,
};

/// Bytes in front of the first submission or answer.
const HEAD_BYTES: usize = 8;
/// Bytes of the checksum behind the last answer.
const CRC_BYTES: usize = 4;
/// The most transactions of a batch: their answers fit one frame.
pub const BATCH_COUNT_MAX: usize = (REPLY_BYTES_MAX - HEAD_BYTES - CRC_BYTES) / ANSWER_BYTES;
/// The most bytes of a batch's submissions, each with its length.
pub const BATCH_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - HEAD_BYTES;

/// Submissions that came in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    count: usize,
    frames: &'a [u8],
}

impl<'a> Batch<'a> {
    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The submissions, in their order.
    pub fn submissions(&self) -> impl Iterator<Item = Submit<'a>> + use<'a> {
        let mut rest = self.frames;
        std::iter::from_fn(move || {
            let frame = next_frame(rest).ok().flatten()?;
            rest = &rest[frame.used..];
            read_submit(frame.payload).ok().filter(|_| is_submission(frame.payload))
        })
    }
}

/// Answers that came in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers<'a>(&'a [u8]);

impl Answers<'_> {
    /// The answers, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Answer> + '_ {
        self.0.chunks_exact(ANSWER_BYTES).filter_map(|body| read_answer_body(body).ok())
    }
}

/// Appends a batch: `frames` are `count` submissions as [`super::write_submit`] writes them.
///
/// # Panics
/// If they are more than [`BATCH_COUNT_MAX`], or longer than [`BATCH_BYTES_MAX`].
pub fn write_batch(out: &mut Vec<u8>, count: usize, frames: &[u8]) {
    assert!(count <= BATCH_COUNT_MAX && frames.len() <= BATCH_BYTES_MAX, "a batch has a bound");
    let count = u32::try_from(count).expect("bounded above");
    write_frame(out, |out| {
        out.extend_from_slice(&[BATCH, 0, 0, 0]);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(frames);
    });
}

/// Appends the answers to a batch.
///
/// # Panics
/// If they are more than [`BATCH_COUNT_MAX`].
pub fn write_answers(out: &mut Vec<u8>, answers: &[Answer]) {
    assert!(answers.len() <= BATCH_COUNT_MAX, "the answers to a batch have a bound");
    let count = u32::try_from(answers.len()).expect("bounded above");
    write_frame(out, |out| {
        let start = out.len();
        out.extend_from_slice(&[ANSWERS, 0, 0, 0]);
        out.extend_from_slice(&count.to_le_bytes());
        answers.iter().for_each(|answer| out.extend_from_slice(&answer_body(*answer)));
        let crc = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    });
}

/// Reads a batch from the payload of a frame: all of its submissions can be read, or it is none.
pub(super) fn read_batch(bytes: &[u8]) -> Result<Batch<'_>, Mistake> {
    let (head, frames) = bytes.split_at_checked(HEAD_BYTES).ok_or(Mistake("it is too short"))?;
    let count = u32_at(head, 4) as usize;
    if count == 0 || count > BATCH_COUNT_MAX {
        return Err(Mistake("a batch has none or too many transactions"));
    }
    let mut rest = frames;
    for _ in 0..count {
        let frame = next_frame(rest).map_err(|_| Mistake("a submission is too long"))?;
        let frame = frame.ok_or(Mistake("a batch is cut off"))?;
        if !is_submission(frame.payload) {
            return Err(Mistake("a batch holds something else than submissions"));
        }
        read_submit(frame.payload)?;
        rest = &rest[frame.used..];
    }
    if rest.is_empty() { Ok(Batch { count, frames }) } else { Err(Mistake("its length is wrong")) }
}

/// Reads the answers to a batch from the payload of a frame.
pub(super) fn read_answers(bytes: &[u8]) -> Result<Answers<'_>, Mistake> {
    let (rest, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or(Mistake("it is too short"))?;
    let (head, answers) = rest.split_at_checked(HEAD_BYTES).ok_or(Mistake("it is too short"))?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*crc) {
        return Err(Mistake("the answers' checksum does not hold"));
    }
    if answers.len() != (u32_at(head, 4) as usize).saturating_mul(ANSWER_BYTES) {
        return Err(Mistake("its answers are cut off"));
    }
    for body in answers.chunks_exact(ANSWER_BYTES) {
        if body[0] != ANSWER {
            return Err(Mistake("an answer among others is none"));
        }
        read_answer_body(body)?;
    }
    Ok(Answers(answers))
}

fn is_submission(payload: &[u8]) -> bool {
    payload.first() == Some(&super::SUBMIT)
}

#[cfg(test)]
mod tests {
    use super::super::{Code, Reply, Request, read_reply, read_request, write_check, write_submit};
    use super::*;

    fn frames(count: u64) -> Vec<u8> {
        let mut frames = Vec::new();
        (0..count).for_each(|tx| write_submit(&mut frames, 7, tx, 0, b"abc"));
        frames
    }

    fn payload(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes);
        next_frame(&bytes).unwrap().unwrap().payload.to_vec()
    }

    /// Claim: what one side writes the other reads, in its order, up to the largest batch.
    #[test]
    fn batches_round_trip() {
        for count in [1, 3, BATCH_COUNT_MAX] {
            let ids = || 0..count as u64;
            let bytes = payload(|out| write_batch(out, count, &frames(count as u64)));
            let Ok(Request::Batch(batch)) = read_request(&bytes) else { panic!("not a batch") };
            assert_eq!(batch.count(), count);
            assert!(batch.submissions().map(|submit| submit.tx).eq(ids()));
            let answers: Vec<_> =
                ids().map(|tx| Answer { code: Code::Committed, wait_ms: 0, tx }).collect();
            let bytes = payload(|out| write_answers(out, &answers));
            assert!(bytes.len() <= REPLY_BYTES_MAX);
            let Ok(Reply::Answers(found)) = read_reply(&bytes) else { panic!("not answers") };
            assert!(found.iter().eq(answers));
        }
    }

    /// Claim: a batch that is cut off, empty, miscounted or holds something else is refused whole; so are answers of
    /// which a bit is wrong.
    #[test]
    fn bad_batches_are_refused() {
        let good = payload(|out| write_batch(out, 3, &frames(3)));
        for length in 0..good.len() {
            assert!(read_request(&good[..length]).is_err(), "{length}");
        }
        for count in [0_u32, 2, 4, u32::MAX] {
            let mut bad = good.clone();
            bad[4..8].copy_from_slice(&count.to_le_bytes());
            assert!(read_request(&bad).is_err(), "{count}");
        }
        let mut other = Vec::new();
        write_check(&mut other, 1);
        assert!(read_request(&payload(|out| write_batch(out, 1, &other))).is_err());
        let answers = [Answer { code: Code::Committed, wait_ms: 0, tx: 8 }];
        let good = payload(|out| write_answers(out, &answers));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(read_reply(&bad), Ok(Reply::Answers(_))), "{bit}");
        }
    }
}
