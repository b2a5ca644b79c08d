//! A client's connection: which requests are outstanding on it, what is known of their answers, and how much each side may
//! send. The caller keeps the bytes that it has not read.

use super::frame::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEAD_BYTES, HEADERS, Head, PADDED,
    PAYLOAD_BYTES_MAX, PING, PRIORITISED, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, write_head, write_number,
};
use super::hpack::{Decoder, write_field};
use super::{Http2Error, code_name};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much of a body each stream may be sent before it is taken, and all of them together.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;
/// What a window is before anything is said of it, and at most (RFC 9113 §6.9).
const WINDOW_AT_FIRST: i64 = 65_535;
const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Streams that were given up, of which frames may still come.
const GIVEN_UP_MAX: usize = 1_024;
/// Frames between two answers that bring nothing: pings, settings, empty data.
const IDLE_FRAMES_MAX: u32 = 10_000;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;

/// Bounds on answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an answer's headers.
    pub head_bytes_max: usize,
    /// Bytes of a body that are kept.
    pub body_kept_max: usize,
    /// Bytes of a body.
    pub body_bytes_max: u64,
    /// Whether headers are kept.
    pub keeps_heads: bool,
    /// Requests that may be outstanding.
    pub streams_max: u32,
}

/// A request's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its header block: [`request_block`].
    pub block: &'a [u8],
    /// Its body.
    pub body: &'a [u8],
    /// Whether its answer has no body, whatever its headers say (HEAD).
    pub is_head: bool,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<'a> {
    /// With an answer.
    Answered(Answer<'a>),
    /// The server reset the stream: the name of its reason, and whether it says that it did nothing.
    Reset {
        /// Such as `CANCEL`.
        why: &'static str,
        /// The request was not processed.
        is_refused: bool,
    },
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// 200 to 999.
    pub status: u16,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// The part of the body that is kept.
    pub body: &'a [u8],
    /// Its headers, a line each as in HTTP/1.1, where they are kept.
    pub head: &'a [u8],
}

/// A request that is outstanding.
#[derive(Clone, Debug, Default)]
struct Stream {
    id: u32,
    /// What the caller calls it.
    tag: u64,
    is_head: bool,
    status: u16,
    announced: Option<u64>,
    body_bytes: u64,
    body: Vec<u8>,
    head: Vec<u8>,
    /// How much may be sent on it, and what waits for that.
    send_window: i64,
    unsent: Vec<u8>,
    /// Bytes of the body that were taken and not said so.
    taken: u32,
}

/// The connection.
#[derive(Clone, Debug)]
pub struct Client {
    limits: Limits,
    decoder: Decoder,
    streams: Vec<Stream>,
    spare: Vec<Stream>,
    next_id: u32,
    /// A header block that goes on: of which stream, and whether its stream ends with it.
    block: Vec<u8>,
    block_of: Option<(u32, bool)>,
    has_settings: bool,
    send_window: i64,
    stream_window_at_first: i64,
    /// The longest payload that the server takes.
    payload_bytes_max: usize,
    /// Bytes of bodies that were taken and not said so.
    taken: u32,
    given_up: Vec<u32>,
    /// What is to be said in the next bytes.
    owed: Vec<u8>,
    idle_frames: u32,
    /// The last stream that the server will answer, once it goes.
    last_stream: Option<u32>,
}

impl Client {
    /// A connection that is not open yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            decoder: Decoder::default(),
            streams: Vec::new(),
            spare: Vec::new(),
            next_id: 1,
            block: Vec::new(),
            block_of: None,
            has_settings: false,
            send_window: WINDOW_AT_FIRST,
            stream_window_at_first: WINDOW_AT_FIRST,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            taken: 0,
            given_up: Vec::new(),
            owed: Vec::new(),
            idle_frames: 0,
            last_stream: None,
        }
    }

    /// Forgets the connection; a new one begins.
    pub fn reset(&mut self) {
        let limits = self.limits;
        self.streams.iter_mut().for_each(|stream| stream.id = 0);
        let mut spare = std::mem::take(&mut self.spare);
        spare.append(&mut self.streams);
        *self = Self { spare, ..Self::new(limits) };
    }

    /// What is sent when the connection is open.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        // No push, and a window for each stream.
        let settings: [(u16, u32); 2] = [(2, 0), (4, STREAM_WINDOW)];
        write_head(out, settings.len() * 6, SETTINGS, 0, 0);
        for (name, value) in settings {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        write_number(out, WINDOW_UPDATE, 0, CONNECTION_WINDOW - 65_535);
    }

    /// Whether the server has said how it wants to be spoken to.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.has_settings
    }

    /// Whether no request can follow: the server goes, or the numbers of streams are used up.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.last_stream.is_some() || self.next_id >= (1 << 31) - 2
    }

    /// How many requests are outstanding.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.streams.len()
    }

    /// Writes a request. `tag` names it when it ends.
    pub fn submit(&mut self, tag: u64, request: &Request<'_>, out: &mut Vec<u8>) {
        out.append(&mut self.owed);
        let id = self.next_id;
        self.next_id += 2;
        let mut stream = self.spare.pop().unwrap_or_default();
        stream.body.clear();
        stream.head.clear();
        stream.unsent.clear();
        stream = Stream {
            id,
            tag,
            is_head: request.is_head,
            status: 0,
            announced: None,
            body_bytes: 0,
            send_window: self.stream_window_at_first,
            taken: 0,
            ..stream
        };
        let ends = if request.body.is_empty() { END_STREAM } else { 0 };
        let mut parts = request.block.chunks(self.payload_bytes_max).peekable();
        let mut kind = HEADERS;
        while let Some(part) = parts.next() {
            let last = if parts.peek().is_none() { END_HEADERS } else { 0 };
            let flags = last | if kind == HEADERS { ends } else { 0 };
            write_head(out, part.len(), kind, flags, id);
            out.extend_from_slice(part);
            kind = CONTINUATION;
        }
        if !request.body.is_empty() {
            stream.unsent.extend_from_slice(request.body);
            send_body(&mut stream, &mut self.send_window, self.payload_bytes_max, out);
        }
        self.streams.push(stream);
    }

    /// Gives a request up: nothing of it is told any more.
    pub fn give_up(&mut self, tag: u64) {
        if let Some(at) = self.streams.iter().position(|stream| stream.tag == tag) {
            let stream = self.streams.remove(at);
            write_number(&mut self.owed, RST_STREAM, stream.id, CANCEL);
            if self.given_up.len() == GIVEN_UP_MAX {
                self.given_up.remove(0);
            }
            self.given_up.push(stream.id);
            self.spare.push(stream);
        }
    }

    /// Writes what is owed, such as the end of a request that was given up.
    pub fn write_owed(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.owed);
    }

    /// Reads what has arrived; `bytes` begins with what the last call left. Gives how many were used. `ended` is told of each
    /// request that ends; what the connection itself has to say is written to `out`.
    ///
    /// # Errors
    /// When the bytes are not HTTP/2, or the connection cannot be used any more.
    pub fn read(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        ended: &mut dyn FnMut(u64, Ended<'_>),
    ) -> Result<usize, Http2Error> {
        let mut used = 0;
        while let Some(head) = Head::read(&bytes[used..]) {
            if !self.has_settings {
                if bytes[used..].starts_with(b"HTTP/1.") {
                    return Err(Http2Error::Http1);
                }
                if head.kind != SETTINGS || head.has(ACK) {
                    return Err(Http2Error::Preface);
                }
            }
            if head.length > PAYLOAD_BYTES_MAX {
                return Err(Http2Error::FrameSize);
            }
            let Some(payload) = bytes[used + HEAD_BYTES..].get(..head.length) else { break };
            self.frame(head, payload, out, ended)?;
            used += HEAD_BYTES + head.length;
        }
        self.say_what_was_taken(out);
        Ok(used)
    }

    fn frame(
        &mut self,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
        ended: &mut dyn FnMut(u64, Ended<'_>),
    ) -> Result<(), Http2Error> {
        let goes_on = self.block_of.map(|(stream, _)| stream);
        if goes_on.is_some_and(|stream| head.kind != CONTINUATION || head.stream != stream) {
            return Err(Http2Error::Misplaced("a frame within a header block"));
        }
        match head.kind {
            DATA => self.data(head, payload, ended),
            HEADERS => self.headers(head, payload, ended),
            CONTINUATION if goes_on.is_none() => Err(Http2Error::Misplaced("CONTINUATION")),
            CONTINUATION => {
                self.keep_block(payload)?;
                if head.has(END_HEADERS) { self.whole_block(ended) } else { self.idle() }
            }
            PRIORITY if head.stream == 0 => Err(Http2Error::Misplaced("PRIORITY")),
            PRIORITY if payload.len() != 5 => Err(Http2Error::FrameSize),
            RST_STREAM => self.was_reset(head, payload, ended),
            SETTINGS => self.settings(head, payload, out),
            PUSH_PROMISE => Err(Http2Error::Misplaced("PUSH_PROMISE")),
            PING if head.stream != 0 => Err(Http2Error::Misplaced("PING")),
            PING if payload.len() != 8 => Err(Http2Error::FrameSize),
            PING if head.has(ACK) => self.idle(),
            PING => {
                write_head(out, 8, PING, ACK, 0);
                out.extend_from_slice(payload);
                self.idle()
            }
            GOAWAY => self.goes_away(head, payload, ended),
            WINDOW_UPDATE => self.window(head, payload, out),
            _ => self.idle(),
        }
    }

    /// A frame that brought nothing.
    fn idle(&mut self) -> Result<(), Http2Error> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX {
            return Err(Http2Error::Flood(IDLE_FRAMES_MAX));
        }
        Ok(())
    }

    /// The place of a stream that a request is outstanding on; `None`: it was given up.
    fn place(&self, id: u32) -> Result<Option<usize>, Http2Error> {
        if id == 0 {
            return Err(Http2Error::Misplaced("a frame of no stream"));
        }
        match self.streams.iter().position(|stream| stream.id == id) {
            Some(at) => Ok(Some(at)),
            None if self.given_up.contains(&id) => Ok(None),
            None => Err(Http2Error::Unasked),
        }
    }

    fn data(
        &mut self,
        head: Head,
        payload: &[u8],
        ended: &mut dyn FnMut(u64, Ended<'_>),
    ) -> Result<(), Http2Error> {
        let place = self.place(head.stream)?;
        let length = u32::try_from(payload.len()).expect("bounded by PAYLOAD_BYTES_MAX");
        self.taken += length;
        let body = unpadded(head, payload)?;
        if body.is_empty() && !head.has(END_STREAM) {
            self.idle()?;
        }
        let Some(at) = place else { return Ok(()) };
        let stream = &mut self.streams[at];
        if stream.status == 0 {
            return Err(Http2Error::Misplaced("DATA before the headers"));
        }
        stream.taken += length;
        stream.body_bytes += body.len() as u64;
        let is_too_long = stream.announced.is_some_and(|announced| stream.body_bytes > announced);
        if is_too_long
            || stream.is_head && !body.is_empty()
            || stream.body_bytes > self.limits.body_bytes_max
        {
            return Err(Http2Error::BodyLength);
        }
        let room = self.limits.body_kept_max.saturating_sub(stream.body.len()).min(body.len());
        stream.body.extend_from_slice(&body[..room]);
        if head.has(END_STREAM) { self.answered(at, ended) } else { Ok(()) }
    }

    fn headers(
        &mut self,
        head: Head,
        payload: &[u8],
        ended: &mut dyn FnMut(u64, Ended<'_>),
    ) -> Result<(), Http2Error> {
        self.place(head.stream)?;
        let mut block = unpadded(head, payload)?;
        if head.has(PRIORITISED) {
            block = block.get(5..).ok_or(Http2Error::FrameSize)?;
        }
        self.block.clear();
        self.block_of = Some((head.stream, head.has(END_STREAM)));
        self.keep_block(block)?;
        if head.has(END_HEADERS) { self.whole_block(ended) } else { Ok(()) }
    }

    fn keep_block(&mut self, part: &[u8]) -> Result<(), Http2Error> {
        if self.block.len() + part.len() > self.limits.head_bytes_max {
            return Err(Http2Error::HeadTooLong(self.limits.head_bytes_max));
        }
        self.block.extend_from_slice(part);
        Ok(())
    }

    fn whole_block(&mut self, ended: &mut dyn FnMut(u64, Ended<'_>)) -> Result<(), Http2Error> {
        let (id, is_last) = self.block_of.take().expect("the caller has seen it");
        let place = self.place(id)?;
        let Self { decoder, streams, block, limits, .. } = self;
        let mut nobody = Stream::default();
        let stream = match place {
            Some(at) => &mut streams[at],
            None => &mut nobody,
        };
        let is_trailer = stream.status != 0;
        let (mut status, mut announced, mut bytes) = (0, None, 0);
        decoder.read(block, |name, value| {
            bytes += name.len() + value.len() + 4;
            if bytes > limits.head_bytes_max {
                return Err(Http2Error::HeadTooLong(limits.head_bytes_max));
            }
            if name.first() == Some(&b':') {
                if name != b":status" || status != 0 || is_trailer {
                    return Err(Http2Error::Head("a pseudo-header that is none of an answer"));
                }
                status = status_of(value).ok_or(Http2Error::Head("a status that is none"))?;
                return Ok(());
            }
            if !is_trailer && status == 0 {
                return Err(Http2Error::Head("a header before the status"));
            }
            if !is_field(name, value) {
                return Err(Http2Error::Head("a header that cannot stand there"));
            }
            if name == b"content-length" && !is_trailer {
                let length = length_of(value).ok_or(Http2Error::Head("a length that is none"))?;
                if announced.is_some_and(|before| before != length) {
                    return Err(Http2Error::Head("two lengths"));
                }
                announced = Some(length);
            }
            if limits.keeps_heads {
                let line = [b"\r\n".as_slice(), name, b": ", value];
                line.iter().for_each(|part| stream.head.extend_from_slice(part));
            }
            Ok(())
        })?;
        let Some(at) = place else { return Ok(()) };
        let stream = &mut self.streams[at];
        if is_trailer {
            if !is_last {
                return Err(Http2Error::Misplaced("headers within a body"));
            }
        } else if status == 0 {
            return Err(Http2Error::Head("no status"));
        } else if status < 200 {
            stream.head.clear();
            if is_last || status == 101 {
                return Err(Http2Error::Head("an interim answer at the end"));
            }
            return self.idle();
        } else {
            stream.status = status;
            stream.announced = announced.filter(|_| !stream.is_head && status != 304);
        }
        if is_last { self.answered(at, ended) } else { Ok(()) }
    }

    /// The answer of a stream is whole.
    fn answered(
        &mut self,
        at: usize,
        ended: &mut dyn FnMut(u64, Ended<'_>),
    ) -> Result<(), Http2Error> {
        let stream = &self.streams[at];
        if stream.announced.is_some_and(|announced| announced != stream.body_bytes) {
            return Err(Http2Error::BodyLength);
        }
        self.idle_frames = 0;
        let (status, body_bytes) = (stream.status, stream.body_bytes);
        let answer = Answer { status, body_bytes, body: &stream.body, head: &stream.head };
        ended(stream.tag, Ended::Answered(answer));
        let is_cut = !self.streams[at].unsent.is_empty();
        self.end(at, is_cut);
        Ok(())
    }

    /// Takes a stream out; one whose request was not wholly sent is given up, so that the rest need not be.
    fn end(&mut self, at: usize, is_cut: bool) {
        let stream = self.streams.remove(at);
        if is_cut {
            write_number(&mut self.owed, RST_STREAM, stream.id, CANCEL);
        }
        self.spare.push(stream);
    }

    fn was_reset(
        &mut self,
        head: Head,
        payload: &[u8],
        ended: &mut dyn FnMut(u64, Ended<'_>),
    ) -> Result<(), Http2Error> {
        let code = number(payload)?;
        let Some(at) = self.place(head.stream)? else { return self.idle() };
        let is_refused = code == REFUSED_STREAM;
        ended(self.streams[at].tag, Ended::Reset { why: code_name(code), is_refused });
        self.end(at, false);
        Ok(())
    }

    fn settings(
        &mut self,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Http2Error> {
        if head.stream != 0 {
            return Err(Http2Error::Misplaced("SETTINGS"));
        }
        if head.has(ACK) {
            return if payload.is_empty() { self.idle() } else { Err(Http2Error::FrameSize) };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(Http2Error::FrameSize);
        }
        for setting in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([setting[0], setting[1]]);
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            match name {
                3 if value < self.limits.streams_max => {
                    return Err(Http2Error::TooFewStreams { allowed: value });
                }
                4 => {
                    let window = i64::from(value);
                    if window > WINDOW_MAX {
                        return Err(Http2Error::Window);
                    }
                    let more = window - self.stream_window_at_first;
                    self.stream_window_at_first = window;
                    self.streams.iter_mut().for_each(|stream| stream.send_window += more);
                }
                5 => {
                    let length = usize::try_from(value).unwrap_or(usize::MAX);
                    if !(PAYLOAD_BYTES_MAX..1 << 24).contains(&length) {
                        return Err(Http2Error::FrameSize);
                    }
                }
                _ => {}
            }
        }
        self.has_settings = true;
        write_head(out, 0, SETTINGS, ACK, 0);
        self.send_on(out);
        self.idle()
    }

    fn window(&mut self, head: Head, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Http2Error> {
        let more = i64::from(number(payload)? & 0x7fff_ffff);
        if more == 0 {
            return Err(Http2Error::Window);
        }
        if head.stream == 0 {
            self.send_window += more;
            if self.send_window > WINDOW_MAX {
                return Err(Http2Error::Window);
            }
        } else if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == head.stream)
        {
            stream.send_window += more;
            if stream.send_window > WINDOW_MAX {
                return Err(Http2Error::Window);
            }
        } else if head.stream >= self.next_id || head.stream.is_multiple_of(2) {
            return Err(Http2Error::Unasked);
        }
        self.send_on(out);
        self.idle()
    }

    /// Sends what waited for room.
    fn send_on(&mut self, out: &mut Vec<u8>) {
        let Self { streams, send_window, payload_bytes_max, .. } = self;
        for stream in streams.iter_mut().filter(|stream| !stream.unsent.is_empty()) {
            send_body(stream, send_window, *payload_bytes_max, out);
        }
    }

    fn goes_away(
        &mut self,
        head: Head,
        payload: &[u8],
        ended: &mut dyn FnMut(u64, Ended<'_>),
    ) -> Result<(), Http2Error> {
        if head.stream != 0 {
            return Err(Http2Error::Misplaced("GOAWAY"));
        }
        let (Some(last), Some(code)) = (payload.get(..4), payload.get(4..8)) else {
            return Err(Http2Error::FrameSize);
        };
        let (last, code) = (number(last)? & 0x7fff_ffff, number(code)?);
        self.last_stream = Some(last);
        // What is beyond the last one was not processed (§6.8).
        while let Some(at) = self.streams.iter().position(|stream| stream.id > last) {
            ended(self.streams[at].tag, Ended::Reset { why: code_name(code), is_refused: true });
            self.end(at, false);
        }
        if code != 0 {
            return Err(Http2Error::GoneAway(code_name(code)));
        }
        self.idle()
    }

    /// Lets the server send on, when half of what it may send was taken.
    fn say_what_was_taken(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.owed);
        if self.taken >= CONNECTION_WINDOW / 2 {
            write_number(out, WINDOW_UPDATE, 0, self.taken);
            self.taken = 0;
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.taken >= STREAM_WINDOW / 2) {
            write_number(out, WINDOW_UPDATE, stream.id, stream.taken);
            stream.taken = 0;
        }
    }
}

/// Sends as much of a body as may be.
fn send_body(stream: &mut Stream, window: &mut i64, payload_bytes_max: usize, out: &mut Vec<u8>) {
    let mut sent = 0;
    while sent < stream.unsent.len() {
        let left = stream.unsent.len() - sent;
        let room = usize::try_from(stream.send_window.min(*window).max(0)).unwrap_or(0);
        let length = left.min(room).min(payload_bytes_max);
        if length == 0 {
            break;
        }
        let flags = if length == left { END_STREAM } else { 0 };
        write_head(out, length, DATA, flags, stream.id);
        out.extend_from_slice(&stream.unsent[sent..sent + length]);
        sent += length;
        let length = i64::try_from(length).expect("bounded by the window");
        stream.send_window -= length;
        *window -= length;
    }
    stream.unsent.drain(..sent);
}

/// A payload without its padding.
fn unpadded(head: Head, payload: &[u8]) -> Result<&[u8], Http2Error> {
    if !head.has(PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(Http2Error::FrameSize)?;
    let length = rest.len().checked_sub(usize::from(*padding));
    length.map(|length| &rest[..length]).ok_or(Http2Error::Misplaced("padding"))
}

fn number(payload: &[u8]) -> Result<u32, Http2Error> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Http2Error::FrameSize)
}

fn status_of(value: &[u8]) -> Option<u16> {
    let is_status = value.len() == 3 && value.iter().all(u8::is_ascii_digit) && value[0] != b'0';
    is_status.then(|| value.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
}

fn length_of(value: &[u8]) -> Option<u64> {
    let is_length = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    is_length.then(|| value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Names in lower case, values without line ends, and nothing that only HTTP/1.1 has (§8.2).
fn is_field(name: &[u8], value: &[u8]) -> bool {
    const OF_CONNECTIONS: [&[u8]; 5] =
        [b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"];
    let is_name = !name.is_empty()
        && name.iter().all(|b| b.is_ascii_graphic() && !b.is_ascii_uppercase() && *b != b':');
    is_name
        && !OF_CONNECTIONS.contains(&name)
        && !value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n'))
}

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
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        let is_own = name == "host" || name == "te" && !value.eq_ignore_ascii_case(b"trailers");
        if !is_own && is_field(name.as_bytes(), value) {
            write_field(&mut block, &name, value);
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        head_bytes_max: 1 << 12,
        body_kept_max: 4,
        body_bytes_max: 1 << 20,
        keeps_heads: true,
        streams_max: 8,
    };

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_head(&mut out, payload.len(), kind, flags, stream);
        out.extend_from_slice(payload);
        out
    }

    fn block(status: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        write_field(&mut block, ":status", status.as_bytes());
        more.iter().for_each(|(name, value)| write_field(&mut block, name, value.as_bytes()));
        block
    }

    fn settings(all: &[(u16, u32)]) -> Vec<u8> {
        let bytes =
            |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        frame(SETTINGS, 0, 0, &all.iter().flat_map(bytes).collect::<Vec<_>>())
    }

    /// A connection whose server has greeted, with so many requests outstanding: 1, 3, …
    fn open(requests: u64, body: &[u8]) -> (Client, Vec<u8>) {
        let (mut client, mut out) = (Client::new(LIMITS), Vec::new());
        client.open(&mut out);
        assert!(out.starts_with(PREFACE) && !client.is_ready());
        read(&mut client, &settings(&[(3, 100)])).unwrap();
        assert!(client.is_ready());
        out.clear();
        let block = request_block("GET", "http", "h", "/", &[]);
        for tag in 0..requests {
            client.submit(tag, &Request { block: &block, body, is_head: false }, &mut out);
        }
        (client, out)
    }

    fn read(client: &mut Client, bytes: &[u8]) -> Result<(Vec<String>, Vec<u8>), Http2Error> {
        let (mut said, mut out) = (Vec::new(), Vec::new());
        let used = client.read(bytes, &mut out, &mut |tag, ended| {
            said.push(match ended {
                Ended::Answered(answer) => {
                    let body = String::from_utf8_lossy(answer.body);
                    format!("{tag}: {} {} {body}", answer.status, answer.body_bytes)
                }
                Ended::Reset { why, is_refused } => format!("{tag}: {why} {is_refused}"),
            });
        })?;
        assert!(used <= bytes.len());
        Ok((said, out))
    }

    /// Claim: answers in any order and any pieces are those of their requests, with their headers, what is kept of a body, and
    /// trailers and interim answers where they may stand.
    #[test]
    fn answers() {
        let whole = [
            frame(HEADERS, END_HEADERS, 3, &block("103", &[("link", "a")])),
            frame(HEADERS, END_HEADERS, 3, &block("200", &[("content-length", "6")])),
            frame(HEADERS, END_HEADERS | END_STREAM, 5, &block("204", &[])),
            frame(DATA, PADDED, 3, b"\x02abcd\0\0"),
            frame(0x42, 0xff, 3, b"unknown"),
            frame(PING, 0, 0, b"12345678"),
            frame(DATA, END_STREAM, 3, b"ef"),
            frame(HEADERS, PRIORITISED, 1, &[&[0; 5], &block("404", &[])[..1]].concat()),
            frame(CONTINUATION, END_HEADERS, 1, &block("404", &[])[1..]),
            frame(DATA, 0, 1, b"no"),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &{
                let mut trailer = Vec::new();
                write_field(&mut trailer, "grpc-status", b"0");
                trailer
            }),
        ]
        .concat();
        for piece in [1, 7, 9, 64, whole.len()] {
            let (mut client, _) = open(3, b"");
            let (mut held, mut said, mut sent) = (Vec::new(), Vec::new(), Vec::new());
            for part in whole.chunks(piece) {
                held.extend_from_slice(part);
                let mut out = Vec::new();
                let used = client
                    .read(&held, &mut out, &mut |tag, ended| match ended {
                        Ended::Answered(answer) => {
                            let head = String::from_utf8_lossy(answer.head).replace("\r\n", "|");
                            said.push(format!(
                                "{tag} {} {} {:?}{head}",
                                answer.status, answer.body_bytes, answer.body
                            ));
                        }
                        Ended::Reset { .. } => panic!("nothing was reset"),
                    })
                    .unwrap();
                held.drain(..used);
                sent.append(&mut out);
            }
            assert_eq!(
                said,
                [
                    "2 204 0 []",
                    "1 200 6 [97, 98, 99, 100]|content-length: 6",
                    "0 404 2 [110, 111]|grpc-status: 0"
                ]
            );
            assert_eq!(client.outstanding(), 0);
            assert_eq!(sent, frame(PING, ACK, 0, b"12345678"));
        }
    }

    /// Claim: a body is sent as far as the server's windows allow, and goes on when they grow.
    #[test]
    fn windows() {
        let body = vec![7; 100_000];
        let (mut client, out) = open(1, &body);
        let sent = |bytes: &[u8]| {
            let (mut rest, mut sum, mut ends) = (bytes, 0, false);
            while let Some(head) = Head::read(rest) {
                sum += if head.kind == DATA { head.length } else { 0 };
                ends |= head.kind == DATA && head.has(END_STREAM);
                rest = &rest[HEAD_BYTES + head.length..];
            }
            (sum, ends)
        };
        assert_eq!(sent(&out), (65_535, false));
        let update = |stream, more: u32| frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
        assert_eq!(sent(&read(&mut client, &update(1, 10_000)).unwrap().1), (0, false));
        assert_eq!(sent(&read(&mut client, &update(0, 20_000)).unwrap().1), (10_000, false));
        let (_, out) = read(&mut client, &settings(&[(4, 1_000_000)])).unwrap();
        assert_eq!(sent(&out), (10_000, false), "what is left of the connection's window");
        assert_eq!(
            sent(&read(&mut client, &update(0, 1 << 20)).unwrap().1),
            (100_000 - 85_535, true)
        );
        assert_eq!(read(&mut client, &update(0, 0x7fff_ffff)), Err(Http2Error::Window));
    }

    /// Claim: a reset ends its request, a GOAWAY those that were not processed, and what was given up may be answered all the
    /// same.
    #[test]
    fn ends() {
        let (mut client, _) = open(4, b"");
        client.give_up(1);
        let (said, out) =
            read(&mut client, &frame(RST_STREAM, 0, 1, &7_u32.to_be_bytes())).unwrap();
        assert_eq!(said, ["0: REFUSED_STREAM true"]);
        assert_eq!(out, frame(RST_STREAM, 0, 3, &CANCEL.to_be_bytes()));
        let late = frame(HEADERS, END_HEADERS | END_STREAM, 3, &block("200", &[]));
        assert_eq!(read(&mut client, &late).unwrap().0, Vec::<String>::new());
        let away = frame(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]);
        assert_eq!(read(&mut client, &away).unwrap().0, ["3: NO_ERROR true"]);
        assert!(client.is_closing() && client.outstanding() == 1);
        let last = frame(HEADERS, END_HEADERS | END_STREAM, 5, &block("200", &[]));
        assert_eq!(read(&mut client, &last).unwrap().0, ["2: 200 0 "]);
        client.reset();
        assert!(!client.is_closing() && !client.is_ready() && client.outstanding() == 0);
    }

    /// Claim: whatever could give an answer to the wrong request, or grow without bound, ends the connection.
    #[test]
    fn breaches() {
        let good = block("200", &[]);
        let headers =
            |stream, flags, block: &[u8]| frame(HEADERS, END_HEADERS | flags, stream, block);
        let flood = frame(PING, 0, 0, b"12345678").repeat(IDLE_FRAMES_MAX as usize + 1);
        let endless =
            [frame(HEADERS, 0, 1, &good), frame(CONTINUATION, 0, 1, &vec![0x88; 8_000])].concat();
        let mut bad_name = good.clone();
        write_field(&mut bad_name, "X-Upper", b"1");
        for (name, bytes, expected) in [
            (
                "push",
                frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]),
                Http2Error::Misplaced("PUSH_PROMISE"),
            ),
            ("nobody's", headers(9, END_STREAM, &good), Http2Error::Unasked),
            ("an even stream", headers(2, END_STREAM, &good), Http2Error::Unasked),
            (
                "again",
                [headers(1, END_STREAM, &good), headers(1, END_STREAM, &good)].concat(),
                Http2Error::Unasked,
            ),
            ("no stream", headers(0, 0, &good), Http2Error::Misplaced("a frame of no stream")),
            (
                "data first",
                frame(DATA, 0, 1, b"x"),
                Http2Error::Misplaced("DATA before the headers"),
            ),
            (
                "within a block",
                [frame(HEADERS, 0, 1, &good), frame(PING, 0, 0, b"12345678")].concat(),
                Http2Error::Misplaced("a frame within a header block"),
            ),
            (
                "a lone continuation",
                frame(CONTINUATION, END_HEADERS, 1, &good),
                Http2Error::Misplaced("CONTINUATION"),
            ),
            (
                "too long",
                frame(DATA, 0, 1, &vec![0; PAYLOAD_BYTES_MAX])[..9]
                    .iter()
                    .enumerate()
                    .map(|(at, b)| if at == 2 { 1 } else { *b })
                    .collect(),
                Http2Error::FrameSize,
            ),
            (
                "padding",
                [headers(1, 0, &good), frame(DATA, PADDED, 1, b"\x09abc")].concat(),
                Http2Error::Misplaced("padding"),
            ),
            ("bad block", headers(1, 0, &[0xff; 3]), Http2Error::Compression),
            (
                "upper case",
                headers(1, 0, &bad_name),
                Http2Error::Head("a header that cannot stand there"),
            ),
            (
                "no status",
                headers(1, 0, &[0x82 + 30]),
                Http2Error::Head("a header before the status"),
            ),
            (
                "a longer body",
                [
                    headers(1, 0, &block("200", &[("content-length", "1")])),
                    frame(DATA, 0, 1, b"xy"),
                ]
                .concat(),
                Http2Error::BodyLength,
            ),
            (
                "a shorter body",
                [
                    headers(1, 0, &block("200", &[("content-length", "9")])),
                    frame(DATA, END_STREAM, 1, b"xy"),
                ]
                .concat(),
                Http2Error::BodyLength,
            ),
            ("a zero window", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Http2Error::Window),
            ("settings of a stream", frame(SETTINGS, 0, 1, &[]), Http2Error::Misplaced("SETTINGS")),
            ("half a setting", frame(SETTINGS, 0, 0, &[0; 5]), Http2Error::FrameSize),
            ("pings without end", flood, Http2Error::Flood(IDLE_FRAMES_MAX)),
            ("headers without end", endless, Http2Error::HeadTooLong(1 << 12)),
            ("few streams", settings(&[(3, 2)]), Http2Error::TooFewStreams { allowed: 2 }),
            (
                "gone",
                frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]),
                Http2Error::GoneAway("ENHANCE_YOUR_CALM"),
            ),
        ] {
            let (mut client, _) = open(2, b"");
            assert_eq!(read(&mut client, &bytes), Err(expected), "{name}");
        }
        let mut client = Client::new(LIMITS);
        assert_eq!(read(&mut client, b"HTTP/1.1 400 Bad Request\r\n\r\n"), Err(Http2Error::Http1));
        assert_eq!(read(&mut client, &frame(PING, 0, 0, b"12345678")), Err(Http2Error::Preface));
    }

    /// Claim: no bytes make it panic or hold more than it may.
    #[test]
    fn arbitrary_bytes() {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for _ in 0..20_000 {
            let (mut client, _) = open(3, b"body");
            let payload: Vec<u8> = (0..next() % 40).map(|_| next()).collect();
            let stream = u32::from(next() % 8);
            let bytes = frame(next() % 11, next(), stream, &payload);
            let _ = read(&mut client, &bytes);
        }
    }
}
