//! Connections to and from the other replicas.

use std::collections::HashMap;
use std::time::Duration;

use clock::Instant;
use consensus::{Message, ReplicaId};
use process::{Connection, Outputs};

use crate::frames::{self, Frame, FrameError};
use crate::identity::{Identity, NUMBERS_MAX, number_of};

/// How long a replica waits before it dials one that it could not reach, or that has hung up.
const REDIAL: Duration = Duration::from_millis(100);

/// The way to one other replica.
#[derive(Debug)]
struct Way {
    /// Its number, whatever its id is.
    to: u8,
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
    service: u64,
    /// Who this is; no peer is dialled before that is known.
    own: Option<Identity>,
    ways: Vec<Way>,
    /// Those that were accepted, and who speaks on each once it has said so.
    accepted: HashMap<Connection, Option<Identity>>,
    unsent_bytes_max: usize,
    /// Messages that were not sent: no connection, or too much on it.
    pub(crate) dropped: u64,
    /// Connections that were closed for what came on them, and why the last one was.
    pub(crate) refused: u64,
    pub(crate) last_refusal: Option<String>,
}

impl Links {
    pub(crate) fn new(service: u64, peers: &[(ReplicaId, usize)], unsent_bytes_max: usize) -> Self {
        let down = State::Down { dial_at: Instant::ZERO };
        let ways =
            peers.iter().map(|(to, peer)| Way { to: number_of(*to), peer: *peer, state: down });
        Self {
            service,
            own: None,
            ways: ways.collect(),
            accepted: HashMap::new(),
            unsent_bytes_max,
            dropped: 0,
            refused: 0,
            last_refusal: None,
        }
    }

    /// From now on this is who speaks: connections on which it said that it is another replica end, and are dialled anew.
    pub(crate) fn speak_as<M>(&mut self, own: &Identity, now: Instant, out: &mut Outputs<M>) {
        self.own = Some(own.clone());
        for way in &mut self.ways {
            if let State::Up(connection) = way.state {
                out.close(connection);
                way.state = State::Down { dial_at: now };
            }
        }
    }

    /// Who is connected, by what they said last.
    pub(crate) fn speakers(&self) -> impl Iterator<Item = &Identity> {
        self.accepted.values().flatten()
    }

    /// Whether there is a way to a replica of this number.
    pub(crate) fn knows(&self, number: u8) -> bool {
        self.ways.iter().any(|way| way.to == number)
    }

    /// Dials whom it is time to dial. Gives when that is next.
    pub(crate) fn dial<M>(&mut self, now: Instant, out: &mut Outputs<M>) -> Option<Instant> {
        self.own.as_ref()?;
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
        if let Some(own) = &self.own {
            frames::put_greeting(self.service, own, out.send(connection));
        }
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

    /// Reads what has come, frame after frame, each told to `each`. What cannot be read ends the connection.
    pub(crate) fn read<M>(
        &mut self,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs<M>,
        mut each: impl FnMut(&Identity, Frame),
    ) {
        let mut used = 0;
        let result =
            self.read_all(connection, bytes, &mut used, out.certified(connection), &mut each);
        out.used(used);
        if let Err(why) = result {
            self.refuse(why.to_string());
            self.accepted.remove(&connection);
            out.used(bytes.len());
            out.close(connection);
        }
    }

    /// Something that came was refused.
    pub(crate) fn refuse(&mut self, why: String) {
        self.refused += 1;
        self.last_refusal = Some(why);
    }

    fn read_all(
        &mut self,
        connection: Connection,
        bytes: &[u8],
        used: &mut usize,
        certified: Option<u8>,
        each: &mut impl FnMut(&Identity, Frame),
    ) -> Result<(), FrameError> {
        let Some(speaker) = self.accepted.get_mut(&connection) else {
            // Nobody answers on a connection that was dialled.
            return Err(FrameError::NoReplica);
        };
        if speaker.is_none() {
            let Some((said, length)) = frames::greeting(bytes, self.service)? else {
                return Ok(());
            };
            if let Some(certified) = certified.filter(|it| *it != said.number) {
                return Err(FrameError::Certificate { said: said.number, certified });
            }
            *speaker = Some(said);
            *used = length;
        }
        let (Some(from), Some(own)) = (&*speaker, &self.own) else { return Ok(()) };
        agrees(own, from)?;
        while let Some((frame, length)) = frames::frame(&bytes[*used..])? {
            *used += length;
            if from.is_blank() && frame != Frame::Here {
                return Err(FrameError::Blank);
            }
            each(from, frame);
        }
        Ok(())
    }

    /// Says that this one is there, to all that are connected. One without a vote has nothing else to say.
    pub(crate) fn send_here<M>(&self, out: &mut Outputs<M>) {
        for way in &self.ways {
            if let State::Up(connection) = way.state {
                frames::put_here(out.send(connection));
            }
        }
    }

    /// Tells a newcomer its id.
    pub(crate) fn send_seat<M>(&self, number: u8, disk: u64, id: ReplicaId, out: &mut Outputs<M>) {
        let way = self.ways.iter().find(|way| way.to == number);
        if let Some(State::Up(connection)) = way.map(|way| way.state) {
            frames::put_seat(disk, id, out.send(connection));
        }
    }

    pub(crate) fn send<M>(&mut self, to: ReplicaId, message: &Message, out: &mut Outputs<M>) {
        let way = self.ways.iter().find(|way| way.to == number_of(to));
        match way.map(|way| way.state) {
            Some(State::Up(connection)) if out.unsent(connection) <= self.unsent_bytes_max => {
                frames::put_message(message, out.send(connection));
            }
            _ => self.dropped += 1,
        }
    }
}

/// Whether two may be of one group, by what they say.
fn agrees(own: &Identity, other: &Identity) -> Result<(), FrameError> {
    let number = other.number;
    let are_formatted = !own.is_blank() && !other.is_blank();
    if are_formatted && own.cluster != other.cluster {
        let (found, own) = (other.cluster, own.cluster);
        return Err(FrameError::Cluster { number, found, own });
    }
    // Founders are pinned with the name; one that is blank may be a newcomer of another number.
    let are_alike = match (own.is_blank(), other.is_blank()) {
        (true, true) => own.is_of_same_numbers(other),
        (true, false) => own.covers(other),
        (false, true) => other.covers(own),
        (false, false) => true,
    };
    if !are_alike {
        let (found, own) = (other.numbers().collect(), own.numbers().collect());
        return Err(FrameError::Numbers { number, found, own });
    }
    // Whoever has a founder's id has its disk.
    let is_impostor =
        are_formatted && other.id.0 < NUMBERS_MAX && !own.is_founded_with(other.number, other.disk);
    if is_impostor { Err(FrameError::Nobody) } else { Ok(()) }
}
