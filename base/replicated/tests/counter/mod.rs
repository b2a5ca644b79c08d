//! Three replicas of a machine that counts each client's numbers once, and clients that want theirs counted.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs};
use replicated::{
    Config, Event, Group, Instance, Members, Refusal, ReplicaId, Request, Settings, Value,
};
use sim::{Machine, Process, Target, World};

pub const REPLICAS: usize = 3;
pub const CLIENTS: usize = 4;
const GROUP: u64 = 42;
/// Listeners of a replica.
const PEERS_LISTENER: usize = 0;
const CLIENTS_LISTENER: usize = 1;
const PATIENCE: Duration = Duration::from_millis(1500);
/// Bytes of a snapshot that are written at once: so few that it has several parts.
const PART_BYTES: usize = 24;
/// What a replica says that does not lead, in place of a client's name.
const NOT_LEADER: u64 = u64::MAX;

/// Faults of the machine, which the world must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// What a client sends again is counted again.
    CountsTwice,
}

/// What all replicas have in common: order in, counts out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The last number of each client.
    pub last: BTreeMap<u64, u64>,
    /// How many were counted.
    pub counted: u64,
    /// Over all that was applied, in order.
    pub hash: u64,
}

impl Counts {
    fn apply(&mut self, client: u64, number: u64, broken: Broken) {
        let last = self.last.entry(client).or_default();
        if number > *last || broken == Broken::CountsTwice {
            *last = number;
            self.counted += 1;
        }
        self.hash =
            (self.hash.rotate_left(7) ^ client ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&self) -> Vec<u8> {
        let mut bytes = [self.counted.to_le_bytes(), self.hash.to_le_bytes()].concat();
        for (client, number) in &self.last {
            bytes.extend_from_slice(&client.to_le_bytes());
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Self {
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|it| u64::from_le_bytes(it.try_into().expect("eight")))
            .collect();
        let last = words[2..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        Self { counted: words[0], hash: words[1], last }
    }
}

pub struct Replica {
    pub group: Group,
    broken: Broken,
    pub counts: Counts,
    pub applied: Instance,
    /// Who waits for what was proposed here, by its id.
    waiting: BTreeMap<u64, (Connection, u64, u64)>,
    proposals: u64,
    /// The rest of the snapshot that is being written.
    making: Option<(Instance, Vec<u8>)>,
    installing: Vec<u8>,
    pub installed: u64,
    pub made: u64,
}

impl Replica {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match self.group.take(now, input, out) {
            Some(Input::Bytes(connection, bytes)) => {
                let whole = bytes.len() / 16 * 16;
                out.used(whole);
                for pair in bytes[..whole].chunks_exact(16) {
                    let word =
                        |at: usize| u64::from_le_bytes(pair[at..at + 8].try_into().expect("eight"));
                    self.proposals += 1;
                    self.waiting.insert(self.proposals, (connection, word(0), word(8)));
                    self.group.propose(now, self.proposals, Value::from(pair), out);
                }
            }
            Some(Input::Closed(connection)) => self.waiting.retain(|_, it| it.0 != connection),
            _ => {}
        }
        while let Some(event) = self.group.next_event() {
            self.follow(event, out);
        }
        if let Some(at) = self.group.wake_at() {
            out.wake_at(at);
        }
    }

    /// A snapshot goes to the disk in parts of [`PART_BYTES`], while the replica goes on.
    fn next_part(&mut self, out: &mut Outputs) {
        let Some((through, rest)) = &mut self.making else { return };
        let part: Vec<u8> = rest.drain(..rest.len().min(PART_BYTES)).collect();
        if !self.group.snapshot(*through, &part, rest.is_empty(), out) {
            self.making = None;
        }
    }

    fn follow(&mut self, event: Event, out: &mut Outputs) {
        match event {
            Event::Apply { instance, value, proposal } => {
                let word =
                    |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().expect("eight"));
                self.counts.apply(word(0), word(8), self.broken);
                self.applied = instance;
                let waiting = proposal.and_then(|id| self.waiting.remove(&id));
                if let Some((connection, client, number)) = waiting {
                    let answer = out.send(connection);
                    answer.extend_from_slice(&client.to_le_bytes());
                    answer.extend_from_slice(&number.to_le_bytes());
                }
            }
            Event::MakeSnapshot => {
                self.made += 1;
                self.making = Some((self.applied, self.counts.write()));
                self.next_part(out);
            }
            Event::MoreSnapshot => self.next_part(out),
            Event::InstallPart { offset, bytes } => {
                self.making = None;
                if offset == 0 {
                    self.installing.clear();
                }
                self.installing.extend_from_slice(&bytes);
            }
            Event::Install { through } => {
                self.installed += 1;
                self.counts = Counts::read(&self.installing);
                self.applied = through;
            }
            Event::Refused { request: Request::Propose(id), why } => {
                let Some((connection, ..)) = self.waiting.remove(&id) else { return };
                if let Refusal::NotLeader { leader } = why {
                    let leader = leader.map_or(u64::MAX, |it| u64::from(replicated::number_of(it)));
                    let answer = out.send(connection);
                    answer.extend_from_slice(&NOT_LEADER.to_le_bytes());
                    answer.extend_from_slice(&leader.to_le_bytes());
                }
            }
            _ => {}
        }
    }
}

pub struct Client {
    name: u64,
    pub number: u64,
    pub counted: u64,
    at: usize,
    connection: Option<Connection>,
}

impl Client {
    fn ask(&mut self, now: Instant, out: &mut Outputs) {
        out.wake_at(now.plus(PATIENCE));
        match self.connection {
            Some(connection) => {
                let bytes = out.send(connection);
                bytes.extend_from_slice(&self.name.to_le_bytes());
                bytes.extend_from_slice(&self.number.to_le_bytes());
            }
            None => out.dial(self.at),
        }
    }

    fn leave(&mut self, to: usize, out: &mut Outputs) {
        if let Some(connection) = self.connection.take() {
            out.close(connection);
        }
        self.at = to % REPLICAS;
    }

    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Wake => {
                self.leave(self.at + 1, out);
                self.ask(now, out);
            }
            Input::Dialled { connection, .. } => {
                if let Some(before) = self.connection.replace(connection) {
                    out.close(before);
                }
                self.ask(now, out);
            }
            Input::Bytes(connection, bytes) => {
                let whole = bytes.len() / 16 * 16;
                out.used(whole);
                if self.connection != Some(connection) {
                    return;
                }
                for pair in bytes[..whole].chunks_exact(16) {
                    let word =
                        |at: usize| u64::from_le_bytes(pair[at..at + 8].try_into().expect("eight"));
                    if word(0) == NOT_LEADER {
                        let known = usize::try_from(word(8)).ok().filter(|at| *at < REPLICAS);
                        self.leave(known.unwrap_or(self.at + 1), out);
                        // Not at once: nobody may lead yet.
                        out.wake_at(now.plus(Duration::from_millis(20)));
                        if known.is_some() {
                            out.dial(self.at);
                        }
                        return;
                    }
                    if word(8) == self.number {
                        self.counted = self.number;
                        self.number += 1;
                        self.ask(now, out);
                    }
                }
            }
            Input::Closed(connection) if self.connection == Some(connection) => {
                self.connection = None
            }
            _ => {}
        }
    }
}

pub enum Toy {
    Replica(Box<Replica>),
    Client(Client),
}

impl Node for Toy {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match self {
            Self::Replica(it) => it.step(now, input, out),
            Self::Client(it) => it.step(now, input, out),
        }
    }
}

/// Replicas, then clients.
pub fn world(seed: u64, broken: Broken, change: fn(&mut Config)) -> World<Toy> {
    let mut world = World::new(seed, sim::Settings::default());
    let ids: Vec<ReplicaId> = (0..3).map(ReplicaId).collect();
    for index in 0..REPLICAS {
        let others: Vec<usize> = (0..REPLICAS).filter(|other| *other != index).collect();
        let peers = others.iter().map(|other| Target {
            process: *other,
            machine: 0,
            listener: PEERS_LISTENER,
        });
        let machine = Machine { peers: peers.collect(), logs: 1, cells: 3 };
        let ids = ids.clone();
        let settings = Settings {
            service: GROUP,
            disk: 0,
            peers: others.iter().enumerate().map(|(peer, other)| (ids[*other], peer)).collect(),
            listener: PEERS_LISTENER,
            log: 0,
            cell: 0,
            unsent_bytes_max: 1 << 20,
        };
        world.add(
            Process { name: format!("replica{index}"), machines: vec![machine] },
            Box::new(move |start| {
                let mut config = Config::new(ids[index], Members::new(&ids).expect("three"));
                config.seed = seed * 31 + u64::try_from(index).expect("small") + start.life * 7;
                config.snapshot_after_bytes = 20_000;
                config.retain_bytes = 4_000;
                config.heartbeat_every = Duration::from_millis(20);
                config.election_timeout = Duration::from_millis(120);
                change(&mut config);
                let mut settings = settings.clone();
                // No two lives draw the same, as from a real source.
                settings.disk = config.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
                let started =
                    Group::start(config, &settings, &start.stored[0]).expect("its disk is whole");
                let (applied, counts) = match &started.snapshot {
                    Some((through, bytes)) => (*through, Counts::read(bytes)),
                    None => (0, Counts::default()),
                };
                vec![Toy::Replica(Box::new(Replica {
                    group: started.group,
                    broken,
                    counts,
                    applied,
                    waiting: BTreeMap::new(),
                    proposals: 0,
                    making: None,
                    installing: Vec::new(),
                    installed: 0,
                    made: 0,
                }))]
            }),
        );
    }
    for client in 0..CLIENTS {
        let peers =
            (0..REPLICAS).map(|process| Target { process, machine: 0, listener: CLIENTS_LISTENER });
        let machine = Machine { peers: peers.collect(), logs: 0, cells: 0 };
        world.add(
            Process { name: format!("client{client}"), machines: vec![machine] },
            Box::new(move |_| {
                let name = u64::try_from(client).expect("small") + 1;
                vec![Toy::Client(Client {
                    name,
                    number: 1,
                    counted: 0,
                    at: client % REPLICAS,
                    connection: None,
                })]
            }),
        );
    }
    world
}

/// What must hold whenever a replica has taken a step.
#[derive(Default)]
pub struct Watch {
    /// The counts after each instance, as the first replica had them that came there.
    known: BTreeMap<Instance, u64>,
    /// The replica that led in each ballot.
    leaders: BTreeMap<(u64, u8), u8>,
    pub changes: u64,
    led: Option<u8>,
    seen: [(Instance, u64); REPLICAS],
}

impl Watch {
    pub fn look(&mut self, world: &mut World<Toy>, process: usize) -> Result<(), String> {
        let Some(Toy::Replica(it)) = world.node(process, 0) else {
            return self.client(world, process);
        };
        let (instance, hash) = (it.applied, it.counts.hash);
        if it.group.replica().is_leader() {
            let (ballot, id) = (it.group.replica().ballot(), it.group.replica().id());
            let led = *self.leaders.entry((ballot.counter, ballot.replica.0)).or_insert(id.0);
            if led != id.0 {
                return Err(format!("replicas {led} and {} both lead in {ballot:?}", id.0));
            }
            if self.led.replace(id.0) != Some(id.0) {
                self.changes += 1;
                world.coverage_mut().count("changes of the leader");
            }
        }
        if self.seen[process] == (instance, hash) || instance == 0 {
            return Ok(());
        }
        self.seen[process] = (instance, hash);
        let known = *self.known.entry(instance).or_insert(hash);
        if known != hash {
            return Err(format!(
                "replica {process} has other entries up to {instance} than another had"
            ));
        }
        Ok(())
    }

    fn client(&self, world: &World<Toy>, process: usize) -> Result<(), String> {
        let Some(Toy::Client(client)) = world.node(process, 0) else { return Ok(()) };
        if client.counted == 0 {
            return Ok(());
        }
        // Whoever is up and has applied most must have counted it, if all are up.
        let replicas = (0..REPLICAS).filter_map(|at| match world.node(at, 0) {
            Some(Toy::Replica(it)) => Some(it.counts.last.get(&client.name).copied().unwrap_or(0)),
            _ => None,
        });
        let counts: Vec<u64> = replicas.collect();
        if counts.len() == REPLICAS && counts.iter().all(|last| *last < client.counted) {
            // After a restart of all three what was chosen is known only once a leader says so.
            let is_settled = (0..REPLICAS).any(|at| match world.node(at, 0) {
                Some(Toy::Replica(it)) => {
                    it.group.replica().is_leader() && it.applied == it.group.replica().chosen()
                }
                _ => false,
            });
            if is_settled {
                return Err(format!(
                    "{} of client {} is acknowledged and nobody has it",
                    client.counted, client.name
                ));
            }
        }
        Ok(())
    }

    /// When all is quiet again: everybody has the same, and each number was counted once.
    pub fn end(&self, world: &World<Toy>) -> Result<u64, String> {
        let mut states = Vec::new();
        for at in 0..REPLICAS {
            let Some(Toy::Replica(it)) = world.node(at, 0) else {
                return Err(format!("replica {at} is down"));
            };
            states.push((it.counts.clone(), it.applied));
        }
        let behind = states.iter().any(|state| state.0.last != states[0].0.last);
        let mut total = 0;
        for at in REPLICAS..REPLICAS + CLIENTS {
            let Some(Toy::Client(client)) = world.node(at, 0) else { continue };
            let has =
                states.iter().map(|(it, _)| it.last.get(&client.name).copied().unwrap_or(0)).max();
            if has.unwrap_or(0) < client.counted {
                return Err(format!(
                    "{} of client {} was acknowledged and is lost",
                    client.counted, client.name
                ));
            }
            total += client.counted;
        }
        let most = states.iter().max_by_key(|state| state.1).expect("three");
        let distinct: u64 = most.0.last.values().sum();
        if most.0.counted != distinct {
            return Err(format!("{} were counted, and clients gave {distinct}", most.0.counted));
        }
        let gap = states.iter().map(|it| it.1).min().unwrap_or(0);
        if behind && most.1 - gap > 100 {
            return Err(format!("a replica stands at {gap} and another at {}", most.1));
        }
        Ok(total)
    }
}
