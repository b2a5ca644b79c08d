//! Content that says of itself whose it is and whether it is whole, for transactions that are read back later: numbers as
//! digits, and letters that no other transaction has.

use std::ops::RangeInclusive;

use model::options::{Options, Problems, Section};
use model::{Seed, TxId};

use crate::{Made, Workload};

/// Reads a `[workload]` that says nothing but the bytes of a transaction, `payload`; 64 unless it says so.
pub fn payload_bytes(
    workload: &Options,
    range: RangeInclusive<usize>,
    problems: &mut Problems,
) -> usize {
    let mut workload = Section::open(workload, "workload", problems);
    let (least, most) = range.into_inner();
    let bytes = workload.size_within("payload", least as u64..=most as u64, problems);
    workload.finish(problems);
    bytes.map_or(64, |bytes| usize::try_from(bytes).expect("at most the largest"))
}

/// Digits of a number.
pub const DIGITS: usize = 16;

/// A number in hexadecimal.
#[must_use]
pub fn digits(number: u64) -> [u8; DIGITS] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (60 - 4 * at) & 15) as usize])
}

/// The number that [`digits`] wrote; `None`: it wrote no such thing.
#[must_use]
pub fn number(digits: &[u8]) -> Option<u64> {
    let digits: &[u8; DIGITS] = digits.try_into().ok()?;
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

/// Appends so many letters that only this trial's transaction of this number has, each of `a` to `p` as often as the others.
pub fn letters(run_mark: u64, id: TxId, count: usize, out: &mut Vec<u8>) {
    let before = out.len();
    out.resize(before + count, 0);
    let letters = &mut out[before..];
    Seed(run_mark).split_index("content", id).rng().fill(letters);
    for letter in letters {
        *letter = b'a' + (*letter & 15);
    }
}

/// A workload whose transactions are [`letters`] of one length.
pub struct Letters {
    /// The trial's mark.
    pub run_mark: u64,
    /// How many.
    pub count: usize,
}

impl Workload for Letters {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        letters(self.run_mark, id, self.count, payload);
        Made::of(0, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a number is read as it was written, and nothing else is read as one.
    #[test]
    fn numbers() {
        for value in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(digits(value).as_slice(), format!("{value:016x}").as_bytes());
            assert_eq!(number(&digits(value)), Some(value));
        }
        let strange =
            ["", "+000000000000001", "000000000000000A", "00000000000000001", "000000000000001"];
        for other in strange {
            assert_eq!(number(other.as_bytes()), None, "{other}");
        }
    }

    /// Claim: letters are those of the transaction and of the trial, come after what was there, and are equally frequent.
    #[test]
    fn letters_of_a_transaction() {
        let of = |run_mark, id| {
            let mut out = b"-".to_vec();
            letters(run_mark, id, 4_096, &mut out);
            out
        };
        let one = of(7, 1);
        assert_eq!((one.len(), one[0]), (4_097, b'-'));
        assert_eq!(one, of(7, 1));
        assert_ne!(one, of(7, 2));
        assert_ne!(one, of(8, 1));
        for letter in b'a'..=b'p' {
            let count = one.iter().filter(|it| **it == letter).count();
            assert!((150..370).contains(&count), "{letter}: {count} of 4096, 256 expected");
        }
    }
}
