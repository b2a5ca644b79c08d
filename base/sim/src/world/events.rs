//! What is still to come, in order of time; of what comes at one time, what was asked first.

use std::cmp::Ordering;
use std::time::Duration;

use clock::Instant;
use process::Node;

use crate::network::{Place, WireId};
use crate::world::World;

#[derive(Debug)]
pub(super) struct Event {
    at: Instant,
    sequence: u64,
    pub(super) what: What,
}

/// Events. Those of a machine say in which of its lives they were asked for.
#[derive(Debug)]
pub(super) enum What {
    /// A machine wants to be woken.
    Wake(Place),
    /// A machine has been told all that arrived with what it was told last.
    TurnEnd(Place),
    /// A machine's first step.
    First(Place),
    /// Bytes arrive at a side of a wire.
    Arrive { wire: WireId, side: usize, bytes: usize },
    /// A side learns that the wire has ended.
    Ended { wire: WireId, side: usize },
    /// A dialler's question arrives.
    Dial { from: Place, peer: usize, given_up: Instant },
    /// The dialler learns that it stands.
    Answered { wire: WireId, peer: usize },
    /// The dialler learns that it does not.
    Unreachable { from: Place, peer: usize },
    /// A log's write has come to its end.
    Logged { place: Place, log: usize },
    /// A cell's write has come to its end.
    Replaced { place: Place, cell: usize },
    /// A part of what a cell is to hold next is written.
    Extended { place: Place, cell: usize },
    /// A part of what a cell holds is read.
    Part { place: Place, cell: usize, offset: u64, bytes_max: usize },
    /// The first message of a machine's queue.
    Message(Place),
    /// A queue has room again: told to a machine.
    Room { place: Place, machine: usize },
    /// The next fault is drawn.
    Draw,
    /// Power fails in the middle of a write, if the write is still under way.
    PowerInWrite { place: Place, down: Duration },
    /// A process that was down starts.
    Start { process: usize, life: u64 },
    /// A disk is as it was.
    DiskWell { process: usize, was_full: bool },
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    /// The heap gives the greatest: the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at).then(other.sequence.cmp(&self.sequence))
    }
}

impl<N: Node<M>, M> World<N, M> {
    pub(super) fn later(&mut self, after: Duration, what: What) {
        self.at(self.now.plus(after), what);
    }

    pub(super) fn at(&mut self, at: Instant, what: What) {
        self.sequence += 1;
        self.events.push(Event { at: at.max(self.now), sequence: self.sequence, what });
    }

    /// The next event until `to`; time is then when it happens.
    pub(super) fn next(&mut self, to: Instant) -> Option<What> {
        if self.events.peek()?.at > to {
            return None;
        }
        let event = self.events.pop()?;
        self.now = event.at;
        Some(event.what)
    }

    /// What happens. Gives the process that was stepped, if one was.
    pub(super) fn happen(&mut self, what: What) -> Option<usize> {
        // A process that stands still gets what comes when it goes on, in the order in which it came.
        if let Some(process) = self.process_of(&what)
            && self.processes[process].paused_until > self.now
        {
            self.at(self.processes[process].paused_until, what);
            return None;
        }
        match what {
            What::Wake(place) => self.wake(place),
            What::TurnEnd(place) => self.turn_end(place),
            What::First(place) => self.first(place),
            What::Arrive { wire, side, bytes } => self.arrive(wire, side, bytes),
            What::Ended { wire, side } => self.ended(wire, side),
            What::Dial { from, peer, given_up } => self.dialled(from, peer, given_up),
            What::Answered { wire, peer } => self.answered(wire, peer),
            What::Unreachable { from, peer } => self.unreachable(from, peer),
            What::Logged { place, log } => self.logged(place, log),
            What::Replaced { place, cell } => self.replaced(place, cell),
            What::Extended { place, cell } => self.extended(place, cell),
            What::Part { place, cell, offset, bytes_max } => {
                self.part(place, cell, offset, bytes_max)
            }
            What::Message(place) => self.message(place),
            What::Room { place, machine } => self.room(place, machine),
            What::Draw => self.draw(),
            What::PowerInWrite { place, down } => self.power_in_write(place, down),
            What::Start { process, life } => {
                if !self.processes[process].is_up && self.processes[process].life == life {
                    self.start(process);
                }
                None
            }
            What::DiskWell { process, was_full } => self.disk_well(process, was_full),
        }
    }

    /// Whose event it is, if a pause holds it back. What the disk does goes on, but is told later.
    fn process_of(&mut self, what: &What) -> Option<usize> {
        let place = match what {
            What::Wake(place)
            | What::TurnEnd(place)
            | What::First(place)
            | What::Unreachable { from: place, .. }
            | What::Logged { place, .. }
            | What::Replaced { place, .. }
            | What::Extended { place, .. }
            | What::Part { place, .. }
            | What::Message(place)
            | What::Room { place, .. } => Some(*place),
            What::Arrive { wire, side, .. } | What::Ended { wire, side } => {
                self.wires.get(*wire).map(|wire| wire.ends[*side].place)
            }
            What::Answered { wire, .. } => self.wires.get(*wire).map(|wire| wire.ends[0].place),
            What::Dial { .. }
            | What::Draw
            | What::PowerInWrite { .. }
            | What::Start { .. }
            | What::DiskWell { .. } => None,
        };
        place.map(|place| place.process)
    }
}
