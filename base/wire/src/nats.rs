//! The words of a server of NATS to its clients (docs.nats.io, *Client Protocol*), read from bytes.
//!
//! Whatever arrives, reading it ends, takes no more memory than what arrived, and never panics.

/// The longest line of a server: its own bound on what it takes (`max_control_line`) is 4 KiB, and its INFO grows with the
/// cluster.
pub const LINE_BYTES_MAX: usize = 32 << 10;
/// The longest message, as a server bounds what it takes unless told otherwise (`max_payload`), with room for headers.
pub const MESSAGE_BYTES_MAX: usize = (1 << 20) + (64 << 10);

/// A line of no server, or none that a client that asked for nothing of it is sent.
const NOT_ASKED_FOR: &str = "a line that was not asked for";

/// Bytes that are none of a server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strange(
    /// Why, in words.
    pub String,
);

/// The words of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Its description, as JSON.
    Info(&'a [u8]),
    /// It wants a PONG.
    Ping,
    /// The answer to a PING.
    Pong,
    /// A complaint, without its quotes.
    Error(&'a [u8]),
    /// A message.
    Message(Delivered<'a>),
}

/// A message that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered<'a> {
    /// Where it was sent.
    pub subject: &'a [u8],
    /// Where an answer goes; empty: none is wanted.
    pub reply: &'a [u8],
    /// With their first line; empty: there are none.
    pub headers: &'a [u8],
    /// The content.
    pub payload: &'a [u8],
}

impl Delivered<'_> {
    /// The status of a message that a server itself sends, such as 503 where there is no listener.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let line = self.headers.strip_prefix(b"NATS/1.0 ")?;
        let digits = line.get(..3)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}

/// The words at the beginning of `bytes`, and how many bytes it takes; `None`: it is not whole yet.
///
/// # Errors
/// When they are no words of a server.
pub fn said(bytes: &[u8]) -> Result<Option<(Said<'_>, usize)>, Strange> {
    let Some(line) = line(bytes)? else { return Ok(None) };
    let used = line.len() + 2;
    let (word, rest) = match line.iter().position(|byte| *byte == b' ' || *byte == b'\t') {
        Some(end) => (&line[..end], line[end + 1..].trim_ascii()),
        None => (line, &b""[..]),
    };
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    let found = match rest {
        info if is(b"INFO") => Said::Info(info),
        b"" if is(b"PING") => Said::Ping,
        b"" if is(b"PONG") => Said::Pong,
        text if is(b"-ERR") => Said::Error(text.trim_ascii()),
        arguments if is(b"MSG") => return delivered(bytes, used, arguments, false),
        arguments if is(b"HMSG") => return delivered(bytes, used, arguments, true),
        _ => return Err(Strange(NOT_ASKED_FOR.to_owned())),
    };
    Ok(Some((found, used)))
}

/// The line at the beginning, without its end.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, Strange> {
    let looked = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    match looked.windows(2).position(|pair| pair == b"\r\n") {
        Some(length) => Ok(Some(&bytes[..length])),
        None if bytes.len() >= LINE_BYTES_MAX => {
            Err(Strange(format!("a line of more than {LINE_BYTES_MAX} bytes")))
        }
        // A line that begins as none of the words is refused before it ends.
        None if bytes.first().is_some_and(|byte| !b"IPMH-ipmh".contains(byte)) => {
            Err(Strange(NOT_ASKED_FOR.to_owned()))
        }
        None => Ok(None),
    }
}

/// `subject sid [reply] [#headers] #all`, then so many bytes and a line end.
fn delivered<'a>(
    bytes: &'a [u8],
    start: usize,
    arguments: &'a [u8],
    has_headers: bool,
) -> Result<Option<(Said<'a>, usize)>, Strange> {
    let broken = || Strange("a message whose line is malformed".to_owned());
    let mut words = [&b""[..]; 5];
    let mut count = 0;
    for word in arguments.split(|byte| *byte == b' ' || *byte == b'\t') {
        if word.is_empty() {
            continue;
        }
        *words.get_mut(count).ok_or_else(broken)? = word;
        count += 1;
    }
    let lengths = 1 + usize::from(has_headers);
    let has_reply = match count.checked_sub(2 + lengths) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(broken()),
    };
    let all = number(words[count - 1]).ok_or_else(broken)?;
    let headers = if has_headers { number(words[count - 2]).ok_or_else(broken)? } else { 0 };
    if all > MESSAGE_BYTES_MAX || headers > all {
        return Err(Strange(format!("a message of {all} bytes, of which {headers} are headers")));
    }
    let Some(body) = bytes.get(start..start + all + 2) else { return Ok(None) };
    let (body, end) = body.split_at(all);
    if end != b"\r\n" {
        return Err(Strange("a message that does not end where it said".to_owned()));
    }
    let (headers, payload) = body.split_at(headers);
    let reply = if has_reply { words[2] } else { b"" };
    let message = Delivered { subject: words[0], reply, headers, payload };
    Ok(Some((Said::Message(message), start + all + 2)))
}

fn number(digits: &[u8]) -> Option<usize> {
    let is_number = digits.len() <= 10 && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: everything that a server says is read, whole only, and what it does not say is refused.
    #[test]
    fn what_is_read() {
        let message = |reply, headers, payload| {
            Said::Message(Delivered { subject: b"s.1", reply, headers, payload })
        };
        for (bytes, right) in [
            (&b"INFO {\"a\":1}\r\n"[..], Said::Info(b"{\"a\":1}")),
            (b"PING\r\n", Said::Ping),
            (b"PONG\r\n", Said::Pong),
            (b"-ERR 'no'\r\n", Said::Error(b"'no'")),
            (b"MSG s.1 1 2\r\nab\r\n", message(b"", b"", b"ab")),
            (b"MSG s.1 1 r 0\r\n\r\n", message(b"r", b"", b"")),
            (b"HMSG s.1 1 6 8\r\nHHHH\r\nab\r\n", message(b"", b"HHHH\r\n", b"ab")),
        ] {
            assert_eq!(said(bytes), Ok(Some((right, bytes.len()))));
            for cut in 0..bytes.len() {
                assert_eq!(said(&bytes[..cut]), Ok(None), "{cut} of {bytes:?}");
            }
        }
        for bytes in [
            &b"hello\r\n"[..],
            b"x",
            b"+OK\r\n",
            b"MSG s 1\r\n",
            b"MSG s 1 r x 2\r\nab\r\n",
            b"MSG s 1 -1\r\n",
            b"MSG s 1 2\r\nabc\r\n",
            b"MSG s 1 99999999\r\n",
            b"HMSG s 1 9 8\r\n",
        ] {
            assert!(said(bytes).is_err(), "{bytes:?}");
        }
        assert!(said(&[b'I'; LINE_BYTES_MAX]).is_err());
        let none =
            Delivered { subject: b"s", reply: b"", headers: b"NATS/1.0 503\r\n\r\n", payload: b"" };
        assert_eq!(none.status(), Some(503));
    }
}
