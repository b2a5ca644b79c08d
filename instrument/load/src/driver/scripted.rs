//! The event loop without a kernel: whatever is on the other end is a [`Server`] of a test's, and time is virtual. A wait
//! moves time to the next thing that happens, or to its own end, and takes no time itself, so that every stamp is exact
//! and the same each time.
//!
//! A byte is at the server the moment that it is sent; what the way takes is part of what the server makes of it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use clock::{Clock, Hand};
use rustix::io::Errno;

use super::{Chunk, Counters, Driver, Event, Key, Wait};
use crate::scripted::agenda::{Agenda, Occurrence, Peer};
use crate::scripted::server::{Call, Happening, Server, Trouble};

/// Waits in a row in which nothing happened and no time passed: more is an engine that spins, which virtual time
/// would never end.
const IDLE_WAITS_MAX: u32 = 1 << 16;

pub(crate) struct Scripted {
    hand: Hand,
    clock: Clock,
    server: Box<dyn Server>,
    agenda: Agenda,
    /// One for each connection ever dialled, in that order; a peer is an index into it.
    lines: Vec<Line>,
    /// Events that were not taken yet.
    happened: VecDeque<Occurrence>,
    /// Bytes that the engine is reading, and which of these are free.
    chunks: Vec<Vec<u8>>,
    free: Vec<u16>,
    idle_waits: u32,
    /// Events that may still be taken before the next wait.
    room: usize,
    counters: Counters,
}

/// A connection.
struct Line {
    token: u32,
    state: State,
    /// Whether what arrives on it is stamped.
    is_stamped: bool,
    /// Bytes that short writes left.
    unsent: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Dialling,
    Open,
    Over,
}

impl Scripted {
    /// With the hand of `clock`.
    pub(crate) fn new(hand: Hand, clock: Clock, server: Box<dyn Server>) -> Self {
        Self {
            hand,
            clock,
            server,
            agenda: Agenda::default(),
            lines: Vec::new(),
            happened: VecDeque::new(),
            chunks: Vec::new(),
            free: Vec::new(),
            idle_waits: 0,
            room: usize::MAX,
            counters: Counters::default(),
        }
    }

    /// Takes the next occurrence from the agenda if it is due, and tells the server if it is the server's.
    fn take_due(&mut self) -> bool {
        let now = self.hand.now();
        let Some(occurrence) = self.agenda.take_due(now) else { return false };
        match occurrence {
            Occurrence::Wake => self.server.step(now, Happening::Woken, &mut self.agenda),
            Occurrence::Open(peer) if self.state(peer) == State::Dialling => {
                self.lines[peer.index()].state = State::Open;
                self.server.step(now, Happening::Opened(peer), &mut self.agenda);
                self.happened.push_back(occurrence);
            }
            Occurrence::End(peer, _) if self.state(peer) != State::Over => {
                self.lines[peer.index()].state = State::Over;
                self.happened.push_back(occurrence);
            }
            Occurrence::Bytes { peer, .. } if self.state(peer) == State::Open => {
                self.happened.push_back(occurrence);
            }
            Occurrence::Bytes { bytes, .. } => self.agenda.recycle(bytes),
            Occurrence::Writable(peer) if self.state(peer) == State::Open => {
                let unsent = std::mem::take(&mut self.lines[peer.index()].unsent);
                self.server.step(now, Happening::Bytes(peer, &unsent), &mut self.agenda);
            }
            Occurrence::Open(_) | Occurrence::End(..) | Occurrence::Writable(_) => {}
        }
        true
    }

    /// Lets the time pass in which the client's machine is stopped, and what happens meanwhile.
    fn sit_out_stop(&mut self) {
        let end = self.server.client_runs_at(self.hand.now());
        while let Some(at) = self.agenda.next_at().filter(|at| *at <= end) {
            self.hand.move_to(at.max(self.hand.now()));
            self.take_due();
        }
        self.hand.move_to(end.max(self.hand.now()));
    }

    fn state(&self, peer: Peer) -> State {
        self.lines[peer.index()].state
    }

    /// How many bytes of a write are taken now.
    fn taken(&mut self, peer: Peer, count: usize) -> usize {
        if !self.lines[peer.index()].unsent.is_empty() {
            // After those that wait already.
            return 0;
        }
        let now = self.hand.now();
        match self.server.trouble(now, Call::Send(peer)) {
            Some(Trouble::ShortWrite { taken, after }) if taken < count => {
                self.agenda.add(now.plus(after), Occurrence::Writable(peer));
                taken
            }
            Some(Trouble::Reset) => {
                self.agenda.add(now, Occurrence::End(peer, Some(Errno::CONNRESET)));
                0
            }
            _ => count,
        }
    }

    fn chunk(&mut self, bytes: Vec<u8>) -> Chunk {
        let length = u32::try_from(bytes.len()).expect("a test sends less than 4 GiB at once");
        let buffer = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Vec::new());
            u16::try_from(self.chunks.len() - 1).expect("the engine gives chunks back")
        });
        self.chunks[usize::from(buffer)] = bytes;
        Chunk { buffer, head: 0, length }
    }
}

impl Driver for Scripted {
    const NAME: &'static str = "scripted";
    const GATHERS: bool = true;
    const WAKES_LATE: bool = false;

    fn connect(
        &mut self,
        token: u32,
        _address: SocketAddr,
        is_stamped: bool,
    ) -> Result<Key, Errno> {
        let now = self.hand.now();
        if let Some(Trouble::NoSocket(error)) = self.server.trouble(now, Call::Connect) {
            return Err(error);
        }
        let index = u32::try_from(self.lines.len()).expect("connections are counted in u32");
        let peer = Peer(index);
        self.lines.push(Line { token, state: State::Dialling, is_stamped, unsent: Vec::new() });
        match self.server.accepts(now) {
            Some(at) => self.agenda.add(at, Occurrence::Open(peer)),
            None => self.agenda.add(now, Occurrence::End(peer, Some(Errno::CONNREFUSED))),
        }
        Ok(Key { index, generation: 0 })
    }

    /// A script is no program that could inherit anything.
    fn adopt(&mut self, _token: u32, _socket: OwnedFd) -> Result<Key, Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn send(&mut self, key: Key, bytes: &mut Vec<u8>) {
        let peer = Peer(key.index);
        if self.state(peer) == State::Open && !bytes.is_empty() {
            self.counters.enters += 1;
            let taken = self.taken(peer, bytes.len());
            self.lines[peer.index()].unsent.extend_from_slice(&bytes[taken..]);
            if taken > 0 {
                let happening = Happening::Bytes(peer, &bytes[..taken]);
                self.server.step(self.hand.now(), happening, &mut self.agenda);
            }
        }
        bytes.clear();
    }

    fn unsent(&self, key: Key) -> usize {
        self.lines[Peer(key.index).index()].unsent.len()
    }

    fn close(&mut self, key: Key) {
        let peer = Peer(key.index);
        let was_open = self.state(peer) == State::Open;
        self.lines[peer.index()].state = State::Over;
        self.happened.retain(|occurrence| occurrence.peer() != Some(peer));
        if was_open {
            self.server.step(self.hand.now(), Happening::Closed(peer), &mut self.agenda);
        }
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Errno> {
        self.counters.enters += 1;
        let began = self.hand.now();
        let trouble = self.server.trouble(began, Call::Wait);
        self.room = if trouble == Some(Trouble::FullRing) { 1 } else { usize::MAX };
        if trouble == Some(Trouble::Interrupted) {
            return Ok(());
        }
        let limit = wait.timeout.map(|timeout| began.plus(timeout));
        let gathered = began.plus(wait.gather_max);
        let enough = wait.completions_min.max(1) as usize;
        while self.happened.len() < enough {
            let until = match self.happened.is_empty() {
                true => limit,
                false => Some(limit.map_or(gathered, |limit| limit.min(gathered))),
            };
            let next = self.agenda.next_at().filter(|at| until.is_none_or(|until| *at <= until));
            let Some(to) = next.or(until) else { return Err(Errno::DEADLK) };
            self.hand.move_to(to.max(self.hand.now()));
            if next.is_none() {
                break;
            }
            self.take_due();
        }
        self.sit_out_stop();
        let is_idle = self.happened.is_empty() && self.hand.now() == began;
        self.idle_waits = if is_idle { self.idle_waits + 1 } else { 0 };
        assert!(
            self.idle_waits < IDLE_WAITS_MAX,
            "the engine spins at {began:?} of virtual time, which never passes so"
        );
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        while self.take_due() {}
        self.room = self.room.checked_sub(1)?;
        let occurrence = self.happened.pop_front()?;
        self.counters.completions += 1;
        let peer = occurrence.peer().expect("what is a wake was the server's");
        let (token, key) = (self.lines[peer.index()].token, Key { index: peer.0, generation: 0 });
        Some(match occurrence {
            Occurrence::Bytes { bytes, arrived, .. } => {
                let is_stamped = self.lines[peer.index()].is_stamped;
                let arrived = is_stamped.then(|| self.clock.wall_at(arrived));
                Event::Received { token, key, chunk: self.chunk(bytes), arrived }
            }
            Occurrence::End(_, error) => Event::Ended { token, key, error },
            Occurrence::Open(_) | Occurrence::Writable(_) | Occurrence::Wake => {
                Event::Connected { token, key }
            }
        })
    }

    fn bytes(&self, chunk: &Chunk) -> &[u8] {
        &self.chunks[usize::from(chunk.buffer)][..chunk.length as usize]
    }

    fn release(&mut self, chunk: Chunk) {
        self.agenda.recycle(std::mem::take(&mut self.chunks[usize::from(chunk.buffer)]));
        self.free.push(chunk.buffer);
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
