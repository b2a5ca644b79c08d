//! A node in virtual time: no kernel, no waiting, every byte kept with the time at which it was sent. The same
//! calls give the same bytes, on every machine.
//!
//! It never moves time by itself: [`Rehearsal::advance`] does, waking the node exactly when it asked.

use clock::Instant;

use crate::{Connection, Input, Node, Outputs};

/// Bytes that a node sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// On which connection.
    pub connection: Connection,
    /// What.
    pub bytes: Vec<u8>,
}

/// The most times that a node may ask to be woken without time moving on: more is a node that never rests.
const WAKES_AT_ONCE_MAX: u32 = 1_000_000;

/// A node and its virtual time.
#[derive(Debug)]
pub struct Rehearsal<N> {
    node: N,
    now: Instant,
    out: Outputs,
    unread: Vec<Option<Vec<u8>>>,
    sent: Vec<Sent>,
}

impl<N: Node> Rehearsal<N> {
    /// The node at time zero, without connections.
    pub fn new(node: N) -> Self {
        Self {
            node,
            now: Instant::ZERO,
            out: Outputs::default(),
            unread: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Now, in virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The node.
    pub const fn node(&self) -> &N {
        &self.node
    }

    /// The node, to be looked at or changed from outside.
    pub const fn node_mut(&mut self) -> &mut N {
        &mut self.node
    }

    /// Opens a connection to the `listener`-th listener.
    pub fn open(&mut self, listener: usize) -> Connection {
        let index = u32::try_from(self.unread.len()).expect("a test opens few connections");
        let connection = Connection::new(index, 0);
        self.unread.push(Some(Vec::new()));
        self.out.open(connection);
        self.step(Input::Opened { connection, listener });
        connection
    }

    /// Sends bytes to the node, now.
    ///
    /// # Panics
    /// If the connection is closed, or the node claims to have read what was not there.
    pub fn send(&mut self, connection: Connection, bytes: &[u8]) {
        let unread = self.unread[connection.index()].take();
        let mut unread = unread.expect("the connection is open");
        unread.extend_from_slice(bytes);
        self.out.take_used();
        self.node.step(self.now, Input::Bytes(connection, &unread), &mut self.out);
        unread.drain(..self.out.take_used());
        self.unread[connection.index()] = Some(unread);
        self.carry_out();
    }

    /// Closes the peer's side.
    pub fn close(&mut self, connection: Connection) {
        if self.unread[connection.index()].take().is_some() {
            self.out.end(connection);
            self.step(Input::Closed(connection));
        }
    }

    /// Moves time on to `to`, waking the node at each moment that it asks for.
    ///
    /// # Panics
    /// If time would go back, or the node never stops asking to be woken at once.
    pub fn advance(&mut self, to: Instant) {
        assert!(to >= self.now, "time does not go back");
        let mut wakes = 0;
        while let Some(at) = self.out.wake().filter(|at| *at <= to) {
            wakes = if at > self.now { 0 } else { wakes + 1 };
            assert!(wakes < WAKES_AT_ONCE_MAX, "the node never rests at {:?}", self.now);
            self.now = self.now.max(at);
            self.out.take_wake();
            self.step(Input::Wake);
        }
        self.now = to;
    }

    /// When the node wants to be woken next.
    #[must_use]
    pub const fn wake(&self) -> Option<Instant> {
        self.out.wake()
    }

    /// Ends the node as a signal would.
    pub fn stop(&mut self) {
        self.step(Input::Stop);
    }

    /// Whether the connection is open on both sides.
    #[must_use]
    pub fn is_open(&self, connection: Connection) -> bool {
        self.unread[connection.index()].is_some()
    }

    /// What the node has sent since the last call, in order.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// What the node has sent on one connection since the last call for it, joined.
    pub fn take_bytes(&mut self, connection: Connection) -> Vec<u8> {
        let (mine, others): (Vec<Sent>, Vec<Sent>) =
            std::mem::take(&mut self.sent).into_iter().partition(|s| s.connection == connection);
        self.sent = others;
        mine.into_iter().flat_map(|sent| sent.bytes).collect()
    }

    fn step(&mut self, input: Input<'_>) {
        self.node.step(self.now, input, &mut self.out);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        // Each call of a test is a turn of its own.
        let mut ends = 0;
        while self.out.take_turn_end() {
            ends += 1;
            assert!(ends < WAKES_AT_ONCE_MAX, "the node never rests at {:?}", self.now);
            self.node.step(self.now, Input::TurnEnd, &mut self.out);
        }
        let mut touched = Vec::new();
        self.out.take_touched(&mut touched);
        for connection in touched {
            let Some((bytes, closes)) = self.out.pending(connection) else { continue };
            let bytes = std::mem::take(bytes);
            if !bytes.is_empty() {
                self.sent.push(Sent { at: self.now, connection, bytes });
            }
            if closes {
                self.unread[connection.index()] = None;
                self.out.end(connection);
            }
        }
    }
}
