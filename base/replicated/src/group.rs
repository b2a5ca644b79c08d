//! The group as a node sees it.

use std::collections::VecDeque;
use std::time::Duration;

use clock::Instant;
use consensus::{
    Config, Effect, Effects, Entry, Instance, Members, Refusal, Replica, ReplicaId, Request, Value,
};
use process::{Connection, Input, Outputs, Stored, StoredLog};

use crate::error::{NoChange, StartError};
use crate::frames::Frame;
use crate::identity::{Identity, NUMBERS_MAX, number_of};
use crate::links::Links;
use crate::settings::Settings;
use crate::snapshots::{CELLS, Incoming, Kind, Snapshots};
use crate::standing::{Care, Standing};

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
    /// Make a snapshot of what has been applied by now: hand its first part to [`Group::snapshot`], and each later one at
    /// [`Event::MoreSnapshot`]. Meanwhile entries are applied, and the snapshot is of the state before them.
    MakeSnapshot,
    /// The disk has the part before: hand over the next.
    MoreSnapshot,
    /// A part of another replica's snapshot: at offset 0 a new one begins, and one that was being made here, or that had come
    /// in part, is given up.
    InstallPart {
        /// Where in it.
        offset: u64,
        /// The bytes that [`Group::snapshot`] was given there.
        bytes: Value,
    },
    /// Take the state of the snapshot that has come in parts instead of the present one. What comes next is applied to it.
    Install {
        /// The last instance in it.
        through: Instance,
    },
    /// A request was not begun, or was given up.
    Refused {
        /// Which.
        request: Request,
        /// Why.
        why: Refusal,
    },
    /// Who leads, as far as is known here, has changed: its number.
    Leader(Option<u8>),
}

/// A group that stands where its disk says.
#[derive(Debug)]
pub struct Started<'s> {
    /// The group.
    pub group: Group,
    /// The snapshot that the state machine begins with, and its last instance.
    pub snapshot: Option<(Instance, &'s [u8])>,
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
    config: Config,
    standing: Standing,
    identity_cell: usize,
    /// A change of members that was asked for and has no answer yet.
    changing: Option<Members>,
    /// How many were asked for: the id of the last.
    changes: u64,
    /// Whether the node has been woken for the first time.
    is_begun: bool,
    /// When it says next that it is there; of one without a vote.
    here_at: Instant,
}

/// How often one without a vote says that it is there.
const HERE_EVERY: Duration = Duration::from_millis(200);

/// The names of the cells that a group has, in the order in which it wants them.
pub const CELL_NAMES: [&str; CELLS + 1] = ["snapshot-a", "snapshot-b", "identity"];

/// What the folder is pinned to: of an empty one, to a disk that is drawn for it.
fn standing(config: &Config, settings: &Settings, stored: &Stored) -> Result<Standing, StartError> {
    let number = config.id.0;
    if let Some(id) = config.members.iter().find(|id| id.0 >= NUMBERS_MAX) {
        return Err(StartError::TooHigh(id.0));
    }
    let content = stored.cells.get(settings.cell + CELLS).and_then(Option::as_deref);
    let Some(content) = content else {
        let has_log = stored.logs.get(settings.log).is_some_and(|log| log.next() > 0);
        let snapshots = settings.cell..settings.cell + CELLS;
        let has_cells =
            stored.cells.get(snapshots).is_some_and(|it| it.iter().any(Option::is_some));
        if has_log || has_cells {
            return Err(StartError::NoIdentity);
        }
        let blank = Identity::blank(number, settings.disk, &config.members);
        return Ok(Standing::new(blank, false));
    };
    let read = Identity::read(content).ok().flatten().filter(|(_, used)| *used == content.len());
    let (pinned, _) = read.ok_or(StartError::NoIdentity)?;
    if pinned.number != number {
        return Err(StartError::Number { pinned: pinned.number, given: number });
    }
    if pinned.is_blank() {
        // Nothing is pinned but the disk: with whom it founds a group is up to the command line.
        return Ok(Standing::new(Identity::blank(number, pinned.disk, &config.members), true));
    }
    // More may be named: those that are to join, or have. None of those that founded it may be missing.
    let named = Identity::blank(number, pinned.disk, &config.members);
    if !named.covers(&pinned) {
        let given = config.members.iter().map(|id| id.0).collect();
        return Err(StartError::Members { pinned: pinned.numbers().collect(), given });
    }
    Ok(Standing::new(pinned, true))
}

impl Group {
    /// The group as its disk left it; on an empty one, a new replica.
    ///
    /// # Errors
    /// When what is on the disk is damaged: the replica must not take part.
    pub fn start<'s>(
        mut config: Config,
        settings: &Settings,
        stored: &'s Stored,
    ) -> Result<Started<'s>, StartError> {
        let standing = standing(&config, settings, stored)?;
        config.id = standing.identity().id;
        if standing.is_formatted() {
            config.members = standing.identity().members();
        }
        let empty = StoredLog::default();
        let log = stored.logs.get(settings.log).unwrap_or(&empty);
        let first = log.iter().next().map_or(log.next(), |(number, _)| number);
        let replica =
            Replica::recover(config.clone(), first, log.iter().map(|(_, record)| record))?;
        let through = replica.snapshot().through;
        let mut snapshots = Snapshots::new(settings.cell);
        let snapshot = match through {
            0 => None,
            _ => {
                let bytes =
                    snapshots.load(through, stored).ok_or(StartError::NoSnapshot { through })?;
                Some((through, bytes))
            }
        };
        let links = Links::new(settings.service, &settings.peers, settings.unsent_bytes_max);
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
            config,
            standing,
            identity_cell: settings.cell + CELLS,
            changing: None,
            changes: 0,
            is_begun: false,
            here_at: Instant::ZERO,
        };
        Ok(Started { group, snapshot })
    }

    /// The replica: who leads, what is chosen.
    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The group's name, drawn when it was founded; 0 where the folder is blank.
    #[must_use]
    pub fn cluster(&self) -> u64 {
        self.standing.identity().cluster
    }

    /// Its own number.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.standing.identity().number
    }

    /// The number of whoever leads, as far as is known here.
    #[must_use]
    pub fn leader(&self) -> Option<u8> {
        self.replica.leader().map(number_of)
    }

    /// Whether it has a vote. One whose folder was empty has none until it has caught up.
    #[must_use]
    pub fn has_vote(&self) -> bool {
        self.standing.is_formatted() && self.replica.members().contains(self.replica.id())
    }

    /// The numbers of those that have a vote, as far as is known here.
    pub fn voters(&self) -> impl Iterator<Item = u8> + '_ {
        self.replica.members().iter().map(number_of)
    }

    /// An operator wants the replica of this number to have a vote, or not to. The leader sees to it, one change at a time, and
    /// lets no replica in that has not caught up; [`Group::voters`] says when it is done. It is forgotten when another leads.
    ///
    /// # Errors
    /// When this replica does not lead, is not connected to a replica of this number, or none, or no
    /// majority that is there, would be left.
    pub fn want_vote(&mut self, number: u8, has_vote: bool) -> Result<(), NoChange> {
        if !self.replica.is_leader() {
            return Err(NoChange::NotLeader);
        }
        let is_voter = self.voters().any(|it| it == number);
        if is_voter && !has_vote && self.replica.members().count() == 1 {
            return Err(NoChange::Last);
        }
        if is_voter && !has_vote && !self.goes_on_without(number) {
            return Err(NoChange::WouldStop);
        }
        if has_vote && !is_voter && !self.links.knows(number) {
            return Err(NoChange::Unknown);
        }
        self.standing.want(number, has_vote);
        Ok(())
    }

    /// True if a majority of the others that have a vote is there.
    fn goes_on_without(&self, number: u8) -> bool {
        let own = self.replica.id();
        let is_there = |id: &ReplicaId| *id == own || self.replica.hears(*id);
        let stay = || self.replica.members().iter().filter(|id| number_of(*id) != number);
        2 * stay().filter(is_there).count() > stay().count()
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
                if !std::mem::replace(&mut self.is_begun, true) {
                    self.begin(now, out);
                } else if self.effects.wake_at() <= now {
                    self.step(now, consensus::Input::Wake, out);
                }
                self.care(now, out);
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
            Input::Replaced { cell } if cell == self.identity_cell => {
                self.standing.written();
                self.stand(now, out);
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
                self.snapshots.write_incoming(out);
                self.look_at_snapshot();
            }
            Input::Extended { cell } if self.snapshots.is_its(cell) => {
                if self.snapshots.extended(cell) {
                    self.events.push_back(Event::MoreSnapshot);
                }
            }
            Input::Part { cell, offset, bytes } if self.snapshots.is_its(cell) => {
                if let Some((asked, is_last)) = self.snapshots.was_read(cell, offset, bytes.len()) {
                    let (to, through, offset) = (asked.to, asked.through, asked.offset);
                    let bytes = Value::from(bytes);
                    let part =
                        consensus::Input::SnapshotPart { to, through, offset, bytes, is_last };
                    self.step(now, part, out);
                }
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

    /// The next part of a snapshot of what had been applied up to and with `through` when its first part was given. `false`:
    /// no more of it is wanted, because it is whole or has been given up.
    pub fn snapshot<M>(
        &mut self,
        through: Instance,
        bytes: &[u8],
        is_last: bool,
        out: &mut Outputs<M>,
    ) -> bool {
        self.snapshots.part(through, bytes, is_last, out)
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
        let (mut messages, mut seat) = (Vec::new(), None);
        self.links.read(connection, bytes, out, |from, frame| match frame {
            Frame::Message(message) => messages.push((from.id, message)),
            Frame::Seat { disk, id } => seat = Some((from.clone(), disk, id)),
            Frame::Here => {}
        });
        if !self.standing.is_formatted() {
            self.format(seat, out);
            return;
        }
        for (from, message) in messages {
            self.replica.step(now, consensus::Input::Received { from, message }, &mut self.effects);
        }
        self.carry_out(out);
    }

    /// The first wake-up of a life.
    fn begin<M>(&mut self, now: Instant, out: &mut Outputs<M>) {
        match self.standing.first_content() {
            Some(content) => out.replace(self.identity_cell, content),
            None => self.stand(now, out),
        }
    }

    /// Who it is is durable: others are told, and if its folder is formatted it takes part.
    fn stand<M>(&mut self, now: Instant, out: &mut Outputs<M>) {
        let Some(own) = self.standing.speaks_as() else { return };
        self.links.speak_as(own, now, out);
        if !self.standing.is_formatted() {
            return self.format(None, out);
        }
        let own = self.standing.identity();
        if self.replica.id() != own.id {
            // A newcomer: it was made before it was known what it is called, and has done nothing.
            self.config.id = own.id;
            self.config.members = own.members();
            self.replica = Replica::new(self.config.clone());
        }
        self.step(now, consensus::Input::Wake, out);
    }

    /// Looks whether a blank folder can be formatted.
    fn format<M>(&mut self, seat: Option<(Identity, u64, ReplicaId)>, out: &mut Outputs<M>) {
        let content = match seat {
            Some((from, disk, id)) => self.standing.take_seat(&from, disk, id),
            None => {
                let others: Vec<&Identity> = self.links.speakers().collect();
                self.standing.found(&others)
            }
        };
        if let Some(content) = content {
            out.replace(self.identity_cell, content);
        }
    }

    /// What a leader does for replicas whose disks were lost.
    fn care<M>(&mut self, now: Instant, out: &mut Outputs<M>) {
        if !self.replica.is_leader() {
            return;
        }
        let mut others: Vec<&Identity> = self.links.speakers().collect();
        others.sort_by_key(|other| (other.number, other.id, other.disk));
        for care in self.standing.care(self.replica.members(), &others) {
            match care {
                Care::Seat { number, disk, id } => self.links.send_seat(number, disk, id, out),
                Care::Change(members) if self.changing.as_ref() != Some(&members) => {
                    self.changes += 1;
                    self.changing = Some(members.clone());
                    let id = self.changes;
                    self.step(now, consensus::Input::ChangeMembers { id, members }, out);
                }
                Care::Change(_) => {}
            }
        }
    }

    fn step<M>(&mut self, now: Instant, input: consensus::Input, out: &mut Outputs<M>) {
        if !self.standing.is_formatted() {
            return self.refuse_as_blank(&input);
        }
        self.replica.step(now, input, &mut self.effects);
        self.carry_out(out);
    }

    /// Nothing is begun by one that does not know yet what it is called.
    fn refuse_as_blank(&mut self, input: &consensus::Input) {
        let request = match input {
            consensus::Input::Propose { id, .. } => Request::Propose(*id),
            consensus::Input::Read { id } => Request::Read(*id),
            _ => return,
        };
        let why = Refusal::NotLeader { leader: None };
        self.events.push_back(Event::Refused { request, why });
    }

    /// Carries out the effects that consensus asks for.
    fn carry_out<M>(&mut self, out: &mut Outputs<M>) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain() {
            self.carry_out_one(effect, out);
        }
        self.effects = effects;
        self.look_at_snapshot();
    }

    fn carry_out_one<M>(&mut self, effect: Effect, out: &mut Outputs<M>) {
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
                self.snapshots.write_incoming(out);
            }
            Effect::Deliver { instance, entry, proposal } => match entry {
                Entry::Value(value) => {
                    self.events.push_back(Event::Apply { instance, value, proposal });
                }
                Entry::Members(_) => self.changing = None,
                Entry::Noop => {}
            },
            Effect::ReadReady { id, .. } => self.events.push_back(Event::Read { id }),
            Effect::NeedSnapshot => self.snapshots.want(),
            Effect::ReadSnapshot { to, through, offset, bytes_max } => {
                self.snapshots.read(to, through, offset, bytes_max, out);
            }
            Effect::InstallPart { through, offset, bytes, is_last } => {
                self.events.push_back(Event::InstallPart { offset, bytes: bytes.clone() });
                if is_last {
                    self.events.push_back(Event::Install { through });
                }
                self.snapshots.incoming(Incoming { through, offset, bytes, is_last }, out);
            }
            Effect::Refused { request: Request::ChangeMembers(id), .. } => {
                self.changing.take_if(|_| id == self.changes);
            }
            Effect::Refused { request, why } => {
                self.events.push_back(Event::Refused { request, why })
            }
            Effect::Leader(leader) => {
                self.changing = None;
                self.standing.forget_wanted();
                self.events.push_back(Event::Leader(leader.map(number_of)));
            }
            Effect::Distrusted { from, why } => {
                self.links.refuse(format!("replica {}: {why}", number_of(from)));
            }
        }
    }

    /// Whether a snapshot is to be made now: one that a leader sends goes before it.
    fn look_at_snapshot(&mut self) {
        if self.snapshots.is_time(self.replica.is_installing()) {
            self.events.push_back(Event::MakeSnapshot);
        }
    }

    fn look_at_time<M>(&mut self, now: Instant, out: &mut Outputs<M>) {
        let dial = self.links.dial(now, out);
        let mut wake = self.effects.wake_at();
        if !self.has_vote() {
            if now >= self.here_at {
                self.here_at = now.plus(HERE_EVERY);
                self.links.send_here(out);
            }
            wake = wake.min(self.here_at);
        }
        self.wake = Some(dial.map_or(wake, |dial| dial.min(wake)));
    }
}
