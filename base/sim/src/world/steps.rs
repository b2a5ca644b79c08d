//! Steps of machines, and what they want.

use std::time::Duration;

use process::{Connection, Input, Node, Outputs};

use crate::network::{Place, WireId};
use crate::trace::Step;
use crate::world::events::What;
use crate::world::{Line, Start, Stepped, World};

/// How long a turn may take in which a machine has asked for its end, nanoseconds.
const TURN_NS_MAX: u64 = 50_000;

impl<N: Node<M>, M> World<N, M> {
    /// Starts a process with what is on its disk.
    pub(super) fn start(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.is_up = true;
        let stored: Vec<_> = process.disks.iter().map(crate::disk::Disk::stored).collect();
        let start = Start { process: index, life: process.life, now: self.now, stored: &stored };
        let nodes = (self.make[index])(start);
        assert_eq!(nodes.len(), process.specs.len(), "a node for each machine of {}", process.name);
        process.machines = nodes
            .into_iter()
            .zip(&stored)
            .map(|(node, stored)| {
                let mut out = Outputs::default();
                for (log, stored) in stored.logs.iter().enumerate() {
                    out.begin_log(log, stored.next());
                }
                Stepped::new(node, out)
            })
            .collect();
        let life = process.life;
        for machine in 0..process.machines.len() {
            self.at(self.now, What::First(Place { process: index, machine, life }));
        }
    }

    /// Whether the machine is still in the life in which something was asked for it.
    pub(super) fn is_alive(&self, place: Place) -> bool {
        let process = &self.processes[place.process];
        process.is_up && process.life == place.life
    }

    fn stepped(&mut self, place: Place) -> &mut Stepped<N, M> {
        &mut self.processes[place.process].machines[place.machine]
    }

    /// One step, and what it wants. Gives the process.
    pub(super) fn step(
        &mut self,
        place: Place,
        what: &'static str,
        detail: u64,
        input: Input<'_, M>,
    ) -> Option<usize> {
        let at = self.now;
        self.trace.add(Step { at, process: place.process, machine: place.machine, what, detail });
        self.set_rooms(place);
        let machine = self.stepped(place);
        machine.node.step(at, input, &mut machine.out);
        self.carry_out(place);
        Some(place.process)
    }

    /// Bytes: what was left unread, with what has come behind it.
    pub(super) fn step_bytes(&mut self, place: Place, connection: Connection, mut unread: Vec<u8>) {
        let at = self.now;
        let detail = u64::try_from(unread.len()).expect("fits");
        let step =
            Step { at, process: place.process, machine: place.machine, what: "bytes", detail };
        self.trace.add(step);
        self.set_rooms(place);
        let machine = self.stepped(place);
        machine.out.take_used();
        machine.node.step(at, Input::Bytes(connection, &unread), &mut machine.out);
        let used = machine.out.take_used();
        unread.drain(..used);
        if let Some(line) = machine.line(connection) {
            line.unread = unread;
        }
        self.carry_out(place);
    }

    pub(super) fn first(&mut self, place: Place) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        self.step(place, "first", 0, Input::Wake)
    }

    pub(super) fn wake(&mut self, place: Place) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        let now = self.now;
        let machine = self.stepped(place);
        machine.wake = None;
        if machine.out.wake().is_none_or(|at| at > now) {
            // Something later was asked for since.
            self.plan_wake(place);
            return None;
        }
        machine.out.take_wake();
        self.step(place, "wake", 0, Input::Wake)
    }

    pub(super) fn turn_end(&mut self, place: Place) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        let machine = self.stepped(place);
        machine.is_turn_open = false;
        if !machine.out.take_turn_end() {
            return None;
        }
        self.step(place, "turn end", 0, Input::TurnEnd)
    }

    /// A queue between machines has so much room.
    fn set_rooms(&mut self, place: Place) {
        let queue = self.settings.queue;
        let machines = &mut self.processes[place.process].machines;
        if machines.len() < 2 {
            return;
        }
        let lengths: Vec<usize> = machines.iter().map(|machine| machine.inbox.len()).collect();
        for (index, length) in lengths.into_iter().enumerate() {
            machines[place.machine].out.set_room(index, queue.saturating_sub(length));
        }
    }

    pub(super) fn message(&mut self, place: Place) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        let queue = self.settings.queue;
        let machine = self.stepped(place);
        let was_full = machine.inbox.len() >= queue;
        let (from, message) = machine.inbox.pop_front()?;
        if was_full {
            for other in 0..self.processes[place.process].machines.len() {
                let other = Place { machine: other, ..place };
                self.at(self.now, What::Room { place: other, machine: place.machine });
            }
        }
        self.step(
            place,
            "message",
            u64::try_from(from).expect("fits"),
            Input::Message { from, message },
        )
    }

    pub(super) fn room(&mut self, place: Place, machine: usize) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        self.step(place, "room", u64::try_from(machine).expect("fits"), Input::Room { machine })
    }

    /// What the last step of a machine wants.
    fn carry_out(&mut self, place: Place) {
        let mut touched = std::mem::take(&mut self.touched);
        self.stepped(place).out.take_touched(&mut touched);
        for connection in &touched {
            self.write(place, *connection);
        }
        self.touched = touched;
        for peer in self.stepped(place).out.take_dials() {
            self.dial(place, peer);
        }
        if self.stepped(place).out.stores_anything() {
            self.store(place);
        }
        for (to, message) in self.stepped(place).out.take_passes() {
            let to = Place { machine: to, ..place };
            self.stepped(to).inbox.push_back((place.machine, message));
            let after = Duration::from_nanos(self.random.below(50_000));
            self.later(after, What::Message(to));
        }
        let machine = self.stepped(place);
        if machine.out.awaits_turn_end() && !std::mem::replace(&mut machine.is_turn_open, true) {
            // What arrives before then belongs to the same turn.
            let after = Duration::from_nanos(self.random.below(TURN_NS_MAX));
            self.later(after, What::TurnEnd(place));
        }
        self.plan_wake(place);
    }

    fn plan_wake(&mut self, place: Place) {
        let now = self.now;
        let machine = self.stepped(place);
        let Some(wanted) = machine.out.wake() else { return };
        // Asked for again at once: time moves on, so that a node that never rests cannot stop the world.
        let wanted = wanted.max(now.plus(Duration::from_nanos(1)));
        if machine.wake.is_some_and(|planned| planned <= wanted) {
            // There is an event before it, which looks again when it comes.
            return;
        }
        machine.wake = Some(wanted);
        self.at(wanted, What::Wake(place));
    }

    /// Gives a wire a place in a machine's table.
    pub(super) fn open_line(&mut self, place: Place, wire: WireId, side: usize) -> Connection {
        let connection = self.stepped(place).open(wire, side);
        if let Some(wire) = self.wires.get(wire) {
            wire.ends[side].connection = Some(connection);
        }
        connection
    }

    /// The wire of a connection, and the side that the machine has of it.
    pub(super) fn line_of(
        &mut self,
        place: Place,
        connection: Connection,
    ) -> Option<(WireId, usize)> {
        self.stepped(place).line(connection).map(|line| (line.wire, line.side))
    }

    /// Takes a line away.
    pub(super) fn end_line(&mut self, place: Place, connection: Connection) {
        self.stepped(place).end(connection);
    }

    pub(super) fn take_unread(&mut self, place: Place, connection: Connection) -> Option<Vec<u8>> {
        self.stepped(place).line(connection).map(|line| std::mem::take(&mut line.unread))
    }

    pub(super) fn outputs(&mut self, place: Place) -> &mut Outputs<M> {
        &mut self.stepped(place).out
    }
}

impl<N, M> Stepped<N, M> {
    fn new(node: N, out: Outputs<M>) -> Self {
        Self {
            node,
            out,
            lines: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            inbox: std::collections::VecDeque::new(),
            wake: None,
            is_turn_open: false,
            is_told_full: false,
        }
    }

    fn line(&mut self, connection: Connection) -> Option<&mut Line> {
        let line = self.lines.get_mut(connection.index())?.as_mut()?;
        (line.connection == connection).then_some(line)
    }

    fn open(&mut self, wire: WireId, side: usize) -> Connection {
        let index = self.free.pop().unwrap_or_else(|| {
            self.lines.push(None);
            self.generations.push(0);
            u32::try_from(self.lines.len() - 1).expect("few connections")
        });
        let generation = &mut self.generations[index as usize];
        *generation += 1;
        let connection = Connection::new(index, *generation);
        self.lines[index as usize] = Some(Line { connection, wire, side, unread: Vec::new() });
        self.out.open(connection);
        connection
    }

    fn end(&mut self, connection: Connection) {
        if self.line(connection).is_some() {
            self.lines[connection.index()] = None;
            self.free.push(u32::try_from(connection.index()).expect("few connections"));
            self.out.end(connection);
        }
    }

    pub(super) fn tell_full(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told_full, true)
    }

    pub(super) const fn forget_full(&mut self) {
        self.is_told_full = false;
    }
}
