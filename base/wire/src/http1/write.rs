//! Writing heads: requests as a client sends them and answers as a server does. Bytes are appended to a
//! buffer; nothing is checked here, so whoever takes names and values from a user asks [`is_token`],
//! [`is_field_value`] and [`is_request_target`] first.

/// Appends a request. A body, or a method that usually has one, gets a Content-Length; `headers` must not
/// carry one.
pub fn write_request(
    out: &mut Vec<u8>,
    method: &str,
    target: &str,
    headers: &[(&str, &[u8])],
    body: &[u8],
) {
    for part in [method, " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    write_headers(out, headers);
    if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
        write_length(out, body.len());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}

/// Appends an answer with a Content-Length, and `Connection: close` if the connection ends with it.
/// `headers` must carry neither.
pub fn write_response(
    out: &mut Vec<u8>,
    status: u16,
    headers: &[(&str, &[u8])],
    body: &[u8],
    keep_alive: bool,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(decimal(u64::from(status), &mut [0; 20]));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
    write_headers(out, headers);
    if !keep_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    write_length(out, body.len());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}

/// The usual reason phrase of a status; empty where RFC 9110 knows none.
#[must_use]
pub const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// Whether `text` can be a method or a header's name (RFC 9110 §5.6.2).
#[must_use]
pub fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

/// Whether `value` can be a header's value: nothing that could end the line.
#[must_use]
pub fn is_field_value(value: &[u8]) -> bool {
    value.iter().all(|byte| matches!(byte, b'\t' | 0x20..=0x7e | 0x80..=0xff))
}

/// Whether `text` can stand in a request line: visible ASCII only, so that it is one word.
#[must_use]
pub fn is_request_target(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn write_headers(out: &mut Vec<u8>, headers: &[(&str, &[u8])]) {
    for (name, value) in headers {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(decimal(length as u64, &mut [0; 20]));
    out.extend_from_slice(b"\r\n");
}

/// Digits of a number, without `format!`: servers of ours answer on a path that allocates nothing.
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, parse_request};
    use super::*;

    /// Claim: an answer is written to the byte as a client expects it.
    #[test]
    fn answers() {
        let mut out = Vec::new();
        write_response(&mut out, 429, &[("Retry-After", b"1")], b"slow", false);
        let expected = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nslow";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// Claim: a request that we write is one that we read.
    #[test]
    fn requests_round_trip() {
        for (method, body) in [("GET", &b""[..]), ("POST", b""), ("PUT", b"body")] {
            let mut out = Vec::new();
            write_request(&mut out, method, "/a?b", &[("Host", b"h")], body);
            let request = parse_request(&out, &Limits::SERVER).unwrap().unwrap();
            assert_eq!((request.head.method, request.head.target), (method, "/a?b"));
            assert_eq!((request.body, request.used), (body, out.len()));
        }
    }

    /// Claim: no text that could break out of its place in a head passes.
    #[test]
    fn injections_are_seen() {
        assert!(is_token("X-Id") && !is_token("X Id") && !is_token("") && !is_token("a:b"));
        assert!(
            is_field_value(b"a b\tc\xff") && !is_field_value(b"a\r\nb") && !is_field_value(b"\0")
        );
        assert!(
            is_request_target("/a?b=%20")
                && !is_request_target("/a b")
                && !is_request_target("/\u{e4}")
        );
    }
}
