//! etcd's JSON gateway (etcd documentation 3.6, *Why gRPC gateway*), by which the ledger is read: requests are JSON in POSTs,
//! bytes in them are in base64, and numbers of 64 bits are in quotes. Values only: no socket, no time.

use wire::http1::write_request;

/// The letters of base64 (RFC 4648, section 4).
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends a request to a member.
pub(crate) fn post(path: &str, body: &[u8], out: &mut Vec<u8>) {
    let headers: [(&str, &[u8]); 2] = [("Host", b"assay"), ("Content-Type", b"application/json")];
    write_request(out, "POST", path, &headers, body);
}

/// Appends bytes as base64, padded.
pub(crate) fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for letter in 0..4 {
            out.push(if letter > three.len() {
                b'='
            } else {
                let index = usize::try_from(word >> (18 - 6 * letter) & 63).expect("six bits");
                LETTERS[index]
            });
        }
    }
}

/// The bytes of base64; `None`: it is none.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let trimmed = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(trimmed.len() * 3 / 4);
    for four in trimmed.as_bytes().chunks(4) {
        let mut word = 0_u32;
        for index in 0..4 {
            let letter = four.get(index).map_or(Some(0), |letter| {
                LETTERS
                    .iter()
                    .position(|it| it == letter)
                    .map(|at| u32::try_from(at).expect("six bits"))
            })?;
            word = word << 6 | letter;
        }
        let whole = four.len().checked_sub(1).filter(|whole| *whole > 0)?;
        out.extend_from_slice(&word.to_be_bytes()[1..1 + whole]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: base64 is that of the RFC's examples, both ways, and what is none is not taken for it.
    #[test]
    fn base64_is_the_rfcs() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = Vec::new();
            base64(bytes.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert_eq!(bytes_of(text).as_deref(), Some(bytes.as_bytes()));
        }
        for none in ["Z", "Zm9v!", "Zm9vY"] {
            assert_eq!(bytes_of(none), None, "{none}");
        }
    }
}
