//! Atomizers, an archiver, a watchtower and senders in one world, and what must hold in it.

use std::collections::BTreeMap;
use std::time::Duration;

use atomizer_node::archiver::{self, Archiver, Trouble};
use atomizer_node::intake::Bounds;
use atomizer_node::machine::{Broken as Rule, Rules};
use atomizer_node::node::{
    Atomizer, BLOCKS_LISTENER, CLIENTS_LISTENER, ERRORS_LISTENER, Options, PEERS_LISTENER, Rung,
};
use atomizer_node::protocol::block::read_block;
use atomizer_node::spent::Secret;
use atomizer_node::watchtower::{self, Watchtower};
use clock::Instant;
use consensus::Broken as Consensus;
use process::{Input, Node, Outputs};
use replicated::{Config, Members, ReplicaId, Settings};
use sim::{Fault, Machine, Process, Ran, Target, Weather, World, Wrong};

use crate::sender::{ATOMIZERS, DEPTH, Sender};

const ARCHIVER: usize = ATOMIZERS;
/// An archiver whose disk is lost now and then: what it lacks may be forgotten by all atomizers.
const OTHER_ARCHIVER: usize = ATOMIZERS + 1;
const WATCHTOWER: usize = ATOMIZERS + 2;
const SENDERS: std::ops::Range<usize> = ATOMIZERS + 3..ATOMIZERS + 5;
/// The key that archivers know and senders do not.
const KEY: [u8; 32] = [7; 32];
/// Disks of atomizers that are lost in a world, and of the other archiver.
const DISKS_LOST_MAX: u64 = 4;
/// The weather lasts until the transactions are done, and this at most.
const BUSY_MAX: Duration = Duration::from_secs(60);
/// Quiet enough for everybody to come back.
const QUIET: Duration = Duration::from_secs(4);

/// Names of counts.
pub const LED: &str = "times that an atomizer began to lead";
pub const DONE: &str = "transactions in blocks";
pub const SPENT: &str = "transactions that lost an input to another";

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    Consensus(Consensus),
    Rule(Rule),
    Archiver,
}

impl Broken {
    pub const NAMES: [(&str, Self); 9] = [
        ("acknowledges", Self::Consensus(Consensus::AcknowledgesBeforeSync)),
        ("order", Self::Consensus(Consensus::DeliversOutOfOrder)),
        ("promises", Self::Consensus(Consensus::ForgetsPromises)),
        ("window", Self::Rule(Rule::LooksBackTooShort)),
        ("snapshot", Self::Rule(Rule::SnapshotLacksSpent)),
        ("one-attestation", Self::Rule(Rule::CompletesWithOne)),
        ("highest-height", Self::Rule(Rule::HighestHeight)),
        ("prune", Self::Rule(Rule::AnybodyPrunes)),
        ("archiver", Self::Archiver),
    ];
}

/// What a run is to do.
pub struct Plan {
    pub transactions: u64,
    pub broken: Broken,
}

/// A process of the world.
pub enum Part {
    Atomizer(Box<Atomizer>),
    Archiver(Box<Archiver>),
    Watchtower(Box<Watchtower>),
    Sender(Box<Sender>),
}

impl Node for Part {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match self {
            Self::Atomizer(it) => it.step(now, input, out),
            Self::Archiver(it) => it.step(now, input, out),
            Self::Watchtower(it) => it.step(now, input, out),
            Self::Sender(it) => it.step(now, input, out),
        }
    }
}

/// Runs one seed.
pub fn run(seed: u64, plan: &Plan) -> Result<Ran, Wrong> {
    let mut world = World::new(seed, sim::Settings::default());
    (0..ATOMIZERS).for_each(|index| add_atomizer(&mut world, seed, index, plan.broken));
    add_archiver(&mut world, 0, plan.broken);
    add_archiver(&mut world, 1, Broken::Nothing);
    add_watchtower(&mut world);
    SENDERS.for_each(|index| add_sender(&mut world, index));
    let mut watch = Watch::default();
    let mut weather = Weather::all(ATOMIZERS + 2, Instant::ZERO.plus(BUSY_MAX));
    weather.every = Duration::from_millis(10)..=Duration::from_millis(150);
    weather.lasts = Duration::from_millis(10)..=Duration::from_millis(400);
    world.begin_weather(weather);
    let step = Duration::from_millis(100);
    let mut lost = Lost::default();
    while world.now() < Instant::ZERO.plus(BUSY_MAX) && !has_seen_enough(&world, plan.transactions)
    {
        world.run(world.now().plus(step), |world, process| watch.look(world, process))?;
        lost.lose(&mut world, seed);
        lost.mend(&mut world);
    }
    for process in SENDERS {
        if let Some(Part::Sender(sender)) = world.node_mut(process, 0) {
            sender.stops = true;
        }
    }
    world.end_weather();
    for _ in 0..QUIET.as_millis() / step.as_millis() {
        world.run(world.now().plus(step), |world, process| watch.look(world, process))?;
        lost.mend(&mut world);
    }
    // What counts is what the archiver finds on its disk.
    world.happens(&Fault::Power { process: ARCHIVER, down: step });
    world.run(world.now().plus(4 * step), |world, process| watch.look(world, process))?;
    at_the_end(&mut world, &watch).map_err(|what| world.wrong(what))?;
    Ok(Ran { steps: world.steps(), coverage: world.coverage().clone() })
}

/// Disks that were lost.
#[derive(Default)]
struct Lost {
    atomizers: u64,
    archivers: u64,
}

impl Lost {
    /// Takes a disk away: of an atomizer where all have a vote, so that a majority keeps its disks; of the other archiver as
    /// often, where it has stored something.
    fn lose(&mut self, world: &mut World<Part>, seed: u64) {
        let down = Duration::from_millis(50);
        let is_let_in = |index| {
            atomizer(world, index).and_then(|node| node.order().group()).is_some_and(|group| {
                group.has_vote() && group.replica().members().count() == ATOMIZERS
            })
        };
        if self.atomizers < DISKS_LOST_MAX && (0..ATOMIZERS).all(is_let_in) {
            let place = seed.wrapping_add(self.atomizers) % ATOMIZERS as u64;
            let process = usize::try_from(place).expect("few");
            world.happens(&Fault::LostDisk { process, down });
            self.atomizers += 1;
        }
        let has_stored = matches!(
            world.node(OTHER_ARCHIVER, 0),
            Some(Part::Archiver(it)) if it.durable() > 3
        );
        if has_stored && self.archivers < self.atomizers {
            world.happens(&Fault::LostDisk { process: OTHER_ARCHIVER, down });
            self.archivers += 1;
        }
    }

    /// Where the other archiver says that what it lacks is forgotten, it is given a copy of the first one's disk.
    fn mend(&self, world: &mut World<Part>) {
        let is_in_trouble = matches!(
            world.node(OTHER_ARCHIVER, 0),
            Some(Part::Archiver(it)) if matches!(it.trouble(), Some(Trouble::Pruned { .. }))
        );
        if is_in_trouble {
            let down = Duration::from_millis(50);
            world.happens(&Fault::CopiedDisk { process: OTHER_ARCHIVER, of: ARCHIVER, down });
        }
    }
}

fn id(index: usize) -> ReplicaId {
    ReplicaId(u8::try_from(index).expect("few"))
}

fn target(process: usize, listener: usize) -> Target {
    Target { process, machine: 0, listener }
}

fn options(broken: Broken) -> Options {
    let secret = Secret::new(7);
    let mut rules = Rules { depth: DEPTH, inputs: 32, ..Rules::published(secret) };
    if let Broken::Rule(rule) = broken {
        rules.broken = rule;
    }
    Options {
        rules,
        ledger: 1,
        rung: Rung::Block,
        block_interval: Duration::from_millis(40),
        linger: Duration::from_millis(2),
        batch_idle: None,
        bounds: Bounds {
            queue_max: 64,
            queue_bytes_max: 1 << 20,
            partial_max: 64,
            partial_bytes_max: 1 << 20,
            entry_bytes: 1000,
        },
        ignores_height_zero: false,
        archivers: 2,
        archiver_key: KEY,
        refuses_early: true,
        unarchived_bytes_max: 1 << 20,
        broadcasts_to_all: false,
        is_silent: false,
    }
}

fn add_atomizer(world: &mut World<Part>, seed: u64, index: usize, broken: Broken) {
    let others = || (0..ATOMIZERS).filter(move |other| *other != index);
    let peers = others().map(|it| target(it, PEERS_LISTENER)).collect();
    let settings = Settings {
        service: 1,
        disk: 0,
        peers: others().map(id).zip(0..).collect(),
        listener: PEERS_LISTENER,
        log: 0,
        cell: 0,
        unsent_bytes_max: 1 << 20,
    };
    let members = Members::new(&[id(0), id(1), id(2)]).expect("three");
    world.add(
        Process {
            name: format!("atomizer{index}"),
            machines: vec![Machine { peers, logs: 1, cells: 3 }],
        },
        Box::new(move |start| {
            let mut config = Config::new(id(index), members.clone());
            config.seed =
                seed.wrapping_mul(31) ^ start.life << 8 ^ u64::try_from(index).expect("few");
            let mut settings = settings.clone();
            // No two lives draw the same, as from a real source.
            settings.disk = config.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            config.heartbeat_every = Duration::from_millis(10);
            config.election_timeout = Duration::from_millis(60);
            config.snapshot_after_bytes = 40_000;
            config.retain_bytes = 10_000;
            if let Broken::Consensus(broken) = broken {
                config.broken = broken;
            }
            let node = Atomizer::of_group(config, &settings, &start.stored[0], options(broken));
            vec![Part::Atomizer(Box::new(
                node.unwrap_or_else(|error| panic!("atomizer {index}: {error}")),
            ))]
        }),
    );
}

fn add_archiver(world: &mut World<Part>, number: u8, broken: Broken) {
    let peers = (0..ATOMIZERS).map(|it| target(it, BLOCKS_LISTENER)).collect();
    world.add(
        Process {
            name: format!("archiver{number}"),
            machines: vec![Machine { peers, logs: 1, cells: 0 }],
        },
        Box::new(move |start| {
            let node = Archiver::new(ATOMIZERS, &start.stored[0]);
            let node = node.unwrap_or_else(|error| panic!("archiver {number}: {error}"));
            let node = node.numbered(number, KEY);
            let is_broken = broken == Broken::Archiver;
            let node = if is_broken { node.saying_stored_early() } else { node };
            vec![Part::Archiver(Box::new(node))]
        }),
    );
}

fn add_watchtower(world: &mut World<Part>) {
    let of = |listener| (0..ATOMIZERS).map(move |it| target(it, listener));
    let peers = of(BLOCKS_LISTENER).chain(of(ERRORS_LISTENER)).collect();
    let options = watchtower::Options {
        atomizers: ATOMIZERS,
        blocks_max: 50,
        blocks_bytes_max: 1 << 20,
        errors_max: 100,
        says_unspent: false,
        secret: Secret::new(8),
    };
    world.add(
        Process {
            name: "watchtower".to_owned(),
            machines: vec![Machine { peers, logs: 0, cells: 0 }],
        },
        Box::new(move |_| vec![Part::Watchtower(Box::new(Watchtower::new(options)))]),
    );
}

fn add_sender(world: &mut World<Part>, index: usize) {
    let of = |listener| (0..ATOMIZERS).map(move |it| target(it, listener));
    let archive = target(ARCHIVER, archiver::CLIENTS_LISTENER);
    let peers = of(CLIENTS_LISTENER).chain(of(BLOCKS_LISTENER)).chain([archive]).collect();
    world.add(
        Process {
            name: format!("sender{index}"),
            machines: vec![Machine { peers, logs: 0, cells: 0 }],
        },
        Box::new(move |_| {
            vec![Part::Sender(Box::new(Sender::new(u8::try_from(index).expect("few"))))]
        }),
    );
}

fn senders(world: &World<Part>) -> impl Iterator<Item = &Sender> {
    SENDERS.filter_map(|process| match world.node(process, 0) {
        Some(Part::Sender(sender)) => Some(&**sender),
        _ => None,
    })
}

fn atomizer(world: &World<Part>, process: usize) -> Option<&Atomizer> {
    match world.node(process, 0) {
        Some(Part::Atomizer(node)) => Some(node),
        _ => None,
    }
}

/// A run is worth something once this much was done, the leader has changed twice, and a write was cut off.
fn has_seen_enough(world: &World<Part>, transactions: u64) -> bool {
    let done: u64 = senders(world).map(|sender| sender.committed).sum();
    let coverage = world.coverage();
    done >= transactions
        && coverage.of(LED) > 2
        && coverage.of("crashes between write and sync") > 0
}

/// What was seen so far.
#[derive(Default)]
struct Watch {
    /// By entry: what a machine is behind it, as whoever came there first had it.
    digests: BTreeMap<u64, u64>,
    /// By ballot: who led.
    leaders: BTreeMap<(u64, u8), u8>,
    /// What is in each block, as whoever saw it first had it.
    chain: Vec<u64>,
}

impl Watch {
    fn look(&mut self, world: &mut World<Part>, process: usize) -> Result<(), String> {
        if let Some(Part::Sender(sender)) = world.node(process, 0) {
            if let Some(wrong) = &sender.wrong {
                return Err(wrong.clone());
            }
            let known = self.chain.len().min(sender.chain.len());
            if let Some(at) =
                (0..known).rev().take(8).find(|at| self.chain[*at] != sender.chain[*at])
            {
                return Err(format!("two senders see another block {}", at + 1));
            }
            self.chain.extend_from_slice(&sender.chain[known..]);
            return Ok(());
        }
        let Some(node) = atomizer(world, process) else { return Ok(()) };
        let (applied, digest) = (node.order().applied(), node.machine().digest());
        let group = node.order().group().expect("atomizers of a group").replica();
        let known = *self.digests.entry(applied).or_insert(digest);
        if known != digest {
            return Err(format!("behind entry {applied} atomizer {process} holds something else"));
        }
        if group.is_leader() {
            let (ballot, own) = (group.ballot(), group.id().0);
            match self.leaders.insert((ballot.counter, ballot.replica.0), own) {
                None => world.coverage_mut().count(LED),
                Some(other) if other != own => {
                    return Err(format!("atomizers {other} and {own} both lead in {ballot:?}"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// What must hold when all is quiet.
fn at_the_end(world: &mut World<Part>, watch: &Watch) -> Result<(), String> {
    let (mut committed, mut spent) = (0, 0);
    for sender in senders(world) {
        if !sender.is_idle() {
            return Err(format!(
                "sender {} still has {} in no block",
                sender.name,
                sender.pending()
            ));
        }
        committed += sender.committed;
        spent += sender.spent;
    }
    let Some(Part::Archiver(archiver)) = world.node(ARCHIVER, 0) else {
        return Err("the archiver is down".to_owned());
    };
    if let Some(trouble) = archiver.trouble() {
        return Err(format!("the archiver: {trouble}"));
    }
    let seen = watch.chain.len() as u64;
    let Some(Part::Archiver(other)) = world.node(OTHER_ARCHIVER, 0) else {
        return Err("the other archiver is down".to_owned());
    };
    if let Some(trouble) = other.trouble() {
        return Err(format!("the other archiver: {trouble}"));
    }
    if other.durable() + 3 < seen {
        return Err(format!("the other archive ends with block {}", other.durable()));
    }
    if archiver.durable() + 1 < seen {
        return Err(format!(
            "the archive ends with block {}, and {seen} were seen",
            archiver.durable()
        ));
    }
    for ((height, block), expected) in archiver.recent().zip(1..) {
        let read = read_block(block).map_err(|why| format!("block {height}: {why:?}"))?;
        if height != expected || read.head.height != expected {
            return Err(format!("the archive has block {height} where {expected} should stand"));
        }
        let hash = read
            .transactions()
            .flat_map(|it| *it.id)
            .fold(height, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        if watch.chain.get((height - 1) as usize).is_some_and(|known| *known != hash) {
            return Err(format!("the archive has another block {height} than was seen"));
        }
    }
    let mut made = (0, 0);
    for index in 0..ATOMIZERS {
        let Some(node) = atomizer(world, index) else {
            return Err(format!("atomizer {index} is down"));
        };
        made.0 += node.counts().snapshots_made;
        made.1 += node.counts().snapshots_installed;
        // It may be a few entries behind, and a block or two: what it is behind entries was compared.
        if node.machine().height() + 3 < seen {
            return Err(format!(
                "atomizer {index} stands at block {}, and {seen} were seen",
                node.machine().height()
            ));
        }
    }
    let Some(Part::Watchtower(watchtower)) = world.node(WATCHTOWER, 0) else {
        return Err("the watchtower is down".to_owned());
    };
    if watchtower.best_height() + 3 < seen {
        return Err(format!("the watchtower knows of block {}", watchtower.best_height()));
    }
    let errors = watchtower.counts().errors;
    let coverage = world.coverage_mut();
    coverage.add(DONE, committed);
    coverage.add(SPENT, spent);
    coverage.add("blocks seen", seen);
    coverage.add("errors told", errors);
    coverage.add("snapshots made", made.0);
    coverage.add("snapshots installed", made.1);
    Ok(())
}
