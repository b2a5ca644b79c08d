//! Fields of requests and answers (RFC 9113 §8): which names and values may stand there, and a request's block.

use super::hpack::{write_field, write_name, write_text};

/// The header block of a request, the same each time that it is sent. `headers` have their names in any case; those that only
/// HTTP/1.1 has are left out, and `Host` is the authority.
#[must_use]
pub fn request_block(
    method: &str,
    scheme: &str,
    authority: &str,
    target: &str,
    headers: &[(&str, &[u8])],
) -> Vec<u8> {
    let mut block = Vec::new();
    let host = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = host.map_or(authority.as_bytes(), |(_, host)| host);
    write_field(&mut block, ":method", method.as_bytes());
    write_field(&mut block, ":scheme", scheme.as_bytes());
    write_field(&mut block, ":authority", authority);
    write_field(&mut block, ":path", target.as_bytes());
    headers.iter().for_each(|(name, value)| write_header(&mut block, name, value));
    block
}

/// Appends a header to a block, its name in any case, unless only HTTP/1.1 has it.
pub fn write_header(block: &mut Vec<u8>, name: &str, value: &[u8]) {
    let name = name.to_ascii_lowercase();
    let is_own = name == "host" || name == "te" && !value.eq_ignore_ascii_case(b"trailers");
    if !is_own && is_field(name.as_bytes(), value) {
        write_field(block, &name, value);
    }
}

/// The pseudo-headers of a request that do not depend on where it goes on the server: after `:method` and `:path`.
#[must_use]
pub fn server_block(scheme: &str, authority: &str) -> Vec<u8> {
    let mut block = Vec::new();
    write_field(&mut block, ":scheme", scheme.as_bytes());
    write_field(&mut block, ":authority", authority.as_bytes());
    block
}

/// Appends the first two pseudo-headers of a request; [`server_block`] has the others.
pub fn write_place(block: &mut Vec<u8>, method: &str, target: &[u8]) {
    write_field(block, ":method", method.as_bytes());
    write_field(block, ":path", target);
}

/// The name of a header whose value is another one in each request, encoded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName(Box<[u8]>);

impl FieldName {
    /// A name in any case; `None`: it cannot stand in HTTP/2, or is a pseudo-header there (`Host`).
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if name == "host" || name == "te" || !is_field(name.as_bytes(), b"") {
            return None;
        }
        let mut bytes = Vec::new();
        write_name(&mut bytes, &name);
        Some(Self(bytes.into_boxed_slice()))
    }

    /// Appends the field with this value, which holds no line ends.
    pub fn write(&self, value: &[u8], block: &mut Vec<u8>) {
        block.extend_from_slice(&self.0);
        write_text(block, value);
    }
}

/// A status of three digits.
pub(super) fn status_of(value: &[u8]) -> Option<u16> {
    let is_status = value.len() == 3 && value.iter().all(u8::is_ascii_digit) && value[0] != b'0';
    is_status.then(|| value.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
}

/// The length of a body.
pub(super) fn length_of(value: &[u8]) -> Option<u64> {
    let is_length = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    is_length.then(|| value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Names in lower case, values without line ends, and nothing that only HTTP/1.1 has (§8.2).
pub(super) fn is_field(name: &[u8], value: &[u8]) -> bool {
    const OF_CONNECTIONS: [&[u8]; 5] =
        [b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"];
    let is_name = !name.is_empty()
        && name.iter().all(|b| b.is_ascii_graphic() && !b.is_ascii_uppercase() && *b != b':');
    is_name
        && !OF_CONNECTIONS.contains(&name)
        && !value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n'))
}
