//! The HTTP/1.1 face: the same queue and faults for clients that speak nothing else. Any path answers 200 with
//! a fixed small body; `/status/NNN` answers that status, `/bytes/N` that many bytes. Nothing is stored: a
//! request has no id. It decides nothing; it reads requests and writes answers.

use wire::http1::{Limits, parse_request, write_response};

/// The longest body that `/bytes/N` gives.
const BODY_BYTES_MAX: u32 = 16 << 20;

/// The body of an ordinary answer.
const OK_BODY: &[u8] = b"ok\n";

/// The whole of an ordinary answer: what a benchmark gets, and so made only once.
const OK_ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";

/// What is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpReply {
    status: u16,
    body: Body,
    is_head: bool,
    pub(crate) keep_alive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Ok,
    Filler(u32),
    /// A limiter's, as public APIs write it: what is allowed, and how long to wait.
    Limited {
        allowed_per_s: u32,
        wait_s: u32,
    },
    Empty,
}

/// Reads the request at the beginning of `bytes`. Gives what it asks for and how long it is; `None` while it is
/// incomplete; an error's text if it is none.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(HttpReply, usize)>, String> {
    let Some(request) = parse_request(bytes, &Limits::SERVER).map_err(|error| error.to_string())?
    else {
        return Ok(None);
    };
    let (status, body) = wanted(request.head.path());
    let is_head = request.head.method == "HEAD";
    let keep_alive = request.head.keep_alive;
    Ok(Some((HttpReply { status, body, is_head, keep_alive }, request.used)))
}

fn wanted(path: &str) -> (u16, Body) {
    let bad = (400, Body::Empty);
    if let Some(status) = path.strip_prefix("/status/") {
        return match status.parse() {
            Ok(204) => (204, Body::Empty),
            Ok(304) => (304, Body::Empty),
            Ok(status @ 200..=599) => (status, Body::Ok),
            _ => bad,
        };
    }
    if let Some(count) = path.strip_prefix("/bytes/") {
        return match count.parse() {
            Ok(count @ 0..=BODY_BYTES_MAX) => (200, Body::Filler(count)),
            _ => bad,
        };
    }
    (200, Body::Ok)
}

impl HttpReply {
    /// The answer of the limiter instead.
    pub(crate) fn limited(self, allowed_per_s: u32, wait_s: u32) -> Self {
        Self { status: 429, body: Body::Limited { allowed_per_s, wait_s }, ..self }
    }

    /// The answer of a full queue instead.
    pub(crate) fn overloaded(self) -> Self {
        Self { status: 503, body: Body::Empty, ..self }
    }

    /// Appends the answer.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let is_ordinary = self.status == 200 && self.body == Body::Ok;
        if is_ordinary && self.keep_alive && !self.is_head {
            out.extend_from_slice(OK_ANSWER);
            return;
        }
        if matches!(self.status, 204 | 304) {
            // Has no body and may not announce one (RFC 9110 §8.6).
            let reason = wire::http1::reason(self.status);
            let close = if self.keep_alive { "" } else { "Connection: close\r\n" };
            out.extend_from_slice(
                format!("HTTP/1.1 {} {reason}\r\n{close}\r\n", self.status).as_bytes(),
            );
            return;
        }
        let start = out.len();
        let plain: &[(&str, &[u8])] = &[("Content-Type", b"text/plain")];
        let body_bytes = match self.body {
            Body::Empty => self.respond(out, &[], b""),
            Body::Ok => self.respond(out, plain, OK_BODY),
            Body::Filler(count) => {
                let body = vec![b'x'; usize::try_from(count).expect("32 bits fit")];
                self.respond(out, plain, &body)
            }
            Body::Limited { allowed_per_s, wait_s } => {
                let wait = wait_s.to_string();
                let headers: &[(&str, &[u8])] =
                    &[("Content-Type", b"application/json"), ("Retry-After", wait.as_bytes())];
                let body = format!(
                    "{{\"error\":\"rate limit exceeded\",\"allowed_rps\":{allowed_per_s},\"backoff_seconds\":{wait_s}}}\n"
                );
                self.respond(out, headers, body.as_bytes())
            }
        };
        if self.is_head {
            out.truncate(out.len() - body_bytes);
        }
        debug_assert!(out.len() > start);
    }

    fn respond(self, out: &mut Vec<u8>, headers: &[(&str, &[u8])], body: &[u8]) -> usize {
        write_response(out, self.status, headers, body, self.keep_alive);
        body.len()
    }
}

/// Appends the answer to bytes that are not a request; the connection ends with it.
pub(crate) fn write_refusal(out: &mut Vec<u8>, why: &str) {
    write_response(
        out,
        400,
        &[("Content-Type", b"text/plain")],
        format!("{why}\n").as_bytes(),
        false,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(request: &str) -> String {
        let (reply, used) = read(request.as_bytes()).unwrap().unwrap();
        assert_eq!(used, request.len());
        let mut out = Vec::new();
        reply.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// Claim: each path gives its answer, and the one that is made in advance is the one that would be written.
    #[test]
    fn paths() {
        let get = |path: &str| answer(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut ordinary = Vec::new();
        write_response(&mut ordinary, 200, &[("Content-Type", b"text/plain")], OK_BODY, true);
        assert_eq!(get("/any?x=1").as_bytes(), ordinary);
        assert_eq!(OK_ANSWER, ordinary);
        assert!(get("/status/404").starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert_eq!(get("/status/204"), "HTTP/1.1 204 No Content\r\n\r\n");
        assert!(get("/status/99").starts_with("HTTP/1.1 400 "));
        assert!(get("/bytes/5").ends_with("Content-Length: 5\r\n\r\nxxxxx"));
        assert!(get("/bytes/99999999999").starts_with("HTTP/1.1 400 "));
        let head = answer("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(head.ends_with("Content-Length: 3\r\n\r\n"), "{head}");
        let last = answer("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(last.contains("\r\nConnection: close\r\n"), "{last}");
        let posted = answer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(posted.as_bytes(), OK_ANSWER);
    }
}
