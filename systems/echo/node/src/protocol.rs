//! The binary protocol: frames with a type byte, for both sides. Numbers are little-endian.
//!
//! ```text
//! to the node      submit     1  0  kind:u16  crc:u32  run:u64  tx:u64  payload
//!                  subscribe  2  run:u64                  committed transactions of the run come here
//!                  status     3  run:u64  tx:u64 …        committed ones among them are answered
//!                  sync       4                           store what is held, and say how many entries there are
//!                  ledger     5  from:u64  count_max:u32  entries from that position
//!                  check      6  kind:u16                 would this kind be taken? Nothing is stored
//!                  batch      7  0 0 0  count:u32  frames  submissions as whole frames, answered together
//!                  of client  8  0 0 0  client:u32  submission    a submission of this client
//! from the node    answer     17  code:u8  0 0  wait_ms:u32  tx:u64  crc:u32
//!                  synced     18  entries:u64  is_kept:u8     0: they were counted and not kept
//!                  ledger     19  from:u64  records
//!                  checked    20  is_taken:u8  kind:u16
//!                  subscribed 21  run:u64                  from here on, every commit of the run
//!                  value      22  is_there:u8  0 0 0 0 0 0  tx:u64  value:u64  crc:u32    what the read `tx` gave
//!                  answers    23  0 0 0  count:u32  answers  crc:u32   all of a batch, 16 bytes each as in an answer
//! ```
//! The checksum of a submission is over all of it but the checksum itself; that of an answer or a value over what
//! stands before it. A payload begins with its key, eight bytes, where a kind reads. Nothing here sends, waits or trusts.

mod batch;
mod of_client;

use wire::frames::write_frame;

use crate::bytes::{u16_at, u32_at, u64_at};

pub use batch::{Answers, BATCH_BYTES_MAX, BATCH_COUNT_MAX, Batch, write_answers, write_batch};
pub use of_client::write_of_client;

/// The longest payload of a submission.
pub const SUBMIT_PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// The longest frame from the node, without its length.
pub const REPLY_BYTES_MAX: usize = 64 << 10;
/// The most ids in a status request.
pub const STATUS_IDS_MAX: usize = 1024;
/// Bytes of an answer without its checksum.
const ANSWER_BYTES: usize = 16;
/// Bytes of a submission in front of its payload.
const SUBMIT_HEAD_BYTES: usize = 24;

const SUBMIT: u8 = 1;
const SUBSCRIBE: u8 = 2;
const STATUS: u8 = 3;
const SYNC: u8 = 4;
const LEDGER: u8 = 5;
const CHECK: u8 = 6;
const BATCH: u8 = 7;
const OF_CLIENT: u8 = 8;
const ANSWER: u8 = 17;
const SYNCED: u8 = 18;
const ENTRIES: u8 = 19;
const CHECKED: u8 = 20;
const SUBSCRIBED: u8 = 21;
const VALUE: u8 = 22;
const VALUE_BYTES: usize = 28;
const ANSWERS: u8 = 23;

/// A frame that is not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a frame of the echo protocol: {0}")]
pub struct Mistake(pub &'static str);

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Take a transaction.
    Submit(Submit<'a>),
    /// Tell this connection of every transaction of the run that is committed.
    Subscribe {
        /// The run's mark.
        run: u64,
    },
    /// Which of these are committed?
    Status {
        /// The run's mark.
        run: u64,
        /// Ids, eight bytes each.
        ids: &'a [u8],
    },
    /// Store what is held.
    Sync,
    /// Entries of the ledger.
    Ledger {
        /// The first position.
        from: u64,
        /// The most entries.
        count_max: u32,
    },
    /// Would this kind be taken?
    Check {
        /// The kind.
        kind: u16,
    },
    /// Take these transactions, and answer when all have been served.
    Batch(Batch<'a>),
    /// Take a transaction of this client.
    OfClient(u32, Submit<'a>),
}

/// A submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submit<'a> {
    /// The run's mark.
    pub run: u64,
    /// The transaction.
    pub tx: u64,
    /// Its kind.
    pub kind: u16,
    /// Its checksum, as sent.
    pub crc: u32,
    /// Whether the checksum holds.
    pub is_intact: bool,
    /// What it carries.
    pub payload: &'a [u8],
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Taken, not yet served.
    Accepted = 1,
    /// Served and, it says, stored.
    Committed = 2,
    /// Refused by the limiter.
    Limited = 3,
    /// Refused because the queue is full.
    Overloaded = 4,
    /// Refused for what it is.
    Invalid = 5,
    /// Its service has begun.
    Started = 6,
    /// Refused because it is not its client's turn here.
    Conflict = 7,
}

/// An answer about one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What became of it.
    pub code: Code,
    /// How long to wait before trying again, milliseconds; 0 where that does not apply.
    pub wait_ms: u32,
    /// The transaction.
    pub tx: u64,
}

/// What the node says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// About one transaction.
    Answer(Answer),
    /// What a read gave.
    Value {
        /// The transaction that read.
        tx: u64,
        /// The transaction that wrote it; `None`: nobody had.
        value: Option<u64>,
    },
    /// Everything held is stored.
    Synced {
        /// Entries in the ledger.
        entries: u64,
        /// Whether they can be read back: a server without a ledger only counts them.
        is_kept: bool,
    },
    /// Entries of the ledger.
    Ledger {
        /// The position of the first.
        from: u64,
        /// Records, [`crate::ledger::RECORD_BYTES`] each.
        records: &'a [u8],
    },
    /// Whether a kind would be taken.
    Checked {
        /// The kind.
        kind: u16,
        /// Whether it would.
        is_taken: bool,
    },
    /// From here on, every commit of the run comes on this connection.
    Subscribed {
        /// The run's mark.
        run: u64,
    },
    /// About the transactions of a batch.
    Answers(Answers<'a>),
}

/// Appends a submission.
pub fn write_submit(out: &mut Vec<u8>, run: u64, tx: u64, kind: u16, payload: &[u8]) {
    let head = submit_head(run, tx, kind, payload);
    write_frame(out, |out| {
        out.extend_from_slice(&head);
        out.extend_from_slice(payload);
    });
}

/// The checksum that a submission carries.
#[must_use]
pub fn submit_checksum(run: u64, tx: u64, kind: u16, payload: &[u8]) -> u32 {
    u32_at(&submit_head(run, tx, kind, payload), 4)
}

fn submit_head(run: u64, tx: u64, kind: u16, payload: &[u8]) -> [u8; SUBMIT_HEAD_BYTES] {
    let mut head = [0; SUBMIT_HEAD_BYTES];
    head[0] = SUBMIT;
    head[2..4].copy_from_slice(&kind.to_le_bytes());
    head[8..16].copy_from_slice(&run.to_le_bytes());
    head[16..24].copy_from_slice(&tx.to_le_bytes());
    let crc = submit_crc(&head, payload);
    head[4..8].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Appends a subscription.
pub fn write_subscribe(out: &mut Vec<u8>, run: u64) {
    write_frame(out, |out| {
        out.push(SUBSCRIBE);
        out.extend_from_slice(&run.to_le_bytes());
    });
}

/// Appends a status request.
///
/// # Panics
/// If there are more than [`STATUS_IDS_MAX`] ids.
pub fn write_status(out: &mut Vec<u8>, run: u64, ids: impl ExactSizeIterator<Item = u64>) {
    assert!(ids.len() <= STATUS_IDS_MAX, "a status request has a bound");
    write_frame(out, |out| {
        out.push(STATUS);
        out.extend_from_slice(&run.to_le_bytes());
        ids.for_each(|tx| out.extend_from_slice(&tx.to_le_bytes()));
    });
}

/// Appends a sync request.
pub fn write_sync(out: &mut Vec<u8>) {
    write_frame(out, |out| out.push(SYNC));
}

/// Appends a request for entries of the ledger.
pub fn write_ledger_request(out: &mut Vec<u8>, from: u64, count_max: u32) {
    write_frame(out, |out| {
        out.push(LEDGER);
        out.extend_from_slice(&from.to_le_bytes());
        out.extend_from_slice(&count_max.to_le_bytes());
    });
}

/// Appends the question whether a kind would be taken.
pub fn write_check(out: &mut Vec<u8>, kind: u16) {
    write_frame(out, |out| {
        out.push(CHECK);
        out.extend_from_slice(&kind.to_le_bytes());
    });
}

/// Reads a request from the payload of a frame.
///
/// # Errors
/// When it is not one.
pub fn read_request(bytes: &[u8]) -> Result<Request<'_>, Mistake> {
    let (&kind, rest) = bytes.split_first().ok_or(Mistake("it is empty"))?;
    match kind {
        SUBMIT => read_submit(bytes).map(Request::Submit),
        SUBSCRIBE => Ok(Request::Subscribe { run: exact_u64(rest)? }),
        STATUS => {
            let (run, ids) = rest.split_at_checked(8).ok_or(Mistake("it is too short"))?;
            if ids.len() % 8 != 0 || ids.len() / 8 > STATUS_IDS_MAX {
                return Err(Mistake("its ids are cut off or too many"));
            }
            Ok(Request::Status { run: exact_u64(run)?, ids })
        }
        SYNC if rest.is_empty() => Ok(Request::Sync),
        LEDGER if rest.len() == 12 => {
            Ok(Request::Ledger { from: exact_u64(&rest[..8])?, count_max: u32_at(rest, 8) })
        }
        CHECK if rest.len() == 2 => Ok(Request::Check { kind: u16_at(rest, 0) }),
        BATCH => batch::read_batch(bytes).map(Request::Batch),
        OF_CLIENT => of_client::read(bytes),
        _ => Err(Mistake("its type or length is unknown")),
    }
}

fn read_submit(bytes: &[u8]) -> Result<Submit<'_>, Mistake> {
    let (head, payload) =
        bytes.split_at_checked(SUBMIT_HEAD_BYTES).ok_or(Mistake("it is too short"))?;
    if payload.len() > SUBMIT_PAYLOAD_BYTES_MAX {
        return Err(Mistake("its payload is too long"));
    }
    let crc = u32_at(head, 4);
    Ok(Submit {
        run: u64_at(head, 8),
        tx: u64_at(head, 16),
        kind: u16_at(head, 2),
        crc,
        is_intact: submit_crc(head, payload) == crc,
        payload,
    })
}

/// Appends an answer.
pub fn write_answer(out: &mut Vec<u8>, answer: Answer) {
    let body = answer_body(answer);
    write_frame(out, |out| {
        out.extend_from_slice(&body);
        out.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    });
}

/// Appends what a read gave.
pub fn write_value(out: &mut Vec<u8>, tx: u64, value: Option<u64>) {
    let mut body = [0; VALUE_BYTES - 4];
    body[0] = VALUE;
    body[1] = u8::from(value.is_some());
    body[8..16].copy_from_slice(&tx.to_le_bytes());
    body[16..].copy_from_slice(&value.unwrap_or(0).to_le_bytes());
    write_frame(out, |out| {
        out.extend_from_slice(&body);
        out.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    });
}

/// An answer without its checksum.
fn answer_body(answer: Answer) -> [u8; ANSWER_BYTES] {
    let mut body = [0; ANSWER_BYTES];
    body[0] = ANSWER;
    body[1] = answer.code as u8;
    body[4..8].copy_from_slice(&answer.wait_ms.to_le_bytes());
    body[8..].copy_from_slice(&answer.tx.to_le_bytes());
    body
}

/// Appends the answer to a sync request.
pub fn write_synced(out: &mut Vec<u8>, entries: u64, is_kept: bool) {
    write_frame(out, |out| {
        out.push(SYNCED);
        out.extend_from_slice(&entries.to_le_bytes());
        out.push(u8::from(is_kept));
    });
}

/// Appends entries of the ledger; `records` writes them.
pub fn write_entries(out: &mut Vec<u8>, from: u64, records: impl FnOnce(&mut Vec<u8>)) {
    write_frame(out, |out| {
        out.push(ENTRIES);
        out.extend_from_slice(&from.to_le_bytes());
        records(out);
    });
}

/// Appends whether a kind would be taken.
pub fn write_checked(out: &mut Vec<u8>, kind: u16, is_taken: bool) {
    write_frame(out, |out| {
        out.extend_from_slice(&[CHECKED, u8::from(is_taken)]);
        out.extend_from_slice(&kind.to_le_bytes());
    });
}

/// Appends that a subscription holds.
pub fn write_subscribed(out: &mut Vec<u8>, run: u64) {
    write_frame(out, |out| {
        out.push(SUBSCRIBED);
        out.extend_from_slice(&run.to_le_bytes());
    });
}

/// Reads what the node says from the payload of a frame.
///
/// # Errors
/// When it is not of the protocol, or its checksum does not hold.
pub fn read_reply(bytes: &[u8]) -> Result<Reply<'_>, Mistake> {
    let (&kind, rest) = bytes.split_first().ok_or(Mistake("it is empty"))?;
    match kind {
        ANSWER if bytes.len() == ANSWER_BYTES + 4 => read_answer(bytes),
        VALUE if bytes.len() == VALUE_BYTES => read_value(bytes),
        SYNCED => {
            let (entries, is_kept) = rest.split_at_checked(8).ok_or(Mistake("it is too short"))?;
            let is_kept = match is_kept {
                [0] => false,
                [1] => true,
                _ => {
                    return Err(Mistake(
                        "it says neither that entries are kept nor that they are not",
                    ));
                }
            };
            Ok(Reply::Synced { entries: exact_u64(entries)?, is_kept })
        }
        SUBSCRIBED => Ok(Reply::Subscribed { run: exact_u64(rest)? }),
        ENTRIES => {
            let (from, records) = rest.split_at_checked(8).ok_or(Mistake("it is too short"))?;
            if records.len() % crate::ledger::RECORD_BYTES != 0 {
                return Err(Mistake("its records are cut off"));
            }
            Ok(Reply::Ledger { from: exact_u64(from)?, records })
        }
        ANSWERS => batch::read_answers(bytes).map(Reply::Answers),
        CHECKED if rest.len() == 3 => {
            Ok(Reply::Checked { kind: u16_at(rest, 1), is_taken: rest[0] == 1 })
        }
        _ => Err(Mistake("its type or length is unknown")),
    }
}

fn read_answer(bytes: &[u8]) -> Result<Reply<'_>, Mistake> {
    if crc32fast::hash(&bytes[..ANSWER_BYTES]) != u32_at(bytes, ANSWER_BYTES) {
        return Err(Mistake("an answer's checksum does not hold"));
    }
    read_answer_body(bytes).map(Reply::Answer)
}

fn read_answer_body(bytes: &[u8]) -> Result<Answer, Mistake> {
    let code = match bytes[1] {
        1 => Code::Accepted,
        2 => Code::Committed,
        3 => Code::Limited,
        4 => Code::Overloaded,
        5 => Code::Invalid,
        6 => Code::Started,
        7 => Code::Conflict,
        _ => return Err(Mistake("an answer's code is unknown")),
    };
    Ok(Answer { code, wait_ms: u32_at(bytes, 4), tx: u64_at(bytes, 8) })
}

fn read_value(bytes: &[u8]) -> Result<Reply<'_>, Mistake> {
    let body = VALUE_BYTES - 4;
    if crc32fast::hash(&bytes[..body]) != u32_at(bytes, body) {
        return Err(Mistake("a value's checksum does not hold"));
    }
    let value = (bytes[1] == 1).then(|| u64_at(bytes, 16));
    Ok(Reply::Value { tx: u64_at(bytes, 8), value })
}

fn submit_crc(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..4]);
    hasher.update(&head[8..SUBMIT_HEAD_BYTES]);
    hasher.update(payload);
    hasher.finalize()
}

fn exact_u64(bytes: &[u8]) -> Result<u64, Mistake> {
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| Mistake("its length is wrong"))
}

#[cfg(test)]
mod tests {
    use wire::frames::next_frame;

    use super::*;

    fn payload(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes);
        next_frame(&bytes).unwrap().unwrap().payload.to_vec()
    }

    /// Claim: what one side writes the other reads, for every kind of frame.
    #[test]
    fn round_trips() {
        let bytes = payload(|out| write_submit(out, 7, 8, 9, b"abc"));
        let Ok(Request::Submit(submit)) = read_request(&bytes) else { panic!("not a submission") };
        assert_eq!((submit.run, submit.tx, submit.kind, submit.payload), (7, 8, 9, &b"abc"[..]));
        assert!(submit.is_intact);
        let ids = [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat();
        for (bytes, request) in [
            (payload(|out| write_subscribe(out, 5)), Request::Subscribe { run: 5 }),
            (
                payload(|out| write_status(out, 5, [1, 2].into_iter())),
                Request::Status { run: 5, ids: &ids },
            ),
            (payload(write_sync), Request::Sync),
            (
                payload(|out| write_ledger_request(out, 3, 4)),
                Request::Ledger { from: 3, count_max: 4 },
            ),
            (payload(|out| write_check(out, 2)), Request::Check { kind: 2 }),
        ] {
            assert_eq!(read_request(&bytes), Ok(request));
        }
        let answer = Answer { code: Code::Limited, wait_ms: 30_000, tx: 77 };
        for (bytes, reply) in [
            (payload(|out| write_answer(out, answer)), Reply::Answer(answer)),
            (payload(|out| write_value(out, 5, Some(7))), Reply::Value { tx: 5, value: Some(7) }),
            (payload(|out| write_value(out, 5, None)), Reply::Value { tx: 5, value: None }),
            (
                payload(|out| write_synced(out, 4, true)),
                Reply::Synced { entries: 4, is_kept: true },
            ),
            (payload(|out| write_subscribed(out, 6)), Reply::Subscribed { run: 6 }),
            (payload(|out| write_entries(out, 4, |_| {})), Reply::Ledger { from: 4, records: &[] }),
            (
                payload(|out| write_checked(out, 4, true)),
                Reply::Checked { kind: 4, is_taken: true },
            ),
        ] {
            assert_eq!(read_reply(&bytes), Ok(reply));
        }
    }

    /// Claim: no single flipped bit of a submission or an answer goes unnoticed.
    #[test]
    fn checksums_hold() {
        let good = payload(|out| write_submit(out, 7, 8, 9, b"abc"));
        let answer =
            payload(|out| write_answer(out, Answer { code: Code::Committed, wait_ms: 0, tx: 8 }));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let read = read_request(&bad);
            assert!(!matches!(read, Ok(Request::Submit(Submit { is_intact: true, .. }))), "{bit}");
        }
        let value = payload(|out| write_value(out, 5, Some(7)));
        for bit in 0..value.len() * 8 {
            let mut bad = value.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(read_reply(&bad), Ok(Reply::Value { .. })), "{bit}");
        }
        for bit in 0..answer.len() * 8 {
            let mut bad = answer.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(read_reply(&bad), Ok(Reply::Answer(_))), "{bit}");
        }
    }

    /// Claim: frames that are cut off, too long or of no known type are refused, not misread.
    #[test]
    fn refusals() {
        for bytes in
            [&[][..], &[0], &[1; 23], &[2; 8], &[3; 12], &[4, 0], &[5; 12], &[6], &[99; 20]]
        {
            assert!(read_request(bytes).is_err(), "{bytes:?}");
            assert!(read_reply(bytes).is_err(), "{bytes:?}");
        }
    }
}
