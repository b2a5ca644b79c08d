//! One replica: what it knows, and how an input finds the rule that is for it. The rules stand by role: `acceptor` (what
//! every replica does), `election`, `leader`, `reads`, `snapshot`, `recover`.

use std::collections::VecDeque;
use std::time::Duration;

use clock::Instant;

use crate::config::{Broken, Config};
use crate::effects::{Distrust, Effect, Effects, Input, Refusal, Request};
use crate::entry::{Entry, Proposal, SnapshotHead};
use crate::ids::{Ballot, COUNTER_JUMP_MAX, Instance, Members, ReplicaId};
use crate::log::Log;
use crate::message::Message;
use crate::peer::Position;
use crate::random::Random;
use crate::record::Record;
use crate::role::{Installing, Role};

/// One replica of a group that agrees on a sequence of values. See the crate's page for the protocol.
#[derive(Debug)]
pub struct Replica {
    pub(crate) config: Config,
    pub(crate) random: Random,
    /// Nothing below it is accepted.
    pub(crate) promised: Ballot,
    /// How many records must be durable before the promise is; `None` if no record says it yet.
    pub(crate) promise_record: Option<u64>,
    /// The highest counter of a ballot that was ever seen.
    pub(crate) counter_seen: u64,
    pub(crate) log: Log,
    pub(crate) snapshot: SnapshotHead,
    /// Who had the votes from which instance on, behind the snapshot's end. The last is in force.
    pub(crate) changes: Vec<(Instance, Members)>,
    /// All instances up to here are known to be chosen.
    pub(crate) chosen: Instance,
    /// All up to here are chosen, or accepted in the promised ballot. Never less than `chosen`.
    pub(crate) agreed: Instance,
    /// All up to here are so, durably.
    pub(crate) durable: Instance,
    /// All up to here have been delivered, or stand in the snapshot that was installed.
    pub(crate) delivered: Instance,
    pub(crate) next_record: u64,
    /// Records with a smaller number are durable.
    pub(crate) persisted: u64,
    /// Since when the disk has made nothing durable although something waits for it; `None`: nothing waits.
    pub(crate) disk_waits_since: Option<Instant>,
    /// The next record when the disk had nothing left to do last, and since when.
    idle: (u64, Instant),
    /// Of each record before this one the log proves that it was durable, once it is idle.
    marked: u64,
    /// What waits until so many records are durable.
    pub(crate) waiting: VecDeque<(u64, Waiting)>,
    pub(crate) role: Role,
    /// How long it waits for a leader.
    pub(crate) patience: Duration,
    /// When it has waited long enough.
    pub(crate) election_at: Instant,
    /// When the leader was heard last, in this life.
    pub(crate) leader_heard: Option<Instant>,
    pub(crate) installing: Option<Installing>,
    /// What was delivered since the last snapshot weighs so much.
    pub(crate) weight_delivered: u64,
    pub(crate) is_snapshot_wanted: bool,
    /// Who leads, as the caller was told.
    leader_told: Option<ReplicaId>,
    /// It holds something else than a leader does: it takes part no more.
    has_diverged: bool,
}

/// How long nothing is appended before the log is marked as durable up to its end: a few heartbeats, and rarely enough that
/// it costs nothing.
const IDLE: Duration = Duration::from_secs(1);

/// What is done once records are durable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The part of a promise from an instance on goes out.
    Promise { to: ReplicaId, ballot: Ballot, first: Instance },
    /// The replica's own promise counts.
    OwnPromise { ballot: Ballot },
    /// What is before the head of the log goes.
    Trim { records_before: u64, snapshots_before: Instance },
}

impl Replica {
    /// A replica without a past. One that has records must go through [`Replica::recover`]: a replica that forgets what it
    /// has accepted breaks the agreement.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let members = config.members.clone();
        let snapshot = SnapshotHead { through: 0, origin: Ballot::ZERO, members };
        Self {
            random: Random::new(config.seed),
            config,
            promised: Ballot::ZERO,
            promise_record: None,
            counter_seen: 0,
            log: Log::starting_at(1),
            snapshot,
            changes: Vec::new(),
            chosen: 0,
            agreed: 0,
            durable: 0,
            delivered: 0,
            next_record: 0,
            persisted: 0,
            disk_waits_since: None,
            idle: (0, Instant::ZERO),
            marked: 0,
            waiting: VecDeque::new(),
            role: Role::Follower { leader: None },
            patience: Duration::ZERO,
            // Drawn at the first wake-up, which is at once.
            election_at: Instant::FAR_FUTURE,
            leader_heard: None,
            installing: None,
            weight_delivered: 0,
            is_snapshot_wanted: false,
            leader_told: None,
            has_diverged: false,
        }
    }

    /// Takes one input at a time that never goes back, and says what is to be done. The first input of a life is
    /// [`Input::Wake`].
    pub fn step(&mut self, now: Instant, input: Input, out: &mut Effects) {
        if self.has_diverged {
            return self.refuse_as_diverged(&input, out);
        }
        match input {
            Input::Wake => self.wake(now, out),
            Input::Received { from, message } => self.receive(now, from, message, out),
            Input::Propose { id, value } => self.propose(id, value, out),
            Input::Read { id } => self.read(now, id, out),
            Input::Persisted { through } => self.persist(now, through, out),
            Input::SnapshotMade { through } => self.snapshot_made(through, out),
            Input::SnapshotInstalled { through } => self.snapshot_installed(through, out),
            Input::SnapshotPart { to, through, offset, bytes, is_last } => {
                self.snapshot_part(to, through, offset, bytes, is_last, out);
            }
            Input::ChangeMembers { id, members } => self.change_members(now, id, members, out),
        }
        if self.config.broken == Broken::AcknowledgesBeforeSync {
            self.persist(now, self.next_record, out);
        }
        if self.next_record > self.persisted {
            self.disk_waits_since.get_or_insert(now);
        } else {
            self.mark_when_idle(now, out);
        }
        self.tell_leader(out);
        out.set_wake(self.wake_at());
    }

    /// Who this is.
    #[must_use]
    pub fn id(&self) -> ReplicaId {
        self.config.id
    }

    /// What it has promised; if it leads, the ballot that it leads in.
    #[must_use]
    pub fn ballot(&self) -> Ballot {
        self.promised
    }

    /// Whether it leads, as far as it knows.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// Who leads, as far as it knows.
    #[must_use]
    pub fn leader(&self) -> Option<ReplicaId> {
        match &self.role {
            Role::Follower { leader } => *leader,
            Role::Leader(_) => Some(self.config.id),
            Role::Asking(_) | Role::Candidate(_) => None,
        }
    }

    /// All instances up to this one are known here to be chosen.
    #[must_use]
    pub fn chosen(&self) -> Instance {
        self.chosen
    }

    /// All instances up to this one have been delivered in this life, or stand in the snapshot that it began with.
    #[must_use]
    pub fn delivered(&self) -> Instance {
        self.delivered
    }

    /// The snapshot that the state machine has to stand on: after a recovery it is loaded before the first step.
    #[must_use]
    pub fn snapshot(&self) -> &SnapshotHead {
        &self.snapshot
    }

    /// The entries of its log, each with the ballot in which it was accepted: for those who check a replica.
    pub fn accepted(&self) -> impl Iterator<Item = (Instance, Ballot)> {
        self.log.ballots()
    }

    /// Who has the votes, by what is known here to be chosen.
    #[must_use]
    pub fn members(&self) -> &Members {
        self.changes.last().map_or(&self.snapshot.members, |(_, members)| members)
    }

    /// Who had the votes behind instance `through`.
    pub(crate) fn members_behind(&self, through: Instance) -> &Members {
        let change = self.changes.iter().rev().find(|(instance, _)| *instance <= through);
        change.map_or(&self.snapshot.members, |(_, members)| members)
    }

    /// The origin of the entry at an instance that is in the log or ends the snapshot.
    pub(crate) fn origin_of(&self, instance: Instance) -> Ballot {
        self.log.get(instance).map_or(self.snapshot.origin, |slot| slot.proposal.origin)
    }

    fn receive(&mut self, now: Instant, from: ReplicaId, message: Message, out: &mut Effects) {
        let (counter, seen) = (message.counter(), self.counter_seen);
        if counter > seen.saturating_add(COUNTER_JUMP_MAX) {
            return out.distrust(from, Distrust::BallotJump { counter, seen });
        }
        self.counter_seen = seen.max(counter);
        match message {
            Message::AskForVotes { ballot, last, chosen } => {
                self.on_ask_for_votes(now, from, ballot, last, chosen, out);
            }
            Message::Vote { ballot, granted, promised } => {
                self.on_vote(now, from, ballot, granted, promised, out);
            }
            Message::Prepare { ballot, first } => self.on_prepare(now, from, ballot, first, out),
            Message::Promise { ballot, first, chosen, is_last, entries } => {
                self.on_promise(now, from, ballot, first, chosen, is_last, entries, out);
            }
            Message::Accept { ballot, chosen, first, entries } => {
                if self.follow(now, from, ballot, out) {
                    self.on_accept(from, chosen, first, entries, out);
                }
            }
            Message::Heartbeat { ballot, chosen, round } => {
                if self.follow(now, from, ballot, out) {
                    self.learn(chosen.min(self.agreed), out);
                    let (through, expected) = (self.durable, self.agreed + 1);
                    out.send(from, Message::Heard { ballot, round, through, expected });
                }
            }
            Message::Decide { ballot, chosen, .. } => {
                if self.follow(now, from, ballot, out) {
                    self.learn(chosen.min(self.agreed), out);
                }
            }
            Message::Snapshot { ballot, head, offset, is_last, bytes } => {
                if self.follow(now, from, ballot, out) {
                    self.on_snapshot(from, head, offset, is_last, bytes, out);
                }
            }
            Message::Accepted { ballot, through, expected, is_gap } => {
                let position = Position { through, expected };
                self.on_accepted(now, from, ballot, position, is_gap, out);
            }
            Message::Heard { ballot, round, through, expected } => {
                let position = Position { through, expected };
                self.on_heard(now, from, ballot, round, position, out);
            }
            Message::SnapshotWanted { ballot, through, offset } => {
                self.on_snapshot_wanted(now, from, ballot, through, offset, out);
            }
            Message::Rejected { ballot, promised } => self.on_rejected(now, ballot, promised, out),
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Effects) {
        if self.election_at == Instant::FAR_FUTURE {
            self.wait_for_leader(now);
            self.deliver(out);
        }
        match &self.role {
            Role::Leader(_) => self.lead_on(now, out),
            Role::Candidate(candidacy) if now >= candidacy.ask_again_at => self.ask_again(now, out),
            _ => {}
        }
        let is_leader = self.is_leader();
        if !is_leader && now >= self.election_at {
            self.ask_for_votes(now, out);
        }
    }

    fn wake_at(&self) -> Instant {
        match &self.role {
            Role::Leader(lead) => lead.heartbeat_at,
            Role::Candidate(candidacy) => candidacy.ask_again_at.min(self.election_at),
            Role::Follower { .. } | Role::Asking(_) => self.election_at,
        }
    }

    /// Begins to wait for a leader: from now on, for a time that differs from replica to replica.
    pub(crate) fn wait_for_leader(&mut self, now: Instant) {
        self.patience = self.random.once_to_twice(self.config.election_timeout);
        self.election_at = now.plus(self.patience);
    }

    /// All records before `through` are durable.
    fn persist(&mut self, now: Instant, through: u64, out: &mut Effects) {
        assert!(through <= self.next_record, "records are durable that were never appended");
        if through > self.persisted {
            self.persisted = through;
            // Whatever waits still has its time from now on.
            self.disk_waits_since = None;
        }
        while self.waiting.front().is_some_and(|(before, _)| *before <= self.persisted) {
            let Some((_, done)) = self.waiting.pop_front() else { break };
            match done {
                Waiting::Promise { to, ballot, first } => self.send_promise(to, ballot, first, out),
                Waiting::OwnPromise { ballot } => self.own_promise(now, ballot, out),
                Waiting::Trim { records_before, snapshots_before } => {
                    out.push(Effect::Trim { records_before, snapshots_before });
                }
            }
        }
        if self.count_durable() {
            match &self.role {
                Role::Leader(_) => self.choose(out),
                Role::Follower { leader: Some(leader) } => self.acknowledge(*leader, false, out),
                _ => {}
            }
        }
    }

    /// Whether the disk has stood still for so long that another had better lead: one whose disk works. A replica
    /// that decides alone has none to leave it to.
    pub(crate) fn is_disk_stuck(&self, now: Instant) -> bool {
        let limit = self.config.election_timeout;
        let is_late =
            self.disk_waits_since.is_some_and(|since| now.saturating_since(since) >= limit);
        is_late && self.members().count() > 1
    }

    /// Moves `durable` on as far as records are; whether it did.
    fn count_durable(&mut self) -> bool {
        let before = self.durable;
        while self.durable < self.agreed
            && self.log.get(self.durable + 1).is_none_or(|slot| slot.record < self.persisted)
        {
            self.durable += 1;
        }
        self.durable > before
    }

    /// Where nothing was appended for a while, appends the promise once more: whoever reads the log can then prove of each
    /// record before that it was durable, and a damaged last one is never taken for the torn end of a write.
    fn mark_when_idle(&mut self, now: Instant, out: &mut Effects) {
        let (record, since) = self.idle;
        if record != self.next_record {
            self.idle = (self.next_record, now);
        } else if record > self.marked && now.saturating_since(since) >= IDLE {
            self.append(Record::Promised { ballot: self.promised }, out);
            self.marked = self.next_record;
        }
    }

    /// Appends a record; its number.
    pub(crate) fn append(&mut self, record: Record, out: &mut Effects) -> u64 {
        let number = self.next_record;
        self.next_record += 1;
        out.push(Effect::Append { number, record });
        number
    }

    /// Accepts an entry in the promised ballot.
    pub(crate) fn accept(
        &mut self,
        instance: Instance,
        proposal: Proposal,
        local: Option<u64>,
        out: &mut Effects,
    ) {
        let ballot = self.promised;
        let record =
            Record::Accepted { instance, ballot, chosen: self.chosen, proposal: proposal.clone() };
        let record = self.append(record, out);
        // One origin proposes one thing at an instance: an id that was given here stays with it.
        let same = self.log.get(instance).filter(|slot| slot.proposal.origin == proposal.origin);
        let local = local.or_else(|| same.and_then(|slot| slot.local));
        self.log.put(instance, ballot, proposal, record, local);
        self.agreed = instance;
    }

    /// All instances up to `through` are chosen. Stops behind a change of members: whether that happened.
    pub(crate) fn learn_to_change(&mut self, through: Instance) -> bool {
        while self.chosen < through {
            self.chosen += 1;
            let slot = self.log.get(self.chosen).expect("what is learnt has been accepted here");
            if let Entry::Members(members) = &slot.proposal.entry {
                self.changes.push((self.chosen, members.clone()));
                return true;
            }
        }
        false
    }

    /// Writes down that a change of members is chosen. A later life that does not know needs the votes of the members before it,
    /// too, of whom one may be gone for good.
    pub(crate) fn note_change(&mut self, out: &mut Effects) {
        let Self { promised, chosen, .. } = *self;
        self.append(Record::Head { promised, chosen, snapshot: self.snapshot.clone() }, out);
    }

    /// All instances up to `through` are chosen.
    pub(crate) fn learn(&mut self, through: Instance, out: &mut Effects) {
        while self.learn_to_change(through) {
            self.note_change(out);
        }
        self.deliver(out);
    }

    /// Delivers what is chosen and has not been delivered.
    pub(crate) fn deliver(&mut self, out: &mut Effects) {
        if self.installing.as_ref().is_some_and(|installing| installing.is_whole) {
            return;
        }
        let first = self.delivered + 1;
        while self.delivered < self.chosen {
            self.delivered += 1;
            let instance = self.place_of(self.delivered, first);
            let slot = self.log.get(instance).expect("what is chosen and not delivered is kept");
            let entry = slot.proposal.entry.clone();
            self.weight_delivered += entry.weight();
            out.push(Effect::Deliver { instance, entry, proposal: slot.local });
        }
        self.want_snapshot(out);
    }

    /// The instance to deliver next: it is that, unless it is broken on purpose.
    fn place_of(&self, next: Instance, first: Instance) -> Instance {
        if self.config.broken != Broken::DeliversOutOfOrder {
            return next;
        }
        let partner = first + ((next - first) ^ 1);
        if partner <= self.chosen { partner } else { next }
    }

    /// Takes a higher ballot: whatever this replica was, it is a follower now, of no leader yet.
    pub(crate) fn adopt(&mut self, ballot: Ballot, out: &mut Effects) {
        self.step_down(out);
        self.promised = ballot;
        self.promise_record = None;
        self.counter_seen = self.counter_seen.max(ballot.counter);
        self.agreed = self.chosen;
        self.durable = self.durable.min(self.chosen);
        self.count_durable();
        // A part of another leader's snapshot would not fit what the new one sends.
        self.installing.take_if(|installing| !installing.is_whole);
    }

    /// Gives up leading, or trying to.
    pub(crate) fn step_down(&mut self, out: &mut Effects) {
        let was = std::mem::replace(&mut self.role, Role::Follower { leader: None });
        if let Role::Leader(lead) = was {
            lead.give_up(out);
        }
    }

    /// Says who leads if that has changed.
    fn tell_leader(&mut self, out: &mut Effects) {
        let leader = self.leader();
        if leader != self.leader_told {
            self.leader_told = leader;
            out.push(Effect::Leader(leader));
        }
    }

    /// Takes part no more: its data and a leader's are not the same, and which of them is right is not known here.
    pub(crate) fn diverge(&mut self, from: ReplicaId, instance: Instance, out: &mut Effects) {
        self.step_down(out);
        self.has_diverged = true;
        out.distrust(from, Distrust::Diverged { instance });
    }

    /// Whether it takes part no more, because it holds something else than a leader does.
    #[must_use]
    pub fn has_diverged(&self) -> bool {
        self.has_diverged
    }

    fn refuse_as_diverged(&mut self, input: &Input, out: &mut Effects) {
        match input {
            Input::Propose { id, .. } => self.refuse_as_follower(Request::Propose(*id), out),
            Input::Read { id } => self.refuse_as_follower(Request::Read(*id), out),
            Input::ChangeMembers { id, .. } => {
                self.refuse_as_follower(Request::ChangeMembers(*id), out);
            }
            _ => {}
        }
        self.tell_leader(out);
        out.set_wake(Instant::FAR_FUTURE);
    }

    /// Refuses what only a leader does.
    pub(crate) fn refuse_as_follower(&self, request: Request, out: &mut Effects) {
        out.refuse(request, Refusal::NotLeader { leader: self.leader() });
    }
}
