//! An atomizer as a value: notifications in, blocks out. No socket and no clock.
//!
//! Attestations gather in `intake`, complete transactions wait there until the log can take another entry, `order` has the
//! entry decided, `machine` applies it, and what leads makes a block of what was admitted at each interval and sends it to
//! whoever listens.

mod entries;
mod metrics;
mod receive;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs, Stored};
use replicated::{Config, Group, Order, Settings, StartError};

use crate::archivers::Archivers;
use crate::intake::{self, Intake};
use crate::machine::{Discarded, Machine, Rules};
use crate::protocol::request::{NOBODY, Standing, write_standing};
use crate::protocol::{Hash, Refusals};
use crate::stamps::Stamps;
use crate::subscribers::{Missed, Subscribers};
use crate::syncs::Syncs;

/// The listener for notifications and requests.
pub const CLIENTS_LISTENER: usize = 0;
/// The listener for the other replicas.
pub const PEERS_LISTENER: usize = 1;
/// The listener on which whoever connects is sent every block; it takes requests, too.
pub const BLOCKS_LISTENER: usize = 2;
/// The listener on which whoever connects is sent what is discarded.
pub const ERRORS_LISTENER: usize = 3;
/// The listener that says metrics over HTTP, where there is one.
pub const METRICS_LISTENER: usize = 4;

/// How far a transaction goes: a rung of the ladder that finds the stage at which throughput drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// It is read and counted.
    Receive,
    /// Its attestations are gathered.
    Accumulate,
    /// It is written into the log.
    Log,
    /// It is admitted or discarded.
    Apply,
    /// Blocks are made of it.
    #[default]
    Block,
}

/// What an atomizer is told once.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What replicas agree on.
    pub rules: Rules,
    /// The number of the ledger, if it begins here: drawn, so that no other has it, and not 0.
    pub ledger: u64,
    /// How far transactions go.
    pub rung: Rung,
    /// From one block to the next, counted from when the last one was begun: late, never early.
    pub block_interval: Duration,
    /// How long the first transaction of an entry waits for more.
    pub linger: Duration,
    /// Fidelity switch: an empty queue is looked at again after this only, and then all of it is taken.
    pub batch_idle: Option<Duration>,
    /// The bounds of what waits.
    pub bounds: intake::Bounds,
    /// Fidelity switch: a height of 0 that is said of an input counts as none, so that an input that was spent long ago can
    /// be spent again beside one whose height is fresh.
    pub ignores_height_zero: bool,
    /// What is too old is refused before it takes a place in the log.
    pub refuses_early: bool,
    /// How many archivers store each block before it is forgotten here: numbers 0, 1, …
    pub archivers: u8,
    /// The key that an archiver has to show; zeros where none was agreed on.
    pub archiver_key: Hash,
    /// With so many bytes of blocks that not all archivers have stored, no transaction is taken.
    pub unarchived_bytes_max: u64,
    /// Fidelity switch: blocks go to clients, too.
    pub broadcasts_to_all: bool,
    /// Fidelity switch: one that does not lead says nothing to who sends it transactions.
    pub is_silent: bool,
}

/// Numbers that only grow, beside those of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Notifications read while this replica led.
    pub received: u64,
    /// Transactions whose inputs were all vouched for.
    pub complete: u64,
    /// Transactions refused because too much waited.
    pub busy: u64,
    /// Transactions refused before the log because of their heights.
    pub early: u64,
    /// Transactions given up because not all of their inputs were vouched for in time.
    pub incomplete: u64,
    /// Notifications to a replica that did not lead.
    pub misled: u64,
    /// Transactions proposed for the log.
    pub proposed: u64,
    /// Batches proposed for the log.
    pub batches: u64,
    /// Entries of the log carried out.
    pub entries: u64,
    /// Transactions of entries carried out.
    pub applied: u64,
    /// Blocks made while this replica led, and sent.
    pub blocks: u64,
    /// Snapshots made here.
    pub snapshots_made: u64,
    /// Snapshots of another replica that took the place of what was here.
    pub snapshots_installed: u64,
    /// Times that this replica began to lead.
    pub led: u64,
    /// Connections closed for what they sent, by reason.
    pub refusals: Refusals,
}

/// What is kept of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    listener: usize,
}

/// An atomizer.
pub struct Atomizer {
    replica: u8,
    options: Options,
    order: Order,
    machine: Machine,
    intake: Intake,
    subscribers: Subscribers,
    discarded: Discarded,
    lines: Vec<Line>,
    /// Connections of clients, to be closed when another leads.
    clients: Vec<Connection>,
    counts: Counts,
    next_id: u64,
    /// When the next block is due.
    block_at: Instant,
    /// The ledger's beginning was proposed.
    ledger_proposed: bool,
    /// The block that was proposed and not made yet.
    block_proposed: Option<u64>,
    /// When the queue is looked at next.
    look_at: Instant,
    /// When the first transaction in the queue came.
    waits_since: Option<Instant>,
    archivers: Archivers,
    /// Below this blocks were proposed to be forgotten.
    pruned_below: u64,
    stamps: Option<Box<dyn Stamps + Send>>,
    /// Entries that were proposed and are not durable here: of one that stamps.
    syncs: Syncs,
    /// The group's log.
    log: usize,
    /// The snapshot of another replica, as far as it has come.
    installing: Vec<u8>,
}

impl Atomizer {
    /// One that decides alone and keeps no log.
    #[must_use]
    pub fn new(replica: u8, options: Options) -> Self {
        Self::of(replica, Machine::new(options.rules), options, Order::alone())
    }

    /// One of a group, as its disk left it.
    ///
    /// # Errors
    /// When its disk is damaged: it must not take part.
    pub fn of_group(
        config: Config,
        settings: &Settings,
        stored: &Stored,
        options: Options,
    ) -> Result<Self, StartError> {
        let replica = config.id.0;
        let started = Group::start(config, settings, stored)?;
        let machine = match &started.snapshot {
            None => Machine::new(options.rules),
            Some((through, bytes)) => Machine::read_snapshot(options.rules, bytes)
                .map_err(|_| StartError::Snapshot { through: *through })?,
        };
        let through = started.snapshot.map_or(0, |(through, _)| through);
        let order = Order::agreed(started.group, through);
        Ok(Self { log: settings.log, ..Self::of(replica, machine, options, order) })
    }

    fn of(replica: u8, machine: Machine, options: Options, order: Order) -> Self {
        Self {
            replica,
            options,
            order,
            machine,
            intake: Intake::new(options.bounds, &options.rules, options.ignores_height_zero),
            subscribers: Subscribers::default(),
            discarded: Discarded::default(),
            lines: Vec::new(),
            clients: Vec::new(),
            counts: Counts::default(),
            next_id: 0,
            block_at: Instant::ZERO,
            ledger_proposed: false,
            block_proposed: None,
            look_at: Instant::ZERO,
            waits_since: None,
            archivers: Archivers::new(options.archivers),
            pruned_below: 0,
            stamps: None,
            syncs: Syncs::default(),
            log: 0,
            installing: Vec::new(),
        }
    }

    /// Tells somebody of its stages.
    #[must_use]
    pub fn stamping(mut self, stamps: Box<dyn Stamps + Send>) -> Self {
        self.stamps = Some(stamps);
        self
    }

    /// The order of its entries: who leads, what is chosen.
    #[must_use]
    pub const fn order(&self) -> &Order {
        &self.order
    }

    /// What it holds.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What waits.
    #[must_use]
    pub const fn intake(&self) -> &Intake {
        &self.intake
    }

    /// Its own numbers.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// What slow listeners have missed.
    #[must_use]
    pub const fn missed(&self) -> Missed {
        self.subscribers.missed()
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing {
            replica: self.replica,
            leader: self.order.leader(self.replica).unwrap_or(NOBODY),
            height: self.machine.height(),
            chain: self.machine.chain(),
            has_vote: self.order.has_vote(),
        }
    }

    fn say_standing(&self, connection: Connection, out: &mut Outputs) {
        write_standing(out.send(connection), &self.standing());
    }

    fn now_ns(&mut self) -> u64 {
        self.stamps.as_mut().map_or(0, |it| it.now_ns())
    }

    fn opened(&mut self, connection: Connection, listener: usize) {
        if self.lines.len() <= connection.index() {
            self.lines.resize(connection.index() + 1, Line::default());
        }
        self.lines[connection.index()] = Line { listener };
        match listener {
            CLIENTS_LISTENER => {
                self.clients.push(connection);
                if self.options.broadcasts_to_all {
                    self.subscribers.add(connection, false);
                }
            }
            BLOCKS_LISTENER => self.subscribers.add(connection, false),
            ERRORS_LISTENER => self.subscribers.add(connection, true),
            _ => {}
        }
    }

    fn forget(&mut self, connection: Connection) {
        self.clients.retain(|it| *it != connection);
        self.subscribers.remove(connection);
        self.archivers.gone(connection);
    }

    fn read_metrics(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let text = || metrics::text_of(self);
        let (used, is_over) = wire::metrics::serve(bytes, text, out.send(connection));
        out.used(used);
        if is_over {
            out.close(connection);
        }
    }

    fn take(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, listener } => self.opened(connection, listener),
            Input::Bytes(connection, bytes) => match self.lines[connection.index()].listener {
                METRICS_LISTENER => self.read_metrics(connection, bytes, out),
                _ => self.read_frames(now, connection, bytes, out),
            },
            Input::Drained(connection) => self.subscribers.drained(connection, out),
            Input::Closed(connection) => self.forget(connection),
            _ => {}
        }
    }

    /// When something is due by itself.
    fn wake_at(&self) -> Option<Instant> {
        let mut at = self.order.wake_at();
        if !self.order.leads() {
            return at;
        }
        let mut sooner = |other: Instant| at = Some(at.map_or(other, |it| it.min(other)));
        // Where the log takes nothing now, what makes room for it is a step of its own.
        if self.makes_blocks() && self.order.can_propose(1) {
            sooner(self.block_at);
        }
        if let Some(due) = self.batch_due_at()
            && self.intake.next_bytes().is_some_and(|bytes| self.order.can_propose(bytes))
        {
            sooner(due);
        }
        at
    }
}

impl Node for Atomizer {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        if let (Input::Persisted { log, below }, Some(stamps)) = (&input, &mut self.stamps)
            && *log == self.log
        {
            self.syncs.durable(*below, stamps.as_mut());
        }
        if let Some(input) = self.order.take(now, input, out) {
            self.take(now, input, out);
        }
        self.follow(now, out);
        if let Some(at) = self.wake_at() {
            out.wake_at(at);
        }
    }
}
