//! The contract between the event loop of virtual time and a server that a test wrote. Nothing here does anything.

use std::time::Duration;

use clock::Instant;
use rustix::io::Errno;

use super::agenda::{Agenda, Peer};

/// A server as a test writes it: a value that is told what happened and when, and says what happens next. It is
/// deterministic: what it does depends on nothing else.
pub trait Server: Send {
    /// When a connection that is dialled now is open; `None`: it is refused.
    fn accepts(&mut self, now: Instant) -> Option<Instant> {
        Some(now)
    }

    /// When the client's machine, asked for at `now`, runs on: later than `now` while it is stopped, and its sends and reads
    /// wait until then.
    fn client_runs_at(&self, now: Instant) -> Instant {
        now
    }

    /// Trouble that the engine's next call meets in its own kernel; `None`: it gets what it asks for.
    fn trouble(&mut self, now: Instant, call: Call) -> Option<Trouble> {
        let _ = (now, call);
        None
    }

    /// Something happened. `now` never goes back.
    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda);
}

/// A call of the engine's that may meet trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A connection is to be opened.
    Connect,
    /// Bytes are to be sent.
    Send(Peer),
    /// It waits for the next thing that happens.
    Wait,
}

/// Trouble between the engine and its kernel. One that does not fit the call is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no socket for a connection: no descriptors (EMFILE), no memory (ENOBUFS).
    NoSocket(Errno),
    /// A write takes so many bytes; the others go when the connection is writable again.
    ShortWrite {
        /// Bytes that are taken; 0: none (EAGAIN).
        taken: usize,
        /// When the others are.
        after: Duration,
    },
    /// A write finds its connection reset (ECONNRESET); the server got nothing of it.
    Reset,
    /// A signal ends the wait before anything happened (EINTR).
    Interrupted,
    /// The queue of completions has one place: whatever else happened comes with later waits.
    FullRing,
}

/// Events of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening<'a> {
    /// A connection is open.
    Opened(Peer),
    /// Bytes have arrived: those that one turn of the engine sent on a connection, and only those.
    Bytes(Peer, &'a [u8]),
    /// The client has closed a connection. Not told of those that the server itself ended.
    Closed(Peer),
    /// The time has come that [`Agenda::wake`] asked for.
    Woken,
}
