//! The protocol between clients and servers of NATS (docs.nats.io, *Client Protocol*), and the acknowledgements of
//! JetStream in it. Values only: no socket, no time.
//!
//! Whatever arrives, reading it ends, takes no more memory than what arrived, and never panics.

/// The longest line of a server: its own bound on what it takes (`max_control_line`) is 4 KiB, and its INFO grows with the
/// cluster.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 10;
/// The longest message, as a server bounds what it takes unless told otherwise (`max_payload`), with room for headers.
pub(crate) const MESSAGE_BYTES_MAX: usize = (1 << 20) + (64 << 10);

/// A line of no server, or none that a client that asked for nothing of it is sent.
const NOT_ASKED_FOR: &str = "a line that was not asked for";

/// Bytes that are none of a server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strange(pub(crate) String);

/// The words of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// Its description, as JSON.
    Info(&'a [u8]),
    Ping,
    Pong,
    /// A complaint, without its quotes.
    Error(&'a [u8]),
    Message(Delivered<'a>),
}

/// A message that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered<'a> {
    pub(crate) subject: &'a [u8],
    /// Where an answer goes; empty: none is wanted.
    pub(crate) reply: &'a [u8],
    /// With their first line; empty: there are none.
    pub(crate) headers: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl Delivered<'_> {
    /// The status of a message that a server itself sends, such as 503 where there is no listener.
    pub(crate) fn status(&self) -> Option<u16> {
        let line = self.headers.strip_prefix(b"NATS/1.0 ")?;
        let digits = line.get(..3)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}

/// The words at the beginning of `bytes`, and how many bytes it takes; `None`: it is not whole yet.
pub(crate) fn said(bytes: &[u8]) -> Result<Option<(Said<'_>, usize)>, Strange> {
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

/// A stream's answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ack<'a> {
    /// Stored, at this place; or already there, as its id says.
    Stored { sequence: u64, is_duplicate: bool },
    /// Refused: the API's code and its own words.
    Refused { code: u16, text: &'a str },
}

/// Reads an acknowledgement of `stream`; `None`: it is none. It is read with little more than a search for its keys,
/// because it stands on the path of every transaction: what else stands in it is not looked at.
pub(crate) fn ack<'a>(payload: &'a [u8], stream: &str) -> Option<Ack<'a>> {
    let text = std::str::from_utf8(payload).ok()?.trim();
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    if let Some(error) = after(inside, "\"error\":") {
        let code = digits(after(error, "\"code\":")?)?;
        let words = after(error, "\"description\":").and_then(|rest| rest.strip_prefix('"'));
        let text = words.and_then(|words| words.split('"').next()).unwrap_or_default();
        return Some(Ack::Refused { code: code.try_into().ok()?, text });
    }
    let of = after(inside, "\"stream\":")?.strip_prefix('"')?;
    if of.split('"').next() != Some(stream) {
        return None;
    }
    let sequence = digits(after(inside, "\"seq\":")?).filter(|sequence| *sequence > 0)?;
    let is_duplicate = after(inside, "\"duplicate\":").is_some_and(|it| it.starts_with("true"));
    Some(Ack::Stored { sequence, is_duplicate })
}

/// The text after a key.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.find(key).map(|at| text[at + key.len()..].trim_start())
}

fn digits(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Appends what opens a session that is told errors, headers, and missing listeners.
pub(crate) fn connect(out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"assay\",\"version\":\"1\",\"protocol\":1,\
          \"headers\":true,\"no_responders\":true,\"echo\":false,\"name\":\"assay\"}\r\n",
    );
}

/// Appends a subscription to everything below a subject.
pub(crate) fn subscribe(inbox: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"SUB ");
    out.extend_from_slice(inbox.as_bytes());
    out.extend_from_slice(b"* 1\r\n");
}

/// Appends a message, whose answer goes to `reply`; with an id, a server stores it once in its window for duplicates.
pub(crate) fn publish(
    subject: &str,
    reply: &[&[u8]],
    id: &[&[u8]],
    body: &[&[u8]],
    out: &mut Vec<u8>,
) {
    let count = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
    let mut digits = Digits::default();
    let headers = if id.is_empty() { 0 } else { HEAD.len() + count(id) + 4 };
    out.extend_from_slice(if id.is_empty() { b"PUB " } else { b"HPUB " });
    out.extend_from_slice(subject.as_bytes());
    out.push(b' ');
    reply.iter().for_each(|part| out.extend_from_slice(part));
    out.push(b' ');
    if !id.is_empty() {
        out.extend_from_slice(digits.of(headers));
        out.push(b' ');
    }
    out.extend_from_slice(digits.of(headers + count(body)));
    out.extend_from_slice(b"\r\n");
    if !id.is_empty() {
        out.extend_from_slice(HEAD);
        id.iter().for_each(|part| out.extend_from_slice(part));
        out.extend_from_slice(b"\r\n\r\n");
    }
    body.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(b"\r\n");
}

/// The beginning of headers with an id.
const HEAD: &[u8] = b"NATS/1.0\r\nNats-Msg-Id: ";

/// A number in decimal, without memory of its own.
#[derive(Default)]
struct Digits([u8; 20]);

impl Digits {
    fn of(&mut self, mut number: usize) -> &[u8] {
        let mut at = self.0.len();
        loop {
            at -= 1;
            self.0[at] = b'0' + u8::try_from(number % 10).expect("a digit");
            number /= 10;
            if number == 0 {
                return &self.0[at..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what is sent is what the documentation of the protocol says.
    #[test]
    fn what_is_sent() {
        let mut out = Vec::new();
        publish("a.b", &[b"_INBOX.", b"7"], &[], &[b"hello", b" there"], &mut out);
        assert_eq!(out, b"PUB a.b _INBOX.7 11\r\nhello there\r\n");
        out.clear();
        publish("a", &[b"r"], &[b"id", b"1"], &[b"hello"], &mut out);
        assert_eq!(out, b"HPUB a r 30 35\r\nNATS/1.0\r\nNats-Msg-Id: id1\r\n\r\nhello\r\n");
    }

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

    /// Claim: an acknowledgement says whether and where the stream has stored the message, a refusal why not, and neither
    /// is taken from another stream or from a part.
    #[test]
    fn acknowledgements() {
        let stored = |sequence, is_duplicate| Some(Ack::Stored { sequence, is_duplicate });
        let read = |text: &'static str| ack(text.as_bytes(), "S");
        assert_eq!(read(r#"{"stream":"S", "seq":17}"#), stored(17, false));
        assert_eq!(
            read(r#"{"stream":"S","domain":"d","seq":1,"duplicate": true}"#),
            stored(1, true)
        );
        let error = r#"{"error":{"code":503,"err_code":10008,"description":"not now"},"stream":"S","seq":0}"#;
        assert_eq!(read(error), Some(Ack::Refused { code: 503, text: "not now" }));
        for none in [
            "",
            "{}",
            r#"{"stream":"T","seq":17}"#,
            r#"{"stream":"S","seq":0}"#,
            r#"{"stream":"S","seq":1"#,
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
