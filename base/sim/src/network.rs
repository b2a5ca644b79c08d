//! Connections: two directions of bytes in order, each with what is on its way.

use std::ops::RangeInclusive;
use std::time::Duration;

use clock::Instant;
use process::Connection;

/// How long things take on the network.
#[derive(Clone, Debug)]
pub struct Delays {
    /// Of bytes from one process to another.
    pub bytes: RangeInclusive<Duration>,
    /// Until a dialler gives up on who does not answer.
    pub dial: Duration,
    /// Between attempts to send what a process without power has not taken.
    pub resend: Duration,
    /// Once in so many deliveries bytes arrive in two pieces.
    pub split_once_in: u64,
}

impl Default for Delays {
    /// A local network: 20 to 200 µs.
    fn default() -> Self {
        Self {
            bytes: Duration::from_micros(20)..=Duration::from_micros(200),
            dial: Duration::from_millis(500),
            resend: Duration::from_millis(200),
            split_once_in: 16,
        }
    }
}

/// A machine in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) process: usize,
    pub(crate) machine: usize,
    pub(crate) life: u64,
}

/// One end of a wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) place: Place,
    /// What its machine knows it as; none before it was told, and after it was told of the end.
    pub(crate) connection: Option<Connection>,
    /// Its process was killed or has closed it: it is told nothing more.
    pub(crate) is_gone: bool,
}

/// What is on its way to one end.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    bytes: Vec<u8>,
    taken: usize,
    /// When the last of it arrives: what is sent later does not arrive earlier.
    pub(crate) last_at: Instant0,
    /// More than the bound waited here, and neither end was told that it is gone.
    pub(crate) was_full: bool,
}

/// An instant whose default is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant0(pub(crate) Instant);

impl Default for Instant0 {
    fn default() -> Self {
        Self(Instant::ZERO)
    }
}

impl Direction {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Moves the next `count` bytes to the end of `to`.
    pub(crate) fn take(&mut self, count: usize, to: &mut Vec<u8>) {
        let end = (self.taken + count).min(self.bytes.len());
        to.extend_from_slice(&self.bytes[self.taken..end]);
        self.taken = end;
        if self.taken > 1 << 16 && self.taken * 2 > self.bytes.len() {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A connection, seen from above. Side 0 dialled.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) generation: u32,
    pub(crate) ends: [End; 2],
    /// What is on its way to side 0 and to side 1.
    pub(crate) to: [Direction; 2],
}

/// Name of a wire that is not another's after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireId {
    index: u32,
    generation: u32,
}

/// All wires; places are used again.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    wires: Vec<Wire>,
    free: Vec<u32>,
}

impl Wires {
    pub(crate) fn add(&mut self, ends: [End; 2]) -> WireId {
        if let Some(index) = self.free.pop() {
            let wire = &mut self.wires[index as usize];
            wire.ends = ends;
            wire.generation += 1;
            wire.to.iter_mut().for_each(Direction::clear);
            return WireId { index, generation: wire.generation };
        }
        let index = u32::try_from(self.wires.len()).expect("fewer than 2³² connections at once");
        self.wires.push(Wire {
            generation: 0,
            ends,
            to: [Direction::default(), Direction::default()],
        });
        WireId { index, generation: 0 }
    }

    pub(crate) fn get(&mut self, id: WireId) -> Option<&mut Wire> {
        self.wires.get_mut(id.index as usize).filter(|wire| wire.generation == id.generation)
    }

    /// Frees the place once both ends are gone.
    pub(crate) fn free_if_gone(&mut self, id: WireId) {
        if let Some(wire) = self.get(id)
            && wire.ends.iter().all(|end| end.is_gone)
        {
            wire.generation += 1;
            wire.to.iter_mut().for_each(Direction::clear);
            self.free.push(id.index);
        }
    }

    /// Every wire with an end that is not gone.
    pub(crate) fn all(&self) -> Vec<WireId> {
        let wires = (0..).zip(&self.wires);
        wires
            .filter(|(_, wire)| wire.ends.iter().any(|end| !end.is_gone))
            .map(|(index, wire)| WireId { index, generation: wire.generation })
            .collect()
    }
}
