//! One node's connection: a kept-alive HTTP/1.1 dialogue that never blocks. The caller polls; what is ready goes on.
//!
//! It must never hold bytes without bound, and never wait: a node that hangs costs its own samples and nobody else's.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use clock::Instant;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use wire::http1::{Asked, Limits, ResponseReader, write_request};

/// How long a node may take for an answer. Longer than a round, so that a node under load is late and not absent.
pub(super) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
/// The longest answer: a node of a network of hundreds serves some hundred kilobytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Reads of one turn, so that one node's flood does not keep the others waiting.
const READS_MAX: usize = 16;

const LIMITS: Limits = Limits {
    body_bytes_max: ANSWER_BYTES_MAX,
    // The same number as `ANSWER_BYTES_MAX`, which must be a u64.
    body_kept_max: 4 << 20,
    ..Limits::CLIENT
};

/// What came of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing yet.
    Waiting,
    /// The answer is complete: see [`Peer::answer`].
    Answered,
    /// There will be none; in words.
    Failed(String),
}

/// A request under way.
struct Request {
    since: Instant,
    written: usize,
}

/// A node and the connection to it, if there is one.
pub(super) struct Peer {
    address: SocketAddr,
    request: Vec<u8>,
    stream: Option<TcpStream>,
    asked: Option<Request>,
    reader: ResponseReader,
    unread: Vec<u8>,
}

impl Peer {
    pub(super) fn new(address: SocketAddr, path: &str) -> Self {
        let host = address.to_string();
        // No `Accept-Encoding`: what comes is the text itself.
        let headers: [(&str, &[u8]); 2] =
            [("Host", host.as_bytes()), ("Accept", b"text/plain;version=0.0.4")];
        let mut request = Vec::new();
        write_request(&mut request, "GET", path, &headers, b"");
        let reader = ResponseReader::new(LIMITS);
        Self { address, request, stream: None, asked: None, reader, unread: Vec::new() }
    }

    /// Whether an answer is awaited.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// When the awaited answer is given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.asked.as_ref().map(|asked| asked.since.plus(ANSWER_WAIT_MAX))
    }

    /// Asks, on the connection that there is or on a new one.
    pub(super) fn ask(&mut self, now: Instant) -> Turn {
        if self.stream.is_none() {
            match connect(self.address) {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => return Turn::Failed(format!("connecting: {error}")),
            }
            self.reader.reset();
            self.unread.clear();
        }
        self.asked = Some(Request { since: now, written: 0 });
        self.write()
    }

    /// What to poll for: room to write, or bytes, or, while nothing is asked, that the node hangs up.
    pub(super) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let stream = self.stream.as_ref()?;
        let is_writing = self.asked.as_ref().is_some_and(|it| it.written < self.request.len());
        Some((stream.as_fd(), if is_writing { PollFlags::OUT } else { PollFlags::IN }))
    }

    /// Goes on after the connection was said to be ready.
    pub(super) fn ready(&mut self) -> Turn {
        match &self.asked {
            Some(asked) if asked.written < self.request.len() => self.write(),
            _ => self.read(),
        }
    }

    /// Gives up: the connection is of no more use.
    pub(super) fn give_up(&mut self) {
        self.stream = None;
        self.asked = None;
    }

    /// The text of the last complete answer.
    pub(super) fn answer(&self) -> &[u8] {
        self.reader.body()
    }

    fn fail(&mut self, words: impl Into<String>) -> Turn {
        let was_asked = self.is_asked();
        self.give_up();
        // A node may close a connection that waits for the next round: the next round opens another.
        if was_asked { Turn::Failed(words.into()) } else { Turn::Waiting }
    }

    fn write(&mut self) -> Turn {
        let (Some(stream), Some(asked)) = (&mut self.stream, &mut self.asked) else {
            return Turn::Waiting;
        };
        while asked.written < self.request.len() {
            match stream.write(&self.request[asked.written..]) {
                Ok(0) => return self.fail("the connection takes no bytes"),
                Ok(written) => asked.written += written,
                // Not connected yet, or no room: poll says when.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.fail(error.to_string()),
            }
        }
        Turn::Waiting
    }

    fn read(&mut self) -> Turn {
        let mut piece = [0; 16 << 10];
        for _ in 0..READS_MAX {
            let Some(stream) = &mut self.stream else { return Turn::Waiting };
            match stream.read(&mut piece) {
                Ok(0) => return self.closed(),
                Ok(_) if self.asked.is_none() => {
                    // Bytes that nobody asked for: whatever they are, the next answer would not be told from them.
                    self.give_up();
                    return Turn::Waiting;
                }
                Ok(read) => self.unread.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Turn::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.fail(error.to_string()),
            }
            match self.reader.read(&self.unread, Asked::Other) {
                Ok(progress) => {
                    self.unread.drain(..progress.used);
                    if let Some(response) = progress.response {
                        return self.complete(response.status, response.keep_alive);
                    }
                }
                Err(error) => return self.fail(format!("the answer: {error}")),
            }
        }
        Turn::Waiting
    }

    /// The node has closed its side, which ends an answer that has no length.
    fn closed(&mut self) -> Turn {
        match self.reader.closed() {
            Ok(Some(response)) if self.is_asked() => self.complete(response.status, false),
            _ => self.fail("it closed the connection before its answer was complete"),
        }
    }

    fn complete(&mut self, status: u16, keep_alive: bool) -> Turn {
        self.asked = None;
        if !keep_alive || !self.unread.is_empty() {
            self.give_up();
        }
        match status {
            200 => Turn::Answered,
            _ => Turn::Failed(format!("it answered with status {status}")),
        }
    }
}

/// A connection that may still be under way: std's own waits until it stands.
fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}
