//! The published load tool's payload, byte for byte (`test/loadtime/payload` of CometBFT 0.38): `a=` and the
//! lower-case hexadecimal of a message of Protocol Buffers. All go to the one key `a`, so the application's state
//! never grows, and each says when it was submitted, so the chain alone tells latencies.
//!
//! ```text
//! 1 connections   2 rate   3 size   4 time {1 seconds, 2 nanoseconds}   5 id   6 padding
//! ```
//!
//! The tool pads with random bytes. Ours begin with a mark, which its report tool does not look at: the run mark,
//! the transaction's number, and a CRC-32 of the whole message but itself. The time is known when a transaction is
//! submitted and not before, so it is the session that writes it; nothing is allocated for it.

use clock::WallTime;
use model::TxId;
use model::plan::{Arrivals, LoadPlan, Schedule};
use model::seed::{Rng, Seed};
use sut::{Made, Transaction, Workload};

use crate::hexadecimal;

/// The one key and the `=` behind it.
const PREFIX: &[u8; 2] = b"a=";

/// Tags: number × 8 + kind of value (0 a number, 2 bytes).
const CONNECTIONS: u8 = 0x08;
const RATE: u8 = 0x10;
const SIZE: u8 = 0x18;
const TIME: u8 = 0x22;
const SECONDS: u8 = 0x08;
const NANOSECONDS: u8 = 0x10;
const ID: u8 = 0x2a;
const PADDING: u8 = 0x32;

const ID_BYTES: usize = 16;

/// Run mark, number, checksum.
const MARK_BYTES: usize = 20;

/// The longest head: three numbers, a time, the id, the padding's own head and our mark.
const HEAD_BYTES_MAX: usize = 3 * 11 + TIME_BYTES_MAX + 2 + ID_BYTES + 1 + 5 + MARK_BYTES;

/// A time: its own head, seconds (negative ones take ten bytes), nanoseconds.
const TIME_BYTES_MAX: usize = 2 + 11 + 6;

/// Characters of base64 in which the longest head lies: four for three characters of `a=` and hexadecimal.
pub(crate) const HEAD_CHARS_MAX: usize = (2 + 2 * HEAD_BYTES_MAX).div_ceil(3) * 4;

/// Which time a payload carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// When it was due: what a stalled sender makes it wait stays in its latency.
    Due,
    /// When it was given to be written, as the published tool does: what it waited before that is hidden.
    Given,
}

impl Stamp {
    /// The words that an experiment chooses by.
    pub(crate) const WORDS: &'static [&'static str] = &["due", "given"];

    /// The one that a word of [`Stamp::WORDS`] means.
    pub(crate) fn of_word(word: Option<&str>) -> Self {
        if word == Some("given") { Self::Given } else { Self::Due }
    }
}

/// What all payloads of a trial share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loadtime {
    pub(crate) connections: u64,
    /// Transactions a second on each connection.
    pub(crate) rate: u64,
    pub(crate) size_bytes: usize,
    pub(crate) id: [u8; ID_BYTES],
    pub(crate) run_mark: u64,
    pub(crate) stamp: Stamp,
}

impl Loadtime {
    /// The payloads of a trial under this load; of none, they say one connection and no rate.
    pub(crate) fn new(
        load: Option<&LoadPlan>,
        size_bytes: usize,
        run_mark: u64,
        stamp: Stamp,
    ) -> Self {
        let connections = load.map_or(1, |load| u64::from(load.connections));
        let rate = load.map_or(0, |load| rate_of_each(load, connections));
        Self { connections, rate, size_bytes, id: id_of(run_mark), run_mark, stamp }
    }

    /// The shortest that holds our mark at any time.
    pub(crate) fn bytes_min(&self) -> usize {
        // A size's own length grows with it: four bytes are the most that a transaction may have.
        let numbers = varint_bytes(self.connections) + varint_bytes(self.rate) + 3 + 4;
        let unpadded = numbers + TIME_BYTES_MAX + 2 + ID_BYTES + 3;
        PREFIX.len() + 2 * (unpadded + MARK_BYTES)
    }

    /// More padding than any time leaves room for.
    fn padding_bytes_max(&self) -> usize {
        self.size_bytes / 2
    }

    /// The message of a transaction into `message`, which is emptied first; `padding` is what the workload made.
    fn message(&self, tx: TxId, time: WallTime, padding: &[u8], message: &mut Vec<u8>) {
        message.clear();
        for (tag, number) in [
            (CONNECTIONS, self.connections),
            (RATE, self.rate),
            (SIZE, u64::try_from(self.size_bytes).expect("a size fits 64 bits")),
        ] {
            put_number(message, tag, number);
        }
        put_time(message, time);
        message.extend_from_slice(&[ID, u8::try_from(ID_BYTES).expect("sixteen")]);
        message.extend_from_slice(&self.id);
        // As the tool computes it: what the size leaves beside a padding of one byte, halved by hexadecimal.
        let unpadded = PREFIX.len() + 2 * (message.len() + 3);
        let count = self.size_bytes.checked_sub(unpadded).expect("the options refuse less") / 2;
        message.push(PADDING);
        put_varint(message, u64::try_from(count).expect("a size fits 64 bits"));
        let mark = message.len();
        message.extend_from_slice(&padding[..count]);
        message[mark..mark + 8].copy_from_slice(&self.run_mark.to_be_bytes());
        message[mark + 8..mark + 16].copy_from_slice(&tx.to_be_bytes());
        let checksum = checksum(message, mark + 16);
        message[mark + 16..mark + 20].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The base64 of a transaction, appended to `out`; gives the transaction's own length. `message` is room to
    /// work in.
    pub(crate) fn write(
        &self,
        tx: &Transaction<'_>,
        message: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> usize {
        let time = match self.stamp {
            Stamp::Due => tx.due,
            Stamp::Given => tx.given,
        };
        self.message(tx.id, time, tx.payload, message);
        hexadecimal::write_base64(*PREFIX, message, out);
        PREFIX.len() + 2 * message.len()
    }

    /// The base64 of a transaction of now, for a node that is asked whether it would take one.
    pub(crate) fn base64_now(&self, padding: &[u8]) -> String {
        let (mut message, mut out) = (Vec::new(), Vec::new());
        let now = WallTime::now();
        let tx = Transaction { due: now, given: now, ..Transaction::new(0, 0, padding) };
        self.write(&tx, &mut message, &mut out);
        String::from_utf8(out).expect("base64 is ASCII")
    }

    /// Where the paddings come from.
    pub(crate) fn workload(&self, seed: Seed, worker: u32) -> Box<dyn Workload> {
        let rng = seed.split_index("padding", u64::from(worker)).rng();
        Box::new(Paddings { rng, bytes: self.padding_bytes_max() })
    }
}

/// Random bytes, as many as the longest padding takes.
struct Paddings {
    rng: Rng,
    bytes: usize,
}

impl Workload for Paddings {
    fn next(&mut self, _id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        payload.resize(self.bytes, 0);
        self.rng.fill(payload);
        Made::of(0, client)
    }
}

/// What is at the beginning of a payload, whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) connections: u64,
    pub(crate) rate: u64,
    pub(crate) size: u64,
    pub(crate) id: [u8; ID_BYTES],
    pub(crate) time: WallTime,
    /// In a payload of ours; anything in others.
    pub(crate) run_mark: u64,
    pub(crate) tx: TxId,
    checksum: u32,
    /// Where the checksum stands in the message.
    checksum_at: usize,
}

impl Head {
    /// Whether a transaction can only be of this kind: the key of the other one is longer.
    pub(crate) fn is_likely(transaction: &[u8]) -> bool {
        transaction.starts_with(PREFIX)
    }

    /// Reads a transaction's beginning; `None`: it is no such payload, or has no room for a mark.
    pub(crate) fn read(transaction: &[u8]) -> Option<Self> {
        let digits = transaction.strip_prefix(PREFIX)?;
        let mut bytes = [0; HEAD_BYTES_MAX];
        let count = (digits.len() / 2).min(HEAD_BYTES_MAX);
        hexadecimal::read(&digits[..2 * count], &mut bytes[..count])?;
        Reader { bytes: &bytes[..count], at: 0 }.head()
    }

    /// Whether all of the transaction is as it was submitted.
    pub(crate) fn holds(&self, transaction: &[u8]) -> bool {
        let digits = transaction.strip_prefix(PREFIX).unwrap_or_default();
        let mut message = vec![0; digits.len() / 2];
        digits.len().is_multiple_of(2)
            && hexadecimal::read(digits, &mut message).is_some()
            && self.checksum_at + 4 <= message.len()
            && self.checksum == checksum(&message, self.checksum_at)
    }
}

/// Of everything but the four bytes at `at`.
fn checksum(message: &[u8], at: usize) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&message[..at]);
    hasher.update(&message[at + 4..]);
    hasher.finalize()
}

/// Reads a message whose fields stand in ascending order, as every encoder writes them.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn head(mut self) -> Option<Head> {
        let connections = self.number(CONNECTIONS)?;
        let rate = self.number(RATE)?;
        let size = self.number(SIZE)?;
        let time = self.time()?;
        if self.byte()? != ID || usize::from(self.byte()?) != ID_BYTES {
            return None;
        }
        let id = *self.take::<ID_BYTES>()?;
        if self.byte()? != PADDING {
            return None;
        }
        self.varint()?;
        let run_mark = u64::from_be_bytes(*self.take()?);
        let tx = u64::from_be_bytes(*self.take()?);
        let checksum_at = self.at;
        let checksum = u32::from_be_bytes(*self.take()?);
        Some(Head { connections, rate, size, id, time, run_mark, tx, checksum, checksum_at })
    }

    /// A field that is left out where it is zero.
    fn number(&mut self, tag: u8) -> Option<u64> {
        if self.bytes.get(self.at) != Some(&tag) {
            return Some(0);
        }
        self.at += 1;
        self.varint()
    }

    fn time(&mut self) -> Option<WallTime> {
        if self.byte()? != TIME {
            return None;
        }
        let end = usize::from(self.byte()?) + self.at;
        let seconds = self.number(SECONDS)?.cast_signed();
        let nanoseconds = i64::try_from(self.number(NANOSECONDS)?).ok()?;
        let ns = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let time = WallTime::from_unix_ns(i64::try_from(ns).ok()?);
        (self.at == end).then_some(time)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn take<const N: usize>(&mut self) -> Option<&[u8; N]> {
        let taken = self.bytes.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(taken)
    }
}

fn put_number(out: &mut Vec<u8>, tag: u8, number: u64) {
    if number != 0 {
        out.push(tag);
        put_varint(out, number);
    }
}

fn put_time(out: &mut Vec<u8>, time: WallTime) {
    out.extend_from_slice(&[TIME, 0]);
    let start = out.len();
    let seconds = time.unix_ns().div_euclid(1_000_000_000);
    let nanoseconds = time.unix_ns().rem_euclid(1_000_000_000);
    put_number(out, SECONDS, seconds.cast_unsigned());
    put_number(out, NANOSECONDS, nanoseconds.cast_unsigned());
    out[start - 1] = u8::try_from(out.len() - start).expect("seventeen bytes at most");
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).expect("seven bits"));
}

fn varint_bytes(number: u64) -> usize {
    let bits = 64 - number.leading_zeros();
    usize::try_from(bits.div_ceil(7).max(1)).expect("ten at most")
}

/// A version 4 UUID, as the tool's are, out of the run mark: all payloads of a trial have one, and no others.
fn id_of(run_mark: u64) -> [u8; ID_BYTES] {
    let mut id = [0; ID_BYTES];
    Seed(run_mark).split("loadtime id").rng().fill(&mut id);
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    id
}

/// The mean rate of the plan by connection, a second, to the nearest whole number; 0 where none is planned.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure for people, saturating"
)]
fn rate_of_each(load: &LoadPlan, connections: u64) -> u64 {
    let Arrivals::Open { schedule } = &load.arrivals else { return 0 };
    let total = match schedule {
        Schedule::Constant { rate } | Schedule::Poisson { rate } | Schedule::Burst { rate, .. } => {
            rate.as_per_second()
        }
        Schedule::Ramp { from, to } => f64::midpoint(from.as_per_second(), to.as_per_second()),
        Schedule::Steps { steps } => {
            let length: f64 = steps.iter().map(|step| step.length.as_secs_f64()).sum();
            let count = steps.iter().map(|it| it.rate.as_per_second() * it.length.as_secs_f64());
            count.sum::<f64>() / length
        }
        Schedule::Trace { due_ns } => due_ns.len() as f64 / load.duration.as_secs_f64(),
    };
    (total / connections.max(1) as f64).round() as u64
}
