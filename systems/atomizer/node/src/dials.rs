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
pub(crate) struct Dials(Vec<State>, Instant);

impl Dials {
    pub(crate) fn new(peers: usize) -> Self {
        Self(vec![State::Down { dial_at: Instant::ZERO }; peers], Instant::ZERO)
    }

    /// Dials whom it is time to dial, says something to the others now and then, and asks to be woken for what is not due yet.
    pub(crate) fn dial(&mut self, now: Instant, out: &mut Outputs) {
        if self.1 <= now {
            self.1 = now.plus(SAY);
            self.up_now().for_each(|connection| write_alive(out.send(connection)));
        }
        let mut next = Some(self.1);
        for (peer, state) in self.0.iter_mut().enumerate() {
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
        self.0[peer] = State::Up(connection);
    }

    pub(crate) fn unreachable(&mut self, now: Instant, peer: usize) {
        self.0[peer] = State::Down { dial_at: now.plus(REDIAL) };
    }

    /// A connection has ended; gives whose it was.
    pub(crate) fn closed(&mut self, now: Instant, connection: Connection) -> Option<usize> {
        let peer = self.peer_of(connection)?;
        self.unreachable(now, peer);
        Some(peer)
    }

    pub(crate) fn peer_of(&self, connection: Connection) -> Option<usize> {
        self.0.iter().position(|state| matches!(state, State::Up(it) if *it == connection))
    }

    /// The connections that stand.
    pub(crate) fn up_now(&self) -> impl Iterator<Item = Connection> {
        self.0.iter().filter_map(|state| match state {
            State::Up(connection) => Some(*connection),
            _ => None,
        })
    }
}
