//! A replica as a value: requests in, answers out. No socket and no clock.
//!
//! What clients submit waits until the turn is over; then all of it becomes one entry of the log. Once that is decided it is
//! applied, and the results leave. As it stands one replica decides alone and keeps nothing over its end.

use clock::Instant;
use process::{Connection, Input, Node, Outputs};
use wire::frames::next_frame;

use crate::database::group::Group;
use crate::database::transaction::Reader;
use crate::database::{Applied, Database, Limits};
use crate::ledger::Ledger;
use crate::metrics;
use crate::protocol::{
    self, PART_BYTES_MAX, Reads, Request, State, VERSION, Welcome, Why, read_request,
    write_refused, write_results, write_state, write_welcome,
};

/// The listener for clients.
pub const CLIENTS_LISTENER: usize = 0;
/// The listener that says metrics over HTTP, where there is one.
pub const METRICS_LISTENER: usize = 1;

/// What may wait to be decided; more is refused as busy.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// An entry of the log ends with the group that reaches this.
const ENTRY_BYTES: usize = 1 << 20;

/// A replica.
pub struct KvNode {
    replica: u8,
    database: Database,
    ledger: Ledger,
    lines: Vec<Line>,
    /// Groups that wait, each behind its length.
    pending: Vec<u8>,
    /// Who waits for them, in order.
    asked: Vec<Asked>,
    counts: Counts,
    scratch: Vec<u8>,
}

/// Numbers that only grow, beside those of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries of the log that were carried out.
    pub entries: u64,
    /// Reads without the log.
    pub reads: u64,
    /// Requests that were refused because too much waited.
    pub busy: u64,
    /// Connections closed for what they sent.
    pub malformed: u64,
}

/// What is kept of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    says_metrics: bool,
    is_greeted: bool,
}

/// A group that waits.
#[derive(Clone, Copy, Debug)]
struct Asked {
    connection: Connection,
    number: u64,
    bytes: usize,
}

impl KvNode {
    /// A replica of this number, empty.
    #[must_use]
    pub fn new(replica: u8, limits: Limits, ledger: Ledger) -> Self {
        Self {
            replica,
            database: Database::new(limits),
            ledger,
            lines: Vec::new(),
            pending: Vec::new(),
            asked: Vec::new(),
            counts: Counts::default(),
            scratch: Vec::new(),
        }
    }

    /// The database.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
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
        let mut used = 0;
        loop {
            match next_frame(&bytes[used..]) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    if let Ok(request) = read_request(frame.payload)
                        && self.request(connection, request, out)
                    {
                        used += frame.used;
                        continue;
                    }
                }
                Err(_) => {}
            }
            self.counts.malformed += 1;
            write_refused(out.send(connection), 0, Why::Malformed, self.replica);
            out.close(connection);
            used = bytes.len();
            break;
        }
        out.used(used);
        if !self.asked.is_empty() {
            // At the end of the turn, when all that has arrived has been read.
            out.wake_at(now);
        }
    }

    /// Takes a request; `false`: it is not of the protocol.
    fn request(&mut self, connection: Connection, request: Request<'_>, out: &mut Outputs) -> bool {
        let line = &mut self.lines[connection.index()];
        match request {
            Request::Hello(version) => {
                line.is_greeted = version == VERSION;
                let welcome = Welcome {
                    version: VERSION,
                    replica: self.replica,
                    leader: self.replica,
                    position: self.database.position(),
                };
                write_welcome(out.send(connection), &welcome);
                return line.is_greeted;
            }
            _ if !line.is_greeted => return false,
            Request::Submit { number, group, bytes } => {
                self.submit(connection, number, &group, bytes, out);
            }
            Request::Read { number, reads } => self.read(connection, number, reads, out),
            Request::Ledger(from) => self.give_ledger(connection, from, out),
            Request::Status => {
                let state = State {
                    replica: self.replica,
                    leader: self.replica,
                    keeps_ledger: self.ledger.is_kept(),
                    position: self.database.position(),
                    entries: self.counts.entries,
                };
                write_state(out.send(connection), &state);
            }
        }
        true
    }

    fn submit(
        &mut self,
        connection: Connection,
        number: u64,
        group: &Group<'_>,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        if group.count() == 0 {
            return;
        }
        if self.pending.len() + bytes.len() > PENDING_BYTES_MAX {
            self.counts.busy += 1;
            write_refused(out.send(connection), number, Why::Busy, self.replica);
            return;
        }
        let length = u32::try_from(bytes.len()).expect("a request is shorter");
        self.pending.extend_from_slice(&length.to_le_bytes());
        self.pending.extend_from_slice(bytes);
        self.asked.push(Asked { connection, number, bytes: bytes.len() });
    }

    fn read(&mut self, connection: Connection, number: u64, reads: Reads<'_>, out: &mut Outputs) {
        self.counts.reads += u64::from(reads.count());
        let mut transactions = reads.iter();
        write_results(out.send(connection), number, reads.count(), |out| {
            let transaction = transactions.next().expect("as many as were counted");
            self.database.read(transaction, out);
        });
    }

    fn give_ledger(&mut self, connection: Connection, from: u64, out: &mut Outputs) {
        let out = out.send(connection);
        if !self.ledger.is_kept() {
            write_refused(out, 0, Why::NoLedger, self.replica);
            return;
        }
        let (total, whole_to) = (self.ledger.length(), self.ledger.whole_to());
        protocol::write_part(out, from, total, whole_to, |out| {
            self.ledger.copy(from, PART_BYTES_MAX, out);
        });
    }

    /// Makes entries of all that waits.
    fn propose(&mut self, out: &mut Outputs) {
        let (pending, asked) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.asked));
        let (mut start, mut end, mut first) = (0, 0, 0);
        for (group, at) in asked.iter().zip(1..) {
            end += 4 + group.bytes;
            if end - start >= ENTRY_BYTES || at == asked.len() {
                self.deliver(&pending[start..end], &asked[first..at], out);
                (start, first) = (end, at);
            }
        }
        (self.pending, self.asked) = (pending, asked);
        self.pending.clear();
        self.asked.clear();
    }

    /// Carries out an entry of the log; `asked` are who waits for its groups, if they asked here.
    fn deliver(&mut self, entry: &[u8], asked: &[Asked], out: &mut Outputs) {
        self.counts.entries += 1;
        let mut reader = Reader(entry);
        let mut asked = asked.iter();
        while let Ok(bytes) = reader.long() {
            let group = Group::read(bytes).expect("it was read before it was proposed");
            let mut requests = group.requests();
            let mut apply = |node: &mut Self, out: &mut Vec<u8>| {
                let request = requests.next().expect("as many as were counted");
                let (client, sequence) = (request.client, request.sequence);
                let database = &mut node.database;
                let applied =
                    database.apply(group.since, client, sequence, request.transaction, out);
                if let Applied::Executed(status) = applied {
                    node.ledger.push(database.position(), &request, status as u8);
                }
            };
            match asked.next() {
                Some(asked) => {
                    let out = out.send(asked.connection);
                    write_results(out, asked.number, group.count(), |out| apply(self, out));
                }
                None => {
                    let mut scratch = std::mem::take(&mut self.scratch);
                    for _ in 0..group.count() {
                        scratch.clear();
                        apply(self, &mut scratch);
                    }
                    self.scratch = scratch;
                }
            }
        }
    }

    fn read_metrics(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let said = metrics::Said { database: self.database.counts(), node: self.counts };
        let mut used = 0;
        loop {
            match metrics::answer(&bytes[used..], &said, out.send(connection)) {
                Ok(None) => break,
                Ok(Some((length, true))) => {
                    used += length;
                    continue;
                }
                Ok(Some((_, false))) | Err(_) => {}
            }
            out.close(connection);
            used = bytes.len();
            break;
        }
        out.used(used);
    }
}

impl Node for KvNode {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
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
            Input::Wake => self.propose(out),
            Input::Stop => {
                self.propose(out);
                self.ledger.flush();
            }
            _ => {}
        }
    }
}
