//! Connections that a node keeps up: dialled, and dialled again when they are lost.

use std::time::Duration;

use clock::Instant;
use process::{Connection, Outputs};

use crate::protocol::request::write_alive;

/// How often something is said on each connection: whoever only listens never learns that the other side is gone.
const SAY: Duration = Duration::from_millis(500);

/// How long one that could not be reached, or has hung up, is left alone.
const REDIAL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
enum State {
    Down { dial_at: Instant },
    Dialling,
    Up(Connection),
}

/// The node's peers, by their numbers.
#[derive(Debug)]
pub(crate) struct Dials {
    states: Vec<State>,
    say_at: Instant,
    /// One that would not understand, and is asked something often enough.
    silent_to: Option<usize>,
}

impl Dials {
    pub(crate) fn new(peers: usize) -> Self {
        let states = vec![State::Down { dial_at: Instant::ZERO }; peers];
        Self { states, say_at: Instant::ZERO, silent_to: None }
    }

    /// Nothing is said to this one only to say something.
    pub(crate) const fn silent_to(mut self, peer: usize) -> Self {
        self.silent_to = Some(peer);
        self
    }

    /// Dials whom it is time to dial, says something to the others now and then, and asks to be woken for what is not due yet.
    pub(crate) fn dial(&mut self, now: Instant, out: &mut Outputs) {
        if self.say_at <= now {
            self.say_at = now.plus(SAY);
            let silent = self.silent_to.and_then(|peer| self.connection_of(peer));
            let told = self.up_now().filter(|connection| Some(*connection) != silent);
            told.for_each(|connection| write_alive(out.send(connection)));
        }
        let mut next = Some(self.say_at);
        for (peer, state) in self.states.iter_mut().enumerate() {
            match *state {
                State::Down { dial_at } if dial_at <= now => {
                    *state = State::Dialling;
                    out.dial(peer);
                }
                State::Down { dial_at } => next = Some(next.map_or(dial_at, |at| at.min(dial_at))),
                State::Dialling | State::Up(_) => {}
            }
        }
        if let Some(at) = next {
            let at = out.wake().map_or(at, |wake| wake.min(at));
            out.wake_at(at);
        }
    }

    pub(crate) fn up(&mut self, peer: usize, connection: Connection) {
        self.states[peer] = State::Up(connection);
    }

    pub(crate) fn unreachable(&mut self, now: Instant, peer: usize) {
        self.states[peer] = State::Down { dial_at: now.plus(REDIAL) };
    }

    /// A connection has ended; gives whose it was.
    pub(crate) fn closed(&mut self, now: Instant, connection: Connection) -> Option<usize> {
        let peer = self.peer_of(connection)?;
        self.unreachable(now, peer);
        Some(peer)
    }

    pub(crate) fn peer_of(&self, connection: Connection) -> Option<usize> {
        self.states.iter().position(|state| matches!(state, State::Up(it) if *it == connection))
    }

    /// The connection to a peer, while it stands.
    pub(crate) fn connection_of(&self, peer: usize) -> Option<Connection> {
        match self.states.get(peer) {
            Some(State::Up(connection)) => Some(*connection),
            _ => None,
        }
    }

    /// The connections that stand.
    pub(crate) fn up_now(&self) -> impl Iterator<Item = Connection> {
        self.states.iter().filter_map(|state| match state {
            State::Up(connection) => Some(*connection),
            _ => None,
        })
    }
}
