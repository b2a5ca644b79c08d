//! What runs a node carries out what the node wants: the shell on real sockets and disks, the simulator in
//! virtual time. A node has no use for anything here.

use std::ops::Range;

use clock::Instant;

use super::{Outputs, Slot};
use crate::Connection;

/// Something asked of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// A record at the end of a log.
    Append {
        /// Which log.
        log: usize,
        /// Its number in the log.
        number: u64,
        /// Where its bytes lie in [`Outputs::records`].
        bytes: Range<usize>,
    },
    /// Records that are not needed any more.
    Trim {
        /// Which log.
        log: usize,
        /// The first number that is needed.
        below: u64,
    },
    /// A cell's new content.
    Replace {
        /// Which cell.
        cell: usize,
        /// The content, or the last part of it.
        content: Vec<u8>,
    },
    /// A part of what a cell is to hold next.
    Extend {
        /// Which cell.
        cell: usize,
        /// The part.
        part: Vec<u8>,
    },
    /// The parts that a cell does not hold yet are not wanted any more.
    DropParts {
        /// Which cell.
        cell: usize,
    },
    /// A part of what a cell holds is to be read.
    Read {
        /// Which cell.
        cell: usize,
        /// From which byte on.
        offset: u64,
        /// How many bytes at most.
        bytes_max: usize,
    },
}

impl<M> Default for Outputs<M> {
    fn default() -> Self {
        Self {
            used: 0,
            wake: None,
            awaits_turn_end: false,
            slots: Vec::new(),
            dropped: Vec::new(),
            touched: Vec::new(),
            dials: Vec::new(),
            stores: Vec::new(),
            records: Vec::new(),
            numbers: Vec::new(),
            behind: Vec::new(),
            unpersisted: 0,
            passes: Vec::new(),
            room: Vec::new(),
        }
    }
}

impl<M> Outputs<M> {
    /// A connection takes its place.
    pub fn open(&mut self, connection: Connection) {
        if self.slots.len() <= connection.index() {
            self.slots.resize_with(connection.index() + 1, Slot::default);
        }
        let slot = &mut self.slots[connection.index()];
        assert!(slot.generation.is_none(), "the place of {connection:?} is taken");
        *slot = Slot { generation: Some(connection.generation()), ..Slot::default() };
    }

    /// A connection leaves its place, with what it had not sent.
    pub fn end(&mut self, connection: Connection) {
        let slot = &mut self.slots[connection.index()];
        assert_eq!(slot.generation, Some(connection.generation()), "ended twice");
        *slot = Slot::default();
    }

    /// What waits on a connection, and whether it is to be closed behind that; it is no longer touched.
    pub fn pending(&mut self, connection: Connection) -> Option<(&mut Vec<u8>, bool)> {
        let slot = self.slots.get_mut(connection.index())?;
        if slot.generation != Some(connection.generation()) {
            return None;
        }
        slot.is_touched = false;
        Some((&mut slot.bytes, slot.closes))
    }

    /// Whether the node has closed a connection, of which the rest of what was sent is still to go: it is not told of bytes there
    /// any more.
    #[must_use]
    pub fn is_closing(&self, connection: Connection) -> bool {
        self.slots
            .get(connection.index())
            .is_some_and(|slot| slot.generation == Some(connection.generation()) && slot.closes)
    }

    /// How many of the offered bytes the step has read; the next step begins with none.
    pub fn take_used(&mut self) -> usize {
        std::mem::take(&mut self.used)
    }

    /// Takes back the wake-up that was asked for.
    pub fn take_wake(&mut self) -> Option<Instant> {
        self.wake.take()
    }

    /// Whether the node wants to be told of the turn's end.
    #[must_use]
    pub const fn awaits_turn_end(&self) -> bool {
        self.awaits_turn_end
    }

    /// Takes back that it does; whether it did.
    pub fn take_turn_end(&mut self) -> bool {
        std::mem::take(&mut self.awaits_turn_end)
    }

    /// Places with something new to carry out since the last call, each once; exchanged with an empty list, so
    /// that neither is made anew. [`Outputs::pending`] gives what each wants.
    pub fn take_touched(&mut self, list: &mut Vec<Connection>) {
        list.clear();
        std::mem::swap(&mut self.touched, list);
    }

    /// Places with something new to carry out, each once.
    #[must_use]
    pub fn touched(&self) -> &[Connection] {
        &self.touched
    }

    /// Says which of the listener's names the certificate of a connection has.
    pub fn certify(&mut self, connection: Connection, name: u8) {
        let slot = self.slots.get_mut(connection.index());
        if let Some(slot) = slot.filter(|slot| slot.generation == Some(connection.generation())) {
            slot.certified = Some(name);
        }
    }

    /// Says how many bytes of a connection have been taken from here and not yet by the peer; part of
    /// [`Outputs::unsent`].
    pub fn set_behind(&mut self, connection: Connection, bytes: usize) {
        let slot = self.slots.get_mut(connection.index());
        if let Some(slot) = slot.filter(|slot| slot.generation == Some(connection.generation())) {
            slot.behind = bytes;
        }
    }

    /// Peers that the node wants to be connected with, since the last call.
    pub fn take_dials(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.dials)
    }

    /// Whether anything was asked of the disk since it was last taken.
    #[must_use]
    pub fn stores_anything(&self) -> bool {
        !self.stores.is_empty()
    }

    /// What was asked of the disk since the last call, in order, and the bytes of its records; exchanged with
    /// empty ones.
    pub fn take_stores(&mut self, stores: &mut Vec<Store>, records: &mut Vec<u8>) {
        stores.clear();
        records.clear();
        std::mem::swap(&mut self.stores, stores);
        std::mem::swap(&mut self.records, records);
    }

    /// The log goes on with the record of this number: what a start finds on its disk.
    pub fn begin_log(&mut self, log: usize, next: u64) {
        if self.numbers.len() <= log {
            self.numbers.resize(log + 1, 0);
        }
        self.numbers[log] = next;
    }

    /// Records of the log below `below` are durable.
    pub fn persisted(&mut self, log: usize, below: u64) {
        let Some(behind) = self.behind.get_mut(log) else { return };
        while let Some((_, weight)) = behind.front().copied().filter(|(next, _)| *next <= below) {
            behind.pop_front();
            self.unpersisted -= weight;
        }
    }

    /// How many messages the queue to a machine can take.
    pub fn set_room(&mut self, machine: usize, messages: usize) {
        if self.room.len() <= machine {
            self.room.resize(machine + 1, 0);
        }
        self.room[machine] = messages;
    }

    /// What goes to other machines since the last call, in order, each with the machine that it goes to.
    pub fn take_passes(&mut self) -> Vec<(usize, M)> {
        std::mem::take(&mut self.passes)
    }
}
