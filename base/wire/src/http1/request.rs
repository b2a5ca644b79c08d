//! Requests, as a server reads them. Borrowing only; nothing is copied and nothing allocated.

use std::mem::MaybeUninit;

use super::head::{Framing, Signals, find_end};
use super::limits::{HEADERS_MAX, HttpError, Limits};

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// `GET`.
    pub method: &'a str,
    /// The request target as sent: `/path?query`.
    pub target: &'a str,
    /// How its body is delimited; never [`Framing::UntilClose`].
    pub framing: Framing,
    /// Whether the client keeps the connection.
    pub keep_alive: bool,
    /// Bytes of the head: the body begins there.
    pub head_bytes: usize,
    lines: &'a [u8],
}

impl<'a> RequestHead<'a> {
    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The query, without its question mark; empty if there is none.
    #[must_use]
    pub fn query(&self) -> &'a str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The value of the first header called `name`, whatever the case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.lines.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = std::str::from_utf8(&line[..colon]).ok()?;
            Some((name, line[colon + 1..].trim_ascii()))
        })
    }
}

/// A request with all of its body.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its head.
    pub head: RequestHead<'a>,
    /// Its body.
    pub body: &'a [u8],
    /// Bytes that it took: the next request begins there.
    pub used: usize,
}

/// The head of the request at the beginning of `bytes`; `None` while it is incomplete.
///
/// # Errors
/// When the bytes are not a request, or exceed a bound, or leave open where the body ends.
pub fn parse_request_head<'a>(
    bytes: &'a [u8],
    limits: &Limits,
) -> Result<Option<RequestHead<'a>>, HttpError> {
    let Some(end) = find_end(bytes, &mut 0, limits)? else { return Ok(None) };
    let mut table = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(&bytes[..end], &mut table) {
        Ok(httparse::Status::Complete(used)) if used == end => {}
        Err(httparse::Error::TooManyHeaders) => {
            return Err(HttpError::TooManyHeaders(limits.headers_max));
        }
        Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => {
            return Err(HttpError::HeaderLine);
        }
        _ => return Err(HttpError::RequestLine),
    }
    if request.headers.len() > limits.headers_max {
        return Err(HttpError::TooManyHeaders(limits.headers_max));
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(HttpError::RequestLine);
    };
    let (mut signals, mut hosts) = (Signals::default(), 0);
    for header in request.headers.iter() {
        signals.header(header.name, header.value)?;
        hosts += u32::from(header.name.eq_ignore_ascii_case("host"));
    }
    if hosts > 1 || (hosts == 0 && minor >= 1) {
        return Err(HttpError::Host);
    }
    let framing = signals.framing(minor)?.unwrap_or(Framing::None);
    if matches!(framing, Framing::Length(length) if length > limits.body_bytes_max) {
        return Err(HttpError::BodyTooLong(limits.body_bytes_max));
    }
    let line_end = bytes[..end].iter().position(|byte| *byte == b'\n').map_or(end, |at| at + 1);
    Ok(Some(RequestHead {
        method,
        target,
        framing,
        keep_alive: signals.keeps_alive(minor),
        head_bytes: end,
        lines: &bytes[line_end..end],
    }))
}

/// The request at the beginning of `bytes` with its body; `None` while it is incomplete. For small servers:
/// the body must have a Content-Length.
///
/// # Errors
/// As [`parse_request_head`]; a chunked body is refused as [`HttpError::TransferEncoding`].
pub fn parse_request<'a>(
    bytes: &'a [u8],
    limits: &Limits,
) -> Result<Option<Request<'a>>, HttpError> {
    let Some(head) = parse_request_head(bytes, limits)? else { return Ok(None) };
    let length = match head.framing {
        Framing::None => 0,
        Framing::Length(length) => {
            usize::try_from(length).map_err(|_| HttpError::BodyTooLong(limits.body_bytes_max))?
        }
        Framing::Chunked | Framing::UntilClose => return Err(HttpError::TransferEncoding),
    };
    let used = head.head_bytes.saturating_add(length);
    Ok(bytes.get(head.head_bytes..used).map(|body| Request { head, body, used }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Request<'_>>, HttpError> {
        parse_request(text.as_bytes(), &Limits::SERVER)
    }

    /// Claim: method, path, query, headers and body of a request come out as they were sent, and nothing
    /// comes out before all of it is there.
    #[test]
    fn a_whole_request() {
        let text =
            "POST /tx?wait=1 HTTP/1.1\r\nHost: a\r\nX-Id:  7 \r\nContent-Length: 3\r\n\r\nabcGET";
        for cut in 0..text.len() - 3 {
            assert!(parse(&text[..cut]).unwrap().is_none(), "complete at {cut}");
        }
        let request = parse(text).unwrap().unwrap();
        assert_eq!((request.head.method, request.head.path()), ("POST", "/tx"));
        assert_eq!(request.head.query(), "wait=1");
        assert_eq!(request.head.header("x-id"), Some(&b"7"[..]));
        assert_eq!(request.head.headers().count(), 3);
        assert_eq!((request.body, request.used), (&b"abc"[..], text.len() - 3));
        assert!(request.head.keep_alive);
    }

    /// Claim: each kind of ambiguous or malformed request is refused for its own reason.
    #[test]
    fn refused_requests() {
        for (text, expected) in [
            ("GET / HTTP/1.1\r\n\r\n", HttpError::Host),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", HttpError::Host),
            ("GET / HTTP/1.1\nHost: a\n\n", HttpError::BareLineFeed),
            ("GET /\r\n\r\n", HttpError::RequestLine),
            ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", HttpError::RequestLine),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", HttpError::HeaderLine),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                HttpError::AmbiguousLength,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 3\r\n\r\n",
                HttpError::ConflictingLengths,
            ),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n", HttpError::ContentLength),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                HttpError::TransferEncoding,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n",
                HttpError::BodyTooLong(1 << 20),
            ),
        ] {
            assert_eq!(parse(text).map(|_| ()), Err(expected), "{text:?}");
        }
    }
}
