//! What will happen on the connections of a scripted server, in the order of virtual time. What falls at one time happens
//! in the order in which it was asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use clock::Instant;
use rustix::io::Errno;

/// A connection of a scripted server: the n-th that was dialled, from 0. It is never another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(pub(crate) u32);

impl Peer {
    /// Its number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An order of a server. One for a time that has passed happens at once.
#[derive(Debug, Default)]
pub struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    /// How many were ever added.
    added: u64,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

/// One thing that happens. Ordered by when, then by when it was asked for.
#[derive(Debug)]
struct Entry {
    at: Instant,
    order: u64,
    what: Occurrence,
}

/// The event.
#[derive(Debug)]
pub(crate) enum Occurrence {
    /// A connection opens.
    Open(Peer),
    /// Bytes are read by the client, at whose kernel the last of them had arrived.
    Bytes { peer: Peer, bytes: Vec<u8>, arrived: Instant },
    /// A connection ends, orderly or with an error.
    End(Peer, Option<Errno>),
    /// The rest of a short write can go.
    Writable(Peer),
    /// The server wanted to be woken.
    Wake,
}

impl Occurrence {
    pub(crate) fn peer(&self) -> Option<Peer> {
        match self {
            Self::Open(peer)
            | Self::Bytes { peer, .. }
            | Self::End(peer, _)
            | Self::Writable(peer) => Some(*peer),
            Self::Wake => None,
        }
    }
}

impl Agenda {
    /// Bytes arrive at the client at `at`.
    pub fn send(&mut self, peer: Peer, at: Instant, bytes: &[u8]) {
        self.send_late(peer, at, at, bytes);
    }

    /// Bytes arrive at the client's kernel, which stamps them, and the client comes to look at `at`: its machine was held up.
    pub fn send_late(&mut self, peer: Peer, arrived: Instant, at: Instant, bytes: &[u8]) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        self.add(at, Occurrence::Bytes { peer, bytes: buffer, arrived });
    }

    /// The server closes the connection at `at`, after what it has sent until then.
    pub fn close(&mut self, peer: Peer, at: Instant) {
        self.add(at, Occurrence::End(peer, None));
    }

    /// The server resets the connection at `at`.
    pub fn reset(&mut self, peer: Peer, at: Instant) {
        self.add(at, Occurrence::End(peer, Some(Errno::CONNRESET)));
    }

    /// The server is woken at `at`.
    pub fn wake(&mut self, at: Instant) {
        self.add(at, Occurrence::Wake);
    }

    pub(crate) fn add(&mut self, at: Instant, what: Occurrence) {
        self.added += 1;
        self.entries.push(Reverse(Entry { at, order: self.added, what }));
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next thing, if its time has come.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Occurrence> {
        self.next_at().filter(|at| *at <= now)?;
        self.entries.pop().map(|Reverse(entry)| entry.what)
    }

    /// Takes a buffer back.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
