//! What queue, timestamp service and sequencer have alike: a door for requests, one for metrics, answers that are due later.

use std::collections::BTreeMap;

use clock::Instant;
use process::{Connection, Input, Outputs};
use wire::metrics::Number;

use crate::data::Hash;
use crate::known::{Guard, Standing};
use crate::protocol::{
    Frame, REQUEST_BYTES_MAX, Refused, kind, next_frame, write_frame, write_refused,
};

/// The listener that says metrics over HTTP.
pub const METRICS_LISTENER: usize = 1;
/// Bytes that may wait for one asker who does not read: beyond, nothing more of it is read until it has.
pub const UNSENT_BYTES_MAX: usize = 8 << 20;

/// Who asked, and the number that the answer has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// On which connection.
    pub connection: Connection,
    /// The asker's number.
    pub id: u64,
}

/// Which connections want metrics, and what came that was malformed.
#[derive(Debug, Default)]
pub struct Doors {
    says_metrics: Vec<bool>,
    /// Asks who comes for the shared secret; without, everybody is known.
    pub guard: Option<Guard>,
    standings: Vec<Standing>,
    /// Connections closed for what they sent.
    pub malformed: u64,
    /// Requests of strangers that were refused.
    pub strangers: u64,
}

impl Doors {
    /// For metrics.
    const fn numbers(&self) -> [Number; 2] {
        let malformed = "Connections closed for what they sent.";
        let strangers = "Requests of strangers that were refused.";
        [
            ("ledger_malformed_total", true, malformed, self.malformed),
            ("ledger_strangers_total", true, strangers, self.strangers),
        ]
    }

    /// A connection was accepted.
    pub fn opened(&mut self, connection: Connection, listener: usize) {
        let index = connection.index();
        if self.says_metrics.len() <= index {
            self.says_metrics.resize(index + 1, false);
        }
        self.says_metrics[index] = listener == METRICS_LISTENER;
        self.standings.resize(self.says_metrics.len(), Standing::Stranger);
        self.standings[index] = Standing::Stranger;
    }

    /// Whether who asks on a connection has the secret, if there is one.
    fn is_known(&self, connection: Connection) -> bool {
        let standing = self.standings.get(connection.index());
        self.guard.is_none() || standing == Some(&Standing::Known)
    }

    /// Answers a frame of the handshake; `false`: it is none.
    fn shakes_hands(&mut self, asked: Asked, frame: &Frame<'_>, out: &mut Outputs) -> bool {
        let (index, to) = (asked.connection.index(), out.send(asked.connection));
        match (frame.kind, &mut self.guard, Hash::try_from(frame.payload)) {
            (kind::HELLO, Some(guard), Ok(asker)) => {
                let (greeted, answer) = guard.greet(asker);
                self.standings[index] = greeted;
                write_frame(to, kind::GREETED, asked.id, &[&answer]);
            }
            (kind::PROVE, Some(guard), Ok(proof)) => {
                if guard.is_proven(self.standings[index], &proof) {
                    self.standings[index] = Standing::Known;
                    write_frame(to, kind::NOTED, asked.id, &[]);
                } else {
                    self.standings[index] = Standing::Stranger;
                    self.strangers += 1;
                    write_refused(to, asked.id, Refused::Unknown);
                }
            }
            (kind::HELLO | kind::PROVE, ..) => write_refused(to, asked.id, Refused::Malformed),
            _ => return false,
        }
        true
    }

    /// Whether it was accepted at the door for metrics.
    #[must_use]
    pub fn wants_metrics(&self, connection: Connection) -> bool {
        self.says_metrics.get(connection.index()).copied().unwrap_or_default()
    }
}

/// The requests in what came on a connection.
#[derive(Debug)]
pub struct Requests<'a> {
    connection: Connection,
    bytes: &'a [u8],
    used: usize,
    is_malformed: bool,
}

impl<'a> Requests<'a> {
    /// Of these bytes.
    #[must_use]
    pub const fn of(connection: Connection, bytes: &'a [u8]) -> Self {
        Self { connection, bytes, used: 0, is_malformed: false }
    }

    /// The next whole one, as long as the asker reads its answers.
    pub fn next(&mut self, out: &Outputs) -> Option<(Asked, Frame<'a>)> {
        if self.is_malformed || out.unsent(self.connection) >= UNSENT_BYTES_MAX {
            return None;
        }
        match next_frame(&self.bytes[self.used..], REQUEST_BYTES_MAX) {
            Ok(frame) => {
                let frame = frame?;
                self.used += frame.used;
                Some((Asked { connection: self.connection, id: frame.id }, frame))
            }
            Err(_) => {
                self.is_malformed = true;
                None
            }
        }
    }

    /// Says how far was read, and closes the connection if what came is no request.
    pub fn end(self, doors: &mut Doors, out: &mut Outputs) {
        if self.is_malformed {
            doors.malformed += 1;
            out.used(self.bytes.len());
            out.close(self.connection);
        } else {
            out.used(self.used);
        }
    }
}

/// A service with two doors: what it does with who comes and with what they send.
pub trait Answering {
    /// Its doors.
    fn doors(&mut self) -> &mut Doors;

    /// Its numbers, without those of its doors.
    fn metrics(&self) -> Vec<Number>;

    /// Whether requests of this kind are taken from those alone who have the secret.
    fn is_guarded(&self, kind: u8) -> bool;

    /// Answers a request, at once or later.
    fn asked(&mut self, now: Instant, asked: Asked, frame: Frame<'_>, out: &mut Outputs);

    /// Takes up who was accepted, and answers what came; nothing else is looked at.
    fn hear(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, listener } => self.doors().opened(connection, listener),
            Input::Bytes(connection, bytes) if self.doors().wants_metrics(connection) => {
                let of_doors = self.doors().numbers();
                let text = || wire::metrics::text(&[&self.metrics()[..], &of_doors].concat());
                let (used, is_over) = wire::metrics::serve(bytes, text, out.send(connection));
                out.used(used);
                if is_over {
                    out.close(connection);
                }
            }
            Input::Bytes(connection, bytes) => {
                let mut requests = Requests::of(connection, bytes);
                while let Some((asked, frame)) = requests.next(out) {
                    if self.doors().shakes_hands(asked, &frame, out) {
                        continue;
                    }
                    if self.is_guarded(frame.kind) && !self.doors().is_known(connection) {
                        self.doors().strangers += 1;
                        write_refused(out.send(connection), asked.id, Refused::Unknown);
                        continue;
                    }
                    self.asked(now, asked, frame, out);
                }
                requests.end(self.doors(), out);
            }
            _ => {}
        }
    }
}

/// Things that are to be done later, in the order of their times.
#[derive(Debug)]
pub struct Later<T> {
    due: BTreeMap<(Instant, u64), T>,
    sequence: u64,
}

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self { due: BTreeMap::new(), sequence: 0 }
    }
}

impl<T> Later<T> {
    /// To be done at `at`.
    pub fn add(&mut self, at: Instant, what: T) {
        self.sequence += 1;
        self.due.insert((at, self.sequence), what);
    }

    /// The next that is due.
    pub fn take(&mut self, now: Instant) -> Option<T> {
        let (key, _) = self.due.first_key_value().filter(|((at, _), _)| *at <= now)?;
        let key = *key;
        self.due.remove(&key)
    }

    /// When the first is due.
    #[must_use]
    pub fn first(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}
