//! Bytes and connections on their way between processes.

use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node};

use crate::network::{End, Instant0, Place, WireId};
use crate::world::World;
use crate::world::events::What;

impl<N: Node<M>, M> World<N, M> {
    /// What waits on a connection goes on its way.
    pub(super) fn write(&mut self, place: Place, connection: Connection) {
        let Some((id, side)) = self.line_of(place, connection) else { return };
        let other = 1 - side;
        let Some((bytes, closes)) = self.outputs(place).pending(connection) else { return };
        let mut bytes = std::mem::take(bytes);
        if !bytes.is_empty() {
            self.send(id, other, &bytes);
            bytes.clear();
            if let Some((buffer, _)) = self.outputs(place).pending(connection) {
                *buffer = bytes;
            }
            self.look_at_unsent(place, connection, id, other);
        }
        if closes {
            self.end_line(place, connection);
            self.hang_up(id, side);
        }
    }

    fn send(&mut self, id: WireId, to: usize, bytes: &[u8]) {
        let split = self.settings.delays.split_once_in;
        let first = if bytes.len() > 1 && self.random.once_in(split) {
            1 + self.random.place(bytes.len() - 1)
        } else {
            bytes.len()
        };
        let Some(wire) = self.wires.get(id) else { return };
        wire.to[to].push(bytes);
        for part in [first, bytes.len() - first] {
            if part > 0 {
                let at = self.arrival(id, to);
                self.at(at, What::Arrive { wire: id, side: to, bytes: part });
            }
        }
    }

    /// When what is sent now arrives: not before what was sent earlier.
    fn arrival(&mut self, id: WireId, to: usize) -> Instant {
        let delay = self.random.within(&self.settings.delays.bytes);
        let at = self.now.plus(delay);
        let Some(wire) = self.wires.get(id) else { return at };
        let direction = &mut wire.to[to];
        direction.last_at = direction.last_at.max(Instant0(at));
        direction.last_at.0
    }

    /// How much its machine has on the way there.
    fn look_at_unsent(&mut self, place: Place, connection: Connection, id: WireId, to: usize) {
        let bound = self.settings.unsent_bytes;
        let Some(wire) = self.wires.get(id) else { return };
        let waiting = wire.to[to].len();
        wire.to[to].was_full |= waiting > bound;
        self.outputs(place).set_behind(connection, waiting);
    }

    pub(super) fn arrive(&mut self, id: WireId, side: usize, bytes: usize) -> Option<usize> {
        let wire = self.wires.get(id)?;
        let (to, from) = (wire.ends[side], wire.ends[1 - side]);
        let again = What::Arrive { wire: id, side, bytes };
        if let Some(open_at) = self.blocked_until(from.place.process, to.place.process) {
            self.at(open_at, again);
            return None;
        }
        if to.is_gone || !self.is_alive(to.place) {
            return self.arrive_nowhere(id, side, again);
        }
        let Some(connection) = to.connection else {
            // Sent before the dialler has learnt that it stands: a moment later it will have.
            self.later(Duration::from_micros(1), again);
            return None;
        };
        let mut unread = self.take_unread(to.place, connection)?;
        let wire = self.wires.get(id)?;
        wire.to[side].take(bytes, &mut unread);
        let is_empty = wire.to[side].len() == 0;
        let is_drained = is_empty && std::mem::take(&mut wire.to[side].was_full);
        let waiting = wire.to[side].len();
        if let Some(theirs) = from.connection.filter(|_| !from.is_gone && self.is_alive(from.place))
        {
            self.outputs(from.place).set_behind(theirs, waiting);
            if is_drained {
                self.step(from.place, "drained", 0, Input::Drained(theirs));
            }
        }
        self.step_bytes(to.place, connection, unread);
        Some(to.place.process)
    }

    /// Bytes for a process that is down: tried again while it has no power, answered with a reset when it is
    /// up again and knows nothing of the connection.
    fn arrive_nowhere(&mut self, id: WireId, side: usize, again: What) -> Option<usize> {
        let wire = self.wires.get(id)?;
        if wire.ends[1 - side].is_gone {
            wire.ends[side].is_gone = true;
            self.wires.free_if_gone(id);
            return None;
        }
        let process = wire.ends[side].place.process;
        if self.processes[process].is_up {
            self.hang_up(id, side);
        } else {
            self.later(self.settings.delays.resend, again);
        }
        None
    }

    /// A side has closed the wire or is reset: the other side is told behind what was sent.
    pub(super) fn hang_up(&mut self, id: WireId, side: usize) {
        let Some(wire) = self.wires.get(id) else { return };
        wire.ends[side].is_gone = true;
        wire.ends[side].connection = None;
        if wire.ends[1 - side].is_gone {
            self.wires.free_if_gone(id);
            return;
        }
        let at = self.arrival(id, 1 - side);
        self.at(at, What::Ended { wire: id, side: 1 - side });
    }

    pub(super) fn ended(&mut self, id: WireId, side: usize) -> Option<usize> {
        let wire = self.wires.get(id)?;
        let (to, from) = (wire.ends[side], wire.ends[1 - side]);
        if to.is_gone {
            return None;
        }
        if let Some(open_at) = self.blocked_until(from.place.process, to.place.process) {
            self.at(open_at, What::Ended { wire: id, side });
            return None;
        }
        if to.connection.is_none() && self.is_alive(to.place) {
            // Ended before the dialler has learnt that it stands.
            self.later(Duration::from_micros(1), What::Ended { wire: id, side });
            return None;
        }
        wire_end(self.wires.get(id)?.ends.get_mut(side)?);
        let is_alive = self.is_alive(to.place);
        self.wires.free_if_gone(id);
        let connection = to.connection.filter(|_| is_alive)?;
        self.end_line(to.place, connection);
        self.step(to.place, "closed", place_of(connection), Input::Closed(connection))
    }

    pub(super) fn dial(&mut self, from: Place, peer: usize) {
        let after = self.random.within(&self.settings.delays.bytes);
        let given_up = self.now.plus(self.settings.delays.dial);
        self.later(after, What::Dial { from, peer, given_up });
    }

    pub(super) fn dialled(&mut self, from: Place, peer: usize, given_up: Instant) -> Option<usize> {
        if !self.is_alive(from) {
            return None;
        }
        let target = self.processes[from.process].specs[from.machine].peers[peer];
        let to = &self.processes[target.process];
        let place = Place { process: target.process, machine: target.machine, life: to.life };
        let is_silent = !to.is_up || to.paused_until > self.now;
        let is_blocked = self.blocked_until(from.process, place.process).is_some()
            || self.blocked_until(place.process, from.process).is_some();
        if is_silent || is_blocked {
            let retry = self.settings.delays.resend;
            if self.now.plus(retry) < given_up {
                self.later(retry, What::Dial { from, peer, given_up });
            } else {
                self.at(given_up, What::Unreachable { from, peer });
            }
            return None;
        }
        let gone = |place| End { place, connection: None, is_gone: false };
        let wire = self.wires.add([gone(from), gone(place)]);
        let connection = self.open_line(place, wire, 1);
        let answered = self.arrival(wire, 0);
        self.at(answered, What::Answered { wire, peer });
        self.step(
            place,
            "opened",
            place_of(connection),
            Input::Opened { connection, listener: target.listener },
        )
    }

    pub(super) fn answered(&mut self, id: WireId, peer: usize) -> Option<usize> {
        let wire = self.wires.get(id)?;
        let place = wire.ends[0].place;
        if wire.ends[0].is_gone {
            return None;
        }
        if !self.is_alive(place) {
            self.hang_up(id, 0);
            return None;
        }
        let connection = self.open_line(place, id, 0);
        self.step(place, "dialled", place_of(connection), Input::Dialled { connection, peer })
    }

    pub(super) fn unreachable(&mut self, from: Place, peer: usize) -> Option<usize> {
        if !self.is_alive(from) {
            return None;
        }
        let detail = u64::try_from(peer).expect("fits");
        self.step(from, "unreachable", detail, Input::Unreachable { peer })
    }

    /// When the way is open again, if it is not.
    fn blocked_until(&self, from: usize, to: usize) -> Option<Instant> {
        Some(self.blocked[from][to]).filter(|until| *until > self.now)
    }

    pub(super) fn block(&mut self, from: usize, to: usize, lasts: Duration) {
        let until = self.now.plus(lasts);
        let blocked = &mut self.blocked[from][to];
        *blocked = (*blocked).max(until);
    }
}

fn wire_end(end: &mut End) {
    end.is_gone = true;
    end.connection = None;
}

fn place_of(connection: Connection) -> u64 {
    u64::try_from(connection.index()).expect("fits")
}
