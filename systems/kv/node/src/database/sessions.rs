//! Client sessions: what makes a transaction that is sent twice happen once. Of each client the last sequence and its
//! result are kept.
//!
//! How many there are is bounded; a new one beyond takes the place of one that has been idle for long. Both are counted in
//! positions, not in time, so every replica forgets the same session at the same transaction. A client that was forgotten
//! could be mistaken for a new one and its transaction be executed twice: so each request says which position its sender had
//! learned before the client's first transaction (`since`), and an unknown client is new only if no session has been
//! forgotten that was used after it.

use std::collections::HashMap;

use super::hash::BuildMix;
use super::text::Text;
use super::{Limits, Status};

/// Sessions that are looked at for an idle one, each time that a new one finds no place.
const LOOKED_AT_MAX: usize = 16;

/// What a session's place counts for in the bound on memory.
const SESSION_BYTES: u64 = 96;

/// One client.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whose.
    pub client: u64,
    /// The sequence of its last transaction.
    pub sequence: u64,
    /// The position that the database had come to when it was last used.
    pub used: u64,
    /// The table that it named last: where to look first. No result rests on it.
    pub table_hint: u32,
    /// The result of its last transaction.
    pub result: Text,
}

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    slots: Vec<Session>,
    places: HashMap<u64, u32, BuildMix>,
    /// Where the search for an idle one goes on.
    cursor: usize,
    /// Every session that was forgotten was last used before this position.
    forgotten_to: u64,
    forgotten: u64,
    bytes: u64,
    sessions_max: usize,
    idle_min: u64,
}

/// What a request is to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It is new: to be executed, for the session at this place.
    Next(usize),
    /// It has been executed; its result is at this place.
    Repeated(usize),
    /// It is not executed.
    Refused(Status),
}

impl Sessions {
    /// None yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            slots: Vec::new(),
            places: HashMap::default(),
            cursor: 0,
            forgotten_to: 0,
            forgotten: 0,
            bytes: 0,
            sessions_max: usize::try_from(limits.sessions_max.max(1)).unwrap_or(usize::MAX),
            idle_min: limits.session_idle_min,
        }
    }

    /// Says what a request is. `position` is what the database has come to.
    pub fn admit(&mut self, client: u64, sequence: u64, since: u64, position: u64) -> Admitted {
        if let Some(place) = self.places.get(&client) {
            let place = *place as usize;
            let session = &mut self.slots[place];
            session.used = position;
            return match sequence.cmp(&session.sequence) {
                std::cmp::Ordering::Greater => Admitted::Next(place),
                std::cmp::Ordering::Equal => Admitted::Repeated(place),
                std::cmp::Ordering::Less => Admitted::Refused(Status::TooLate),
            };
        }
        if since < self.forgotten_to {
            return Admitted::Refused(Status::SessionExpired);
        }
        match self.place_for(client, position) {
            Some(place) => Admitted::Next(place),
            None => Admitted::Refused(Status::TooManySessions),
        }
    }

    /// Where a client's session would look for its table; a number that no table has, if it has none.
    #[must_use]
    pub fn hint_of(&self, client: u64) -> u32 {
        self.places.get(&client).map_or(u32::MAX, |place| self.slots[*place as usize].table_hint)
    }

    /// The places whose sessions a request of a client may change.
    pub fn places_of(&self, client: u64) -> impl Iterator<Item = usize> {
        let own = self.places.get(&client).map(|place| *place as usize);
        let is_full = own.is_none() && self.slots.len() >= self.sessions_max;
        let looked_at = if is_full { LOOKED_AT_MAX } else { 0 };
        let (cursor, count) = (self.cursor, self.slots.len());
        own.into_iter().chain((0..looked_at).map(move |more| (cursor + more) % count))
    }

    /// The session at a place.
    #[must_use]
    pub fn at(&self, place: usize) -> &Session {
        &self.slots[place]
    }

    /// Where the session at a place looks for its table first.
    pub fn hint(&mut self, place: usize, table: u32) {
        self.slots[place].table_hint = table;
    }

    /// Keeps the result of what was executed for the session at `place`.
    pub fn keep(&mut self, place: usize, sequence: u64, position: u64, result: &[u8]) {
        let session = &mut self.slots[place];
        self.bytes -= session.result.heap_bytes();
        session.sequence = sequence;
        session.used = position;
        session.result = Text::new(result);
        self.bytes += session.result.heap_bytes();
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many were forgotten.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// What they count for in the bound on memory.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The numbers that a snapshot has beside the sessions.
    #[must_use]
    pub const fn counters(&self) -> [u64; 3] {
        [self.cursor as u64, self.forgotten_to, self.forgotten]
    }

    /// The sessions in the order of their places.
    #[must_use]
    pub fn all(&self) -> &[Session] {
        &self.slots
    }

    /// Takes over the numbers of a snapshot.
    pub fn set_counters(&mut self, [cursor, forgotten_to, forgotten]: [u64; 3]) {
        self.cursor = usize::try_from(cursor).unwrap_or(0);
        self.forgotten_to = forgotten_to;
        self.forgotten = forgotten;
    }

    /// Adds a session of a snapshot; `false`: there is one of that client.
    pub fn restore(&mut self, session: Session) -> bool {
        let place = u32::try_from(self.slots.len()).expect("bounded by their number");
        self.bytes += SESSION_BYTES + session.result.heap_bytes();
        let is_new = self.places.insert(session.client, place).is_none();
        self.slots.push(session);
        is_new
    }

    fn place_for(&mut self, client: u64, position: u64) -> Option<usize> {
        // A sequence of 0 is below the first one that a client may use.
        let result = Text::new(&[]);
        let new = Session { client, sequence: 0, used: position, table_hint: u32::MAX, result };
        if self.slots.len() < self.sessions_max {
            self.restore(new);
            return Some(self.slots.len() - 1);
        }
        for _ in 0..LOOKED_AT_MAX {
            let place = self.cursor % self.slots.len();
            self.cursor = place + 1;
            let old = &self.slots[place];
            if position.saturating_sub(old.used) < self.idle_min {
                continue;
            }
            self.forgotten += 1;
            self.forgotten_to = self.forgotten_to.max(old.used + 1);
            self.bytes -= old.result.heap_bytes();
            self.places.remove(&old.client);
            self.places.insert(client, u32::try_from(place).expect("bounded by their number"));
            self.slots[place] = new;
            return Some(place);
        }
        None
    }
}
