//! The turns of the event loop: what the kernel reports becomes steps of the node, and what the node wants
//! becomes writes, dials and closes. One thread; it never blocks except in the sleeper.

mod arrive;
mod read;
mod secure;
mod write;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use clock::{Clock, Instant};
use rustix::event::epoll::{self, EventData, EventFlags};

use super::connections::{Counters, Origin, Stage, Table};
use super::ends::Until;
use super::machines::Post;
use super::sleep::{Lateness, Sleeper};
use super::tls::TlsFailures;
use super::{Facts, Shell, ShellError};
use crate::store::{Done, StoreCounters, StoreCounts, Writer};
use crate::{Connection, Input, Node, Outputs, host};

/// Read at once: the answers of a deep pipeline in one call, and still in the second-level cache.
const READ_BYTES_MAX: usize = 64 << 10;
/// Read at once where anything is encrypted: the library's own buffer is small, and so are most records.
const ENCRYPTED_READ_BYTES_MAX: usize = 256 << 10;

/// How many connections of the first listener, which is the crowd's, are told in a turn what was reported of them, and for how
/// long at most: other replicas, the disk and other machines are looked at before each such turn, however many clients are
/// ready. A handshake takes as long as a hundred requests.
const CROWD_MAX: usize = 1024;
const CROWD_NS_MAX: i64 = 10_000_000;

/// Tokens from here on are other machines, the store, listeners and ends; below are connections, whose places are fewer.
const STORE_TOKEN: u64 = u64::MAX - 0x1_0000;
const POST_TOKEN: u64 = u64::MAX - 0x1_0001;
const LISTENER_TOKENS: u64 = u64::MAX - 0xffff;
const END_TOKENS: u64 = u64::MAX - 0xff;

/// What the shell has to tell the node by itself, at the end of the turn: a node that answers at once with more
/// of the same keeps no other from its turn.
#[derive(Clone, Copy, Debug)]
enum Due {
    Drained(Connection),
    Unreachable(usize),
}

/// The store at work, and the lists that are exchanged with it.
struct Keeping {
    writer: Writer,
    counters: Arc<StoreCounters>,
    stores: Vec<host::Store>,
    records: Vec<u8>,
    done: Vec<Done>,
}

pub(super) struct Turns<'a, M> {
    shell: Shell,
    node: &'a mut dyn Node<M>,
    clock: Clock,
    epoll: &'a OwnedFd,
    until: &'a [Until],
    out: Outputs<M>,
    keeping: Option<Keeping>,
    post: Option<Post<M>>,
    /// The list that [`Outputs::take_touched`] is given.
    carried_out: Vec<Connection>,
    table: Table,
    buffer: Vec<u8>,
    /// Bytes that the node has not read, of all connections.
    unread_bytes: usize,
    /// Bytes that wait to be sent on the connections of each listener.
    unsent_bytes: Vec<usize>,
    /// Connections of each listener; those of listeners with few places by name, and some that are gone.
    accepted: Vec<usize>,
    few: Vec<Connection>,
    due: VecDeque<Due>,
    /// Connections of the crowd of which something was reported that they were not told, in that order.
    crowd: VecDeque<Connection>,
    /// When a connection that does not stand yet is given up. All have the same time, so they come in order.
    given_up_at: VecDeque<(Instant, Connection)>,
    /// Connections that are not read from because the disk is behind.
    wait_for_disk: Vec<Connection>,
    /// Handshakes of accepted connections under way.
    handshakes: usize,
    /// Connections whose handshakes begin when others have ended, and some that are gone.
    unheard: VecDeque<Connection>,
    counters: Counters,
    tls_failures: TlsFailures,
    lateness: Lateness,
    /// A listener may have connections that could not be accepted.
    is_accept_stuck: bool,
    ended_by: Option<&'static str>,
}

impl<'a, M> Turns<'a, M> {
    pub(super) fn new(
        mut shell: Shell,
        node: &'a mut dyn Node<M>,
        post: Option<Post<M>>,
        clock: Clock,
        epoll: &'a OwnedFd,
        until: &'a [Until],
    ) -> Result<Self, ShellError> {
        for (index, listener) in (0..).zip(&shell.listeners) {
            let token = EventData::new_u64(LISTENER_TOKENS + index);
            epoll::add(epoll, &listener.socket, token, EventFlags::IN)
                .map_err(ShellError::Kernel)?;
        }
        for (index, end) in (0..).zip(until) {
            let token = EventData::new_u64(END_TOKENS + index);
            epoll::add(epoll, end.descriptor(), token, EventFlags::IN)
                .map_err(|error| ShellError::ParentPipe(error.into()))?;
        }
        let mut out = Outputs::default();
        let keeping = match shell.store.take() {
            None => None,
            Some(store) => {
                for (log, next) in store.next().enumerate() {
                    out.begin_log(log, next);
                }
                let counters = store.counters();
                let writer = Writer::start(store, clock)?;
                let token = EventData::new_u64(STORE_TOKEN);
                epoll::add(epoll, writer.told(), token, EventFlags::IN)
                    .map_err(ShellError::Kernel)?;
                let (stores, records, done) = (Vec::new(), Vec::new(), Vec::new());
                Some(Keeping { writer, counters, stores, records, done })
            }
        };
        if let Some(post) = &post {
            let token = EventData::new_u64(POST_TOKEN);
            epoll::add(epoll, post.told(), token, EventFlags::IN).map_err(ShellError::Kernel)?;
            post.begin(&mut out);
        }
        let is_encrypted = shell.listeners.iter().any(|listener| listener.tls.is_some())
            || shell.peers.iter().any(|peer| peer.tls.is_some());
        let (unsent_bytes, accepted) =
            (vec![0; shell.listeners.len()], vec![0; shell.listeners.len()]);
        let read_bytes_max = if is_encrypted { ENCRYPTED_READ_BYTES_MAX } else { READ_BYTES_MAX };
        Ok(Self {
            shell,
            node,
            clock,
            epoll,
            until,
            out,
            keeping,
            post,
            carried_out: Vec::new(),
            table: Table::default(),
            buffer: vec![0; read_bytes_max],
            unread_bytes: 0,
            unsent_bytes,
            accepted,
            few: Vec::new(),
            due: VecDeque::new(),
            crowd: VecDeque::new(),
            given_up_at: VecDeque::new(),
            wait_for_disk: Vec::new(),
            handshakes: 0,
            unheard: VecDeque::new(),
            counters: Counters::default(),
            tls_failures: TlsFailures::new(),
            lateness: Lateness::default(),
            is_accept_stuck: false,
            ended_by: None,
        })
    }

    pub(super) fn run(mut self) -> Result<Facts, ShellError> {
        let mut sleeper = Sleeper::new(self.epoll, self.clock, self.shell.wakes_exactly);
        self.node.step(self.clock.now(), Input::Wake, &mut self.out);
        self.carry_out()?;
        while self.ended_by.is_none() {
            let now = sleeper.wait(self.next_wake())?;
            self.wake_if_due(now)?;
            self.give_up(now);
            for event in &sleeper.events {
                let (token, flags) = (event.data.u64(), event.flags);
                if !self.is_of_crowd(token, flags) {
                    let now = self.event(token, flags)?;
                    self.wake_if_due(now)?;
                }
            }
            self.tell_crowd()?;
            self.tell_due();
            if self.out.take_turn_end() {
                self.node.step(self.clock.now(), Input::TurnEnd, &mut self.out);
            }
            self.carry_out()?;
        }
        let store = self.stop()?;
        Ok(Facts {
            store,
            counters: self.counters,
            tls_failures: self.tls_failures,
            lateness: self.lateness,
            looks: sleeper.looks,
            ended_by: self.ended_by.unwrap_or_default().to_owned(),
        })
    }

    /// When the next turn begins at the latest.
    fn next_wake(&self) -> Option<Instant> {
        let is_at_once = !self.due.is_empty()
            || !self.crowd.is_empty()
            || self.out.awaits_turn_end()
            || self.out.stores_anything();
        if is_at_once {
            return Some(Instant::ZERO);
        }
        let given_up = self.given_up_at.front().map(|(at, _)| *at);
        self.out.wake().into_iter().chain(given_up).min()
    }

    /// One event. Gives the time after it.
    fn event(&mut self, token: u64, flags: EventFlags) -> Result<Instant, ShellError> {
        if token >= END_TOKENS {
            let index = usize::try_from(token - END_TOKENS).expect("a small number");
            self.ended_by = self.ended_by.or(self.until[index].look());
        } else if token >= LISTENER_TOKENS {
            self.accept(usize::try_from(token - LISTENER_TOKENS).expect("a small number"));
        } else if token == STORE_TOKEN {
            self.stored()?;
        } else if token == POST_TOKEN {
            self.posted();
        } else {
            return Ok(self.reported(from_token(token), flags));
        }
        Ok(self.clock.now())
    }

    /// The kernel has reported something of a connection. Gives the time after it.
    fn reported(&mut self, connection: Connection, flags: EventFlags) -> Instant {
        if !self.given_up_at.is_empty() {
            self.answered(connection);
        }
        if flags.contains(EventFlags::OUT) {
            self.writable(connection);
        }
        let hangs_up = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(EventFlags::IN | hangs_up) {
            return self.read(connection, flags.intersects(hangs_up));
        }
        self.clock.now()
    }

    /// Whether an event is of a connection of the crowd; then it waits for its turn.
    fn is_of_crowd(&mut self, token: u64, flags: EventFlags) -> bool {
        if token >= POST_TOKEN {
            return false;
        }
        let connection = from_token(token);
        let Some(slot) = self.table.get(connection) else { return false };
        if slot.origin != Origin::Listener(0) {
            return false;
        }
        if slot.reported.is_empty() {
            self.crowd.push_back(connection);
        }
        slot.reported |= flags;
        true
    }

    /// Tells of the crowd's connections what was reported of them, as far as a turn has room for it.
    fn tell_crowd(&mut self) -> Result<(), ShellError> {
        let Some(mut now) = (!self.crowd.is_empty()).then(|| self.clock.now()) else {
            return Ok(());
        };
        let began = now;
        for _ in 0..CROWD_MAX {
            let Some(connection) = self.crowd.pop_front() else { break };
            let Some(slot) = self.table.get(connection) else { continue };
            let flags = std::mem::replace(&mut slot.reported, EventFlags::empty());
            now = self.reported(connection, flags);
            self.wake_if_due(now)?;
            if now.ns_since(began) > CROWD_NS_MAX {
                break;
            }
        }
        Ok(())
    }

    /// The store has something to tell.
    fn stored(&mut self) -> Result<(), ShellError> {
        let Some(keeping) = &mut self.keeping else { return Ok(()) };
        keeping.writer.take(&mut keeping.done)?;
        self.tell_stored();
        Ok(())
    }

    /// Tells the node what the store has done.
    fn tell_stored(&mut self) {
        let Some(keeping) = &self.keeping else { return };
        let now = self.clock.now();
        for done in &keeping.done {
            let input = match done {
                Done::Persisted { log, below } => {
                    self.out.persisted(*log, *below);
                    Input::Persisted { log: *log, below: *below }
                }
                Done::Replaced { cell } => Input::Replaced { cell: *cell },
                Done::Extended { cell } => Input::Extended { cell: *cell },
                Done::Part { cell, offset, bytes } => {
                    Input::Part { cell: *cell, offset: *offset, bytes }
                }
                Done::Full { log } => Input::Full { log: *log },
            };
            self.node.step(now, input, &mut self.out);
        }
        if self.out.unpersisted() <= self.shell.bounds.unpersisted_bytes_pause {
            for connection in std::mem::take(&mut self.wait_for_disk) {
                if let Some(slot) = self.table.get(connection) {
                    slot.waits_for_disk = false;
                    self.rearm(connection);
                }
            }
        }
    }

    /// Another machine has passed something, has taken something out of its queue, or has ended.
    fn posted(&mut self) {
        let Some(post) = &mut self.post else { return };
        let now = self.clock.now();
        post.take();
        for machine in post.room(&mut self.out) {
            self.node.step(now, Input::Room { machine }, &mut self.out);
        }
        for (from, message) in post.messages() {
            self.node.step(now, Input::Message { from, message }, &mut self.out);
        }
        post.free();
        if post.is_ending() {
            self.ended_by = self.ended_by.or(Some("the end of another machine"));
        }
    }

    fn wake_if_due(&mut self, now: Instant) -> Result<(), ShellError> {
        while let Some(due) = self.out.wake().filter(|due| *due <= now) {
            self.lateness.record(now.ns_since(due));
            self.out.take_wake();
            self.node.step(now, Input::Wake, &mut self.out);
            self.carry_out()?;
            if self.out.wake().is_some_and(|next| next <= now) {
                // Due again within the same instant: time must have moved on before the next look.
                break;
            }
        }
        Ok(())
    }

    /// Tells the node what is due; what that makes due is told in the next turn.
    fn tell_due(&mut self) {
        for _ in 0..self.due.len() {
            let Some(due) = self.due.pop_front() else { return };
            let input = match due {
                Due::Drained(connection) => {
                    if self.table.get(connection).is_none() {
                        continue;
                    }
                    Input::Drained(connection)
                }
                Due::Unreachable(peer) => Input::Unreachable { peer },
            };
            self.node.step(self.clock.now(), input, &mut self.out);
        }
    }

    /// What the steps since the last call want. The disk comes last: where this thread waits for it, others go on with
    /// what they were sent.
    fn carry_out(&mut self) -> Result<(), ShellError> {
        self.write_all();
        for peer in self.out.take_dials() {
            self.dial(peer);
        }
        if let Some(post) = &mut self.post {
            post.pass(&mut self.out);
        }
        if self.out.stores_anything() {
            let keeping = self.keeping.as_mut().expect("a node that stores is given a store");
            self.out.take_stores(&mut keeping.stores, &mut keeping.records);
            let Keeping { writer, stores, records, done, .. } = keeping;
            writer.submit(stores, records, done)?;
            if !done.is_empty() {
                self.tell_stored();
                self.write_all();
            }
        }
        Ok(())
    }

    /// Sends what the steps since the last call have sent, to peers first, which have more to do with it. A write that fails
    /// is a step of its own, which may want more.
    fn write_all(&mut self) {
        while !self.out.touched().is_empty() {
            self.out.take_touched(&mut self.carried_out);
            for are_peers in [true, false] {
                for index in 0..self.carried_out.len() {
                    let connection = self.carried_out[index];
                    let slot = self.table.get(connection);
                    let is_peer = slot.is_some_and(|it| matches!(it.origin, Origin::Peer(_)));
                    if is_peer == are_peers {
                        self.write(connection);
                    }
                }
            }
            self.carried_out.clear();
        }
    }

    /// The connection ended from outside: the node is told.
    fn lost(&mut self, connection: Connection) -> Instant {
        let now = self.clock.now();
        match self.forget(connection) {
            Some((_, Stage::Open)) => {
                self.node.step(now, Input::Closed(connection), &mut self.out);
            }
            Some((Origin::Peer(peer), _)) => {
                self.counters.unreachable += 1;
                self.due.push_back(Due::Unreachable(peer));
            }
            _ => {}
        }
        now
    }

    /// Takes a connection out of the table, and says what it was.
    fn forget(&mut self, connection: Connection) -> Option<(Origin, Stage)> {
        let slot = self.table.remove(connection)?;
        self.unread_bytes -= slot.unread.len();
        if let Origin::Listener(listener) = slot.origin {
            self.unsent_bytes[listener] -= slot.counted;
            self.accepted[listener] -= 1;
        }
        match (slot.stage, slot.origin) {
            (Stage::Open, _) => self.out.end(connection),
            (Stage::Handshaking, Origin::Listener(_)) if slot.tls.is_some() => {
                self.handshake_ended();
            }
            _ => {}
        }
        if self.is_accept_stuck {
            self.pause_listeners(false);
        }
        Some((slot.origin, slot.stage))
    }

    fn stop(&mut self) -> Result<StoreCounts, ShellError> {
        self.node.step(self.clock.now(), Input::Stop, &mut self.out);
        self.carry_out()?;
        for connection in self.table.all() {
            self.forget(connection);
        }
        let Some(keeping) = self.keeping.take() else { return Ok(StoreCounts::default()) };
        keeping.writer.finish()?;
        Ok(keeping.counters.read())
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
