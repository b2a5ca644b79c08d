//! A client's connection: which requests are outstanding on it, what is known of their answers, and how much each side may
//! send. The caller keeps the bytes that it has not read.

mod control;
mod told;

use super::fields::{is_field, length_of, status_of};
use super::frame::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEAD_BYTES, HEADERS, Head, PADDED,
    PAYLOAD_BYTES_MAX, PING, PRIORITISED, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, write_head, write_number,
};
use super::hpack::Decoder;
use super::{Http2Error, code_name};

pub use told::{Answer, Ended, Limits, Request, Told};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much of a body each stream may be sent before it is taken, and all of them together.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;
/// A window at first, and at most (RFC 9113 §6.9).
const WINDOW_AT_FIRST: i64 = 65_535;
const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Streams that were given up, of which frames may still come.
const GIVEN_UP_MAX: usize = 1_024;
/// Frames between two answers that bring nothing: pings, settings, empty data.
pub(super) const IDLE_FRAMES_MAX: u32 = 10_000;
const REFUSED_STREAM: u32 = 7;
pub(super) const CANCEL: u32 = 8;

/// A request that is outstanding.
#[derive(Clone, Debug, Default)]
struct Stream {
    id: u32,
    /// The caller's name of it.
    tag: u64,
    is_head: bool,
    status: u16,
    announced: Option<u64>,
    body_bytes: u64,
    body: Vec<u8>,
    head: Vec<u8>,
    /// Where trailers begin in `head`.
    trailers_at: Option<usize>,
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
    /// Where the last stream was found: the next frame is often of the same one.
    found_at: usize,
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
    /// Frames that leave with the next bytes.
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
            found_at: 0,
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

    /// Appends the first bytes of an open connection.
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
            trailers_at: None,
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
            let stream = self.streams.swap_remove(at);
            write_number(&mut self.owed, RST_STREAM, stream.id, CANCEL);
            if self.given_up.len() == GIVEN_UP_MAX {
                self.given_up.remove(0);
            }
            self.given_up.push(stream.id);
            self.spare.push(stream);
        }
    }

    /// Writes a ping, so that the server has something to answer.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        write_head(out, 8, PING, 0, 0);
        out.extend_from_slice(&[0; 8]);
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
        self.read_parts(bytes, out, &mut |tag, told| {
            if let Told::End(how) = told {
                ended(tag, how);
            }
            true
        })
    }

    /// The same, and `told` is also given every part of a body as it arrives; where it answers `false` to one, the request is
    /// given up at once.
    ///
    /// # Errors
    /// As those of [`Client::read`].
    pub fn read_parts(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
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
            self.frame(head, payload, out, told)?;
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
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
    ) -> Result<(), Http2Error> {
        let goes_on = self.block_of.map(|(stream, _)| stream);
        if goes_on.is_some_and(|stream| head.kind != CONTINUATION || head.stream != stream) {
            return Err(Http2Error::Misplaced("a frame within a header block"));
        }
        match head.kind {
            DATA => self.data(head, payload, told),
            HEADERS => self.headers(head, payload, told),
            CONTINUATION if goes_on.is_none() => Err(Http2Error::Misplaced("CONTINUATION")),
            CONTINUATION => {
                self.keep_block(payload)?;
                if head.has(END_HEADERS) { self.whole_block(told) } else { self.idle() }
            }
            PRIORITY if head.stream == 0 => Err(Http2Error::Misplaced("PRIORITY")),
            PRIORITY if payload.len() != 5 => Err(Http2Error::FrameSize),
            RST_STREAM => self.was_reset(head, payload, told),
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
            GOAWAY => self.goes_away(head, payload, told),
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
    fn place(&mut self, id: u32) -> Result<Option<usize>, Http2Error> {
        if id == 0 {
            return Err(Http2Error::Misplaced("a frame of no stream"));
        }
        if self.streams.get(self.found_at).is_some_and(|stream| stream.id == id) {
            return Ok(Some(self.found_at));
        }
        match self.streams.iter().position(|stream| stream.id == id) {
            Some(at) => {
                self.found_at = at;
                Ok(Some(at))
            }
            None if self.given_up.contains(&id) => Ok(None),
            None => Err(Http2Error::Unasked),
        }
    }

    /// Whether a request was ever sent on this stream.
    const fn has_begun(&self, id: u32) -> bool {
        id < self.next_id && !id.is_multiple_of(2)
    }

    fn data(
        &mut self,
        head: Head,
        payload: &[u8],
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
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
        let Stream { tag, status, head: fields, .. } = stream;
        let tag = *tag;
        if !body.is_empty() && !told(tag, Told::Part { status: *status, head: fields, body }) {
            self.give_up(tag);
            return Ok(());
        }
        if head.has(END_STREAM) { self.answered(at, told) } else { Ok(()) }
    }

    fn headers(
        &mut self,
        head: Head,
        payload: &[u8],
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
    ) -> Result<(), Http2Error> {
        self.place(head.stream)?;
        let mut block = unpadded(head, payload)?;
        if head.has(PRIORITISED) {
            block = block.get(5..).ok_or(Http2Error::FrameSize)?;
        }
        self.block.clear();
        self.block_of = Some((head.stream, head.has(END_STREAM)));
        self.keep_block(block)?;
        if head.has(END_HEADERS) { self.whole_block(told) } else { Ok(()) }
    }

    fn keep_block(&mut self, part: &[u8]) -> Result<(), Http2Error> {
        if self.block.len() + part.len() > self.limits.head_bytes_max {
            return Err(Http2Error::HeadTooLong(self.limits.head_bytes_max));
        }
        self.block.extend_from_slice(part);
        Ok(())
    }

    fn whole_block(
        &mut self,
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
    ) -> Result<(), Http2Error> {
        let (id, is_last) = self.block_of.take().expect("the caller has seen it");
        let place = self.place(id)?;
        let Self { decoder, streams, block, limits, .. } = self;
        let mut nobody = Stream::default();
        let stream = match place {
            Some(at) => &mut streams[at],
            None => &mut nobody,
        };
        let is_trailer = stream.status != 0;
        if is_trailer {
            stream.trailers_at = Some(stream.head.len());
        }
        let (mut status, mut announced, mut bytes) = (0, None, 0);
        decoder.read(block, |name, value| {
            bytes += name.len() + value.len() + 4;
            if bytes > limits.head_bytes_max {
                return Err(Http2Error::HeadTooLong(limits.head_bytes_max));
            }
            if place.is_none() {
                // Of a stream that was given up nothing is known, and its fields are read for the table alone.
                return Ok(());
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
        if is_last { self.answered(at, told) } else { Ok(()) }
    }

    /// The answer of a stream is whole.
    fn answered(
        &mut self,
        at: usize,
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
    ) -> Result<(), Http2Error> {
        let stream = &self.streams[at];
        if stream.announced.is_some_and(|announced| announced != stream.body_bytes) {
            return Err(Http2Error::BodyLength);
        }
        self.idle_frames = 0;
        let (status, body_bytes) = (stream.status, stream.body_bytes);
        let trailers = &stream.head[stream.trailers_at.unwrap_or(stream.head.len())..];
        let answer =
            Answer { status, body_bytes, body: &stream.body, head: &stream.head, trailers };
        told(stream.tag, Told::End(Ended::Answered(answer)));
        let is_cut = !self.streams[at].unsent.is_empty();
        self.end(at, is_cut);
        Ok(())
    }

    /// Takes a stream out; one whose request was not wholly sent is given up, so that the rest need not be.
    fn end(&mut self, at: usize, is_cut: bool) {
        let stream = self.streams.swap_remove(at);
        if is_cut {
            write_number(&mut self.owed, RST_STREAM, stream.id, CANCEL);
        }
        self.spare.push(stream);
    }

    fn was_reset(
        &mut self,
        head: Head,
        payload: &[u8],
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
    ) -> Result<(), Http2Error> {
        let code = number(payload)?;
        let at = match self.place(head.stream) {
            // A server may end a stream whose whole answer it has sent, so that the rest of the request is not (§8.1).
            Err(Http2Error::Unasked) if self.has_begun(head.stream) => return self.idle(),
            place => place?,
        };
        let Some(at) = at else { return self.idle() };
        let is_refused = code == REFUSED_STREAM;
        told(self.streams[at].tag, Told::End(Ended::Reset { why: code_name(code), is_refused }));
        self.end(at, false);
        Ok(())
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
