//! What a node wants: bytes to send, connections to close, when to be woken. Nothing else can come out of one.
//!
//! Buffers are kept and reused: sending allocates nothing once a connection's buffer has grown to its size.

use clock::Instant;

use crate::Connection;

/// What a step asks for, and what earlier steps asked for that has not been carried out yet.
#[derive(Debug, Default)]
pub struct Outputs {
    pub(crate) used: usize,
    pub(crate) wake: Option<Instant>,
    /// One entry a place in the table of connections.
    slots: Vec<Slot>,
    /// What is sent on connections that have ended: emptied at the next such call, read by nobody.
    dropped: Vec<u8>,
    /// Places with something new to carry out, each once.
    pub(crate) touched: Vec<Connection>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Whose the place is; sends to others are dropped.
    generation: Option<u32>,
    bytes: Vec<u8>,
    closes: bool,
    is_touched: bool,
}

impl Outputs {
    /// How many bytes of the [`crate::Input::Bytes`] of this step the node has read. Not called: none.
    pub fn used(&mut self, bytes: usize) {
        self.used = bytes;
    }

    /// The buffer of what is to be sent on `connection`; append to it. What is sent on a connection that has
    /// ended is dropped, as it would be on a wire.
    pub fn send(&mut self, connection: Connection) -> &mut Vec<u8> {
        if !self.takes(connection) {
            self.dropped.clear();
            return &mut self.dropped;
        }
        &mut self.touch(connection).bytes
    }

    /// Closes `connection` after what has been sent on it.
    pub fn close(&mut self, connection: Connection) {
        if self.takes(connection) {
            self.touch(connection).closes = true;
        }
    }

    /// Asks for [`crate::Input::Wake`] at `at` (at once if that has passed); replaces what was asked before.
    /// After a wake nothing is asked until this is called again.
    pub fn wake_at(&mut self, at: Instant) {
        self.wake = Some(at);
    }

    /// When the node wants to be woken.
    #[must_use]
    pub const fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// A connection takes its place.
    pub(crate) fn open(&mut self, connection: Connection) {
        if self.slots.len() <= connection.index() {
            self.slots.resize_with(connection.index() + 1, Slot::default);
        }
        let slot = &mut self.slots[connection.index()];
        assert!(slot.generation.is_none(), "the place of {connection:?} is taken");
        *slot = Slot { generation: Some(connection.generation()), ..Slot::default() };
    }

    /// A connection leaves its place, with what it had not sent.
    pub(crate) fn end(&mut self, connection: Connection) {
        let slot = &mut self.slots[connection.index()];
        assert_eq!(slot.generation, Some(connection.generation()), "ended twice");
        *slot = Slot::default();
    }

    /// What waits on a connection, and whether it is to be closed behind that; it is no longer touched.
    pub(crate) fn pending(&mut self, connection: Connection) -> Option<(&mut Vec<u8>, bool)> {
        let slot = self.slots.get_mut(connection.index())?;
        if slot.generation != Some(connection.generation()) {
            return None;
        }
        slot.is_touched = false;
        Some((&mut slot.bytes, slot.closes))
    }

    fn takes(&self, connection: Connection) -> bool {
        let slot = self.slots.get(connection.index());
        slot.is_some_and(|slot| slot.generation == Some(connection.generation()) && !slot.closes)
    }

    fn touch(&mut self, connection: Connection) -> &mut Slot {
        let slot = &mut self.slots[connection.index()];
        if !slot.is_touched {
            slot.is_touched = true;
            self.touched.push(connection);
        }
        slot
    }
}
