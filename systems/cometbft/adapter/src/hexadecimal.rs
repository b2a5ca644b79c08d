//! Lower-case hexadecimal, and the base64 of it in one step: three digits are four characters, by one look into
//! a table of 16 kB instead of two passes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What base64 is written with.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The four characters of every three digits.
static GROUPS: [[u8; 4]; 4096] = groups();

const fn groups() -> [[u8; 4]; 4096] {
    let mut table = [[0; 4]; 4096];
    let mut index = 0;
    while index < table.len() {
        let digits =
            [DIGITS[index >> 8] as u32, DIGITS[index >> 4 & 15] as u32, DIGITS[index & 15] as u32];
        let bits = digits[0] << 16 | digits[1] << 8 | digits[2];
        let mut at = 0;
        while at < 4 {
            table[index][at] = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            at += 1;
        }
        index += 1;
    }
    table
}

/// The value of every digit; of what is none, more than any has.
static VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let mut table = [255; 256];
    let mut value = 0_u8;
    while value < 16 {
        table[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    table
}

/// Appends the base64 of `prefix` and the digits of `bytes`.
pub(crate) fn write_base64(prefix: [u8; 2], bytes: &[u8], out: &mut Vec<u8>) {
    let Some(first) = bytes.first() else { return tail(&prefix, out) };
    // The prefix takes the first digit into its group; three bytes on, the second digit is the first again.
    tail(&[prefix[0], prefix[1], DIGITS[usize::from(first >> 4)]], out);
    let mut rest = bytes;
    while let Some(&[a, b, c, d]) = rest.first_chunk::<4>() {
        let (left, right) =
            (usize::from(a & 15) << 8 | usize::from(b), usize::from(c) << 4 | usize::from(d >> 4));
        let mut group = [0; 8];
        group[..4].copy_from_slice(&GROUPS[left]);
        group[4..].copy_from_slice(&GROUPS[right]);
        out.extend_from_slice(&group);
        rest = &rest[3..];
    }
    // One to three bytes, of which the first digit is written.
    let mut digits = [0; 6];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(rest) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    tail(&digits[1..2 * rest.len()], out);
}

/// By the library: the beginning, and the end with its padding.
fn tail(characters: &[u8], out: &mut Vec<u8>) {
    let mut encoded = [0; 8];
    let count = STANDARD.encode_slice(characters, &mut encoded);
    out.extend_from_slice(&encoded[..count.expect("six characters are eight in base64")]);
}

/// Digits into as many bytes as there is room for; `None` if one is no lower-case digit. Another spelling would
/// be another transaction.
pub(crate) fn read(digits: &[u8], bytes: &mut [u8]) -> Option<()> {
    // Without a branch a digit: what is no digit shows in the upper half, at the end.
    let mut strange = 0;
    for (pair, byte) in digits.chunks_exact(2).zip(bytes) {
        let (left, right) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
        strange |= left | right;
        *byte = left << 4 | right & 15;
    }
    (strange < 16).then_some(())
}

/// The number that up to sixteen digits are.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let mut strange = 0;
    let number = digits.iter().fold(0_u64, |sum, digit| {
        let value = VALUES[usize::from(*digit)];
        strange |= value;
        sum << 4 | u64::from(value & 15)
    });
    (strange < 16).then_some(number)
}

/// Writes a number with as many digits as there is room for.
pub(crate) fn write_number(digits: &mut [u8], mut value: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(value & 15).expect("four bits")];
        value >>= 4;
    }
}
