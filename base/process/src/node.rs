//! What a node is. Types only; it never says how one is run.

use std::convert::Infallible;
use std::fmt;

use clock::Instant;

use crate::Outputs;

/// A node, or one machine of a node that has several: `(state, now, input) → outputs`. Deterministic: what it
/// does depends on nothing else. `M` is what the machines of one node hand to one another.
pub trait Node<M = Infallible> {
    /// Something happened. `now` never goes back.
    fn step(&mut self, now: Instant, input: Input<'_, M>, out: &mut Outputs<M>);
}

/// What can happen to a node.
#[derive(Debug, PartialEq, Eq)]
pub enum Input<'a, M = Infallible> {
    /// A connection was accepted.
    Opened {
        /// The connection.
        connection: Connection,
        /// Which of the node's listeners accepted it, in the order they were given.
        listener: usize,
    },
    /// A connection to a peer that was asked for with [`Outputs::dial`] stands (with TLS: its handshake is done on
    /// this side, which is the first to be done; a peer that refuses this one's certificate closes it right after).
    Dialled {
        /// The connection.
        connection: Connection,
        /// Which of the node's peers, in the order they were given.
        peer: usize,
    },
    /// A peer could not be reached, or its certificate was refused. Nothing dials again but the node.
    Unreachable {
        /// Which of the node's peers.
        peer: usize,
    },
    /// Bytes have arrived. They begin with what the last step left unread; the node says with
    /// [`Outputs::used`] how many it has read, and is offered the rest again with more behind it.
    Bytes(Connection, &'a [u8]),
    /// What waits to be sent on the connection has fallen to nothing after [`Outputs::unsent`] was more than
    /// the shell's bound for it: a node that held back may send again.
    Drained(Connection),
    /// The peer has closed its side, or the connection is lost. Nothing can be sent on it any more.
    /// Not told of connections that the node itself closed.
    Closed(Connection),
    /// Every record of the log with a number below `below` is durable: it is there after a loss of power.
    /// Numbers are those that [`Outputs::append`] gave.
    Persisted {
        /// Which of the node's logs.
        log: usize,
        /// The first number that may not be durable.
        below: u64,
    },
    /// The content that was given to [`Outputs::replace`] last but not told of before is durable.
    Replaced {
        /// Which of the node's cells.
        cell: usize,
    },
    /// A part that was given to [`Outputs::extend`] is written: one input for each part, in their order.
    Extended {
        /// Which of the node's cells.
        cell: usize,
    },
    /// The bytes that [`Outputs::read`] asked for: shorter than asked at the end of the content only.
    Part {
        /// Which of the node's cells.
        cell: usize,
        /// Where in its content.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The disk takes nothing now (it is full); what was asked waits, is tried again, and ends in
    /// [`Input::Persisted`] or [`Input::Replaced`] when there is room. Told once for what waits. A disk that fails
    /// otherwise ends the process, because a failed sync does not say what it has kept.
    Full {
        /// Which of the node's logs waits for room; `None`: a cell does.
        log: Option<usize>,
    },
    /// Another machine of this node passed something.
    Message {
        /// Which machine, in the order they were given.
        from: usize,
        /// What.
        message: M,
    },
    /// The queue to another machine, which had no room, has some.
    Room {
        /// Which machine.
        machine: usize,
    },
    /// All that had arrived when the turn began has been told. Asked for with [`Outputs::at_turn_end`], and told before
    /// anything that was asked for in the turn leaves: for what is worth doing once for many inputs.
    TurnEnd,
    /// The time has come that the node asked to be woken at. Every node is woken once at its start, too, before
    /// anything else happens to it.
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
