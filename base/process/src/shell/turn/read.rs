//! From the kernel to the node.

use clock::Instant;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::super::connections::{Origin, Stage};
use super::super::waiting;
use super::{READ_BYTES_MAX, Turns, to_token};
use crate::{Connection, Input};

/// Reads of one connection in a row before others get their turn.
const READS_MAX: u32 = 8;

/// Where the bytes of a read have gone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// So many into the buffer of all connections: nothing was left unread before.
    Buffer(usize),
    /// Behind what the node had left unread: so many, into room for so many.
    Unread(usize, usize),
    /// So many through the buffer, as the wire has them; what was in them stands behind what was left unread.
    Encrypted(usize),
}

impl<M> Turns<'_, M> {
    /// Reads until the kernel has no more: a read that does not fill its room says so without another call.
    pub(super) fn read(&mut self, connection: Connection, hangs_up: bool) -> Instant {
        if !self.is_heard(connection) {
            // It waits; if it hangs up meanwhile, it has not said anything that matters.
            return if hangs_up { self.lost(connection) } else { self.clock.now() };
        }
        for _ in 0..READS_MAX {
            let now = self.clock.now();
            let place = match self.receive(connection) {
                Ok(Place::Buffer(0) | Place::Unread(0, _) | Place::Encrypted(0)) => {
                    return self.lost(connection);
                }
                Ok(place) => place,
                Err(Errno::AGAIN) => return now,
                Err(Errno::INTR) => continue,
                Err(_) => return self.lost(connection),
            };
            let now = self.clock.now();
            if !matches!(place, Place::Encrypted(count) if !self.decrypt(connection, count)) {
                self.deliver(connection, place, now);
                self.carry_out_on(connection);
            }
            let (count, room) = match place {
                Place::Buffer(count) | Place::Encrypted(count) => (count, self.buffer.len()),
                Place::Unread(count, room) => (count, room),
            };
            if count < room && !hangs_up {
                return now;
            }
        }
        self.rearm(connection);
        self.clock.now()
    }

    /// One read; nothing to read where nothing is to be read now.
    fn receive(&mut self, connection: Connection) -> Result<Place, Errno> {
        if self.out.is_closing(connection) {
            return Err(Errno::AGAIN);
        }
        let slot = self.table.get(connection);
        let Some(slot) = slot.filter(|slot| slot.stage != Stage::Dialling && !slot.is_paused)
        else {
            return Err(Errno::AGAIN);
        };
        let is_behind = self.out.unpersisted() > self.shell.bounds.unpersisted_bytes_pause;
        if is_behind && slot.stage == Stage::Open && matches!(slot.origin, Origin::Listener(_)) {
            if !std::mem::replace(&mut slot.waits_for_disk, true) {
                self.counters.paused_for_disk += 1;
                self.wait_for_disk.push(connection);
            }
            return Err(Errno::AGAIN);
        }
        if slot.tls.is_some() {
            return rustix::io::read(&slot.socket, &mut self.buffer[..]).map(Place::Encrypted);
        }
        if slot.unread.is_empty() {
            return rustix::io::read(&slot.socket, &mut self.buffer[..]).map(Place::Buffer);
        }
        let unread = slot.unread.buffer(READ_BYTES_MAX);
        let room = unread.capacity() - unread.len();
        let count = rustix::io::read(&slot.socket, rustix::buffer::spare_capacity(unread))?;
        self.unread_bytes += count;
        Ok(Place::Unread(count, room))
    }

    /// Steps the node with what has been read, behind what it had left.
    fn deliver(&mut self, connection: Connection, place: Place, now: Instant) {
        let kept_bytes = waiting::kept_bytes(self.table.len());
        let Some(slot) = self.table.get(connection) else { return };
        slot.heard_at = now;
        self.out.take_used();
        if let Place::Buffer(count) = place {
            let bytes = &self.buffer[..count];
            self.node.step(now, Input::Bytes(connection, bytes), &mut self.out);
            let rest = &bytes[self.out.take_used()..];
            slot.unread.buffer(rest.len()).extend_from_slice(rest);
            self.unread_bytes += rest.len();
        } else {
            self.node.step(now, Input::Bytes(connection, slot.unread.rest()), &mut self.out);
            let used = self.out.take_used();
            slot.unread.advance(used);
            slot.unread.give_back(kept_bytes);
            self.unread_bytes -= used;
        }
        let bounds = &self.shell.bounds;
        let is_its_too_much = slot.unread.len() > bounds.unread_bytes_max;
        let are_too_many = self.unread_bytes > bounds.unread_bytes_of_all_max;
        if is_its_too_much || are_too_many && !slot.unread.is_empty() {
            self.counters.unread_full += 1;
            self.lost(connection);
        }
    }

    /// Makes the kernel report again what is already there: an edge-triggered event comes once.
    pub(super) fn rearm(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let token = EventData::new_u64(to_token(connection));
        if epoll::modify(self.epoll, &slot.socket, token, interest).is_err() {
            self.lost(connection);
        }
    }
}
