//! What is said on connections to the queue, the timestamp service, the sequencer and the watcher.
//!
//! A frame is its length (4 bytes, of what follows), a kind (1 byte), a number that the asker chose (8 bytes) and a payload; all
//! numbers are big-endian. Each request gets one answer with its number, in any order. The README has the payloads.

use crate::data::{Batch, BatchId, Malformed, Reader, TRANSACTION_BYTES_MAX, WHOLE_BYTES_MAX};

/// Bytes of a frame in front of its payload.
pub const HEAD_BYTES: usize = 13;
/// The longest payload of any frame.
pub const PAYLOAD_BYTES_MAX: usize = WHOLE_BYTES_MAX + 64;
/// The longest payload of a request to queue, timestamp service or sequencer.
/// A transaction that is too long still gets its refusal.
pub const REQUEST_BYTES_MAX: usize = 2 * TRANSACTION_BYTES_MAX;

/// Kinds of frames. Requests are below 0x80, answers are not.
pub mod kind {
    /// To the queue: a transaction.
    pub const SUBMIT: u8 = 0x01;
    /// To the queue: give me a batch.
    pub const POP: u8 = 0x02;
    /// To the queue: this batch is on the main chain and stored.
    pub const DONE: u8 = 0x03;
    /// To the queue: how much is not done.
    pub const STANDING: u8 = 0x04;
    /// To the timestamp service: a link.
    pub const TIMESTAMP: u8 = 0x05;
    /// To the sequencer: a block and its token.
    pub const SEQUENCE: u8 = 0x06;
    /// To the sequencer: attestations from a number on.
    pub const ATTESTATIONS: u8 = 0x07;
    /// To the timestamp service and the sequencer: your public key.
    pub const KEY: u8 = 0x08;
    /// To a service with a secret: 32 bytes of the asker's, before anything else.
    pub const HELLO: u8 = 0x09;
    /// To a service with a secret: the asker's proof (32 bytes).
    pub const PROVE: u8 = 0x0A;
    /// To the sequencer: a checkpoint of all numbers that it has given.
    pub const CHECKPOINT: u8 = 0x0B;
    /// To the sequencer: the block of a number (8 bytes), with its token.
    pub const RECALL: u8 = 0x0C;
    /// To the watcher: where is a transaction.
    pub const LOCATE: u8 = 0x10;
    /// To the watcher: how long is the main chain.
    pub const LENGTH: u8 = 0x11;
    /// To the watcher: look at the buckets now.
    pub const LOOK: u8 = 0x12;
    /// To the watcher: a pipeline says when a batch took a step.
    pub const STEP: u8 = 0x13;
    /// To the watcher: is a block on the main chain.
    pub const CHECK: u8 = 0x14;
    /// Answer to SUBMIT: the transaction is durable.
    pub const ACCEPTED: u8 = 0x81;
    /// Answer to POP: a batch.
    pub const BATCH: u8 = 0x82;
    /// Answer to POP: nothing came in the time that was given.
    pub const EMPTY: u8 = 0x83;
    /// Answer to DONE, PROVE, LOOK and STEP.
    pub const NOTED: u8 = 0x84;
    /// Answer to TIMESTAMP: a token.
    pub const TOKEN: u8 = 0x85;
    /// Answer to SEQUENCE: an attestation.
    pub const ATTESTATION: u8 = 0x86;
    /// Answer to ATTESTATIONS: several, one behind the other.
    pub const SEVERAL: u8 = 0x87;
    /// Answer to KEY: 32 bytes.
    pub const PUBLIC_KEY: u8 = 0x88;
    /// Answer to STANDING: transactions that are in no batch, and batches that are not done (8 bytes each).
    pub const STANDS: u8 = 0x89;
    /// Answer to HELLO: 32 bytes of the service's, and its proof (32 bytes).
    pub const GREETED: u8 = 0x8A;
    /// Answer to CHECKPOINT: a signed note ([`crate::note`]).
    pub const NOTE: u8 = 0x8B;
    /// Answer to RECALL: block and token.
    pub const RECALLED: u8 = 0x8C;
    /// Answer to LOCATE: where it is, with what weak verification takes.
    pub const FOUND: u8 = 0x90;
    /// Answer to LOCATE: it is nowhere yet.
    pub const UNKNOWN: u8 = 0x91;
    /// Answer to LENGTH and CHECK: two numbers (8 bytes each): of LENGTH the height and the next sequence number, of CHECK
    /// the height (0: not on the main chain) and 0.
    pub const CHAIN: u8 = 0x92;
    /// Answer to anything: a byte that says why not.
    pub const REFUSED: u8 = 0xFF;
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room now: the queue has as much as it may hold, or what has to be written waits for the disk.
    Full = 1,
    /// The payload is not what the kind says, or the kind is none of this service's.
    Malformed = 2,
    /// The transaction is longer than it may be, or empty.
    Size = 3,
    /// The batch is none that was given out.
    NoSuchBatch = 4,
    /// The service takes this only from those that prove that they have its secret.
    Unknown = 5,
    /// The timestamp service has not signed the token of the block that is to have a number.
    Unsigned = 6,
    /// The number is none that has a block.
    NoSuchNumber = 7,
}

impl Refused {
    /// What the byte says.
    #[must_use]
    pub const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Full,
            2 => Self::Malformed,
            3 => Self::Size,
            4 => Self::NoSuchBatch,
            5 => Self::Unknown,
            6 => Self::Unsigned,
            7 => Self::NoSuchNumber,
            _ => return None,
        })
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Full => "there is no room now; try again later",
            Self::Malformed => "the request is malformed",
            Self::Size => "a transaction has 1 to 65,536 bytes",
            Self::NoSuchBatch => "no such batch was given out",
            Self::Unknown => {
                "the service takes work from those that share its secret; set `secret` in the ledger's file"
            }
            Self::Unsigned => "the timestamp service has not signed the token of this block",
            Self::NoSuchNumber => "the sequencer has no block with this number",
        }
    }
}

/// A frame at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is.
    pub kind: u8,
    /// The asker's number.
    pub id: u64,
    /// What is in it.
    pub payload: &'a [u8],
    /// How many bytes it takes.
    pub used: usize,
}

/// The first frame, if all of it is there.
///
/// # Errors
/// When its payload is longer than `payload_bytes_max`, or it is too short for a frame: before a byte of it is waited for.
pub fn next_frame(bytes: &[u8], payload_bytes_max: usize) -> Result<Option<Frame<'_>>, Malformed> {
    let mut reader = Reader::new(bytes);
    let Ok(length) = reader.u32() else { return Ok(None) };
    let length = usize::try_from(length).map_err(|_| Malformed::Range)?;
    if length < HEAD_BYTES - 4 || length > payload_bytes_max + HEAD_BYTES - 4 {
        return Err(Malformed::Range);
    }
    let Ok(inside) = reader.bytes(length) else { return Ok(None) };
    let mut reader = Reader::new(inside);
    let [kind] = reader.array()?;
    let id = reader.u64()?;
    Ok(Some(Frame { kind, id, payload: reader.rest(), used: 4 + length }))
}

/// Writes a frame.
///
/// # Panics
/// If the payload is longer than any frame's may be.
pub fn write_frame(out: &mut Vec<u8>, kind: u8, id: u64, parts: &[&[u8]]) {
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    assert!(payload <= PAYLOAD_BYTES_MAX, "a frame's payload is bounded");
    let length = u32::try_from(payload + HEAD_BYTES - 4).expect("bounded");
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind);
    out.extend_from_slice(&id.to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Writes a refusal.
pub fn write_refused(out: &mut Vec<u8>, id: u64, why: Refused) {
    write_frame(out, kind::REFUSED, id, &[&[why as u8]]);
}

/// What a pipeline asks of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pop {
    /// At most so many transactions.
    pub count_max: u32,
    /// For how long nobody else gets the batch, milliseconds.
    pub lease_ms: u32,
    /// How long to wait for a transaction, milliseconds.
    pub wait_ms: u32,
}

impl Pop {
    /// Its bytes.
    #[must_use]
    pub fn encoded(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.count_max.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.lease_ms.to_be_bytes());
        bytes[8..].copy_from_slice(&self.wait_ms.to_be_bytes());
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (count_max, lease_ms, wait_ms) = (reader.u32()?, reader.u32()?, reader.u32()?);
        reader.end()?;
        if count_max == 0 || lease_ms == 0 {
            return Err(Malformed::Range);
        }
        Ok(Self { count_max, lease_ms, wait_ms })
    }
}

/// A batch as the queue gives it out: how often it was given out (4 bytes, from 1), the number of its first transaction in the
/// queue (8 bytes), and the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenOut {
    /// How often, this time included.
    pub attempt: u32,
    /// The queue's number of the first transaction.
    pub first: u64,
    /// The batch.
    pub batch: Batch,
}

impl GivenOut {
    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (attempt, first) = (reader.u32()?, reader.u64()?);
        if attempt == 0 {
            return Err(Malformed::Range);
        }
        Ok(Self { attempt, first, batch: Batch::parse(reader.rest())? })
    }
}

/// When a batch took a step: batch id, step (1 byte, its place in [`crate::pipeline::Step::NAMES`]), time (8 bytes,
/// nanoseconds of CLOCK_MONOTONIC of the pipeline's host). A claim of a pipeline, for people who want to know what took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepNote {
    /// The batch.
    pub batch: BatchId,
    /// The step.
    pub step: u8,
    /// When.
    pub at_ns: i64,
}

impl StepNote {
    /// Its bytes.
    #[must_use]
    pub fn encoded(&self) -> [u8; 25] {
        let mut bytes = [0; 25];
        bytes[..16].copy_from_slice(&self.batch);
        bytes[16] = self.step;
        bytes[17..].copy_from_slice(&self.at_ns.to_be_bytes());
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let batch = reader.array()?;
        let [step] = reader.array()?;
        let at_ns = i64::from_be_bytes(reader.array()?);
        reader.end()?;
        Ok(Self { batch, step, at_ns })
    }
}
