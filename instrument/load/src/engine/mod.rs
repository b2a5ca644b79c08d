//! One engine worker: everything that it knows, and none of it shared with another worker.
//!
//! The files beside this one are the steps of a transaction: [`admit`] takes due times, finds a connection and
//! submits; [`batch`] holds back what is to leave together; [`turn`] is the event loop around it, with [`pace`]
//! deciding how to wait and [`wake`] knowing how late that ends; [`receive`] turns bytes into marks, and [`receipts`] knows how late they were read; [`settle`] ends transactions and writes their rows; [`connect`] opens, loses and reopens
//! connections; [`resend`] sends again what is unknown, where the plan says so; [`route`] carries marks that belong to
//! another worker; [`follow`] keeps what is due because an answer came.

mod admit;
mod backlog;
mod batch;
mod connect;
mod follow;
mod observe;
mod pace;
mod receipts;
mod receive;
mod resend;
mod route;
mod settle;
pub(crate) mod setup;
mod turn;
mod wake;

use std::collections::{BinaryHeap, VecDeque};

use clock::Instant;
use model::facts::{Event, WorkerFacts};
use model::{NO_STAMP, Outcome, Row, Stamp, TxId};
use sut::{Made, Marks, Role};

use crate::connection::Connection;
use crate::demand::Demand;
use crate::driver::Key;
use crate::pending::Pending;
use crate::run_queue::RunQueue;
use crate::source::Source;
use crate::texts::Known;
use crate::trial::Trial;
use wake::WakeUps;

use backlog::{Backlog, Waiting};
use batch::Batching;
use follow::FollowUps;
use receipts::Receipts;
use resend::Resends;
pub(crate) use route::Routes;
pub(crate) use settle::Rows;
pub(crate) use turn::{Seat, run};

/// A stream of load: the main one, or the probe.
struct Stream {
    /// 0 the main load, 1 the probe.
    index: u8,
    demand: Demand,
    source: Source,
    pending: Pending,
    /// Due, and no connection had room. Bounded by `backlog_max`, or by the clients that wait here.
    backlog: Backlog,
    backlog_max: usize,
    /// Transactions that wait for a batch, where the plan has batches; then nothing is in the backlog.
    batching: Option<Box<Batching>>,
    /// Resends, where the plan has them.
    resends: Option<Box<Resends>>,
    /// Follow-ups that are not due yet.
    follow_ups: FollowUps,
    /// Connections that have room, the longest idle first. An entry is checked when it is taken.
    idle: VecDeque<u32>,
    timeout_ns: i64,
    /// How many of its connections are open, and how many are on the way there.
    open: u32,
    opening: u32,
    /// How many are not open because the last attempt to open them failed.
    failing: u32,
    /// How many there are in all, and may be.
    connections: u32,
    connections_max: u32,
    /// The index in the trial of the next connection that is opened beyond the first ones.
    next_index: u32,
    first_id: TxId,
    stride: u64,
    last_due: Stamp,
}

impl Stream {
    /// How many are due and wait, for a connection or for a batch.
    fn waiting(&self) -> usize {
        self.backlog.len() + self.batching.as_ref().map_or(0, |batching| batching.waiting())
    }

    /// The purpose of its connections.
    fn role(&self) -> Role {
        if self.index == 0 { Role::Submit } else { Role::Probe }
    }
}

/// Something that a connection wants done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    at: Stamp,
    connection: u32,
    life: u32,
    what: Alarm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    Reconnect,
    Poll,
    Batch,
}

impl Ord for Timer {
    /// The earliest is the greatest: a binary heap gives its greatest first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.connection, other.life).cmp(&(self.at, self.connection, self.life))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The state of a worker, but for its driver.
pub(crate) struct Engine<'t> {
    trial: &'t Trial<'t>,
    worker: u32,
    /// Where stamps count from: the worker's own start until the trial's is fixed.
    origin: Instant,
    now: Stamp,
    streams: Vec<Stream>,
    connections: Vec<Connection>,
    /// Connections with bytes to send.
    dirty: Vec<u32>,
    /// Connections to begin to open, and what the driver is to close, before the next wait.
    to_open: VecDeque<u32>,
    /// Connections on their way, those in `to_open` included.
    opening: usize,
    /// Whether some of the connections only watch.
    watches: bool,
    to_close: Vec<Key>,
    timers: BinaryHeap<Timer>,
    marks: Marks,
    plain: Vec<u8>,
    rows: settle::Rows,
    routes: Routes,
    facts: WorkerFacts,
    /// Texts of errors, as far as this worker has met them.
    texts: Known<'t>,
    /// Whether due times are still taken.
    is_loading: bool,
    /// Whether connections are still being opened for the first time.
    is_starting: bool,
    /// Preparing one transaction takes about this long.
    prepare_ns: i64,
    /// Times that a few were prepared since that was measured last.
    unmeasured: u32,
    /// The last turn did not block.
    is_spinning: bool,
    /// Whether one answer is all that comes on a connection after a request, and nothing has been written because of one:
    /// its being read is then awaited by nothing, and its stamp is of it alone.
    answers_are_alone: bool,
    /// How late waits end here.
    wake_ups: WakeUps,
    /// How long this thread waited for a processor.
    run_queue: RunQueue,
    /// The receipts of this turn.
    received_bytes: usize,
    /// When it had arrived.
    receipts: Receipts,
    /// The connection whose findings are being taken; none: they came from another worker.
    heard_on: u32,
    last_failure: Option<(crate::place::Place, String)>,
    live: turn::Shown,
}

impl Engine<'_> {
    /// The stamp of this moment.
    fn read_clock(&mut self) -> Stamp {
        self.now = self.trial.setup.deployment.clock.now().ns_since(self.origin);
        self.now
    }

    /// Tells the record of something that happened, within the trial's bound on events.
    fn event(&mut self, name: &str, tx: Option<TxId>, detail: impl FnOnce() -> String) {
        if self.trial.admits_event() {
            let event = Event { at: self.now, name: name.to_owned(), tx, detail: detail() };
            self.rows.event(event);
        }
    }

    /// How many transactions are due and wait.
    fn waiting(&self) -> usize {
        self.streams.iter().map(Stream::waiting).sum()
    }

    /// How many transactions follow answers and are not due yet.
    fn following(&self) -> usize {
        self.streams.iter().map(|stream| stream.follow_ups.len()).sum()
    }

    /// How many transactions are outstanding.
    fn outstanding(&self) -> usize {
        self.streams.iter().map(|stream| stream.pending.count()).sum()
    }
}

/// A row at the moment that its transaction falls due.
pub(crate) fn fresh_row(worker: u32, stream: u8, id: TxId, made: Made, due: Stamp) -> Row {
    Row {
        tx: id,
        due,
        ready: due,
        sent: NO_STAMP,
        marks: [NO_STAMP; model::STAGES_MAX],
        end: NO_STAMP,
        receive_lag: NO_STAMP,
        outcome: Outcome::Unknown,
        code: 0,
        error: 0,
        kind: made.kind,
        connection: 0,
        worker: u8::try_from(worker).expect("bounded by WORKERS_MAX"),
        stream,
        attempts: 0,
        client: made.client,
        bytes_out: 0,
        bytes_in: 0,
    }
}
