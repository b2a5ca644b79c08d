//! The table of connections, their bounds and what is counted. Sockets are read and written in `turn`.

use std::os::fd::OwnedFd;
use std::time::Duration;

use clock::Instant;
use rustix::event::epoll::EventFlags;

use super::tls::Layer;
use super::waiting::Waiting;
use crate::Connection;

/// What one peer, and all together, may make the shell hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most connections; never more than the process may have descriptors, less some for its files. Beyond, what
    /// came by the same listener and stands longest without having come to stand makes room; if all stand, more are
    /// accepted and closed at once.
    pub connections_max: usize,
    /// So many of them are never taken by connections of the first listener: whoever comes by another is let in however
    /// many come by that one.
    pub connections_reserved: usize,
    /// The most bytes of one connection that the node has not read: beyond, it is closed. More than the longest
    /// frame that the node reads.
    pub unread_bytes_max: usize,
    /// The most bytes of all connections together that the node has not read: beyond, the connection that
    /// passes it is closed.
    pub unread_bytes_of_all_max: usize,
    /// With more than this waiting to be sent on a connection that was accepted, it is not read from; of any
    /// connection [`crate::Input::Drained`] tells when all has been sent.
    pub unsent_bytes_pause: usize,
    /// With more than this waiting to be sent on a connection, it is closed.
    pub unsent_bytes_max: usize,
    /// The most bytes that wait to be sent on all connections of one listener together: beyond, one that has more
    /// than [`Bounds::unsent_bytes_pause`] of them and gets more is closed.
    pub unsent_bytes_of_all_max: usize,
    /// With more than this appended and not durable yet, nothing is read from connections that were accepted.
    pub unpersisted_bytes_pause: usize,
    /// The longest that it may take until a connection stands: for one that is dialled, and for the handshake
    /// of one that is encrypted.
    pub handshake_max: Duration,
    /// The most handshakes of accepted connections under way; what more say waits in the kernel. One that has said
    /// nothing is not under way: it takes its place in the table and no more.
    pub handshakes_max: usize,
}

impl Bounds {
    /// Those of [`Bounds::default`].
    pub const DEFAULT: Self = Self {
        connections_max: 65_536,
        connections_reserved: 0,
        // A frame has 16 MiB at most, and a part of the next one may stand behind it.
        unread_bytes_max: 17 << 20,
        unread_bytes_of_all_max: 512 << 20,
        unsent_bytes_pause: 256 << 10,
        unsent_bytes_max: 64 << 20,
        unsent_bytes_of_all_max: 256 << 20,
        unpersisted_bytes_pause: 256 << 20,
        handshake_max: Duration::from_secs(10),
        handshakes_max: 4096,
    };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happened to connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted.
    pub accepted: u64,
    /// Closed at once because there were too many.
    pub refused: u64,
    /// Closed before they stood, to make room for others.
    pub displaced: u64,
    /// Dialled, and then standing.
    pub dialled: u64,
    /// Dialled in vain.
    pub unreachable: u64,
    /// Given up because they did not come to stand in time; those that were dialled are unreachable, too.
    pub late: u64,
    /// Closed because the node left too much unread.
    pub unread_full: u64,
    /// Closed because the peer did not read.
    pub unsent_full: u64,
    /// Times that a connection was not read from because its peer did not read.
    pub paused: u64,
    /// Times that one was not read from because the disk was behind.
    pub paused_for_disk: u64,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Listener(usize),
    Peer(usize),
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The kernel has not said yet whether anybody is there. The node does not know of it.
    Dialling,
    /// Both sides make sure of one another, or will once the other has said something. The node does not know of it.
    Handshaking,
    /// The node knows of it.
    Open,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) connection: Connection,
    pub(super) socket: OwnedFd,
    pub(super) origin: Origin,
    pub(super) stage: Stage,
    /// Encrypts it, if it is encrypted.
    pub(super) tls: Option<Box<Layer>>,
    /// What the node has not read.
    pub(super) unread: Waiting,
    /// What was taken from the node and the kernel has not.
    pub(super) unsent: Waiting,
    /// What of it, and of what the node holds for it, is in the sum of all.
    pub(super) counted: usize,
    /// The kernel takes no more bytes; it will say when it does.
    pub(super) is_blocked: bool,
    /// It is not read from until its peer has read.
    pub(super) is_paused: bool,
    /// The node is to be told when all has been sent.
    pub(super) owes_drained: bool,
    /// Events that the kernel has reported and the node was not told of yet.
    pub(super) reported: EventFlags,
    /// It has said something, and its handshake begins when one under way has ended.
    pub(super) waits_for_handshake: bool,
    /// It is not read from until the disk has caught up.
    pub(super) waits_for_disk: bool,
    /// It is given up then unless it stands.
    pub(super) stands_by: Instant,
    /// When it was last read from; of one that is dialled, or came by a listener with places for all, not before the first time.
    pub(super) heard_at: Instant,
}

impl Slot {
    /// Bytes that were taken from the node and that the kernel has not.
    pub(super) fn behind(&self) -> usize {
        self.unsent.len() + self.tls.as_ref().map_or(0, |tls| tls.wire.len())
    }

    /// Gives back the room of buffers that are empty and keep more than this.
    pub(super) fn give_back(&mut self, kept_bytes: usize) {
        self.unsent.give_back(kept_bytes);
        if let Some(tls) = &mut self.tls {
            tls.wire.give_back(kept_bytes);
        }
    }
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

    pub(super) fn add(&mut self, socket: OwnedFd, origin: Origin, stage: Stage) -> &mut Slot {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            u32::try_from(self.slots.len() - 1).expect("bounded by connections_max")
        });
        let generation = &mut self.generations[index as usize];
        // 31 bits, so that a connection's token can never be one of the shell's own.
        *generation = generation.wrapping_add(1) & (u32::MAX >> 1);
        self.slots[index as usize].insert(Slot {
            connection: Connection::new(index, *generation),
            socket,
            origin,
            stage,
            tls: None,
            unread: Waiting::default(),
            unsent: Waiting::default(),
            counted: 0,
            is_blocked: false,
            is_paused: false,
            owes_drained: false,
            reported: EventFlags::empty(),
            waits_for_handshake: false,
            waits_for_disk: false,
            stands_by: Instant::FAR_FUTURE,
            heard_at: Instant::ZERO,
        })
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
