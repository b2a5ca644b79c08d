//! The words of a client of NATS (docs.nats.io, *Client Protocol*), and the acknowledgements of JetStream; [`wire::nats`]
//! reads those of a server. Values only: no socket, no time.
//!
//! Whatever arrives, reading it ends, takes no more memory than what arrived, and never panics.

pub(crate) use wire::nats::{Delivered, Said, Strange, said};

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
