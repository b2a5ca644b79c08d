//! Answers, as a client reads them: a value that is given what has arrived and says what it found. It keeps no
//! bytes of the connection; the caller offers again what was not used.

use std::mem::MaybeUninit;

use super::body::BodyReader;
use super::head::{Framing, LOCATION, Signals, find_end, is_name};
use super::learned::Learned;
use super::limits::{HEADERS_MAX, HttpError, Limits};

/// Interim (1xx) answers that may come before one answer.
const INTERIM_MAX: u32 = 16;

/// What was asked, as far as the answer's shape depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A HEAD request: its answer has no body, whatever its headers say.
    Head,
    /// Any other.
    Other,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// 100 to 999.
    pub status: u16,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// Whether another request may follow on the connection.
    pub keep_alive: bool,
}

/// What one call of [`ResponseReader::read`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were used.
    pub used: usize,
    /// The answer, if it is complete.
    pub response: Option<Response>,
}

/// The reader of a connection's answers, one after another.
#[derive(Clone, Debug)]
pub struct ResponseReader {
    limits: Limits,
    body: Option<BodyReader>,
    scanned: usize,
    interim: u32,
    learned: Learned,
    learns: bool,
    learned_count: u64,
    kept: Vec<u8>,
    /// The header whose value is kept, and its value in the last head that had it once.
    watches: Option<Box<str>>,
    watched: Vec<u8>,
    has_watched: bool,
    /// The last head, where heads are kept.
    keeps_heads: bool,
    head: Vec<u8>,
}

impl ResponseReader {
    /// A reader for a new connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            body: None,
            scanned: 0,
            interim: 0,
            learned: Learned::default(),
            learns: true,
            learned_count: 0,
            kept: Vec::new(),
            watches: None,
            watched: Vec::new(),
            has_watched: false,
            keeps_heads: false,
            head: Vec::new(),
        }
    }

    /// The same, with the value of one header kept of each head: see [`ResponseReader::watched`].
    #[must_use]
    pub fn watching(self, name: &str) -> Self {
        Self { watches: Some(name.into()), ..self }
    }

    /// The same, with each head kept: see [`ResponseReader::kept_head`].
    #[must_use]
    pub fn keeping_heads(self) -> Self {
        Self { keeps_heads: true, ..self }
    }

    /// A reader that parses every head: what fuzzing compares the other with.
    #[must_use]
    pub(super) fn without_learning(limits: Limits) -> Self {
        Self { learns: false, ..Self::new(limits) }
    }

    /// Reads on: `bytes` begins with what the last call left unused. Call again with the rest while it gives
    /// answers; it never uses bytes of the next one.
    ///
    /// # Errors
    /// When the bytes are not an answer; the connection is then lost.
    pub fn read(&mut self, bytes: &[u8], asked: Asked) -> Result<Progress, HttpError> {
        let mut used = 0;
        if self.body.is_none() {
            match self.heads(bytes, asked)? {
                (head_bytes, true) => used = head_bytes,
                (head_bytes, false) => return Ok(Progress { used: head_bytes, response: None }),
            }
        }
        let body = self.body.as_mut().expect("a head was read, now or before");
        if !body.is_done() {
            used += body.read(&bytes[used..], &self.limits, &mut self.kept)?;
        }
        let response = if body.is_done() { Some(self.complete()) } else { None };
        Ok(Progress { used, response })
    }

    /// The peer has closed its side. Gives the answer that ends with the connection, if there is one.
    ///
    /// # Errors
    /// When it closed in the middle of an answer.
    pub fn closed(&mut self) -> Result<Option<Response>, HttpError> {
        match &self.body {
            Some(body) if body.ends_with_connection() => Ok(Some(self.complete())),
            None if self.scanned == 0 && self.interim == 0 => Ok(None),
            _ => Err(HttpError::Truncated),
        }
    }

    /// The reason phrase of the last head, as sent.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.learned.facts.reason
    }

    /// `Location` of the last head, if it was a 3xx and had one.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.learned.facts.location
    }

    /// The value of the header that is watched, in the last head; `None` where it is not there, or more than once.
    #[must_use]
    pub fn watched(&self) -> Option<&[u8]> {
        self.has_watched.then_some(self.watched.as_slice())
    }

    /// The last head, as it came, where heads are kept; else nothing. [`header_of`] looks a header up in it.
    #[must_use]
    pub fn kept_head(&self) -> &[u8] {
        &self.head
    }

    /// The kept part of the last answer's body: up to [`Limits::body_kept_max`] bytes.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.kept
    }

    /// How many heads were recognised instead of parsed.
    #[must_use]
    pub const fn learned_count(&self) -> u64 {
        self.learned_count
    }

    /// Forgets the connection, not the head that its server sends: the next one likely goes there too.
    pub fn reset(&mut self) {
        self.body = None;
        self.scanned = 0;
        self.interim = 0;
        self.kept.clear();
    }

    /// Reads heads up to a final one. Gives the bytes used and whether a final one was read.
    fn heads(&mut self, bytes: &[u8], asked: Asked) -> Result<(usize, bool), HttpError> {
        let mut used = 0;
        loop {
            let Some(head_bytes) = self.head(&bytes[used..])? else { return Ok((used, false)) };
            used += head_bytes;
            self.scanned = 0;
            match self.learned.facts.status {
                101 => return Err(HttpError::SwitchingProtocols),
                100..=199 => {
                    self.interim += 1;
                    if self.interim > INTERIM_MAX {
                        return Err(HttpError::TooManyInterim(INTERIM_MAX));
                    }
                }
                _ => break,
            }
        }
        self.interim = 0;
        self.kept.clear();
        self.body = Some(BodyReader::new(self.framing(asked), &self.limits)?);
        Ok((used, true))
    }

    /// RFC 9112 §6.3, rules 1 and 8; the others are [`Signals::framing`].
    fn framing(&self, asked: Asked) -> Framing {
        let facts = &self.learned.facts;
        if asked == Asked::Head || matches!(facts.status, 204 | 304) {
            return Framing::None;
        }
        facts.framing.unwrap_or(Framing::UntilClose)
    }

    /// Recognises or parses the head at the beginning of `bytes`; `None` while it is incomplete.
    fn head(&mut self, bytes: &[u8]) -> Result<Option<usize>, HttpError> {
        if let Some(length) = self.learned.matches(bytes) {
            self.learned_count += 1;
            self.keep_watched(bytes, self.learned.watched);
            self.keep_head(&bytes[..length]);
            return Ok(Some(length));
        }
        not_another_protocol(bytes)?;
        let Some(end) = find_end(bytes, &mut self.scanned, &self.limits)? else { return Ok(None) };
        self.parse(&bytes[..end])?;
        self.keep_head(&bytes[..end]);
        Ok(Some(end))
    }

    fn parse(&mut self, head: &[u8]) -> Result<(), HttpError> {
        let limits = &self.limits;
        let mut table = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            head,
            &mut table,
        );
        match parsed {
            Ok(httparse::Status::Complete(used)) if used == head.len() => {}
            Err(httparse::Error::TooManyHeaders) => {
                return Err(HttpError::TooManyHeaders(limits.headers_max));
            }
            Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => {
                return Err(HttpError::HeaderLine);
            }
            _ => return Err(HttpError::StatusLine),
        }
        let (Some(status @ 100..), Some(minor)) = (response.code, response.version) else {
            return Err(HttpError::StatusLine);
        };
        if response.headers.len() > limits.headers_max {
            return Err(HttpError::TooManyHeaders(limits.headers_max));
        }
        let (mut signals, mut location) = (Signals::default(), String::new());
        let (mut watched, mut watched_count) = (None, 0_u32);
        for header in response.headers.iter() {
            signals.header(header.name, header.value)?;
            if self.watches.as_deref().is_some_and(|name| is_name(header.name, name)) {
                let start = header.value.as_ptr() as usize - head.as_ptr() as usize;
                watched = Some((start, start + header.value.len()));
                watched_count += 1;
            }
            if matches!(status, 300..=399) && is_name(header.name, LOCATION) {
                location = String::from_utf8_lossy(header.value).into_owned();
            }
        }
        let framing = signals.framing(minor)?;
        // RFC 9110 §8.6 and RFC 9112 §6.1: neither length nor coding may stand here. A length of 0 harms nobody.
        let is_bodiless = matches!(status, 100..=199 | 204);
        if is_bodiless && matches!(framing, Some(Framing::Length(1..) | Framing::Chunked)) {
            return Err(HttpError::BodyAnnounced(status));
        }
        // Nothing can fail from here on: what is learned and what it means change together.
        let watched = watched.filter(|_| watched_count == 1);
        if self.learns {
            self.learned.learn(head, response.headers);
            self.learned.watched = watched;
        }
        self.keep_watched(head, watched);
        let facts = &mut self.learned.facts;
        facts.framing = framing;
        facts.status = status;
        facts.keep_alive = signals.keeps_alive(minor);
        facts.location = location;
        facts.reason.clear();
        facts.reason.push_str(response.reason.unwrap_or(""));
        Ok(())
    }

    fn keep_watched(&mut self, head: &[u8], place: Option<(usize, usize)>) {
        self.has_watched = place.is_some();
        self.watched.clear();
        if let Some((start, end)) = place {
            self.watched.extend_from_slice(&head[start..end]);
        }
    }

    fn keep_head(&mut self, head: &[u8]) {
        if self.keeps_heads {
            self.head.clear();
            self.head.extend_from_slice(head);
        }
    }

    fn complete(&mut self) -> Response {
        let body = self.body.take().expect("the caller has seen it");
        Response {
            status: self.learned.facts.status,
            body_bytes: body.bytes(),
            keep_alive: self.learned.facts.keep_alive && !body.ends_with_connection(),
        }
    }
}

/// The value of the first header of this name in a head that was read, without the space around it; names are compared
/// without regard to case (RFC 9110 §5.1).
#[must_use]
pub fn header_of<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    let mut headers = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    });
    headers.find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
}

/// What a server of another protocol begins with. Without this it would be waited for: neither has to hold a line feed.
fn not_another_protocol(bytes: &[u8]) -> Result<(), HttpError> {
    match *bytes {
        // A frame's length of less than 64 KiB, then SETTINGS or GOAWAY (RFC 9113, section 4.1). A line feed in the length
        // would be refused before the rest is there, so with all of it there it is refused as that, too.
        [0, a, b, 4 | 7, _, ..] if ![a, b].contains(&b'\n') => Err(HttpError::Http2),
        // An alert or a handshake of SSL 3.0 to TLS 1.3 (RFC 8446, section 5.1).
        [0x15 | 0x16, 3, 0..=4, ..] => Err(HttpError::Tls),
        _ => Ok(()),
    }
}
