//! etcd's JSON gateway (etcd documentation 3.6, *Why gRPC gateway*): requests are JSON in POSTs, bytes in them are in
//! base64, and numbers of 64 bits are in quotes. Values only: no socket, no time.

use model::{Seed, TxId};
use wire::http1::write_request;

/// Digits of a transaction's number in its key.
const NUMBER_BYTES: usize = 16;

/// The letters of base64 (RFC 4648, section 4).
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Where the keys of a trial begin.
pub(crate) fn prefix(run_mark: u64) -> String {
    format!("assay/{run_mark:016x}/")
}

/// The transaction of a key with this prefix; `None`: it is of no transaction.
pub(crate) fn transaction(key: &[u8], prefix: &str) -> Option<TxId> {
    let digits = key.strip_prefix(prefix.as_bytes())?;
    let text = std::str::from_utf8(digits).ok().filter(|it| it.len() == NUMBER_BYTES)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_plain { TxId::from_str_radix(text, 16).ok() } else { None }
}

/// The value of a transaction's key: letters that only this trial's transaction of this number has, so that one that was
/// damaged is told.
pub(crate) fn value(run_mark: u64, id: TxId, bytes: usize, out: &mut Vec<u8>) {
    let mut rng = Seed(run_mark).split_index("content", id).rng();
    out.extend((0..bytes).map(|_| b'a' + u8::try_from(rng.below(26)).expect("below 26")));
}

/// Appends a request to a member.
pub(crate) fn post(path: &str, body: &[u8], out: &mut Vec<u8>) {
    let headers: [(&str, &[u8]); 2] = [("Host", b"assay"), ("Content-Type", b"application/json")];
    write_request(out, "POST", path, &headers, body);
}

/// Appends the put of a transaction.
pub(crate) fn put(prefix: &str, id: TxId, value: &[u8], body: &mut Vec<u8>, out: &mut Vec<u8>) {
    body.clear();
    body.extend_from_slice(b"{\"key\":\"");
    let key = format!("{prefix}{id:016x}");
    base64(key.as_bytes(), body);
    body.extend_from_slice(b"\",\"value\":\"");
    base64(value, body);
    body.extend_from_slice(b"\"}");
    post("/v3/kv/put", body, out);
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

/// The revision at which a put stands, from its answer; `None`: it is no answer to one.
pub(crate) fn revision(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    let header = &inside[inside.find("\"header\":")?..];
    let key = "\"revision\":\"";
    let digits = &header[header.find(key)? + key.len()..];
    digits.split('"').next()?.parse().ok().filter(|revision| *revision > 0)
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

    /// Claim: a put is acknowledged by a revision and by nothing else.
    #[test]
    fn revisions() {
        let answer =
            br#"{"header":{"cluster_id":"1","member_id":"2","revision":"17","raft_term":"2"}}"#;
        assert_eq!(revision(answer), Some(17));
        for none in [
            &b""[..],
            b"{}",
            br#"{"header":{}}"#,
            br#"{"revision":"4"}"#,
            br#"{"header":{"revision":"0"}}"#,
        ] {
            assert_eq!(revision(none), None);
        }
    }

    /// Claim: a key is of its trial and its transaction, and of no other.
    #[test]
    fn keys() {
        let prefix = prefix(7);
        let found = |key: &str| transaction(key.as_bytes(), &prefix);
        assert_eq!(found(&format!("{prefix}{:016x}", 0x12_3456)), Some(0x12_3456));
        for other in [
            "x",
            "",
            "assay/0000000000000008/0000000000000001",
            "assay/0000000000000007/+000000000000001",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
