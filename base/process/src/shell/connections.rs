//! The table of connections, their bounds and what is counted. Sockets are read and written in `turn`.

use std::os::fd::OwnedFd;

use crate::Connection;

/// What one peer, and all together, may make the shell hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most connections; more are accepted and closed at once.
    pub connections_max: usize,
    /// The most bytes of one connection that the node has not read: beyond, it is closed.
    pub unread_bytes_max: usize,
    /// With more than this waiting to be sent on a connection, it is not read from.
    pub unsent_bytes_pause: usize,
    /// With more than this waiting to be sent on a connection, it is closed.
    pub unsent_bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections_max: 65_536,
            unread_bytes_max: 2 << 20,
            unsent_bytes_pause: 256 << 10,
            unsent_bytes_max: 64 << 20,
        }
    }
}

/// What happened to connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted.
    pub accepted: u64,
    /// Closed at once because there were too many.
    pub refused: u64,
    /// Closed because the node left too much unread.
    pub unread_full: u64,
    /// Closed because the peer did not read.
    pub unsent_full: u64,
    /// Times that a connection was not read from because its peer did not read.
    pub paused: u64,
}

/// One accepted connection.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) connection: Connection,
    pub(super) socket: OwnedFd,
    /// What the node has not read.
    pub(super) unread: Vec<u8>,
    /// The kernel takes no more bytes; it will say when it does.
    pub(super) is_blocked: bool,
    /// It is not read from until its peer has read.
    pub(super) is_paused: bool,
}

/// Connections by place. Places are used again, the last freed first, so that the table stays dense.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Option<Slot>>,
    generations: Vec<u32>,
    free: Vec<u32>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn add(&mut self, socket: OwnedFd) -> Connection {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            u32::try_from(self.slots.len() - 1).expect("bounded by connections_max")
        });
        let generation = &mut self.generations[index as usize];
        // 31 bits, so that a connection's token can never be that of a listener.
        *generation = generation.wrapping_add(1) & (u32::MAX >> 1);
        let connection = Connection::new(index, *generation);
        self.slots[index as usize] = Some(Slot {
            connection,
            socket,
            unread: Vec::new(),
            is_blocked: false,
            is_paused: false,
        });
        connection
    }

    pub(super) fn get(&mut self, connection: Connection) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(connection.index())?.as_mut()?;
        (slot.connection == connection).then_some(slot)
    }

    pub(super) fn remove(&mut self, connection: Connection) -> Option<Slot> {
        self.get(connection)?;
        self.free.push(u32::try_from(connection.index()).expect("it was made from 32 bits"));
        self.slots[connection.index()].take()
    }

    pub(super) fn all(&self) -> Vec<Connection> {
        self.slots.iter().flatten().map(|slot| slot.connection).collect()
    }
}
