//! What is submitted: `key=value` for the node's built-in key-value application, where the key says whose
//! transaction it is. 41 bytes of key and `=` are 42, exactly 56 characters of base64, so an observer finds out
//! without decoding the value.
//!
//! ```text
//! a  0123456789abcdef  0123456789abcdef  01234567  =  value
//!    run mark          transaction       CRC-32 of both and the value
//! ```

use model::seed::Rng;
use model::{Seed, TxId};
use sut::Workload;

/// Bytes up to and with the `=`.
pub(crate) const HEAD_BYTES: usize = 42;

/// The shortest transaction: the application refuses an empty value.
pub(crate) const BYTES_MIN: usize = HEAD_BYTES + 1;

/// What values are made of: no `=` and no `:`, of which the application wants exactly one in all.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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
        let checksum = u32::try_from(hexadecimal(&head[33..41])?).expect("eight digits");
        let (run_mark, tx) = (hexadecimal(&head[1..17])?, hexadecimal(&head[17..33])?);
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

/// Lower-case digits only, as they are written: another spelling would be another transaction.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u64::from(value))
    })
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
    fn next(&mut self, id: TxId, payload: &mut Vec<u8>) -> u32 {
        payload.resize(self.bytes, 0);
        let (head, value) = payload.split_at_mut(HEAD_BYTES);
        self.rng.fill(value);
        for byte in value.iter_mut() {
            *byte = ALPHABET[usize::from(*byte & 63)];
        }
        head[0] = b'a';
        write_hexadecimal(&mut head[1..17], self.run_mark);
        write_hexadecimal(&mut head[17..33], id);
        write_hexadecimal(&mut head[33..41], u64::from(checksum(self.run_mark, id, value)));
        head[HEAD_BYTES - 1] = b'=';
        0
    }
}

fn write_hexadecimal(digits: &mut [u8], mut value: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[usize::try_from(value & 15).expect("four bits")];
        value >>= 4;
    }
}
