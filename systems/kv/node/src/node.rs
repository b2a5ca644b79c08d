//! A replica as a value: requests in, answers out. No socket and no clock.
//!
//! What clients submit waits until the log can take another entry; then all of it becomes one. Once that is decided it is
//! carried out, and the results leave. The order of entries comes from `order`: of a group of replicas, or of this one alone.

use std::collections::VecDeque;

use clock::Instant;
use process::{Connection, Input, Node, Outputs, Stored};
use replicated::{Config, Event, Group, NoChange, Order, Settings, StartError};
use wire::frames::{LENGTH_BYTES, next_frame};

use crate::database::group::Group as GroupOf;
use crate::database::results::write_failed;
use crate::database::snapshot::SnapshotReader;
use crate::database::{Database, Limits, RESULT_BYTES_MAX, Status};
use crate::ledger::Ledger;
use crate::metrics::{self, Counts};
use crate::protocol::{
    self, Digest, KEY_BYTES, NOBODY, PART_BYTES_MAX, REQUEST_BYTES_MAX, Reads, Request, State,
    VERSION, Welcome, Why, read_request, write_digest, write_refused, write_results, write_state,
    write_voters, write_welcome,
};

mod entries;
mod submissions;

pub(crate) use submissions::ENTRY_BYTES;
use submissions::{Asked, Submissions};

/// The listener for clients.
pub const CLIENTS_LISTENER: usize = 0;
/// The listener for the other replicas.
pub const PEERS_LISTENER: usize = 1;
/// The listener that says metrics over HTTP, where there is one.
pub const METRICS_LISTENER: usize = 2;

/// Answers that wait for one client to take them, before nothing more of it is taken.
const ANSWERS_BYTES_MAX: usize = 32 << 20;

/// Answers of one step, to all clients together: what waits from earlier steps is bounded by the shell.
const ANSWERS_OF_STEP_BYTES_MAX: usize = 128 << 20;

/// Beyond that whoever is answered with little is still answered.
const SMALL_ANSWER_BYTES: usize = 4 << 10;

/// Reads of all clients that wait for the leader to make sure that it is one.
const ASKED_READ_BYTES_MAX: usize = 64 << 20;

/// A replica.
pub struct KvNode {
    replica: u8,
    database: Database,
    ledger: Ledger,
    lines: Vec<Line>,
    /// Connections that said hello while nobody was known to lead: a welcome that sends nobody anywhere would only be asked
    /// for again.
    unwelcomed: Vec<Connection>,
    /// Bytes of answers in this step.
    answered_bytes: usize,
    order: Order,
    submissions: Submissions,
    /// Reads that wait for the leader to make sure that it is one.
    asked_reads: VecDeque<AskedRead>,
    asked_read_bytes: usize,
    next_read: u64,
    /// Its log waits for room on its disk.
    is_disk_full: bool,
    counts: Counts,
    scratch: Vec<u8>,
    /// The last entry of the snapshot that is being written.
    snapshot_through: u64,
    /// A chunk of it; kept for its memory.
    chunk: Vec<u8>,
    /// The snapshot of another replica that comes in parts.
    installing: Option<Box<SnapshotReader>>,
    /// What was asked for last, and how many entries had been carried out.
    digest: Option<(u64, Digest)>,
    /// The key that operators show; without one there are no operators.
    operators_key: Option<[u8; KEY_BYTES]>,
}

/// What is kept of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    says_metrics: bool,
    is_greeted: bool,
}

/// Reads that wait.
#[derive(Debug)]
struct AskedRead {
    id: u64,
    connection: Connection,
    number: u64,
    count: u32,
    bytes: Vec<u8>,
}

impl KvNode {
    /// A replica of this number that decides alone, empty.
    #[must_use]
    pub fn new(replica: u8, limits: Limits, ledger: Ledger) -> Self {
        Self::of(replica, Database::new(limits), ledger, Order::alone())
    }

    /// A replica of a group, as its disk left it.
    ///
    /// # Errors
    /// When its disk is damaged: it must not take part.
    pub fn of_group(
        config: Config,
        settings: &Settings,
        stored: &Stored,
        limits: Limits,
        ledger: Ledger,
    ) -> Result<Self, StartError> {
        let replica = config.id.0;
        let started = Group::start(config, settings, stored)?;
        let database = match &started.snapshot {
            None => Database::new(limits),
            Some((through, bytes)) => entries::read_snapshot(limits, bytes)
                .map_err(|_| StartError::Snapshot { through: *through })?,
        };
        let through = started.snapshot.map_or(0, |(through, _)| through);
        Ok(Self::of(replica, database, ledger, Order::agreed(started.group, through)))
    }

    fn of(replica: u8, database: Database, ledger: Ledger, order: Order) -> Self {
        Self {
            replica,
            database,
            ledger,
            lines: Vec::new(),
            unwelcomed: Vec::new(),
            answered_bytes: 0,
            order,
            submissions: Submissions::default(),
            asked_reads: VecDeque::new(),
            asked_read_bytes: 0,
            next_read: 0,
            is_disk_full: false,
            counts: Counts::default(),
            scratch: Vec::new(),
            snapshot_through: 0,
            chunk: Vec::new(),
            installing: None,
            digest: None,
            operators_key: None,
        }
    }

    /// The same with operators, who show this key.
    #[must_use]
    pub fn with_operators(mut self, key: Option<[u8; KEY_BYTES]>) -> Self {
        self.operators_key = key;
        self
    }

    /// The order of its entries: who leads, what is chosen.
    #[must_use]
    pub const fn order(&self) -> &Order {
        &self.order
    }

    /// The database.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Whether its log waits for room on its disk: what it is sent is not acknowledged until there is some.
    #[must_use]
    pub const fn is_disk_full(&self) -> bool {
        self.is_disk_full
    }

    /// Its own numbers.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    fn read_frames(
        &mut self,
        now: Instant,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        let read: Result<(), ()> = out.read_pieces(bytes, |rest, out| {
            let Some(frame) = next_frame(rest).map_err(drop)? else {
                // What announces more than any request has is not waited for.
                return if announces_more(rest, REQUEST_BYTES_MAX) { Err(()) } else { Ok(None) };
            };
            let request = read_request(frame.payload).map_err(drop)?;
            let is_taken = self.request(now, connection, request, out);
            if is_taken { Ok(Some(frame.used)) } else { Err(()) }
        });
        if read.is_err() {
            self.counts.malformed += 1;
            self.unwelcomed.retain(|it| *it != connection);
            write_refused(out.send(connection), 0, Why::Malformed, self.leader());
            out.close(connection);
        }
    }

    /// Who leads as far as is known here, or [`NOBODY`].
    fn leader(&self) -> u8 {
        self.order.leader(self.replica).unwrap_or(NOBODY)
    }

    /// Takes a request; `false`: it is not of the protocol.
    fn request(
        &mut self,
        now: Instant,
        connection: Connection,
        request: Request<'_>,
        out: &mut Outputs,
    ) -> bool {
        let leader = self.leader();
        let line = &mut self.lines[connection.index()];
        match request {
            Request::Hello { database, .. }
                if ![0, self.order.cluster()].contains(&database) && self.order.cluster() != 0 =>
            {
                self.unwelcomed.retain(|it| *it != connection);
                write_refused(out.send(connection), 0, Why::OtherDatabase, leader);
                out.close(connection);
            }
            Request::Hello { version, .. } => {
                let is_greeted = version == VERSION;
                let was_greeted = std::mem::replace(&mut line.is_greeted, is_greeted);
                if is_greeted && leader == NOBODY && !was_greeted {
                    self.unwelcomed.push(connection);
                } else {
                    self.welcome(connection, leader, out);
                }
                return is_greeted;
            }
            Request::Status => {
                let state = State {
                    replica: self.replica,
                    leader,
                    keeps_ledger: self.ledger.is_kept(),
                    position: self.database.position(),
                    entries: self.counts.entries,
                    is_disk_full: self.is_disk_full,
                    has_vote: self.order.has_vote(),
                    database: self.order.cluster(),
                };
                write_state(out.send(connection), &state);
            }
            _ if !line.is_greeted => return false,
            Request::Submit { number, group, bytes } => {
                self.submit(connection, number, &group, bytes, out);
            }
            Request::Read { number, reads } => self.read(now, connection, number, reads, out),
            Request::Ledger(from) => self.give_ledger(connection, from, out),
            Request::Digest => self.give_digest(connection, out),
            Request::Votes { change, key } => self.votes(connection, change, key, out),
        }
        true
    }

    /// An operator asks for a change of votes, or for what they are.
    fn votes(
        &mut self,
        connection: Connection,
        change: Option<(u8, bool)>,
        key: &[u8; KEY_BYTES],
        out: &mut Outputs,
    ) {
        // Every byte is looked at, so that how long it takes says nothing of where they differ.
        let differ = |own: &[u8; KEY_BYTES]| {
            own.iter().zip(key).fold(0, |all, (own, shown)| all | (own ^ shown))
        };
        let is_operator = self.operators_key.as_ref().is_some_and(|own| differ(own) == 0);
        let refused = match change {
            _ if !is_operator => Some(Why::NotOperator),
            None => None,
            Some((number, has_vote)) => self.order.want_vote(number, has_vote).err().map(Why::from),
        };
        let leader = self.leader();
        let out = out.send(connection);
        match refused {
            Some(why) => write_refused(out, 0, why, leader),
            None => match self.order.group() {
                Some(group) => write_voters(out, group.voters()),
                None => write_voters(out, std::iter::once(self.replica)),
            },
        }
    }

    fn welcome(&self, connection: Connection, leader: u8, out: &mut Outputs) {
        let welcome = Welcome {
            version: VERSION,
            replica: self.replica,
            leader,
            position: self.database.position(),
        };
        write_welcome(out.send(connection), &welcome);
    }

    fn submit(
        &mut self,
        connection: Connection,
        number: u64,
        group: &GroupOf<'_>,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        if group.count() == 0 {
            return;
        }
        if !self.order.leads() {
            write_refused(out.send(connection), number, Why::NotLeader, self.leader());
        } else if is_owed_much(connection, out)
            || !self.submissions.push(Asked { connection, number }, bytes)
        {
            self.refuse_as_busy(connection, number, out);
        }
    }

    fn read(
        &mut self,
        now: Instant,
        connection: Connection,
        number: u64,
        reads: Reads<'_>,
        out: &mut Outputs,
    ) {
        let (id, count) = (self.next_read, reads.count());
        self.next_read += 1;
        let is_too_much = self.asked_read_bytes + reads.bytes().len() > ASKED_READ_BYTES_MAX;
        if is_too_much || is_owed_much(connection, out) {
            return self.refuse_as_busy(connection, number, out);
        }
        if self.order.group().is_none() {
            return self.carry_out_read(connection, number, reads, out);
        }
        let bytes = reads.bytes().to_vec();
        self.asked_read_bytes += bytes.len();
        self.asked_reads.push_back(AskedRead { id, connection, number, count, bytes });
        self.order.read(now, id, out);
    }

    fn refuse_as_busy(&mut self, connection: Connection, number: u64, out: &mut Outputs) {
        self.counts.busy += 1;
        write_refused(out.send(connection), number, Why::Busy, self.leader());
    }

    /// A read that waited, which does not any more.
    fn take_asked_read(&mut self, id: u64) -> Option<AskedRead> {
        let place = self.asked_reads.binary_search_by_key(&id, |asked| asked.id).ok()?;
        let asked = self.asked_reads.remove(place)?;
        self.asked_read_bytes -= asked.bytes.len();
        Some(asked)
    }

    fn carry_out_read(
        &mut self,
        connection: Connection,
        number: u64,
        reads: Reads<'_>,
        out: &mut Outputs,
    ) {
        if self.answered_bytes >= ANSWERS_OF_STEP_BYTES_MAX {
            return self.refuse_as_busy(connection, number, out);
        }
        self.counts.reads += u64::from(reads.count());
        let mut transactions = reads.iter();
        let room = ANSWERS_BYTES_MAX.saturating_sub(out.unsent(connection));
        let out = out.send(connection);
        let start = out.len();
        let mut end = start + room;
        write_results(out, number, reads.count(), |out| {
            let transaction = transactions.next().expect("as many as were counted");
            if out.len() >= end {
                write_failed(out, Status::ResultTooLong, self.database.position(), 0);
            } else if self.database.read(transaction, out) == Status::ResultTooLong {
                // So much was looked through for it.
                end = end.saturating_sub(RESULT_BYTES_MAX);
            }
        });
        self.answered_bytes += out.len() - start;
    }

    fn give_ledger(&mut self, connection: Connection, from: u64, out: &mut Outputs) {
        let leader = self.leader();
        if is_owed_much(connection, out) {
            return self.refuse_as_busy(connection, 0, out);
        }
        let out = out.send(connection);
        if !self.ledger.is_kept() {
            write_refused(out, 0, Why::NoLedger, leader);
            return;
        }
        let (total, whole_to) = (self.ledger.length(), self.ledger.whole_to());
        protocol::write_part(out, from, total, whole_to, |out| {
            self.ledger.copy(from, PART_BYTES_MAX, out);
        });
    }

    /// Everything is gone through for it, so it is kept for as long as nothing more is carried out: what is sent again
    /// moves no position, and its session was used.
    fn give_digest(&mut self, connection: Connection, out: &mut Outputs) {
        if is_owed_much(connection, out) {
            return self.refuse_as_busy(connection, 0, out);
        }
        let (entries, position) = (self.counts.entries, self.database.position());
        let known = self.digest.filter(|known| (known.0, known.1.position) == (entries, position));
        let (_, digest) = *self.digest.insert(
            known.unwrap_or_else(|| (entries, Digest { position, digest: self.database.digest() })),
        );
        write_digest(out.send(connection), &digest);
    }

    fn read_metrics(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let said = metrics::Said {
            database: self.database.counts(),
            node: self.counts,
            is_disk_full: self.is_disk_full,
        };
        let (used, is_over) =
            wire::metrics::serve(bytes, || metrics::text(&said), out.send(connection));
        out.used(used);
        if is_over {
            out.close(connection);
        }
    }
}

impl From<NoChange> for Why {
    fn from(why: NoChange) -> Self {
        match why {
            NoChange::NotLeader => Self::NotLeader,
            NoChange::Last => Self::LastVote,
            NoChange::Unknown => Self::UnknownReplica,
            NoChange::WouldStop => Self::WouldStop,
        }
    }
}

/// Whether so much waits for a client to take it that nothing more of it is taken.
fn is_owed_much(connection: Connection, out: &Outputs) -> bool {
    out.unsent(connection) > ANSWERS_BYTES_MAX
}

/// Whether the frame at the beginning of `bytes` announces more than `bytes_max`.
fn announces_more(bytes: &[u8], bytes_max: usize) -> bool {
    let length = bytes.first_chunk::<LENGTH_BYTES>().map(|length| u32::from_le_bytes(*length));
    length.is_some_and(|length| usize::try_from(length).map_or(true, |it| it > bytes_max))
}

impl Node for KvNode {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        self.answered_bytes = 0;
        let is_turn_end = matches!(input, Input::TurnEnd);
        match &input {
            Input::Full { log } => {
                self.counts.disk_full += 1;
                self.is_disk_full |= log.is_some();
            }
            Input::Persisted { .. } => self.is_disk_full = false,
            _ => {}
        }
        if let Some(input) = self.order.take(now, input, out) {
            self.take(now, input, out);
        }
        self.follow(now, is_turn_end, out);
        if !self.unwelcomed.is_empty() && self.leader() != NOBODY {
            for connection in std::mem::take(&mut self.unwelcomed) {
                self.welcome(connection, self.leader(), out);
            }
        }
        if let Some(at) = self.order.wake_at() {
            out.wake_at(at);
        }
    }
}

impl KvNode {
    fn take(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, listener } => {
                if self.lines.len() <= connection.index() {
                    self.lines.resize(connection.index() + 1, Line::default());
                }
                let says_metrics = listener == METRICS_LISTENER;
                self.lines[connection.index()] = Line { says_metrics, is_greeted: false };
            }
            Input::Bytes(connection, bytes) if self.lines[connection.index()].says_metrics => {
                self.read_metrics(connection, bytes, out);
            }
            Input::Bytes(connection, bytes) => self.read_frames(now, connection, bytes, out),
            Input::Closed(connection) => self.unwelcomed.retain(|it| *it != connection),
            Input::Stop => {
                self.follow(now, false, out);
                self.ledger.flush();
            }
            _ => {}
        }
    }
}
