//! One server's connection: a kept-alive HTTP/1.1 dialogue that never blocks. The caller polls; what is ready goes on.
//!
//! It must never hold bytes without bound, and never wait: a server that hangs costs its own questions and no
//! other's.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use clock::Instant;
use rustix::event::PollFlags;
use wire::http1::{Asked, Limits, Response, ResponseReader};

use super::AskError;
use super::stream::{Stream, Tls};

/// Reads of one turn, so that one server's flood does not keep the others waiting.
const READS_MAX: usize = 16;

/// Bytes taken at once.
const PIECE_BYTES: usize = 16 << 10;

/// What came of a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing yet.
    Waiting,
    /// The connection stands, and nothing was asked.
    Open,
    /// The answer is complete: see [`Dialogue::body`].
    Answered(Response),
    /// There will be none.
    Failed(AskError),
}

/// What is under way.
struct Pending {
    /// `None`: only the connection is wanted.
    asked: Option<Asked>,
    deadline: Instant,
}

/// A server and the connection to it, if there is one.
pub(crate) struct Dialogue {
    address: SocketAddr,
    tls: Option<Tls>,
    stream: Option<Stream>,
    request: Vec<u8>,
    written: usize,
    pending: Option<Pending>,
    pub(super) reader: ResponseReader,
    unread: Vec<u8>,
    /// Unsolicited bytes, since they were last looked at.
    pub(super) stray_bytes: usize,
}

impl Dialogue {
    pub(crate) fn new(address: SocketAddr, tls: Option<Tls>, limits: Limits) -> Self {
        Self {
            address,
            tls,
            stream: None,
            request: Vec::new(),
            written: 0,
            pending: None,
            reader: ResponseReader::new(limits),
            unread: Vec::new(),
            stray_bytes: 0,
        }
    }

    /// Keeps the value of one header of each answer.
    pub(crate) fn watch(&mut self, name: &str) {
        self.reader = self.reader.clone().watching(name);
    }

    /// Keeps the head of each answer.
    pub(crate) fn keep_heads(&mut self) {
        self.reader = self.reader.clone().keeping_heads();
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_asked(&self) -> bool {
        self.pending.is_some()
    }

    /// When the caller is to give up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.as_ref().map(|pending| pending.deadline)
    }

    /// Wants a connection and asks nothing.
    pub(crate) fn open(&mut self, deadline: Instant) -> Turn {
        self.start(b"", None, deadline)
    }

    /// Asks, on the connection that there is or on a new one.
    pub(crate) fn begin(&mut self, request: &[u8], asked: Asked, deadline: Instant) -> Turn {
        self.start(request, Some(asked), deadline)
    }

    /// What to poll for: room to write, or bytes, or, while nothing is asked, that the server hangs up.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let has_more = self.written < self.request.len();
        self.stream.as_ref().map(|stream| stream.interest(has_more))
    }

    /// Goes on after the connection was said to be ready.
    pub(crate) fn ready(&mut self) -> Turn {
        let Some(stream) = &mut self.stream else { return Turn::Waiting };
        if !stream.is_open() {
            match stream.advance() {
                Ok(true) => {}
                Ok(false) => return Turn::Waiting,
                Err(error) => return self.fail(error),
            }
        }
        if self.pending.as_ref().is_some_and(|pending| pending.asked.is_none()) {
            self.pending = None;
            return Turn::Open;
        }
        // A server may refuse a question before it has read all of it: its answer is looked for even then.
        let written = self.write();
        match (self.read(), written) {
            (Turn::Waiting, Err(error)) => self.fail(error),
            (turn, _) => turn,
        }
    }

    /// Gives up: the connection is of no more use.
    pub(crate) fn give_up(&mut self) {
        self.stream = None;
        self.pending = None;
    }

    /// The kept part of the last complete answer's body.
    pub(crate) fn body(&self) -> &[u8] {
        self.reader.body()
    }

    pub(crate) fn transport(&self) -> String {
        self.stream.as_ref().map_or_else(|| "plain".to_owned(), Stream::transport)
    }

    fn start(&mut self, request: &[u8], asked: Option<Asked>, deadline: Instant) -> Turn {
        // A server may have closed a connection that waited for its next question, or have spoken out of turn.
        if self.is_asked() {
            self.give_up();
        } else if self.stream.is_some() {
            let _ = self.read();
        }
        if self.stream.is_none() {
            match Stream::open(self.address, self.tls.as_ref()) {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => return Turn::Failed(error),
            }
            self.reader.reset();
            self.unread.clear();
        }
        self.request.clear();
        self.request.extend_from_slice(request);
        self.written = 0;
        self.pending = Some(Pending { asked, deadline });
        self.ready()
    }

    fn fail(&mut self, error: AskError) -> Turn {
        let was_asked = self.is_asked();
        self.give_up();
        // Nobody waits: the next question opens another connection.
        if was_asked { Turn::Failed(error) } else { Turn::Waiting }
    }

    fn write(&mut self) -> Result<(), AskError> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while self.written < self.request.len() {
            match stream.write(&self.request[self.written..]) {
                Ok(0) => return Err(AskError::Lost(ErrorKind::WriteZero.into())),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(AskError::Lost(error)),
            }
        }
        stream.flush().map_err(AskError::Lost)
    }

    fn read(&mut self) -> Turn {
        let mut piece = [0; PIECE_BYTES];
        let mut reads = 0;
        loop {
            let Some(stream) = &mut self.stream else { return Turn::Waiting };
            if reads >= READS_MAX && !stream.has_decrypted() {
                return Turn::Waiting;
            }
            reads += 1;
            let read = match stream.read(&mut piece) {
                Ok(0) => return self.closed(),
                Ok(read) => read,
                Err(AskError::Lost(error)) if error.kind() == ErrorKind::WouldBlock => {
                    return Turn::Waiting;
                }
                Err(error) => return self.fail(error),
            };
            let Some(asked) = self.pending.as_ref().and_then(|pending| pending.asked) else {
                self.stray_bytes += read;
                // Unsolicited bytes: whatever they are, the next answer would not be told from them.
                self.give_up();
                return Turn::Waiting;
            };
            match take(&mut self.reader, &mut self.unread, &piece[..read], asked) {
                Ok(Some(response)) => return self.complete(response),
                Ok(None) => {}
                Err(error) => return self.fail(error),
            }
        }
    }

    /// The server has closed its side, which ends an answer that has no length.
    fn closed(&mut self) -> Turn {
        match ended(&mut self.reader) {
            Ok(response) if self.is_asked() => {
                self.complete(Response { keep_alive: false, ..response })
            }
            Ok(_) => self.fail(AskError::ClosedEarly),
            Err(error) => self.fail(error),
        }
    }

    fn complete(&mut self, response: Response) -> Turn {
        self.pending = None;
        self.stray_bytes += self.unread.len();
        let is_written = self.written == self.request.len();
        if !response.keep_alive || !self.unread.is_empty() || !is_written {
            self.give_up();
        }
        Turn::Answered(response)
    }
}

/// Reads on with `piece`. `unread` keeps what is no answer yet: less than the longest head or chunk line.
pub(super) fn take(
    reader: &mut ResponseReader,
    unread: &mut Vec<u8>,
    piece: &[u8],
    asked: Asked,
) -> Result<Option<Response>, AskError> {
    unread.extend_from_slice(piece);
    let progress = reader.read(unread, asked).map_err(AskError::Answer)?;
    unread.drain(..progress.used);
    Ok(progress.response)
}

/// The answer that ends with the connection.
pub(super) fn ended(reader: &mut ResponseReader) -> Result<Response, AskError> {
    reader.closed().map_err(AskError::Answer)?.ok_or(AskError::ClosedEarly)
}
