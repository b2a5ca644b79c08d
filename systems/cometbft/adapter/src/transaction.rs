//! What is submitted, and recognising it. Of the two kinds this is the plain one (the other is in `loadtime`):
//! `key=value` for the node's built-in key-value application, where the key says whose
//! transaction it is. 41 bytes of key and `=` are 42, exactly 56 characters of base64, so an observer finds out
//! without decoding the value.
//!
//! ```text
//! a  0123456789abcdef  0123456789abcdef  01234567  =  value
//!    run mark          transaction       CRC-32 of both and the value
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::WallTime;
use model::seed::Rng;
use model::{Seed, TxId};
use sut::{Made, Workload};

use crate::hexadecimal;
use crate::loadtime::{HEAD_CHARS_MAX, Head};

/// Bytes up to and with the `=`.
pub(crate) const HEAD_BYTES: usize = 42;

/// The shortest transaction: the application refuses an empty value.
pub(crate) const BYTES_MIN: usize = HEAD_BYTES + 1;

/// What values are made of: no `=` and no `:`, of which the application wants exactly one in all.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a transaction says of itself, of whichever kind it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) run_mark: u64,
    pub(crate) tx: TxId,
    /// When it was submitted, if it says so.
    pub(crate) submitted: Option<WallTime>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    KeyValue(Key),
    Loadtime(Head),
}

impl Claim {
    /// Reads the beginning of a transaction; `None`: not one of any run of ours.
    pub(crate) fn read(transaction: &[u8]) -> Option<Self> {
        if Head::is_likely(transaction) {
            let head = Head::read(transaction)?;
            let (run_mark, tx, submitted) = (head.run_mark, head.tx, Some(head.time));
            return Some(Self { run_mark, tx, submitted, form: Form::Loadtime(head) });
        }
        let key = Key::read(transaction)?;
        let (run_mark, tx) = (key.run_mark, key.tx);
        Some(Self { run_mark, tx, submitted: None, form: Form::KeyValue(key) })
    }

    /// The same of a transaction in base64, of which no more is decoded than says whose it is.
    pub(crate) fn read_base64(text: &str) -> Option<Self> {
        // `a=` begins with one of these two, and a digit behind the `a` with neither.
        let is_long = text.starts_with("YT0") || text.starts_with("YT1");
        let chars = if is_long { HEAD_CHARS_MAX.min(text.len()) } else { HEAD_CHARS };
        let mut head = [0; HEAD_CHARS_MAX / 4 * 3];
        let count = STANDARD.decode_slice(text.as_bytes().get(..chars)?, &mut head).ok()?;
        Self::read(&head[..count])
    }

    /// Whether the rest of the transaction is what was submitted with this.
    pub(crate) fn holds(&self, transaction: &[u8]) -> bool {
        match &self.form {
            Form::KeyValue(key) => key.holds(transaction),
            Form::Loadtime(head) => head.holds(transaction),
        }
    }
}

/// Characters of base64 that the key takes: [`HEAD_BYTES`] is a multiple of three.
const HEAD_CHARS: usize = HEAD_BYTES / 3 * 4;

/// What the key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) run_mark: u64,
    pub(crate) tx: TxId,
    checksum: u32,
}

impl Key {
    /// Reads the beginning of a transaction; `None`: not one of any run of ours.
    pub(crate) fn read(head: &[u8]) -> Option<Self> {
        let head = head.first_chunk::<HEAD_BYTES>()?;
        if head[0] != b'a' || head[HEAD_BYTES - 1] != b'=' {
            return None;
        }
        let checksum = u32::try_from(hexadecimal::number(&head[33..41])?).expect("eight digits");
        let (run_mark, tx) =
            (hexadecimal::number(&head[1..17])?, hexadecimal::number(&head[17..33])?);
        Some(Self { run_mark, tx, checksum })
    }

    /// Whether the value is the one that was submitted with this key.
    pub(crate) fn holds(&self, transaction: &[u8]) -> bool {
        let value = transaction.get(HEAD_BYTES..).unwrap_or_default();
        self.checksum == checksum(self.run_mark, self.tx, value)
    }
}

fn checksum(run_mark: u64, tx: TxId, value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [&run_mark.to_be_bytes()[..], &tx.to_be_bytes(), value] {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Transactions of one size with random values.
pub(crate) struct KeyValues {
    rng: Rng,
    run_mark: u64,
    bytes: usize,
}

impl KeyValues {
    pub(crate) fn new(seed: Seed, worker: u32, run_mark: u64, bytes: usize) -> Self {
        assert!(bytes >= BYTES_MIN, "the options refuse shorter ones");
        let rng = seed.split_index("value", u64::from(worker)).rng();
        Self { rng, run_mark, bytes }
    }
}

impl Workload for KeyValues {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        payload.resize(self.bytes, 0);
        let (head, value) = payload.split_at_mut(HEAD_BYTES);
        self.rng.fill(value);
        for byte in value.iter_mut() {
            *byte = ALPHABET[usize::from(*byte & 63)];
        }
        head[0] = b'a';
        hexadecimal::write_number(&mut head[1..17], self.run_mark);
        hexadecimal::write_number(&mut head[17..33], id);
        hexadecimal::write_number(&mut head[33..41], u64::from(checksum(self.run_mark, id, value)));
        head[HEAD_BYTES - 1] = b'=';
        Made::of(0, client)
    }
}
