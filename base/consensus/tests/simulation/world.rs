//! Replicas in virtual time, on a network and on disks that lose what they may lose.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::time::Duration;

use clock::Instant;
use consensus::{
    Broken, Config, Effect, Effects, Entry, Input, Instance, Members, Message, Refusal, ReplicaId,
    Request, Value,
};

use super::checks::{Checked, Checks};
use super::node::{Node, State, is_held_by_most};
use super::random::Random;

/// What a seed makes happen.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Replicas with a vote at the beginning.
    pub voters: u8,
    /// Others, which may join.
    pub spares: u8,
    pub changes_members: bool,
    pub resends_values: bool,
    /// How long things go wrong, in milliseconds.
    pub faults_ms: u64,
    pub broken: Broken,
}

enum Happening {
    Arrives { to: usize, from: ReplicaId, bytes: Vec<u8> },
    Wake { node: usize, life: u64 },
    Synced { node: usize, life: u64, through: u64 },
    SnapshotMade { node: usize, life: u64, state: State },
    SnapshotRead { node: usize, life: u64, input: Input },
    SnapshotInstalled { node: usize, life: u64 },
    PowerFails { node: usize, life: u64 },
    Restarts { node: usize },
    Client,
    Fault,
}

pub struct World {
    pub now: Instant,
    pub random: Random,
    pub nodes: Vec<Node>,
    pub checks: Checks,
    pub shape: Shape,
    /// What happened how often.
    pub seen: BTreeMap<&'static str, u64>,
    /// Messages from one to the other are lost.
    cut: HashSet<(usize, usize)>,
    /// Lost and repeated messages of 1,000.
    lost: u64,
    repeated: u64,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    happenings: std::collections::HashMap<u64, Happening>,
    sequence: u64,
    next_id: u64,
    is_faulty: bool,
}

fn config(id: u8, seed: u64, shape: Shape) -> Config {
    let voters: Vec<ReplicaId> = (0..shape.voters).map(ReplicaId).collect();
    let mut config = Config::new(ReplicaId(id), Members::new(&voters).unwrap());
    config.seed = seed.wrapping_mul(31).wrapping_add(id.into());
    config.heartbeat_every = Duration::from_millis(20);
    config.election_timeout = Duration::from_millis(100);
    config.window_max = 8;
    config.window_bytes_max = 800;
    config.peer_bytes_max = 600;
    config.message_bytes_max = 300;
    config.reads_max = 4;
    config.snapshot_after_bytes = 5_000;
    config.retain_bytes = 700;
    config.snapshot_part_bytes = 20;
    config.resend_values = shape.resends_values;
    config.broken = shape.broken;
    config
}

impl World {
    pub fn new(seed: u64, shape: Shape) -> Self {
        let all = 0..shape.voters + shape.spares;
        let mut world = Self {
            now: Instant::ZERO,
            random: Random::new(seed),
            nodes: all.map(|id| Node::new(config(id, seed, shape))).collect(),
            checks: Checks::default(),
            shape,
            seen: BTreeMap::new(),
            cut: HashSet::new(),
            lost: 5,
            repeated: 5,
            queue: BinaryHeap::new(),
            happenings: std::collections::HashMap::new(),
            sequence: 0,
            next_id: 0,
            is_faulty: true,
        };
        for node in 0..world.nodes.len() {
            world.at(world.now, Happening::Wake { node, life: 0 });
            world.nodes[node].wake_at = world.now;
        }
        world.after(Duration::from_millis(1), Happening::Client);
        world.after(Duration::from_millis(200), Happening::Fault);
        world
    }

    /// The whole of it: things go wrong, then everything is well again and must work.
    pub fn run(&mut self) -> Checked {
        let end = Instant::ZERO.plus(Duration::from_millis(self.shape.faults_ms));
        self.run_until(end)?;
        self.heal()?;
        self.run_until(end.plus(Duration::from_millis(1_500)))?;
        self.must_work()
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_insert(0) += 1;
    }

    fn at(&mut self, at: Instant, happening: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.happenings.insert(self.sequence, happening);
    }

    fn after(&mut self, after: Duration, happening: Happening) {
        self.at(self.now.plus(after), happening);
    }

    pub fn run_until(&mut self, end: Instant) -> Checked {
        while let Some(Reverse((at, key))) = self.queue.peek().copied() {
            if at > end {
                break;
            }
            self.queue.pop();
            self.now = at;
            let happening = self.happenings.remove(&key).unwrap();
            if let Some(until) = self.paused(&happening) {
                self.at(until, happening);
            } else {
                self.happen(happening)?;
            }
        }
        self.now = end;
        Ok(())
    }

    /// Until when whoever this happens to stands still.
    fn paused(&self, happening: &Happening) -> Option<Instant> {
        let node = match happening {
            Happening::Arrives { to, .. } => *to,
            Happening::Wake { node, .. }
            | Happening::Synced { node, .. }
            | Happening::SnapshotMade { node, .. }
            | Happening::SnapshotRead { node, .. }
            | Happening::SnapshotInstalled { node, .. } => *node,
            Happening::PowerFails { .. }
            | Happening::Restarts { .. }
            | Happening::Client
            | Happening::Fault => return None,
        };
        let node = &self.nodes[node];
        (node.replica.is_some() && node.paused_until > self.now).then_some(node.paused_until)
    }

    fn happen(&mut self, happening: Happening) -> Checked {
        match happening {
            Happening::Arrives { to, from, bytes } => {
                let message = Message::decode(&bytes).map_err(|error| error.to_string())?;
                self.step(to, Input::Received { from, message })
            }
            Happening::Wake { node, life } => {
                let there = &mut self.nodes[node];
                if there.life != life || there.wake_at > self.now {
                    return Ok(());
                }
                there.wake_at = Instant::FAR_FUTURE;
                self.step(node, Input::Wake)
            }
            Happening::Synced { node, life, through } => self.synced(node, life, through),
            Happening::SnapshotMade { node, life, state } => {
                if self.nodes[node].life != life {
                    return Ok(());
                }
                self.nodes[node].snapshots.insert(state.applied, state.to_bytes());
                self.saw("snapshots made");
                self.step(node, Input::SnapshotMade { through: state.applied })
            }
            Happening::SnapshotRead { node, life, input } => match self.nodes[node].life == life {
                true => self.step(node, input),
                false => Ok(()),
            },
            Happening::SnapshotInstalled { node, life } => self.installed(node, life),
            Happening::PowerFails { node, life } => {
                if self.nodes[node].life == life {
                    let down = self.random.micros(100, 20_000);
                    self.crash(node, down);
                }
                Ok(())
            }
            Happening::Restarts { node } => self.restart(node),
            Happening::Client => self.client(),
            Happening::Fault => super::faults::fault(self),
        }
    }

    fn synced(&mut self, node: usize, life: u64, through: u64) -> Checked {
        let there = &mut self.nodes[node];
        if there.life != life {
            return Ok(());
        }
        there.disk.durable = there.disk.durable.max(through);
        there.disk.is_syncing = false;
        self.step(node, Input::Persisted { through })?;
        self.sync(node);
        Ok(())
    }

    /// Begins to write what was appended, if anything was and nothing is being written.
    fn sync(&mut self, node: usize) {
        let slow = self.is_faulty && self.random.happens(20);
        let takes = self.random.micros(100, if slow { 30_000 } else { 1_500 });
        let there = &mut self.nodes[node];
        let through = there.disk.end();
        if there.replica.is_none() || there.disk.is_syncing || through == there.disk.durable {
            return;
        }
        there.disk.is_syncing = true;
        let life = there.life;
        // Now and then the power fails in the middle of it.
        if self.is_faulty && self.random.happens(6) {
            self.after(takes / 2, Happening::PowerFails { node, life });
        }
        self.after(takes, Happening::Synced { node, life, through });
    }

    fn installed(&mut self, node: usize, life: u64) -> Checked {
        let there = &mut self.nodes[node];
        if there.life != life {
            return Ok(());
        }
        let Some((through, bytes, true)) = there.incoming.take() else {
            return Err("what was to be installed was replaced".to_owned());
        };
        there.state = State::from_bytes(&bytes);
        there.snapshots.insert(through, bytes);
        self.saw("snapshots installed");
        self.step(node, Input::SnapshotInstalled { through })
    }

    pub fn crash(&mut self, node: usize, down: Duration) {
        if self.nodes[node].replica.is_none() {
            return;
        }
        if self.nodes[node].replica.as_ref().is_some_and(consensus::Replica::is_leader) {
            self.saw("leaders crashed");
        }
        if self.nodes[node].disk.is_syncing {
            self.saw("crashes between write and sync");
        }
        let lost = self.nodes[node].crash(&mut self.random);
        *self.seen.entry("records lost").or_insert(0) += lost;
        self.saw("crashes");
        self.after(down, Happening::Restarts { node });
    }

    fn restart(&mut self, node: usize) -> Checked {
        if self.nodes[node].replica.is_some() {
            return Ok(());
        }
        self.nodes[node].restart()?;
        self.step(node, Input::Wake)
    }

    /// One step of one replica, with everything that follows from it and everything that must hold.
    fn step(&mut self, node: usize, input: Input) -> Checked {
        let Some(mut replica) = self.nodes[node].replica.take() else { return Ok(()) };
        let mut out = Effects::default();
        replica.step(self.now, input, &mut out);
        self.saw("steps");
        if replica.is_leader() {
            let is_new =
                self.checks.leads(replica.ballot(), replica.id(), self.nodes[node].life)?;
            if is_new && self.nodes[node].disk.promised() < replica.ballot() {
                let (id, ballot) = (replica.id(), replica.ballot());
                return Err(format!(
                    "{id:?} leads in {ballot:?}, and its own promise is not durable"
                ));
            }
        }
        self.nodes[node].replica = Some(replica);
        let wake_at = out.wake_at();
        for effect in out.drain() {
            self.carry_out(node, effect)?;
        }
        self.sync(node);
        let life = self.nodes[node].life;
        if wake_at < self.nodes[node].wake_at {
            self.at(wake_at.max(self.now), Happening::Wake { node, life });
        }
        // Later than what was planned: the planned wake-up finds that and plans anew.
        if wake_at != Instant::FAR_FUTURE {
            self.nodes[node].wake_at = wake_at.min(self.nodes[node].wake_at);
        }
        Ok(())
    }

    fn carry_out(&mut self, node: usize, effect: Effect) -> Checked {
        let life = self.nodes[node].life;
        match effect {
            Effect::Send { to, message } => {
                if let Message::Promise { ballot, .. } = message
                    && self.nodes[node].disk.promised() < ballot
                {
                    let id = self.nodes[node].id();
                    return Err(format!(
                        "{id:?} sends a promise of {ballot:?} that is not durable"
                    ));
                }
                self.send(node, to, &message);
            }
            Effect::Append { number, record } => {
                if number != self.nodes[node].disk.end() {
                    return Err(format!("record {number} is not the next"));
                }
                self.nodes[node].disk.append(&record);
            }
            Effect::Trim { records_before, snapshots_before } => {
                self.saw("logs trimmed");
                let is_durable = self.nodes[node].disk.trim(records_before);
                // Who lies about its disk is found by what that does to others.
                if !is_durable && self.shape.broken == Broken::Nothing {
                    return Err(format!("trims records before {records_before} too early"));
                }
                self.nodes[node].snapshots.retain(|through, _| *through >= snapshots_before);
                self.nodes[node].kept_what_it_accepted()?;
            }
            Effect::Deliver { instance, entry, proposal } => {
                self.delivered(node, instance, &entry, proposal)?;
            }
            Effect::ReadReady { id, instance } => {
                self.saw("reads served");
                self.checks.read_is_ready(id, instance, self.nodes[node].state.applied)?;
            }
            Effect::NeedSnapshot => {
                let state = self.nodes[node].state;
                let takes = self.random.micros(100, 20_000);
                self.after(takes, Happening::SnapshotMade { node, life, state });
            }
            Effect::ReadSnapshot { to, through, offset, bytes_max } => {
                self.read_snapshot(node, to, through, offset, bytes_max);
            }
            Effect::InstallPart { through, offset, bytes, is_last } => {
                self.install_part(node, through, offset, &bytes, is_last)?;
            }
            Effect::Refused { request, why } => self.refused(request, why),
            Effect::Leader(_) => {}
            Effect::Distrusted { from, why } => {
                let id = self.nodes[node].id();
                return Err(format!("{id:?} does not believe {from:?}: {why}"));
            }
        }
        Ok(())
    }

    fn delivered(
        &mut self,
        node: usize,
        instance: Instance,
        entry: &Entry,
        proposal: Option<u64>,
    ) -> Checked {
        let there = &mut self.nodes[node];
        if instance != there.state.applied + 1 {
            let (id, applied) = (there.id(), there.state.applied);
            return Err(format!("{id:?} delivers {instance} behind {applied}"));
        }
        if there.incoming.as_ref().is_some_and(|(_, _, is_whole)| *is_whole) {
            return Err("delivered while a snapshot is being installed".to_owned());
        }
        there.state.apply(instance, entry);
        let who = there.id();
        match entry {
            Entry::Members(_) => self.saw("changes of members delivered"),
            Entry::Noop => self.saw("noops delivered"),
            Entry::Value(_) => {}
        }
        if self.checks.delivers(who, instance, entry)? {
            // Without changes of members the same disks count for every entry. A replica that lies about its disk is found by
            // its effects on others.
            if !self.shape.changes_members && self.shape.broken == Broken::Nothing {
                is_held_by_most(&self.nodes, node, instance)?;
            }
        }
        match proposal {
            Some(id) => self.checks.acknowledges(instance, entry, id),
            None => Ok(()),
        }
    }

    fn read_snapshot(
        &mut self,
        node: usize,
        to: ReplicaId,
        through: Instance,
        offset: u64,
        bytes_max: u32,
    ) {
        let Some(whole) = self.nodes[node].snapshots.get(&through) else { return };
        let start = usize::try_from(offset).unwrap().min(whole.len());
        let end = (start + bytes_max as usize).min(whole.len());
        let (bytes, is_last) = (Value::from(&whole[start..end]), end == whole.len());
        let input = Input::SnapshotPart { to, through, offset, bytes, is_last };
        let (takes, life) = (self.random.micros(10, 500), self.nodes[node].life);
        self.after(takes, Happening::SnapshotRead { node, life, input });
    }

    fn install_part(
        &mut self,
        node: usize,
        through: Instance,
        offset: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> Checked {
        let there = &mut self.nodes[node];
        if offset == 0 {
            there.incoming = Some((through, Vec::new(), false));
        }
        match &mut there.incoming {
            Some((of, whole, is_whole)) if *of == through && whole.len() as u64 == offset => {
                whole.extend_from_slice(bytes);
                *is_whole = is_last;
            }
            _ => return Err(format!("a part at {offset} of snapshot {through} fits nothing")),
        }
        if is_last {
            let (takes, life) = (self.random.micros(100, 30_000), there.life);
            self.after(takes, Happening::SnapshotInstalled { node, life });
        }
        Ok(())
    }

    fn refused(&mut self, request: Request, why: Refusal) {
        self.saw(match (request, why) {
            (_, Refusal::NotLeader { .. }) => "refused: not the leader",
            (Request::Propose(_), Refusal::Busy) => "refused: window full",
            (_, Refusal::Busy) => "refused: busy",
            _ => "refused: other",
        });
    }

    fn send(&mut self, node: usize, to: ReplicaId, message: &Message) {
        let to = usize::from(to.0);
        if self.cut.contains(&(node, to)) || self.random.happens(self.lost) {
            self.saw("messages lost");
            return;
        }
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let from = self.nodes[node].id();
        let copies = if self.random.happens(self.repeated) { 2 } else { 1 };
        for _ in 0..copies {
            let slow = self.is_faulty && self.random.happens(10);
            let takes = self.random.micros(50, if slow { 100_000 } else { 1_000 });
            let bytes = bytes.clone();
            self.after(takes, Happening::Arrives { to, from, bytes });
        }
    }

    /// Clients propose and read at whoever thinks that it leads, and now and then at others.
    fn client(&mut self) -> Checked {
        let next = self.random.micros(500, 30_000);
        self.after(next, Happening::Client);
        for node in 0..self.nodes.len() {
            let Some(replica) = &self.nodes[node].replica else { continue };
            if self.nodes[node].paused_until > self.now {
                continue;
            }
            if replica.is_leader() || self.random.happens(10) {
                let most = if self.random.happens(100) { 12 } else { 4 };
                for _ in 0..=self.random.below(most) {
                    self.propose(node)?;
                }
                self.next_id += 1;
                self.checks.reads(self.next_id);
                self.step(node, Input::Read { id: self.next_id })?;
            }
        }
        Ok(())
    }

    fn propose(&mut self, node: usize) -> Checked {
        let Some(replica) = &self.nodes[node].replica else { return Ok(()) };
        self.next_id += 1;
        let id = self.next_id;
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.resize(8 + self.random.index(120), b'v');
        if replica.can_propose(bytes.len()) {
            self.checks.proposes(id, replica.ballot());
        }
        self.step(node, Input::Propose { id, value: bytes.into() })
    }

    /// Asks whoever leads to let one in or to let one go.
    pub fn change_members(&mut self, node: usize) -> Checked {
        let Some(replica) = &self.nodes[node].replica else { return Ok(()) };
        let mut ids: Vec<ReplicaId> = replica.members().iter().collect();
        let who = self.nodes[self.random.index(self.nodes.len())].id();
        match ids.iter().position(|id| *id == who) {
            Some(place) if ids.len() > 2 => {
                ids.remove(place);
            }
            Some(_) => return Ok(()),
            None => ids.push(who),
        }
        self.next_id += 1;
        let members = Members::new(&ids).unwrap();
        self.step(node, Input::ChangeMembers { id: self.next_id, members })
    }

    pub fn cut(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
        self.saw("links cut");
    }

    pub fn mend(&mut self) {
        self.cut.clear();
    }

    pub fn set_network(&mut self, lost: u64, repeated: u64) {
        (self.lost, self.repeated) = (lost, repeated);
    }

    pub fn pause(&mut self, node: usize, lasts: Duration) {
        self.nodes[node].paused_until = self.now.plus(lasts);
        self.saw("pauses");
    }

    pub fn next_fault(&mut self) {
        let after = self.random.micros(5_000, 200_000);
        self.after(after, Happening::Fault);
    }

    pub fn is_faulty(&self) -> bool {
        self.is_faulty
    }

    /// Nothing goes wrong from here on.
    pub fn heal(&mut self) -> Checked {
        self.is_faulty = false;
        self.mend();
        self.set_network(0, 0);
        for node in 0..self.nodes.len() {
            self.nodes[node].paused_until = self.now;
            self.restart(node)?;
        }
        Ok(())
    }

    /// A value that is proposed now is delivered by all members, who then hold the same.
    fn must_work(&mut self) -> Checked {
        let leader = self
            .nodes
            .iter()
            .position(|node| node.replica.as_ref().is_some_and(|replica| replica.is_leader()));
        let leader = leader.ok_or("nobody leads although everything is well")?;
        let before = self.checks.last();
        self.propose(leader)?;
        self.run_until(self.now.plus(Duration::from_millis(500)))?;
        if self.checks.last() <= before {
            return Err(format!("nothing is chosen behind {before} although everything is well"));
        }
        let replica = self.nodes[leader].replica.as_ref().ok_or("the leader is gone")?;
        let members = replica.members().clone();
        let (last, id) = (before, replica.id());
        for node in self.nodes.iter().filter(|node| members.contains(node.id())) {
            if node.state.applied < last {
                let applied = node.state.applied;
                return Err(format!(
                    "{:?} has applied {applied} of {last}, led by {id:?}",
                    node.id()
                ));
            }
        }
        let states: Vec<State> = self.nodes.iter().map(|node| node.state).collect();
        for (one, other) in states.iter().zip(&states[1..]) {
            if one.applied == other.applied && one.hash != other.hash {
                return Err(format!("states differ after {}", one.applied));
            }
        }
        *self.seen.entry("values acknowledged").or_insert(0) += self.checks.acknowledged;
        *self.seen.entry("leaders").or_insert(0) += self.checks.leaders() as u64;
        Ok(())
    }
}
