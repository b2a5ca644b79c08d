//! The two messages of a put (etcd's rpc.proto, `KV/Put`) in protobuf's wire format, each after gRPC's prefix: a flag and four
//! bytes of length. Of the answer nothing is read but the revision at which the put stands.

use model::TxId;
use sut::content::{DIGITS, digits};

/// The bytes before a message.
const PREFIX_BYTES: usize = 5;

/// `PutRequest.key` and `PutRequest.value`: fields 1 and 2, of bytes.
const KEY: u8 = 1 << 3 | 2;
const VALUE: u8 = 2 << 3 | 2;

/// `PutResponse.header` and `ResponseHeader.revision`.
const HEADER: u64 = 1;
const REVISION: u64 = 3;

/// The highest number of a field.
const FIELD_MAX: u64 = (1 << 29) - 1;

/// Writes the put of a transaction in place of what `out` holds.
pub(crate) fn put(prefix: &str, id: TxId, value: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    out.push(KEY);
    write_number(prefix.len() + DIGITS, out);
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(&digits(id));
    out.push(VALUE);
    write_number(value.len(), out);
    out.extend_from_slice(value);
    let length = u32::try_from(out.len() - PREFIX_BYTES).expect("bounded by the options");
    out[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// The revision in the body of an answer that is one `PutResponse`; `None`: it is none, or it has no revision.
pub(crate) fn revision(body: &[u8]) -> Option<u64> {
    let (prefix, mut message) = body.split_first_chunk::<PREFIX_BYTES>()?;
    let [is_compressed, length @ ..] = *prefix;
    if is_compressed != 0 || usize::try_from(u32::from_be_bytes(length)) != Ok(message.len()) {
        return None;
    }
    let mut revision = None;
    while !message.is_empty() {
        let (HEADER, Content::Bytes(mut header)) = field(&mut message)? else { continue };
        while !header.is_empty() {
            if let (REVISION, Content::Number(number)) = field(&mut header)? {
                revision = Some(number);
            }
        }
    }
    // An int64: one below zero is a number beyond its highest.
    revision.filter(|revision| (1..=i64::MAX as u64).contains(revision))
}

/// The content of a field.
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes: no field that is read here has them.
    Fixed,
}

/// Takes the next field: its number and its content. `None`: it is none, or a group, which this syntax does not have.
fn field<'a>(message: &mut &'a [u8]) -> Option<(u64, Content<'a>)> {
    let tag = number(message)?;
    let content = match tag & 7 {
        0 => Content::Number(number(message)?),
        1 => bytes(message, 8).map(|_| Content::Fixed)?,
        2 => {
            let length = usize::try_from(number(message)?).ok()?;
            Content::Bytes(bytes(message, length)?)
        }
        5 => bytes(message, 4).map(|_| Content::Fixed)?,
        _ => return None,
    };
    Some((tag >> 3, content)).filter(|(field, _)| (1..=FIELD_MAX).contains(field))
}

fn bytes<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(bytes)
}

/// Takes a number of at most 64 bits, seven in a byte, the lowest first.
fn number(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn write_number(number: usize, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(0x80 | u8::try_from(rest & 0x7f).expect("seven bits"));
        rest >>= 7;
    }
    out.push(u8::try_from(rest).expect("seven bits"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of etcd 3.7.3: its header has the cluster's and the member's number, the revision 2 and the term.
    const ANSWER: &[u8] = b"\0\0\0\0\x1c\x0a\x1a\x08\xa4\x94\xeb\xdb\xf2\xdc\xff\xbc\x87\x01\x10\xe8\xaf\xa3\xc6\xa3\xfe\x80\x92\xb8\x01\x18\x02\x20\x02";

    /// Claim: a put is the bytes that protobuf's and gRPC's documents give it, and what it replaces is gone.
    #[test]
    fn a_put() {
        let mut out = b"of the one before".to_vec();
        put("k/", 0x1f, b"ab", &mut out);
        assert_eq!(out, b"\0\0\0\0\x18\x0a\x12k/000000000000001f\x12\x02ab");
        put("k/", 0, &[b'x'; 300], &mut out);
        assert_eq!(out[..5], *b"\0\0\0\x01\x43");
        assert_eq!(out[25..28], *b"\x12\xac\x02");
        assert_eq!(out.len(), 5 + 20 + 3 + 300);
    }

    /// Claim: a put is acknowledged by a revision and by nothing else, whatever else the message holds.
    #[test]
    fn revisions() {
        assert_eq!(revision(ANSWER), Some(2));
        for (message, expected) in [
            (&b"\x0a\x02\x18\x07"[..], Some(7)),
            // The last one counts; fields that are not known are passed over, of every form.
            (b"\x0a\x04\x18\x07\x18\x09", Some(9)),
            (b"\x0a\x02\x18\x07\x0a\x02\x18\x08", Some(8)),
            (b"\x12\x01x\x0a\x0b\x09\0\0\0\0\0\0\0\0\x18\x07\x1d\0\0\0\0\x20\x01", Some(7)),
            (b"\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x20", None),
            (b"\x0a\x0a\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f", Some(i64::MAX as u64)),
            (b"\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", None),
            (b"\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", None),
            (b"\x0a\x0c\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", None),
            (b"", None),
            (b"\x0a\x00", None),
            (b"\x0a\x02\x18\x00", None),
            (b"\x18\x07", None),
            (b"\x08\x07", None),
            (b"\x0a\x03\x1a\x01\x07", None),
            (b"\x0a\x7f\x18\x07", None),
            (b"\x0a\x02\x18\x07\x0a", None),
            (b"\x0a\x02\x18\x07\x0b", None),
            (b"\x0a\x02\x18\x07\x02\x00", None),
            (b"\x0a\x03\x18\x07\x1c", None),
        ] {
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            let body = [&[0], &length[..], message].concat();
            assert_eq!(revision(&body), expected, "{message:x?}");
        }
    }

    /// Claim: a body that is not one whole message without compression acknowledges nothing.
    #[test]
    fn not_one_message() {
        for cut in 0..ANSWER.len() {
            assert_eq!(revision(&ANSWER[..cut]), None);
        }
        assert_eq!(revision(&[ANSWER, ANSWER].concat()), None);
        assert_eq!(revision(&[&[1], &ANSWER[1..]].concat()), None);
        assert_eq!(revision(&[ANSWER, b"\0"].concat()), None);
    }
}
