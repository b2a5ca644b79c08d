//! The server as a value: requests in, answers out at the times that the queue gives. No socket, no clock.

mod batch;
mod frames;
mod http;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs};

use crate::clients::Clients;
use crate::commits::{Commit, Commits};
use crate::confession::Confession;
use crate::events::Events;
use crate::faults::{Calendar, Liar, Struck};
use crate::http_face::HttpReply;
use crate::ledger::{Ledger, RECORD_BYTES, Record};
use crate::limiter::Limiter;
use crate::options::Options;
use crate::protocol::{Answer, Code, REPLY_BYTES_MAX, write_answer};
use crate::queue::{Queue, Served};
use crate::registers::{Key, Registers};

/// The listener that speaks frames.
pub const FRAMES_LISTENER: usize = 0;
/// The listener that speaks HTTP/1.1.
pub const HTTP_LISTENER: usize = 1;

/// How long an acknowledged entry may be in the buffer only.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// The most records in one reply.
const RECORDS_MAX: usize = (REPLY_BYTES_MAX - 16) / RECORD_BYTES;

/// The most that wait to leave, whatever `queue_max` says: more are answered as overloaded. At about 100 bytes
/// each, what a client that never stops can make us hold.
const WAITING_MAX: usize = 4 << 20;

/// The server.
pub struct EchoNode {
    options: Options,
    queue: Queue,
    limiter: Option<Limiter>,
    /// The faults by time; unknown until the first transaction.
    calendar: Option<Calendar>,
    liar: Liar,
    commits: Commits,
    /// Where each client is, if that is asked for.
    clients: Option<Clients>,
    registers: Registers,
    departures: BinaryHeap<Reverse<Departure>>,
    departed: u64,
    lines: Vec<Line>,
    flush_at: Option<Instant>,
    /// The listener where it says its own metrics, if it does.
    metrics_listener: Option<usize>,
    /// Transactions and HTTP requests that have been served.
    served: u64,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Face {
    #[default]
    Frames,
    Http,
    Metrics,
}

/// What is kept of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    face: Face,
    /// When the last answer to an HTTP request leaves: the next may not overtake it.
    last_departure: Instant,
    /// Which of the connections that have had this place it is, and its batches that have not been answered.
    generation: u32,
    batches: u32,
    /// Closed from here: whatever is still read of it is of nobody.
    is_closed: bool,
}

/// Something that leaves later.
struct Departure {
    at: Instant,
    /// Those of the same moment leave in the order in which they came.
    order: u64,
    connection: Connection,
    what: What,
}

enum What {
    /// A transaction has been served.
    Commit(Commit),
    /// A late answer.
    Late(Commit),
    /// A read has been served.
    Read(Record, Key),
    /// All of a batch has been served.
    Batch(Box<batch::Served>),
    /// An answer that had only to wait for the end of a stall.
    Say(Answer),
    /// A question, asked during a stall.
    Status(u64, Vec<u64>),
    /// An HTTP request has been served.
    Http(HttpReply, Struck),
    /// An answer to an HTTP request that nothing is done to any more.
    HttpSay(HttpReply),
}

impl EchoNode {
    /// A server as the options say.
    #[must_use]
    pub fn new(options: Options, ledger: Ledger, confession: Confession, events: Events) -> Self {
        let queue = Queue::new(
            options.servers,
            options.service,
            options.distribution,
            options.queue_max,
            options.seed,
        );
        let faults = &options.faults;
        Self {
            queue,
            limiter: faults.limit.map(Limiter::new),
            calendar: faults.from_start.then(|| Calendar::new(faults, Instant::ZERO)),
            liar: Liar::new(faults.every, options.seed),
            commits: Commits::new(&options, ledger, confession, events),
            clients: options.ordered.then(Clients::default),
            registers: Registers::default(),
            departures: BinaryHeap::new(),
            departed: 0,
            lines: Vec::new(),
            flush_at: None,
            metrics_listener: None,
            served: 0,
            options,
        }
    }

    /// The same, saying its own metrics over HTTP at this listener.
    #[must_use]
    pub fn saying_metrics_at(self, listener: usize) -> Self {
        Self { metrics_listener: Some(listener), ..self }
    }

    /// The ledger.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.commits.ledger
    }

    /// What it lied about.
    #[must_use]
    pub const fn confession(&self) -> &Confession {
        &self.commits.confession
    }

    /// What it stamped of itself.
    #[must_use]
    pub const fn events(&self) -> &Events {
        &self.commits.events
    }

    /// Asks the limiter and the queue about a submission in a frame of its own.
    fn take(&mut self, now: Instant) -> Result<Served, (Code, Duration)> {
        self.limit(now)?;
        self.admit(now, self.options.per_frame, 1)
    }

    fn limit(&mut self, now: Instant) -> Result<(), (Code, Duration)> {
        let Some(limiter) = &mut self.limiter else { return Ok(()) };
        limiter.admit(now).map_err(|wait| (Code::Limited, wait))
    }

    /// Asks the queue about `count` transactions that come together. Gives when they are served, or why they are not
    /// and how long to wait.
    fn admit(
        &mut self,
        now: Instant,
        before: Duration,
        count: usize,
    ) -> Result<Served, (Code, Duration)> {
        if self.departures.len() >= WAITING_MAX {
            return Err((Code::Overloaded, Duration::ZERO));
        }
        let calendar =
            self.calendar.get_or_insert_with(|| Calendar::new(&self.options.faults, now));
        let factor = calendar.factor(now);
        let served = self.queue.admit(now, before, count, factor, &calendar.stalls);
        served.ok_or((Code::Overloaded, Duration::ZERO))
    }

    /// The first moment from now on at which the server is not stalled.
    fn thaw(&self, now: Instant) -> Instant {
        self.calendar.as_ref().map_or(now, |calendar| calendar.stalls.thaw(now))
    }

    /// The first moment from now on at which something is stored.
    fn store_thaw(&self, now: Instant) -> Instant {
        self.calendar.as_ref().map_or(now, |calendar| calendar.store_stalls.thaw(now))
    }

    fn leave(&mut self, at: Instant, connection: Connection, what: What) {
        self.departed += 1;
        self.departures.push(Reverse(Departure { at, order: self.departed, connection, what }));
    }

    /// Lets everything go whose time has come.
    fn release(&mut self, now: Instant, out: &mut Outputs) {
        while self.departures.peek().is_some_and(|Reverse(next)| next.at <= now) {
            let Some(Reverse(Departure { connection, what, .. })) = self.departures.pop() else {
                return;
            };
            match what {
                What::Commit(commit) => self.committed(now, connection, &commit, out),
                What::Late(commit) => self.commits.tell(now, connection, &commit, out),
                What::Read(record, key) => self.read(connection, &record, key, out),
                What::Batch(batch) => self.batch_served(now, connection, *batch, out),
                What::Say(answer) => write_answer(out.send(connection), answer),
                What::Status(run, ids) => {
                    self.commits.status(connection, run, ids.into_iter(), out);
                }
                What::Http(reply, struck) => self.http_served(now, connection, reply, struck, out),
                What::HttpSay(reply) => http::http_say(connection, reply, out),
            }
        }
    }

    fn plan(&mut self, now: Instant, out: &mut Outputs) {
        self.commits.release_stalled(now);
        if self.options.syncs {
            // What this turn says leaves when it is over, so one sync stands for all that it acknowledges.
            self.commits.sync_to_disk();
        }
        if self.flush_at.is_some_and(|at| at <= now) {
            self.commits.flush();
            self.flush_at = None;
        }
        let is_dirty = self.commits.ledger.is_dirty() || self.commits.events.is_dirty();
        if self.flush_at.is_none() && is_dirty {
            self.flush_at = Some(now.plus(FLUSH_EVERY));
        }
        let departure = self.departures.peek().map(|Reverse(next)| next.at);
        let release = self.commits.stalled_until();
        if let Some(at) = departure.into_iter().chain(self.flush_at).chain(release).min() {
            out.wake_at(at);
        }
    }
}

impl Node for EchoNode {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, listener } => {
                if self.lines.len() <= connection.index() {
                    self.lines.resize(connection.index() + 1, Line::default());
                }
                let face = match listener {
                    at if self.metrics_listener == Some(at) => Face::Metrics,
                    HTTP_LISTENER => Face::Http,
                    _ => Face::Frames,
                };
                let generation = connection.generation();
                self.lines[connection.index()] = Line { face, generation, ..Line::default() };
            }
            Input::Bytes(connection, bytes) => {
                self.release(now, out);
                match self.lines[connection.index()].face {
                    Face::Frames => self.read_frames(now, connection, bytes, out),
                    Face::Http => self.read_http(now, connection, bytes, out),
                    Face::Metrics => self.read_metrics(connection, bytes, out),
                }
            }
            Input::Closed(connection) => {
                self.commits.forget(connection);
                if let Some(clients) = &mut self.clients {
                    clients.forget(connection);
                }
            }
            Input::Wake => self.release(now, out),
            Input::Stop => {
                self.release(now, out);
                self.commits.sync(now);
            }
            // It dials nobody and keeps nothing on a disk.
            Input::Dialled { .. }
            | Input::Unreachable { .. }
            | Input::Drained(_)
            | Input::Persisted { .. }
            | Input::Replaced { .. }
            | Input::Extended { .. }
            | Input::Part { .. }
            | Input::Full { .. }
            | Input::Room { .. }
            | Input::TurnEnd => {}
        }
        self.plan(now, out);
    }
}

impl Ord for Departure {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Departure {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Departure {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Departure {}
