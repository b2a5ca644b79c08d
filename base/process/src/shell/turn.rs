//! The turns of the event loop: what the kernel reports becomes steps of the node, and what the node wants
//! becomes writes and closes. One thread; it never blocks except in the sleeper.

use std::net::TcpListener;
use std::os::fd::OwnedFd;

use clock::{Clock, Instant};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};

use super::connections::{Bounds, Counters, Table};
use super::ends::Until;
use super::sleep::{Lateness, Sleeper};
use super::{Facts, ShellError};
use crate::{Connection, Input, Node, Outputs};

/// Read at once: the answers of a deep pipeline in one call, and still in the second-level cache.
const READ_BYTES_MAX: usize = 64 << 10;
/// Reads of one connection in a row before others get their turn.
const READS_MAX: u32 = 8;
/// Connections accepted in a row before others get their turn.
const ACCEPTS_MAX: u32 = 64;

/// Tokens from here on are listeners and ends; below are connections, whose places are fewer.
const LISTENER_TOKENS: u64 = u64::MAX - 0xffff;
const END_TOKENS: u64 = u64::MAX - 0xff;

pub(super) struct Turns<'a> {
    node: &'a mut dyn Node,
    clock: Clock,
    epoll: &'a OwnedFd,
    listeners: &'a [&'a TcpListener],
    until: &'a [Until],
    bounds: Bounds,
    out: Outputs,
    /// The list that [`Outputs::take_touched`] is given.
    carried_out: Vec<Connection>,
    table: Table,
    buffer: Vec<u8>,
    counters: Counters,
    lateness: Lateness,
    /// A listener may have connections that could not be accepted.
    is_accept_stuck: bool,
    ended_by: Option<&'static str>,
}

impl<'a> Turns<'a> {
    pub(super) fn new(
        node: &'a mut dyn Node,
        clock: Clock,
        epoll: &'a OwnedFd,
        listeners: &'a [&'a TcpListener],
        bounds: Bounds,
        until: &'a [Until],
    ) -> Result<Self, ShellError> {
        for (index, listener) in (0..).zip(listeners) {
            let token = EventData::new_u64(LISTENER_TOKENS + index);
            epoll::add(epoll, listener, token, EventFlags::IN).map_err(ShellError::Kernel)?;
        }
        for (index, end) in (0..).zip(until) {
            let token = EventData::new_u64(END_TOKENS + index);
            epoll::add(epoll, end.descriptor(), token, EventFlags::IN)
                .map_err(|error| ShellError::ParentPipe(error.into()))?;
        }
        Ok(Self {
            node,
            clock,
            epoll,
            listeners,
            until,
            bounds,
            out: Outputs::default(),
            carried_out: Vec::new(),
            table: Table::default(),
            buffer: vec![0; READ_BYTES_MAX],
            counters: Counters::default(),
            lateness: Lateness::default(),
            is_accept_stuck: false,
            ended_by: None,
        })
    }

    pub(super) fn run(mut self) -> Result<Facts, ShellError> {
        let mut sleeper = Sleeper::new(self.epoll, self.clock);
        while self.ended_by.is_none() {
            let now = sleeper.wait(self.out.wake())?;
            self.wake_if_due(now);
            for event in &sleeper.events {
                let now = self.event(event.data.u64(), event.flags);
                self.wake_if_due(now);
            }
            self.carry_out();
        }
        self.stop();
        Ok(Facts {
            counters: self.counters,
            lateness: self.lateness,
            ended_by: self.ended_by.unwrap_or_default().to_owned(),
        })
    }

    /// One event. Gives the time after it.
    fn event(&mut self, token: u64, flags: EventFlags) -> Instant {
        if token >= END_TOKENS {
            let index = usize::try_from(token - END_TOKENS).expect("a small number");
            self.ended_by = self.ended_by.or(self.until[index].look());
        } else if token >= LISTENER_TOKENS {
            self.accept(usize::try_from(token - LISTENER_TOKENS).expect("a small number"));
        } else {
            let connection = from_token(token);
            if flags.contains(EventFlags::OUT) {
                self.writable(connection);
            }
            let hangs_up = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            if flags.intersects(EventFlags::IN | hangs_up) {
                return self.read(connection, flags.intersects(hangs_up));
            }
        }
        self.clock.now()
    }

    fn wake_if_due(&mut self, now: Instant) {
        while let Some(due) = self.out.wake().filter(|due| *due <= now) {
            self.lateness.record(now.ns_since(due));
            self.out.take_wake();
            self.node.step(now, Input::Wake, &mut self.out);
            self.carry_out();
            if self.out.wake().is_some_and(|next| next <= now) {
                // Due again within the same instant: time must have moved on before the next look.
                break;
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTS_MAX {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match rustix::net::accept_with(self.listeners[listener], flags) {
                Ok(socket) => socket,
                Err(Errno::MFILE | Errno::NFILE) => {
                    self.pause_listeners(true);
                    return;
                }
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(_) => return,
            };
            if self.table.len() >= self.bounds.connections_max {
                self.counters.refused += 1;
                continue;
            }
            self.counters.accepted += 1;
            // Refused on sockets that are already gone; reading will say so.
            let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
            let connection = self.table.add(socket);
            self.out.open(connection);
            let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let slot = self.table.get(connection).expect("just added");
            let token = EventData::new_u64(to_token(connection));
            if epoll::add(self.epoll, &slot.socket, token, interest).is_err() {
                self.forget(connection);
                continue;
            }
            self.node.step(self.clock.now(), Input::Opened { connection, listener }, &mut self.out);
        }
    }

    /// Out of descriptors: listeners are left alone until one is free, instead of being reported for ever.
    fn pause_listeners(&mut self, is_paused: bool) {
        self.is_accept_stuck = is_paused;
        for (index, listener) in (0..).zip(self.listeners) {
            let interest = if is_paused { EventFlags::empty() } else { EventFlags::IN };
            let token = EventData::new_u64(LISTENER_TOKENS + index);
            let _ = epoll::modify(self.epoll, listener, token, interest);
        }
    }

    /// Reads until the kernel has no more: a read that does not fill the buffer says so without another call.
    fn read(&mut self, connection: Connection, hangs_up: bool) -> Instant {
        for _ in 0..READS_MAX {
            let now = self.clock.now();
            let Some(slot) = self.table.get(connection) else { return now };
            if slot.is_paused {
                return now;
            }
            let count = match rustix::io::read(&slot.socket, &mut self.buffer[..]) {
                Ok(0) => return self.lost(connection),
                Ok(count) => count,
                Err(Errno::AGAIN) => return now,
                Err(Errno::INTR) => continue,
                Err(_) => return self.lost(connection),
            };
            let now = self.clock.now();
            self.deliver(connection, count, now);
            self.carry_out_on(connection);
            if count < self.buffer.len() && !hangs_up {
                return now;
            }
        }
        self.rearm(connection);
        self.clock.now()
    }

    /// Steps the node with what has been read, behind what it had left.
    fn deliver(&mut self, connection: Connection, count: usize, now: Instant) {
        let Some(slot) = self.table.get(connection) else { return };
        self.out.take_used();
        if slot.unread.is_empty() {
            let bytes = &self.buffer[..count];
            self.node.step(now, Input::Bytes(connection, bytes), &mut self.out);
            let rest = &bytes[self.out.take_used()..];
            slot.unread.extend_from_slice(rest);
        } else {
            slot.unread.extend_from_slice(&self.buffer[..count]);
            self.node.step(now, Input::Bytes(connection, &slot.unread), &mut self.out);
            slot.unread.drain(..self.out.take_used());
        }
        if slot.unread.len() > self.bounds.unread_bytes_max {
            self.counters.unread_full += 1;
            self.lost(connection);
        }
    }

    /// The kernel takes bytes again.
    fn writable(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        if !std::mem::take(&mut slot.is_blocked) {
            return;
        }
        self.write(connection);
        if let Some(slot) = self.table.get(connection)
            && slot.is_paused
            && !slot.is_blocked
        {
            slot.is_paused = false;
            self.rearm(connection);
        }
    }

    /// What the last step wants on the connection that it was about, if it wants nothing else.
    fn carry_out_on(&mut self, connection: Connection) {
        if self.out.touched() == [connection] {
            self.out.take_touched(&mut self.carried_out);
            self.carried_out.clear();
            self.write(connection);
        }
    }

    /// What the steps since the last call want. A write that fails is a step of its own, which may want more.
    fn carry_out(&mut self) {
        while !self.out.touched().is_empty() {
            self.out.take_touched(&mut self.carried_out);
            for index in 0..self.carried_out.len() {
                self.write(self.carried_out[index]);
            }
            self.carried_out.clear();
        }
    }

    /// Writes what waits on a connection, as far as the kernel takes it, and closes it behind that if asked.
    fn write(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        let Some((bytes, closes)) = self.out.pending(connection) else { return };
        let mut sent = 0;
        while sent < bytes.len() && !slot.is_blocked {
            match rustix::net::send(&slot.socket, &bytes[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::AGAIN) => slot.is_blocked = true,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.lost(connection);
                    return;
                }
            }
        }
        if sent == bytes.len() {
            bytes.clear();
            if closes {
                self.forget(connection);
            }
            return;
        }
        bytes.drain(..sent);
        let waiting = bytes.len();
        if waiting > self.bounds.unsent_bytes_max {
            self.counters.unsent_full += 1;
            self.lost(connection);
        } else if waiting > self.bounds.unsent_bytes_pause && !slot.is_paused {
            self.counters.paused += 1;
            slot.is_paused = true;
        }
    }

    /// Makes the kernel report again what is already there: an edge-triggered event comes once.
    fn rearm(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let token = EventData::new_u64(to_token(connection));
        if epoll::modify(self.epoll, &slot.socket, token, interest).is_err() {
            self.lost(connection);
        }
    }

    /// The connection ended from outside: the node is told.
    fn lost(&mut self, connection: Connection) -> Instant {
        let now = self.clock.now();
        if self.forget(connection) {
            self.node.step(now, Input::Closed(connection), &mut self.out);
        }
        now
    }

    fn forget(&mut self, connection: Connection) -> bool {
        if self.table.remove(connection).is_none() {
            return false;
        }
        self.out.end(connection);
        if self.is_accept_stuck {
            self.pause_listeners(false);
        }
        true
    }

    fn stop(&mut self) {
        self.node.step(self.clock.now(), Input::Stop, &mut self.out);
        self.carry_out();
        for connection in self.table.all() {
            self.forget(connection);
        }
    }
}

fn to_token(connection: Connection) -> u64 {
    let index = u64::try_from(connection.index()).expect("it was made from 32 bits");
    u64::from(connection.generation()) << 32 | index
}

fn from_token(token: u64) -> Connection {
    let index = u32::try_from(token & 0xffff_ffff).expect("masked to 32 bits");
    Connection::new(index, u32::try_from(token >> 32).expect("shifted to 32 bits"))
}
