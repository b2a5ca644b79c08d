//! Hexadecimal as JSON-RPC writes it: hashes and addresses with all their digits, quantities without leading zeros. What is
//! none is `None`, never a panic.

/// A hash of a block or a transaction.
pub(crate) type Hash = [u8; 32];

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends the digits of `bytes`.
pub(crate) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// `0x` and the digits of `bytes`.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut out = b"0x".to_vec();
    write(&mut out, bytes);
    String::from_utf8(out).expect("digits")
}

/// Exactly `N` bytes behind `0x`.
pub(crate) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    digits(text.strip_prefix("0x")?.as_bytes())
}

/// Exactly `N` bytes, without `0x`.
pub(crate) fn digits<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// A quantity that fits 64 bits.
pub(crate) fn quantity(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_plain = !digits.starts_with('+');
    u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)
}

/// No chain is as high: of a thousand blocks a second it takes 17 years. Up to here, heights can be reckoned with.
const HEIGHT_MAX: u64 = 1 << 39;

/// A quantity that can be a block's height.
pub(crate) fn height(text: &str) -> Option<u64> {
    quantity(text).filter(|height| *height <= HEIGHT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what is written is read again, and what is no number of that length is none.
    #[test]
    fn there_and_back() {
        assert_eq!(bytes::<3>(&text(&[0, 171, 255])), Some([0, 171, 255]));
        for wrong in ["", "0x", "0x00", "00abff", "0x00abfg", "0x00abff0"] {
            assert_eq!(bytes::<3>(wrong), None, "{wrong}");
        }
        assert_eq!((quantity("0x0"), quantity("0x1e")), (Some(0), Some(30)));
        for wrong in ["", "0x", "1e", "0x+1", "0x-1", "0x10000000000000000"] {
            assert_eq!(quantity(wrong), None, "{wrong}");
        }
        assert_eq!(height("0x8000000000"), Some(HEIGHT_MAX));
        for wrong in ["1e", "0x8000000001", "0xffffffffffffffff"] {
            assert_eq!(height(wrong), None, "{wrong}");
        }
    }
}
