//! Bytes in and out: one contract, three event loops. [`ring`] (io_uring) is used where the kernel
//! allows it, [`epoll`] everywhere else and as the check on the first: both pass the same tests. [`scripted`] has no kernel
//! below it: a server that a test wrote answers in virtual time.
//!
//! A driver knows sockets and nothing above them: no transactions, no TLS, no time of its own. It never blocks
//! except in [`Driver::wait`], and never drops bytes that it was given while their connection lives.

pub(crate) mod epoll;
pub(crate) mod ring;
pub(crate) mod scripted;
pub(crate) mod socket;
mod stamps;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use clock::WallTime;
use rustix::io::Errno;

/// A connection as its driver names it. A key is never reused for another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

/// A report of the kernel. `token` was given to [`Driver::connect`].
#[derive(Debug)]
pub(crate) enum Event {
    /// The connection is open.
    Connected { token: u32, key: Key },
    /// Bytes arrived; the last of them when `arrived` says, by the kernel's wall clock, where it was asked for and stamped
    /// them. The chunk must be given back to [`Driver::release`].
    Received { token: u32, key: Key, chunk: Chunk, arrived: Option<WallTime> },
    /// The connection is over: the peer closed it (`None`) or it failed. The driver has forgotten it.
    Ended { token: u32, key: Key, error: Option<Errno> },
}

/// Bytes that arrived, in a buffer of the driver.
#[derive(Debug)]
pub(crate) struct Chunk {
    buffer: u16,
    /// The kernel's header before the bytes, and both together.
    head: u16,
    length: u32,
}

/// How long [`Driver::wait`] may block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// At most this long; zero: not at all; `None`: until something happens.
    pub timeout: Option<Duration>,
    /// Return after this many completions rather than after the first, but no later than `gather_max` after
    /// the wait began if there is at least one. A driver that cannot gather returns after the first, unless all of the time
    /// is for gathering ([`Wait::is_whole`]).
    pub completions_min: u32,
    /// See `completions_min`.
    pub gather_max: Duration,
}

impl Wait {
    /// Looks, and does not block.
    pub(crate) const LOOK: Self = Self::at_most(Some(Duration::ZERO));

    /// Blocks until the first completion, at most `timeout`.
    pub(crate) const fn at_most(timeout: Option<Duration>) -> Self {
        Self { timeout, completions_min: 1, gather_max: Duration::ZERO }
    }

    /// Whether it gathers for as long as it may block at all: nothing but its time, or too many completions, ends it.
    pub(crate) fn is_whole(&self) -> bool {
        self.completions_min > 1 && self.timeout.is_some_and(|timeout| timeout <= self.gather_max)
    }
}

/// The counters of a driver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// System calls.
    pub enters: u64,
    /// Completions that they returned.
    pub completions: u64,
}

/// An event loop's lower half.
pub(crate) trait Driver: Sized {
    /// Its name in facts and in `ASSAY_DRIVER`.
    const NAME: &'static str;
    /// Whether [`Wait::completions_min`] means anything to it.
    const GATHERS: bool;
    /// Whether a wait ends later than its time, by what a timer and a wake-up take: what is due is then spun for at last.
    /// Not where time is virtual, and spinning would move nothing.
    const WAKES_LATE: bool = true;

    /// Begins to open a connection; [`Event::Connected`] or [`Event::Ended`] follows. Where `is_stamped` the kernel is asked
    /// when what is received on it arrived, which it need not know.
    fn connect(&mut self, token: u32, address: SocketAddr, is_stamped: bool) -> Result<Key, Errno>;

    /// Takes up a socket that is connected already; [`Event::Connected`] follows.
    fn adopt(&mut self, token: u32, socket: OwnedFd) -> Result<Key, Errno>;

    /// Sends all of `bytes`, after what was sent before, and leaves an empty buffer with capacity in its place.
    fn send(&mut self, key: Key, bytes: &mut Vec<u8>);

    /// How many bytes of what was given to [`Driver::send`] the kernel has not taken.
    fn unsent(&self, key: Key) -> usize;

    /// Hands what was sent to the kernel now, where [`Driver::wait`] would: before work that takes its time. It does not wait.
    fn hand_over(&mut self) {}

    /// Ends a connection at once; no event of it follows. Nothing happens if it is already gone.
    fn close(&mut self, key: Key);

    /// Hands everything queued to the kernel, and blocks until something happened or the time is up.
    fn wait(&mut self, wait: Wait) -> Result<(), Errno>;

    /// The next thing that happened, until there is none.
    fn next_event(&mut self) -> Option<Event>;

    /// The bytes of a chunk.
    fn bytes(&self, chunk: &Chunk) -> &[u8];

    /// Takes a chunk's buffer back.
    fn release(&mut self, chunk: Chunk);

    /// Its counters so far.
    fn counters(&self) -> Counters;
}

/// A driver over the kernel, which needs nothing else to be made.
pub(crate) trait KernelDriver: Driver {
    /// Sets it up for at most `connections_max` connections, on the thread that will use it.
    fn new(connections_max: u32) -> Result<Self, Errno>;
}

/// Whether an error of opening a connection is this client's own shortage and not the system's answer.
pub(crate) fn is_own_shortage(error: Errno) -> bool {
    matches!(
        error,
        Errno::MFILE
            | Errno::NFILE
            | Errno::ADDRNOTAVAIL
            | Errno::NOBUFS
            | Errno::NOMEM
            | Errno::AGAIN
            | Errno::ACCESS
            | Errno::PERM
    )
}

#[cfg(test)]
mod tests;
