//! Recursive length prefix (Yellow Paper, appendix B), writing only: what a transaction is encoded in.

/// Appends a string of bytes.
pub(crate) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes {
        [one] if *one < 0x80 => out.push(*one),
        _ => {
            head(out, 0x80, bytes.len());
            out.extend_from_slice(bytes);
        }
    }
}

/// Appends a number: big-endian, without leading zeros, zero as the empty string.
pub(crate) fn number(out: &mut Vec<u8>, number: u128) {
    trimmed(out, &number.to_be_bytes());
}

/// Appends a big-endian number of any length.
pub(crate) fn trimmed(out: &mut Vec<u8>, number: &[u8]) {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    bytes(out, &number[zeros..]);
}

/// Appends what comes before the items of a list that take `length` bytes together.
pub(crate) fn list(out: &mut Vec<u8>, length: usize) {
    head(out, 0xc0, length);
}

fn head(out: &mut Vec<u8>, base: u8, length: usize) {
    if let Some(short) = u8::try_from(length).ok().filter(|length| *length < 56) {
        out.push(base + short);
        return;
    }
    let length = length.to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let digits = &length[zeros..];
    out.push(base + 55 + u8::try_from(digits.len()).expect("at most eight"));
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// Claim: the examples of the definition.
    #[test]
    fn known_answers() {
        assert_eq!(of(|out| bytes(out, b"dog")), b"\x83dog");
        assert_eq!(of(|out| bytes(out, b"")), [0x80]);
        assert_eq!(of(|out| bytes(out, &[0x7f])), [0x7f]);
        assert_eq!(of(|out| bytes(out, &[0x80])), [0x81, 0x80]);
        assert_eq!(of(|out| number(out, 0)), [0x80]);
        assert_eq!(of(|out| number(out, 1024)), [0x82, 4, 0]);
        assert_eq!(of(|out| list(out, 0)), [0xc0]);
        let long = b"Lorem ipsum dolor sit amet, consectetur adipisicing elit";
        assert_eq!(of(|out| bytes(out, long))[..3], [0xb8, 0x38, b'L']);
        assert_eq!(of(|out| list(out, 1024)), [0xf9, 4, 0]);
    }
}
