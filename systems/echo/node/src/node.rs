//! The server as a value: requests in, answers out at the times that the queue gives. No socket, no clock.

mod batch;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs};
use wire::frames::next_frame;

use crate::commits::{Commit, Commits};
use crate::confession::Confession;
use crate::events::{Events, Stage};
use crate::faults::{Calendar, Liar, Lie, Struck};
use crate::http_face::{self, HttpReply};
use crate::ledger::{Ledger, RECORD_BYTES, Record};
use crate::limiter::Limiter;
use crate::metrics::{self, Said};
use crate::options::Options;
use crate::protocol::{
    Answer, Code, REPLY_BYTES_MAX, Request, Submit, read_request, write_answer, write_checked,
    write_entries, write_subscribed, write_synced, write_value,
};
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

    fn read_frames(
        &mut self,
        now: Instant,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        let mut used = 0;
        loop {
            match next_frame(&bytes[used..]) {
                Ok(Some(frame)) => {
                    used += frame.used;
                    if let Ok(request) = read_request(frame.payload) {
                        self.request(now, connection, request, out);
                        continue;
                    }
                }
                Ok(None) => break,
                Err(_) => {}
            }
            out.close(connection);
            used = bytes.len();
            break;
        }
        out.used(used);
    }

    fn request(
        &mut self,
        now: Instant,
        connection: Connection,
        request: Request<'_>,
        out: &mut Outputs,
    ) {
        match request {
            Request::Submit(submit) => self.submit(now, connection, &submit, out),
            Request::Batch(batch) if self.options.batches => {
                self.batch(now, connection, &batch, out);
            }
            // Not a word of the protocol, unless it was asked for.
            Request::Batch(_) => out.close(connection),
            Request::Subscribe { run } => {
                if self.commits.subscribe(connection, run) {
                    write_subscribed(out.send(connection), run);
                } else {
                    out.close(connection);
                }
            }
            Request::Status { run, ids } => {
                let ids = ids
                    .chunks_exact(8)
                    .map(|id| u64::from_le_bytes(id.try_into().expect("exact chunks")));
                match self.thaw(now) {
                    at if at > now => {
                        self.leave(at, connection, What::Status(run, ids.collect()));
                    }
                    _ => self.commits.status(connection, run, ids, out),
                }
            }
            Request::Sync => {
                self.commits.sync(now);
                write_synced(out.send(connection), self.commits.ledger.entries());
            }
            Request::Ledger { from, count_max } => {
                let count = usize::try_from(count_max).unwrap_or(usize::MAX).min(RECORDS_MAX);
                let ledger = &self.commits.ledger;
                write_entries(out.send(connection), from, |out| ledger.copy(from, count, out));
            }
            Request::Check { kind } => {
                let is_taken = self.options.faults.refused_kind != Some(kind);
                write_checked(out.send(connection), kind, is_taken);
            }
        }
    }

    fn submit(
        &mut self,
        now: Instant,
        connection: Connection,
        submit: &Submit<'_>,
        out: &mut Outputs,
    ) {
        self.commits.events.stamp(Stage::Received, submit.tx, now, now);
        let is_valid = submit.is_intact && self.options.faults.refused_kind != Some(submit.kind);
        let admitted = if is_valid { self.take(now) } else { Err((Code::Invalid, Duration::ZERO)) };
        let tx = submit.tx;
        match admitted {
            Err((code, wait)) => {
                if code == Code::Invalid && self.options.faults.logs_refused {
                    let (run, submit_crc) = (submit.run, submit.crc);
                    let record = Record { run, tx, submit_crc, is_refused: true };
                    self.commits.ledger.push(&record);
                }
                let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
                self.say(now, connection, Answer { code, wait_ms, tx }, out);
            }
            Ok(served) if self.options.reads == Some(submit.kind) => {
                self.announce(now, connection, tx, served.start, false, out);
                let (run, submit_crc) = (submit.run, submit.crc);
                let record = Record { run, tx, submit_crc, is_refused: false };
                let key = Key::of(run, submit.payload);
                if served.departure > now {
                    self.leave(served.departure, connection, What::Read(record, key));
                } else {
                    self.read(connection, &record, key, out);
                }
            }
            Ok(served) => {
                let struck = self.liar.strike();
                self.announce(now, connection, tx, served.start, struck.by(Lie::Unordered), out);
                let (run, submit_crc) = (submit.run, submit.crc);
                let record = Record { run, tx, submit_crc, is_refused: false };
                let key = Key::of(run, submit.payload);
                let (started, served) = (served.start, served.departure);
                let commit = Commit { record, key, struck, received: now, started, served };
                if served > now {
                    self.leave(served, connection, What::Commit(commit));
                } else {
                    self.committed(now, connection, &commit, out);
                }
            }
        }
    }

    /// Says the stages below committed, each at its time.
    fn announce(
        &mut self,
        now: Instant,
        connection: Connection,
        tx: u64,
        start: Instant,
        is_unordered: bool,
        out: &mut Outputs,
    ) {
        let answer = |code| Answer { code, wait_ms: 0, tx };
        match (self.options.stages, is_unordered) {
            (2, false) => self.say(now, connection, answer(Code::Accepted), out),
            (3, false) => {
                self.say(now, connection, answer(Code::Accepted), out);
                if start > now {
                    self.leave(start, connection, What::Say(answer(Code::Started)));
                } else {
                    self.say(now, connection, answer(Code::Started), out);
                }
            }
            // Accepted is said with the commit.
            (3, true) => self.say(now, connection, answer(Code::Started), out),
            _ => {}
        }
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

    fn say(&mut self, now: Instant, connection: Connection, answer: Answer, out: &mut Outputs) {
        match self.thaw(now) {
            at if at > now => self.leave(at, connection, What::Say(answer)),
            _ => write_answer(out.send(connection), answer),
        }
    }

    /// The first moment from now on at which something is stored.
    fn store_thaw(&self, now: Instant) -> Instant {
        self.calendar.as_ref().map_or(now, |calendar| calendar.store_stalls.thaw(now))
    }

    fn committed(
        &mut self,
        now: Instant,
        connection: Connection,
        commit: &Commit,
        out: &mut Outputs,
    ) {
        self.served += 1;
        self.commits.store(now, self.store_thaw(now), commit);
        if self.options.reads.is_some() {
            self.registers.write(commit.key, commit.record.tx);
        }
        if commit.struck.by(Lie::Late) {
            self.commits.confess(Lie::Late, commit.record.tx);
            self.leave(now.plus(self.options.faults.late_by), connection, What::Late(*commit));
        } else {
            self.commits.answer(now, connection, commit, out);
        }
    }

    /// Says what a key holds, or lies about it.
    fn read(&mut self, connection: Connection, record: &Record, key: Key, out: &mut Outputs) {
        let tx = record.tx;
        if self.options.faults.logs_reads {
            self.commits.ledger.push(record);
        }
        let stale = if self.liar.strike_read() { self.registers.stale(key) } else { None };
        if stale.is_some() {
            self.liar.gave_stale();
            self.commits.confess(Lie::Stale, tx);
        }
        let value = stale.or_else(|| self.registers.read(key));
        write_value(out.send(connection), tx, value);
    }

    fn read_http(&mut self, now: Instant, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let mut used = 0;
        loop {
            match http_face::read(&bytes[used..]) {
                Ok(Some((reply, length))) => {
                    used += length;
                    self.http_request(now, connection, reply, out);
                    if reply.keep_alive {
                        continue;
                    }
                    // What comes behind the last request has no meaning.
                    used = bytes.len();
                }
                Ok(None) => {}
                Err(why) => {
                    http_face::write_refusal(out.send(connection), &why);
                    out.close(connection);
                    used = bytes.len();
                }
            }
            break;
        }
        out.used(used);
    }

    fn read_metrics(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let waiting =
            |it: &&Reverse<Departure>| matches!(it.0.what, What::Commit(_) | What::Http(..));
        let queued = self.departures.iter().filter(waiting).count();
        let said = Said { commits: self.served, queued: u64::try_from(queued).unwrap_or(u64::MAX) };
        let mut used = 0;
        loop {
            let mut reply = Vec::new();
            match metrics::answer(&bytes[used..], said, &mut reply) {
                Ok(None) => break,
                Ok(Some((length, is_kept))) => {
                    used += length;
                    out.send(connection).extend_from_slice(&reply);
                    if is_kept {
                        continue;
                    }
                }
                Err(why) => http_face::write_refusal(out.send(connection), &why),
            }
            out.close(connection);
            used = bytes.len();
            break;
        }
        out.used(used);
    }

    fn http_request(
        &mut self,
        now: Instant,
        connection: Connection,
        reply: HttpReply,
        out: &mut Outputs,
    ) {
        let last = self.lines[connection.index()].last_departure;
        let taken = self.limit(now).and_then(|()| self.admit(now, Duration::ZERO, 1));
        let (reply, struck, departure) = match taken {
            Ok(served) => (reply, self.liar.strike(), served.departure),
            Err((Code::Limited, wait)) => {
                let reply = reply.limited(self.allowed_per_s(), whole_seconds(wait));
                (reply, Struck::default(), self.thaw(now))
            }
            Err(_) => (reply.overloaded(), Struck::default(), self.thaw(now)),
        };
        let departure = departure.max(last);
        if departure <= now {
            self.http_served(now, connection, reply, struck, out);
            return;
        }
        self.lines[connection.index()].last_departure = departure;
        self.leave(departure, connection, What::Http(reply, struck));
    }

    fn http_served(
        &mut self,
        now: Instant,
        connection: Connection,
        reply: HttpReply,
        struck: Struck,
        out: &mut Outputs,
    ) {
        self.served += 1;
        if struck.is_none() {
            http_say(connection, reply, out);
            return;
        }
        let mut by =
            |lie| struck.by(lie).then(|| self.commits.confess(lie, struck.number)).is_some();
        if by(Lie::Drop) {
        } else if by(Lie::Close) {
            out.close(connection);
        } else if by(Lie::Garbage) {
            self.commits.garbage(out.send(connection));
        } else if by(Lie::Late) {
            let at = now.plus(self.options.faults.late_by);
            self.lines[connection.index()].last_departure = at;
            self.leave(at, connection, What::HttpSay(reply));
        } else {
            if by(Lie::Twice) {
                reply.write(out.send(connection));
            }
            http_say(connection, reply, out);
        }
    }

    fn allowed_per_s(&self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float saturates, and a rate is not negative"
        )]
        self.options.faults.limit.map_or(0, |limit| limit.rate.round() as u32)
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
                What::HttpSay(reply) => http_say(connection, reply, out),
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
            Input::Closed(connection) => self.commits.forget(connection),
            Input::Wake => self.release(now, out),
            Input::Stop => {
                self.release(now, out);
                self.commits.sync(now);
            }
        }
        self.plan(now, out);
    }
}

fn http_say(connection: Connection, reply: HttpReply, out: &mut Outputs) {
    reply.write(out.send(connection));
    if !reply.keep_alive {
        out.close(connection);
    }
}

fn whole_seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
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
