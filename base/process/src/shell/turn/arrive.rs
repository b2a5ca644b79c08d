//! How connections come to be: accepted or dialled.

use clock::Instant;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::super::connections::{Bounds, Origin, Stage};
use super::{Due, LISTENER_TOKENS, Turns, to_token};
use crate::{Connection, Input};

/// Connections accepted in a row before others get their turn.
const ACCEPTS_MAX: u32 = 64;

/// What the kernel reports of a connection, each change once.
fn interest() -> EventFlags {
    EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
}

impl<M> Turns<'_, M> {
    pub(super) fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTS_MAX {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket =
                match rustix::net::accept_with(&self.shell.listeners[listener].socket, flags) {
                    Ok(socket) => socket,
                    Err(Errno::MFILE | Errno::NFILE) => {
                        if self.displace(listener) {
                            continue;
                        }
                        self.pause_listeners(true);
                        return;
                    }
                    Err(Errno::INTR | Errno::CONNABORTED) => continue,
                    Err(_) => return,
                };
            let has_few_places = self.shell.listeners[listener].places < usize::MAX;
            if self.accepted[listener] >= self.shell.listeners[listener].places {
                self.give_way(listener);
            }
            if self.table.len() >= self.places_for(listener) && !self.displace(listener) {
                self.counters.refused += 1;
                continue;
            }
            self.counters.accepted += 1;
            self.accepted[listener] += 1;
            // Refused on sockets that are already gone; reading will say so.
            let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
            let stage = match self.shell.listeners[listener].tls {
                Some(_) => Stage::Handshaking,
                None => Stage::Open,
            };
            let slot = self.table.add(socket, Origin::Listener(listener), stage);
            let connection = slot.connection;
            if has_few_places {
                slot.heard_at = self.clock.now();
                self.few.push(connection);
            }
            let token = EventData::new_u64(to_token(connection));
            let added = epoll::add(self.epoll, &slot.socket, token, interest());
            if stage == Stage::Handshaking {
                // Nothing is kept for it until it says something.
                self.give_time(connection);
            } else {
                self.open(connection);
            }
            if added.is_err() {
                self.lost(connection);
            }
        }
    }

    /// How many connections there may be for one more of this listener to be let in.
    fn places_for(&self, listener: usize) -> usize {
        let Bounds { connections_max, connections_reserved, .. } = self.shell.bounds;
        if listener == 0 {
            connections_max.saturating_sub(connections_reserved).max(1)
        } else {
            connections_max
        }
    }

    /// Gives up what has tried longest to come to stand by this listener, so that another can; whether there was one.
    fn displace(&mut self, listener: usize) -> bool {
        let table = &mut self.table;
        let place = self.given_up_at.iter().position(|(_, connection)| {
            table.get(*connection).is_some_and(|slot| {
                slot.origin == Origin::Listener(listener) && slot.stage == Stage::Handshaking
            })
        });
        let found = place.and_then(|place| self.given_up_at.remove(place));
        if let Some((_, connection)) = found {
            self.counters.displaced += 1;
            self.lost(connection);
        }
        found.is_some()
    }

    /// Closes the connection of a listener with few places that has been silent for longest, so that another can come.
    fn give_way(&mut self, listener: usize) {
        let table = &mut self.table;
        self.few.retain(|it| table.get(*it).is_some());
        let heard_at = |it: &&Connection| {
            let slot = table.get(**it).filter(|slot| slot.origin == Origin::Listener(listener));
            slot.map_or(Instant::FAR_FUTURE, |slot| slot.heard_at)
        };
        if let Some(silent) = self.few.iter().min_by_key(heard_at).copied() {
            self.counters.displaced += 1;
            self.lost(silent);
        }
    }

    /// A connection stands: the node is told.
    pub(super) fn open(&mut self, connection: Connection) {
        self.open_as(connection, None);
    }

    /// The same, of one whose certificate has this name of those that the listener asks for.
    pub(super) fn open_as(&mut self, connection: Connection, certified: Option<u8>) {
        let Some(slot) = self.table.get(connection) else { return };
        slot.stage = Stage::Open;
        self.out.open(connection);
        if let Some(name) = certified {
            self.out.certify(connection, name);
        }
        let input = match slot.origin {
            Origin::Listener(listener) => Input::Opened { connection, listener },
            Origin::Peer(peer) => {
                self.counters.dialled += 1;
                Input::Dialled { connection, peer }
            }
        };
        self.node.step(self.clock.now(), input, &mut self.out);
    }

    /// Out of descriptors: listeners are left alone until one is free, instead of being reported for ever.
    pub(super) fn pause_listeners(&mut self, is_paused: bool) {
        self.is_accept_stuck = is_paused;
        for (index, listener) in (0..).zip(&self.shell.listeners) {
            let interest = if is_paused { EventFlags::empty() } else { EventFlags::IN };
            let token = EventData::new_u64(LISTENER_TOKENS + index);
            let _ = epoll::modify(self.epoll, &listener.socket, token, interest);
        }
    }

    /// Begins to dial a peer; what comes of it is told in a later turn.
    pub(super) fn dial(&mut self, peer: usize) {
        if self.begin_dial(peer).is_err() {
            self.counters.unreachable += 1;
            self.due.push_back(Due::Unreachable(peer));
        }
    }

    fn begin_dial(&mut self, peer: usize) -> Result<(), Errno> {
        let address = self.shell.peers[peer].address;
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let slot = self.table.add(socket, Origin::Peer(peer), Stage::Dialling);
        let connection = slot.connection;
        let token = EventData::new_u64(to_token(connection));
        if let Err(error) = epoll::add(self.epoll, &slot.socket, token, interest()) {
            self.table.remove(connection);
            return Err(error);
        }
        self.give_time(connection);
        Ok(())
    }

    /// From now on a connection has the time that one may take to come to stand.
    pub(super) fn give_time(&mut self, connection: Connection) {
        let at = self.clock.now().plus(self.shell.bounds.handshake_max);
        if let Some(slot) = self.table.get(connection) {
            slot.stands_by = at;
            self.given_up_at.push_back((at, connection));
        }
    }

    /// The kernel has something to say of a connection: if it was being dialled, whether anybody is there.
    pub(super) fn answered(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        let (Origin::Peer(peer), Stage::Dialling) = (slot.origin, slot.stage) else { return };
        let is_there = matches!(rustix::net::sockopt::socket_error(&slot.socket), Ok(Ok(())));
        // A port of this host without a listener may be given to the very socket that dials it.
        let names =
            (rustix::net::getsockname(&slot.socket), rustix::net::getpeername(&slot.socket));
        let is_itself = matches!(names, (Ok(own), Ok(Some(other))) if own == other);
        if !is_there || is_itself {
            self.lost(connection);
            return;
        }
        let _ = rustix::net::sockopt::set_tcp_nodelay(&slot.socket, true);
        if self.shell.peers[peer].tls.is_some() {
            slot.stage = Stage::Handshaking;
            self.begin_handshake(connection);
        } else {
            self.open(connection);
        }
    }

    /// Gives up what has not come to stand in time.
    pub(super) fn give_up(&mut self, now: Instant) {
        while let Some((at, connection)) = self.given_up_at.front().copied() {
            // One that was given more time has a later entry.
            let slot = self.table.get(connection);
            let is_pending =
                slot.is_some_and(|slot| slot.stage != Stage::Open && slot.stands_by == at);
            if is_pending && at > now {
                return;
            }
            self.given_up_at.pop_front();
            if is_pending {
                self.counters.late += 1;
                self.lost(connection);
            }
        }
    }
}
