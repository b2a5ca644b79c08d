//! The group as a node sees it.

use std::collections::VecDeque;

use clock::Instant;
use consensus::{
    Config, Effect, Effects, Entry, Instance, RecoverError, Refusal, Replica, ReplicaId, Request,
    Value,
};
use process::{Connection, Input, Outputs, Stored, StoredLog};

use crate::links::Links;
use crate::snapshots::{Kind, Snapshots};

/// Where a group lies in its node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Tells groups apart: a replica of another one is refused.
    pub group: u64,
    /// The other replicas, each with its number among the node's peers.
    pub peers: Vec<(ReplicaId, usize)>,
    /// Which of the node's listeners is the group's.
    pub listener: usize,
    /// Which of the node's logs is the group's.
    pub log: usize,
    /// The first of two of the node's cells.
    pub cell: usize,
    /// With more than this waiting on a connection to another replica, messages to it are dropped.
    pub unsent_bytes_max: usize,
}

/// What the node has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Apply this. In a life of a replica each instance comes once, in order; those without a value (a change of
    /// members, a filled gap) are not told.
    Apply {
        /// Where in the order.
        instance: Instance,
        /// What.
        value: Value,
        /// The id under which it was proposed here, if it was.
        proposal: Option<u64>,
    },
    /// A read may be served from what has been applied.
    Read {
        /// The id under which it was asked for.
        id: u64,
    },
    /// Make a snapshot of what has been applied and hand it to [`Group::snapshot`], at leisure.
    MakeSnapshot,
    /// Take this snapshot's state instead of the present one. What comes next is applied to it.
    Install {
        /// The last instance in it.
        through: Instance,
        /// What [`Group::snapshot`] was given elsewhere.
        bytes: Value,
    },
    /// A request was not begun, or was given up.
    Refused {
        /// Which.
        request: Request,
        /// Why.
        why: Refusal,
    },
    /// Who leads, as far as is known here, has changed.
    Leader(Option<ReplicaId>),
}

/// Why a group cannot start from its disk.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] RecoverError),
    /// The snapshot that the log begins with is not there.
    #[error(
        "the log begins behind a snapshot up to entry {through}, which is in neither cell; the replica must not start from this disk: give it an empty one and a new id"
    )]
    NoSnapshot {
        /// The last instance in it.
        through: Instance,
    },
    /// The state machine cannot read its snapshot.
    #[error(
        "the snapshot up to entry {through} is damaged; the replica must not start from this disk: give it an empty one and a new id"
    )]
    Snapshot {
        /// The last instance in it.
        through: Instance,
    },
}

/// A group that stands where its disk says.
#[derive(Debug)]
pub struct Started {
    /// The group.
    pub group: Group,
    /// The snapshot that the state machine begins with, and its last instance.
    pub snapshot: Option<(Instance, Value)>,
}

/// A replica in its node.
#[derive(Debug)]
pub struct Group {
    replica: Replica,
    effects: Effects,
    events: VecDeque<Event>,
    links: Links,
    snapshots: Snapshots,
    listener: usize,
    log: usize,
    wake: Option<Instant>,
    head: Vec<u8>,
}

impl Group {
    /// The group as its disk left it; on an empty one, a new replica.
    ///
    /// # Errors
    /// When what is on the disk is damaged: the replica must not take part.
    pub fn start(
        config: Config,
        settings: &Settings,
        stored: &Stored,
    ) -> Result<Started, StartError> {
        let id = config.id;
        let empty = StoredLog::default();
        let log = stored.logs.get(settings.log).unwrap_or(&empty);
        let first = log.iter().next().map_or(log.next(), |(number, _)| number);
        let replica = Replica::recover(config, first, log.iter().map(|(_, record)| record))?;
        let through = replica.snapshot().through;
        let mut snapshots = Snapshots::new(settings.cell, stored);
        let snapshot = match through {
            0 => None,
            _ => {
                let bytes =
                    snapshots.load(through, stored).ok_or(StartError::NoSnapshot { through })?;
                Some((through, bytes))
            }
        };
        let links = Links::new(settings.group, id, &settings.peers, settings.unsent_bytes_max);
        let group = Self {
            replica,
            effects: Effects::default(),
            events: VecDeque::new(),
            links,
            snapshots,
            listener: settings.listener,
            log: settings.log,
            wake: None,
            head: Vec::new(),
        };
        Ok(Started { group, snapshot })
    }

    /// The replica: who leads, what is chosen.
    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Messages that were dropped, connections between replicas that were refused, and why the last one was.
    #[must_use]
    pub fn troubles(&self) -> (u64, u64, Option<&str>) {
        (self.links.dropped, self.links.refused, self.links.last_refusal.as_deref())
    }

    /// Takes an input if it is the group's, and gives it back if not. A wake-up is given back as well, since the node may
    /// have asked for it. The node asks for its next wake-up at [`Group::wake_at`] or before.
    pub fn take<'a, M>(
        &mut self,
        now: Instant,
        input: Input<'a, M>,
        out: &mut Outputs<M>,
    ) -> Option<Input<'a, M>> {
        match input {
            Input::Wake => {
                if self.wake.is_none() || self.effects.wake_at() <= now {
                    self.step(now, consensus::Input::Wake, out);
                }
                self.look_at_time(now, out);
                return Some(Input::Wake);
            }
            Input::Opened { connection, listener } if listener == self.listener => {
                self.links.opened(connection);
            }
            Input::Dialled { connection, peer } => {
                if !self.links.dialled(connection, peer, out) {
                    return Some(input);
                }
            }
            Input::Unreachable { peer } => {
                if !self.links.unreachable(now, peer) {
                    return Some(input);
                }
            }
            Input::Bytes(connection, bytes) if self.links.is_its(connection) => {
                self.read(now, connection, bytes, out);
            }
            Input::Drained(connection) if self.links.is_its(connection) => {}
            Input::Closed(connection) => {
                if !self.links.closed(now, connection) {
                    return Some(input);
                }
            }
            Input::Persisted { log, below } if log == self.log => {
                self.step(now, consensus::Input::Persisted { through: below }, out);
            }
            Input::Replaced { cell } if self.snapshots.is_its(cell) => {
                match self.snapshots.written(cell) {
                    Some((through, Kind::Made)) => {
                        self.step(now, consensus::Input::SnapshotMade { through }, out);
                    }
                    Some((through, Kind::Installed)) => {
                        self.step(now, consensus::Input::SnapshotInstalled { through }, out);
                    }
                    None => {}
                }
                self.write_snapshot(out);
            }
            other => return Some(other),
        }
        self.look_at_time(now, out);
        None
    }

    /// Proposes a value. [`Event::Apply`] with this id, or [`Event::Refused`], or nothing once another leads.
    pub fn propose<M>(&mut self, now: Instant, id: u64, value: Value, out: &mut Outputs<M>) {
        self.step(now, consensus::Input::Propose { id, value }, out);
        self.look_at_time(now, out);
    }

    /// Whether a value of so many bytes can be proposed now: this replica leads, and its window has room.
    #[must_use]
    pub fn can_propose(&self, bytes: usize) -> bool {
        self.replica.can_propose(bytes)
    }

    /// Asks for a read of all that was acknowledged before now. [`Event::Read`] or [`Event::Refused`] follows.
    pub fn read_index<M>(&mut self, now: Instant, id: u64, out: &mut Outputs<M>) {
        self.step(now, consensus::Input::Read { id }, out);
        self.look_at_time(now, out);
    }

    /// A snapshot of what has been applied up to and with `through`.
    pub fn snapshot<M>(&mut self, through: Instance, bytes: Value, out: &mut Outputs<M>) {
        self.snapshots.push(through, bytes, Kind::Made);
        self.write_snapshot(out);
    }

    /// What the node has to do next.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When the group wants [`Input::Wake`].
    #[must_use]
    pub const fn wake_at(&self) -> Option<Instant> {
        self.wake
    }

    fn read<M>(
        &mut self,
        now: Instant,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs<M>,
    ) {
        let mut messages = Vec::new();
        self.links.read(connection, bytes, out, |from, message| messages.push((from, message)));
        for (from, message) in messages {
            self.replica.step(now, consensus::Input::Received { from, message }, &mut self.effects);
        }
        self.carry_out(now, out);
    }

    fn step<M>(&mut self, now: Instant, input: consensus::Input, out: &mut Outputs<M>) {
        self.replica.step(now, input, &mut self.effects);
        self.carry_out(now, out);
    }

    /// What consensus asks for. Answers to it that can be given at once make another round.
    fn carry_out<M>(&mut self, now: Instant, out: &mut Outputs<M>) {
        loop {
            let mut parts = Vec::new();
            let mut effects = std::mem::take(&mut self.effects);
            for effect in effects.drain() {
                self.carry_out_one(effect, &mut parts, out);
            }
            self.effects = effects;
            if parts.is_empty() {
                return;
            }
            for part in parts {
                self.replica.step(now, part, &mut self.effects);
            }
        }
    }

    fn carry_out_one<M>(
        &mut self,
        effect: Effect,
        parts: &mut Vec<consensus::Input>,
        out: &mut Outputs<M>,
    ) {
        match effect {
            Effect::Send { to, message } => self.links.send(to, &message, out),
            Effect::Append { number, record } => {
                self.head.clear();
                record.encode_head(&mut self.head);
                let body = record.body().unwrap_or_default();
                let given = out.append_parts(self.log, &[&self.head, body]);
                assert_eq!(given, number, "the log is the group's own");
            }
            Effect::Trim { records_before, snapshots_before } => {
                out.trim(self.log, records_before);
                self.snapshots.named(snapshots_before);
                self.write_snapshot(out);
            }
            Effect::Deliver { instance, entry, proposal } => {
                if let Entry::Value(value) = entry {
                    self.events.push_back(Event::Apply { instance, value, proposal });
                }
            }
            Effect::ReadReady { id, .. } => self.events.push_back(Event::Read { id }),
            Effect::NeedSnapshot => self.events.push_back(Event::MakeSnapshot),
            Effect::ReadSnapshot { to, through, offset, bytes_max } => {
                if let Some((bytes, is_last)) = self.snapshots.part(through, offset, bytes_max) {
                    let part =
                        consensus::Input::SnapshotPart { to, through, offset, bytes, is_last };
                    parts.push(part);
                }
            }
            Effect::InstallPart { through, offset, bytes, is_last } => {
                if let Some(whole) = self.snapshots.incoming(offset, &bytes, is_last) {
                    self.events.push_back(Event::Install { through, bytes: whole.clone() });
                    self.snapshots.push(through, whole, Kind::Installed);
                    self.write_snapshot(out);
                }
            }
            Effect::Refused { request, why } => {
                self.events.push_back(Event::Refused { request, why })
            }
            Effect::Leader(leader) => self.events.push_back(Event::Leader(leader)),
        }
    }

    fn write_snapshot<M>(&mut self, out: &mut Outputs<M>) {
        if let Some((cell, content)) = self.snapshots.write() {
            out.replace(cell, content);
        }
    }

    fn look_at_time<M>(&mut self, now: Instant, out: &mut Outputs<M>) {
        let dial = self.links.dial(now, out);
        let own = self.effects.wake_at();
        self.wake = Some(dial.map_or(own, |dial| dial.min(own)));
    }
}
