//! Replicas and clients in one world, and what must hold in it.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Instant;
use consensus::Broken as Consensus;
use kv_node::database::Limits;
use kv_node::database::compose::Composer;
use kv_node::database::results::{Given, GivenValue, ResultReader};
use kv_node::database::transaction::Literal;
use kv_node::ledger::Ledger;
use kv_node::{CLIENTS_LISTENER, KvNode, PEERS_LISTENER};
use process::{Input, Node, Outputs};
use replicated::{Config, Members, ReplicaId, Settings};
use sim::{Fault, Machine, Process, Ran, Target, Weather, World, Wrong};

use crate::client::Client;

const REPLICAS: usize = 3;
const CLIENTS: usize = 4;
/// The weather lasts until the operations are done, and this at most.
const BUSY_MAX: Duration = Duration::from_secs(60);
/// Quiet enough for everybody to come back.
const QUIET: Duration = Duration::from_secs(4);

/// Disks that are lost in a world.
const DISKS_LOST_MAX: u64 = 4;

/// Names of counts.
pub const LED: &str = "times that a replica began to lead";
pub const DONE: &str = "operations acknowledged";

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    Results,
    Consensus(Consensus),
}

impl Broken {
    pub const NAMES: [(&str, Self); 5] = [
        ("acknowledges", Self::Consensus(Consensus::AcknowledgesBeforeSync)),
        ("reads", Self::Consensus(Consensus::ReadsWithoutRound)),
        ("order", Self::Consensus(Consensus::DeliversOutOfOrder)),
        ("promises", Self::Consensus(Consensus::ForgetsPromises)),
        ("results", Self::Results),
    ];
}

/// What a run is to do.
pub struct Plan {
    pub operations: u64,
    pub broken: Broken,
}

/// A process of the world.
pub enum Part {
    Replica(Box<KvNode>),
    Client(Box<Client>),
}

impl Node for Part {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match self {
            Self::Replica(it) => it.step(now, input, out),
            Self::Client(it) => it.step(now, input, out),
        }
    }
}

/// Runs one seed.
pub fn run(seed: u64, plan: &Plan) -> Result<Ran, Wrong> {
    let mut world = World::new(seed, sim::Settings::default());
    (0..REPLICAS).for_each(|index| add_replica(&mut world, seed, index, plan.broken));
    (0..CLIENTS).for_each(|index| add_client(&mut world, index));
    let mut watch = Watch::default();
    let mut weather = Weather::all(REPLICAS, Instant::ZERO.plus(BUSY_MAX));
    weather.every = Duration::from_millis(10)..=Duration::from_millis(150);
    weather.lasts = Duration::from_millis(10)..=Duration::from_millis(400);
    world.begin_weather(weather);
    let step = Duration::from_millis(100);
    let mut lost = 0;
    while world.now() < Instant::ZERO.plus(BUSY_MAX) && !has_seen_enough(&world, plan.operations) {
        world.run(world.now().plus(step), |world, process| watch.look(world, process))?;
        // One at a time: a majority keeps its disks.
        if lost < DISKS_LOST_MAX && are_all_let_in(&world) {
            let place = seed.wrapping_add(lost) % u64::try_from(REPLICAS).expect("few");
            let process = usize::try_from(place).expect("few");
            world.happens(&Fault::LostDisk { process, down: step / 2 });
            lost += 1;
        }
    }
    for process in REPLICAS..REPLICAS + CLIENTS {
        if let Some(Part::Client(client)) = world.node_mut(process, 0) {
            client.stops = true;
        }
    }
    world.end_weather();
    world.run(world.now().plus(QUIET), |world, process| watch.look(world, process))?;
    let acknowledged = at_the_end(&world).map_err(|what| world.wrong(what))?;
    world.coverage_mut().add(DONE, acknowledged);
    for index in 0..REPLICAS {
        if let Some(Part::Replica(node)) = world.node(index, 0) {
            let counts = node.counts();
            world.coverage_mut().add("snapshots made", counts.snapshots_made);
            world.coverage_mut().add("snapshots installed", counts.snapshots_installed);
        }
    }
    Ok(Ran { steps: world.steps(), coverage: world.coverage().clone() })
}

/// Whether all are up and have a vote, and none counts on one that lost its disk.
fn are_all_let_in(world: &World<Part>) -> bool {
    (0..REPLICAS).all(|index| match world.node(index, 0) {
        Some(Part::Replica(node)) => node
            .order()
            .group()
            .is_some_and(|group| group.has_vote() && group.replica().members().count() == REPLICAS),
        _ => false,
    })
}

fn others(index: usize) -> impl Iterator<Item = usize> {
    (0..REPLICAS).filter(move |other| *other != index)
}

fn id(index: usize) -> ReplicaId {
    ReplicaId(u8::try_from(index).expect("few"))
}

fn add_replica(world: &mut World<Part>, seed: u64, index: usize, broken: Broken) {
    let target = |process| Target { process, machine: 0, listener: PEERS_LISTENER };
    let machine = Machine { peers: others(index).map(target).collect(), logs: 1, cells: 3 };
    let settings = Settings {
        service: 1,
        disk: 0,
        peers: others(index).map(id).zip(0..).collect(),
        listener: PEERS_LISTENER,
        log: 0,
        cell: 0,
        unsent_bytes_max: 1 << 20,
    };
    let members = Members::new(&[id(0), id(1), id(2)]).expect("three");
    world.add(
        Process { name: format!("replica{index}"), machines: vec![machine] },
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
            let mut limits = Limits::default();
            match broken {
                Broken::Nothing => {}
                Broken::Results => limits.forgets_results = true,
                Broken::Consensus(broken) => config.broken = broken,
            }
            let node =
                KvNode::of_group(config, &settings, &start.stored[0], limits, Ledger::nowhere());
            vec![Part::Replica(Box::new(
                node.unwrap_or_else(|error| panic!("replica {index}: {error}")),
            ))]
        }),
    );
}

fn add_client(world: &mut World<Part>, index: usize) {
    let target = |process| Target { process, machine: 0, listener: CLIENTS_LISTENER };
    let machine = Machine { peers: (0..REPLICAS).map(target).collect(), logs: 0, cells: 0 };
    world.add(
        Process { name: format!("client{index}"), machines: vec![machine] },
        Box::new(move |_| {
            let name = u64::try_from(index).expect("few") + 1;
            vec![Part::Client(Box::new(Client::new(name, index % REPLICAS, REPLICAS)))]
        }),
    );
}

fn client(world: &World<Part>, process: usize) -> Option<&Client> {
    match world.node(process, 0) {
        Some(Part::Client(client)) => Some(client),
        _ => None,
    }
}

fn replica(world: &World<Part>, process: usize) -> Option<&KvNode> {
    match world.node(process, 0) {
        Some(Part::Replica(node)) => Some(node),
        _ => None,
    }
}

/// A run is worth something once this much was done, the leader has changed twice, and a write was cut off.
fn has_seen_enough(world: &World<Part>, operations: u64) -> bool {
    let clients = (REPLICAS..REPLICAS + CLIENTS).filter_map(|process| client(world, process));
    let done: u64 = clients.map(|client| client.acknowledged() + client.reads).sum();
    let coverage = world.coverage();
    done >= operations && coverage.of(LED) > 2 && coverage.of("crashes between write and sync") > 0
}

/// What was seen so far.
#[derive(Default)]
struct Watch {
    /// By entry: the position behind it, as whoever came there first had it.
    positions: BTreeMap<u64, u64>,
    /// By ballot: who led.
    leaders: BTreeMap<(u64, u8), u8>,
    seen: [u64; REPLICAS],
}

impl Watch {
    fn look(&mut self, world: &mut World<Part>, process: usize) -> Result<(), String> {
        if process >= REPLICAS {
            let wrong = client(world, process).and_then(|client| client.wrong.clone());
            return wrong.map_or(Ok(()), Err);
        }
        let Some(node) = replica(world, process) else { return Ok(()) };
        let (applied, position) = (node.order().applied(), node.database().position());
        let group = node.order().group().expect("replicas of a group").replica();
        if group.is_leader() {
            let (ballot, own) = (group.ballot(), group.id().0);
            let known = self.leaders.insert((ballot.counter, ballot.replica.0), own);
            match known {
                None => world.coverage_mut().count(LED),
                Some(other) if other != own => {
                    return Err(format!("replicas {other} and {own} both lead in {ballot:?}"));
                }
                Some(_) => {}
            }
        }
        if applied == 0 || std::mem::replace(&mut self.seen[process], applied) == applied {
            return Ok(());
        }
        let known = *self.positions.entry(applied).or_insert(position);
        if known == position {
            return Ok(());
        }
        Err(format!(
            "behind entry {applied} replica {process} has {position} transactions, and another had {known}"
        ))
    }
}

/// What must hold when all is quiet: gives how many operations were acknowledged.
fn at_the_end(world: &World<Part>) -> Result<u64, String> {
    let mut nodes = Vec::new();
    for index in 0..REPLICAS {
        nodes.push(replica(world, index).ok_or_else(|| format!("replica {index} is down"))?);
    }
    let most = nodes.iter().max_by_key(|node| node.order().applied()).expect("three");
    for (index, node) in nodes.iter().enumerate() {
        let stands = node.order().applied();
        if stands != most.order().applied() {
            return Err(format!(
                "replica {index} stands at entry {stands}, another at {}",
                most.order().applied()
            ));
        }
        if node.database().digest() != most.database().digest() {
            return Err(format!(
                "replica {index} holds something else than another at entry {stands}"
            ));
        }
    }
    let mut total = 0;
    for process in REPLICAS..REPLICAS + CLIENTS {
        let Some(client) = client(world, process) else { continue };
        if !client.is_idle {
            return Err(format!(
                "client {} still waits for number {}",
                client.name,
                client.acknowledged() + 1
            ));
        }
        total += client.acknowledged() + client.reads;
        has_each_once(most, client)?;
    }
    Ok(total)
}

fn has_each_once(node: &KvNode, client: &Client) -> Result<(), String> {
    let (mut transaction, mut result, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    Composer::begin(&mut transaction, &[&client.table()]).get(0, &[b"list"]);
    node.database().read(&transaction, &mut result);
    for number in &client.list {
        Literal::Integer(*number).write(&mut expected);
    }
    let given = ResultReader::read(&result).ok().and_then(|mut it| it.next().ok().flatten());
    let Some(Given::Value(_, GivenValue::List(count, bytes))) = given else {
        if client.list.is_empty() {
            return Ok(());
        }
        return Err(format!("client {} has no list", client.name));
    };
    if bytes == expected {
        return Ok(());
    }
    Err(format!(
        "client {} was acknowledged {} numbers, and its list has {count} or others",
        client.name,
        client.acknowledged()
    ))
}
