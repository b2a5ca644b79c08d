//! Connections to and from the other replicas.

use std::collections::HashMap;
use std::time::Duration;

use clock::Instant;
use consensus::{Message, ReplicaId};
use process::{Connection, Outputs};

use crate::frames::{self, FrameError};

/// How long a replica waits before it dials one that it could not reach, or that has hung up.
const REDIAL: Duration = Duration::from_millis(100);

/// The way to one other replica.
#[derive(Debug)]
struct Way {
    to: ReplicaId,
    /// Its number among the node's peers.
    peer: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down { dial_at: Instant },
    Dialling,
    Up(Connection),
}

/// All connections of a group.
#[derive(Debug)]
pub(crate) struct Links {
    group: u64,
    id: ReplicaId,
    ways: Vec<Way>,
    /// Those that were accepted, and who speaks on each once it has said so.
    accepted: HashMap<Connection, Option<ReplicaId>>,
    unsent_bytes_max: usize,
    /// Messages that were not sent: no connection, or too much on it.
    pub(crate) dropped: u64,
    /// Connections that were closed for what came on them, and why the last one was.
    pub(crate) refused: u64,
    pub(crate) last_refusal: Option<String>,
}

impl Links {
    pub(crate) fn new(
        group: u64,
        id: ReplicaId,
        peers: &[(ReplicaId, usize)],
        unsent_bytes_max: usize,
    ) -> Self {
        let down = State::Down { dial_at: Instant::ZERO };
        let ways = peers.iter().map(|(to, peer)| Way { to: *to, peer: *peer, state: down });
        Self {
            group,
            id,
            ways: ways.collect(),
            accepted: HashMap::new(),
            unsent_bytes_max,
            dropped: 0,
            refused: 0,
            last_refusal: None,
        }
    }

    /// Dials whom it is time to dial. Gives when that is next.
    pub(crate) fn dial<M>(&mut self, now: Instant, out: &mut Outputs<M>) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for way in &mut self.ways {
            match way.state {
                State::Down { dial_at } if dial_at <= now => {
                    way.state = State::Dialling;
                    out.dial(way.peer);
                }
                State::Down { dial_at } => next = Some(next.map_or(dial_at, |at| at.min(dial_at))),
                State::Dialling | State::Up(_) => {}
            }
        }
        next
    }

    /// A connection that was dialled stands. Says whether it is the group's.
    pub(crate) fn dialled<M>(
        &mut self,
        connection: Connection,
        peer: usize,
        out: &mut Outputs<M>,
    ) -> bool {
        let Some(way) = self.ways.iter_mut().find(|way| way.peer == peer) else { return false };
        way.state = State::Up(connection);
        frames::put_greeting(self.group, self.id, out.send(connection));
        true
    }

    pub(crate) fn unreachable(&mut self, now: Instant, peer: usize) -> bool {
        let Some(way) = self.ways.iter_mut().find(|way| way.peer == peer) else { return false };
        way.state = State::Down { dial_at: now.plus(REDIAL) };
        true
    }

    pub(crate) fn opened(&mut self, connection: Connection) {
        self.accepted.insert(connection, None);
    }

    /// Says whether the connection was the group's.
    pub(crate) fn closed(&mut self, now: Instant, connection: Connection) -> bool {
        if self.accepted.remove(&connection).is_some() {
            return true;
        }
        let way = self.ways.iter_mut().find(|way| way.state == State::Up(connection));
        way.map(|way| way.state = State::Down { dial_at: now.plus(REDIAL) }).is_some()
    }

    pub(crate) fn is_its(&self, connection: Connection) -> bool {
        self.accepted.contains_key(&connection)
            || self.ways.iter().any(|way| way.state == State::Up(connection))
    }

    /// Reads what has come, message after message, each told to `each`. What cannot be read ends the connection.
    pub(crate) fn read<M>(
        &mut self,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs<M>,
        mut each: impl FnMut(ReplicaId, Message),
    ) {
        let mut used = 0;
        let result = self.read_all(connection, bytes, &mut used, &mut each);
        out.used(used);
        if let Err(why) = result {
            self.refused += 1;
            self.last_refusal = Some(why.to_string());
            self.accepted.remove(&connection);
            out.used(bytes.len());
            out.close(connection);
        }
    }

    fn read_all(
        &mut self,
        connection: Connection,
        bytes: &[u8],
        used: &mut usize,
        each: &mut impl FnMut(ReplicaId, Message),
    ) -> Result<(), FrameError> {
        let Some(speaker) = self.accepted.get_mut(&connection) else {
            // Nobody answers on a connection that was dialled.
            return Err(FrameError::NoReplica);
        };
        if speaker.is_none() {
            *speaker = frames::greeting(bytes, self.group)?;
            *used = if speaker.is_some() { frames::GREETING_BYTES } else { 0 };
        }
        let Some(from) = *speaker else { return Ok(()) };
        while let Some((message, length)) = frames::message(&bytes[*used..])? {
            *used += length;
            each(from, message);
        }
        Ok(())
    }

    pub(crate) fn send<M>(&mut self, to: ReplicaId, message: &Message, out: &mut Outputs<M>) {
        let way = self.ways.iter().find(|way| way.to == to);
        match way.map(|way| way.state) {
            Some(State::Up(connection)) if out.unsent(connection) <= self.unsent_bytes_max => {
                frames::put_message(message, out.send(connection));
            }
            _ => self.dropped += 1,
        }
    }
}
