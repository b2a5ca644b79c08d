//! What a node is. Types only; it never says how one is run.

use std::fmt;

use clock::Instant;

use crate::Outputs;

/// A node: `(state, now, input) → outputs`. Deterministic: what it does depends on nothing else.
pub trait Node {
    /// Something happened. `now` never goes back.
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs);
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A connection was accepted.
    Opened {
        /// The connection.
        connection: Connection,
        /// Which of the node's listeners accepted it, in the order they were given.
        listener: usize,
    },
    /// Bytes have arrived. They begin with what the last step left unread; the node says with
    /// [`Outputs::used`] how many it has read, and is offered the rest again with more behind it.
    Bytes(Connection, &'a [u8]),
    /// The peer has closed its side, or the connection is lost. Nothing can be sent on it any more.
    /// Not told of connections that the node itself closed.
    Closed(Connection),
    /// The time has come that the node asked to be woken at.
    Wake,
    /// The process is about to end: the last chance to store what is stored, and to send.
    Stop,
}

/// A connection of a node: a place in a table, and which of the connections that have held the place it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection {
    index: u32,
    generation: u32,
}

impl Connection {
    /// The `generation`-th connection at place `index`.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// Its place: dense from 0, used again when a connection has ended. For tables of a node's own.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The number that tells it from others that have held its place.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}
