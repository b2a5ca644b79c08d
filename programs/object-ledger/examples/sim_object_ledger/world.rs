//! Everybody in one world, and what must hold in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clock::Instant;
use object_ledger_node::data::{Attestation, Batch, Hash, Proposal, Tree, genesis, names};
use object_ledger_node::delay::Delay;
use object_ledger_node::keys::Key;
use object_ledger_node::pieces::Gather;
use object_ledger_node::pipeline::Pipeline;
use object_ledger_node::queue::{Broken as BrokenQueue, Queue, Settings};
use object_ledger_node::sequencer::Sequencer;
use object_ledger_node::timestamp::Timestamp;
use object_ledger_node::verify::{Keys, Trust, Verifier};
use process::{Input, Node, Outputs};
use sim::{Machine, Process, Ran, Target, Weather, World, Wrong};

use crate::bucket::{Bucket, Lie};
use crate::client::Client;
use crate::maker::{BUCKETS, Maker};

/// The order of processes: what weather happens to comes first.
const QUEUE: usize = 0;
const TIMESTAMP: usize = 1;
const SEQUENCER: usize = 2;
const FIRST_BUCKET: usize = 3;
const FIRST_PIPELINE: usize = FIRST_BUCKET + BUCKETS;
const PIPELINES: usize = 2;
const FIRST_CLIENT: usize = FIRST_PIPELINE + PIPELINES;
const CLIENTS: usize = 2;

/// The weather lasts until all is submitted, and this at most.
const BUSY_MAX: Duration = Duration::from_secs(30);
/// The most that it may take until all is done when nothing goes wrong any more.
const QUIET_MAX: Duration = Duration::from_secs(60);

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    Queue(BrokenQueue),
    Numbers,
    Hasty,
    Credulous,
}

impl Broken {
    pub const NAMES: [(&str, Self); 5] = [
        ("acknowledges", Self::Queue(BrokenQueue::Acknowledges)),
        ("gives", Self::Queue(BrokenQueue::Gives)),
        ("numbers", Self::Numbers),
        ("hasty", Self::Hasty),
        ("credulous", Self::Credulous),
    ];
}

pub struct Plan {
    /// How many transactions are submitted.
    pub transactions: u64,
    pub broken: Broken,
}

/// A process of the world.
pub enum Part {
    Queue(Box<Queue>),
    Timestamp(Box<Timestamp>),
    Sequencer(Box<Sequencer>),
    Bucket(Bucket),
    Maker(Box<Maker>),
    Client(Client),
}

impl Node for Part {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match self {
            Self::Queue(it) => it.step(now, input, out),
            Self::Timestamp(it) => it.step(now, input, out),
            Self::Sequencer(it) => it.step(now, input, out),
            Self::Bucket(it) => it.step(now, input, out),
            Self::Maker(it) => it.step(now, input, out),
            Self::Client(it) => it.step(now, input, out),
        }
    }
}

fn timestamp_key() -> Key {
    Key::of_seed(&[1; 32])
}

fn sequencer_key() -> Key {
    Key::of_seed(&[2; 32])
}

fn trust() -> Trust {
    Trust {
        genesis: genesis("simulated"),
        timestamp: Keys::one(timestamp_key().public()),
        sequencer: Keys::one(sequencer_key().public()),
    }
}

/// Which buckets lie, and how: none in every fourth world, up to three in the others.
fn lies(seed: u64) -> [Option<Lie>; BUCKETS] {
    let mut lies = [None; BUCKETS];
    for turn in 0..seed % 4 {
        let mixed =
            (seed / 4).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(13 * turn as u32 + 7);
        let bucket = usize::try_from(mixed % BUCKETS as u64).expect("six");
        lies[bucket] = Some(Lie::ALL[usize::try_from(mixed / 64 % 4).expect("four")]);
    }
    lies
}

/// Everything that readers have verified so far: links of numbers, and transactions.
#[derive(Default)]
struct Verified {
    links: BTreeMap<u64, Hash>,
    transactions: BTreeSet<Vec<u8>>,
}

/// Runs one seed.
pub fn run(seed: u64, plan: &Plan) -> Result<Ran, Wrong> {
    let mut world = World::new(seed, sim::Settings::default());
    add_services(&mut world, seed, plan.broken);
    let lies = lies(seed);
    (0..BUCKETS).for_each(|index| add_bucket(&mut world, index, lies[index]));
    let mut verified_before = Verified::default();
    (0..PIPELINES).for_each(|index| add_pipeline(&mut world, index, plan.broken));
    let each = plan.transactions / CLIENTS as u64;
    (0..CLIENTS).for_each(|index| add_client(&mut world, index, each));
    let mut heads: BTreeMap<u64, Hash> = BTreeMap::new();
    let mut weather = Weather::all(FIRST_CLIENT, Instant::ZERO.plus(BUSY_MAX));
    weather.every = Duration::from_millis(5)..=Duration::from_millis(80);
    world.begin_weather(weather);
    let step = Duration::from_millis(100);
    while world.now() < Instant::ZERO.plus(BUSY_MAX) && has_to_submit(&world) {
        world.run(world.now().plus(step), |world, process| look(world, process, &mut heads))?;
        read_meanwhile(&world, &mut verified_before).map_err(|what| world.wrong(what))?;
    }
    world.end_weather();
    let quiet_from = world.now();
    while !is_done(&world) {
        if world.now() > quiet_from.plus(QUIET_MAX) {
            return Err(world.wrong("nothing goes wrong any more, and not all is done".to_owned()));
        }
        world.run(world.now().plus(step), |world, process| look(world, process, &mut heads))?;
    }
    let verified = at_the_end(&world, &verified_before).map_err(|what| world.wrong(what))?;
    let coverage = world.coverage_mut();
    coverage.add("transactions verified", verified.transactions);
    coverage.add("blocks on the main chain", verified.height);
    coverage.add("blocks off the main chain", verified.off);
    coverage.add("buckets that lie", lies.iter().flatten().count() as u64);
    coverage.add("verified meanwhile", verified_before.transactions.len() as u64);
    let mut steps: Vec<(&'static str, u64)> = Vec::new();
    for index in 0..PIPELINES {
        if let Some(Part::Maker(maker)) = world.node(FIRST_PIPELINE + index, 0) {
            steps.extend(maker.steps.iter().map(|(name, count)| (*name, *count)));
        }
    }
    for (name, count) in
        steps.into_iter().filter(|(name, _)| ["lost", "dequeued again"].contains(name))
    {
        world.coverage_mut().add(name, count);
    }
    Ok(Ran { steps: world.steps(), coverage: world.coverage().clone() })
}

fn target(process: usize) -> Target {
    Target { process, machine: 0, listener: 0 }
}

fn add_services(world: &mut World<Part>, seed: u64, broken: Broken) {
    let one_log = || vec![Machine { logs: 1, ..Machine::default() }];
    world.add(
        Process { name: "queue".to_owned(), machines: one_log() },
        Box::new(move |start| {
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&seed.to_be_bytes());
            nonce[8..].copy_from_slice(&start.life.to_be_bytes());
            let broken = match broken {
                Broken::Queue(broken) => Some(broken),
                _ => None,
            };
            let settings = Settings { bytes_max: 1 << 20, count_max: 8, nonce, broken };
            let queue = Queue::new(settings, &start.stored[0]).expect("what it wrote");
            vec![Part::Queue(Box::new(queue))]
        }),
    );
    world.add(
        Process { name: "timestamp".to_owned(), machines: vec![Machine::default()] },
        Box::new(|_| {
            let delay = Delay::always(Duration::from_millis(3));
            let (key, unix_ns) = (timestamp_key(), 1_700_000_000_000_000_000);
            let it = Timestamp::new(key, genesis("simulated"), unix_ns, delay);
            vec![Part::Timestamp(Box::new(it))]
        }),
    );
    world.add(
        Process { name: "sequencer".to_owned(), machines: one_log() },
        Box::new(move |start| {
            let delay = Delay::always(Duration::from_millis(1));
            let it = Sequencer::new(sequencer_key(), "simulated", trust(), delay, &start.stored[0]);
            let it = it.expect("its own");
            let is_broken = broken == Broken::Numbers;
            vec![Part::Sequencer(Box::new(if is_broken { it.saying_early() } else { it }))]
        }),
    );
}

fn add_bucket(world: &mut World<Part>, index: usize, lie: Option<Lie>) {
    world.add(
        Process {
            name: format!("bucket{index}"),
            machines: vec![Machine { logs: 1, ..Machine::default() }],
        },
        Box::new(move |start| vec![Part::Bucket(Bucket::new(&start.stored[0], lie))]),
    );
}

fn add_pipeline(world: &mut World<Part>, index: usize, broken: Broken) {
    let peers = [QUEUE, TIMESTAMP, SEQUENCER].into_iter().chain(FIRST_BUCKET..FIRST_PIPELINE);
    let machine = Machine { peers: peers.map(target).collect(), logs: 0, cells: 0 };
    world.add(
        Process { name: format!("pipeline{index}"), machines: vec![machine] },
        Box::new(move |_| {
            let pipeline = Pipeline::new(trust());
            let is_hasty = broken == Broken::Hasty;
            let pipeline = if is_hasty { pipeline.hasty() } else { pipeline };
            let mut maker = Maker::new(pipeline);
            maker.is_credulous = broken == Broken::Credulous;
            vec![Part::Maker(Box::new(maker))]
        }),
    );
}

fn add_client(world: &mut World<Part>, index: usize, transactions: u64) {
    let machine = Machine { peers: vec![target(QUEUE)], logs: 0, cells: 0 };
    world.add(
        Process { name: format!("client{index}"), machines: vec![machine] },
        Box::new(move |_| vec![Part::Client(Client::new(index, transactions))]),
    );
}

fn clients(world: &World<Part>) -> impl Iterator<Item = &Client> {
    (FIRST_CLIENT..FIRST_CLIENT + CLIENTS).filter_map(|process| match world.node(process, 0) {
        Some(Part::Client(client)) => Some(client),
        _ => None,
    })
}

fn has_to_submit(world: &World<Part>) -> bool {
    clients(world).any(|client| client.left > 0)
}

/// The queue has nothing left. A transaction that was written when its connection ended is in it, too.
fn is_done(world: &World<Part>) -> bool {
    let is_empty = match world.node(QUEUE, 0) {
        Some(Part::Queue(queue)) => queue.standing() == (0, 0),
        _ => false,
    };
    // A reader needs three pieces of each object, and some may be on three buckets only.
    let are_up = (0..FIRST_CLIENT).all(|process| world.life(process).is_some());
    is_empty && are_up && !has_to_submit(world)
}

/// Pipelines that know the same height have the same block there.
fn look(
    world: &World<Part>,
    process: usize,
    heads: &mut BTreeMap<u64, Hash>,
) -> Result<(), String> {
    let Some(Part::Maker(maker)) = world.node(process, 0) else { return Ok(()) };
    let chain = maker.pipeline.chain();
    let known = *heads.entry(chain.height()).or_insert(chain.head());
    if known == chain.head() {
        return Ok(());
    }
    Err(format!("two pipelines have different blocks at height {}", chain.height()))
}

struct Found {
    transactions: u64,
    height: u64,
    off: u64,
}

/// An object by its name, from the buckets alone, which may lie: the first whole that is wanted.
fn fetch(world: &World<Part>, name: &str, wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut gather = Gather::of(name);
    (0..BUCKETS).find_map(|index| {
        let Some(Part::Bucket(bucket)) = world.node(FIRST_BUCKET + index, 0) else { return None };
        gather.offer(index, &bucket.get(name)?).ok().flatten().filter(|whole| wanted(whole))
    })
}

/// A reader's main chain, and the batches of its blocks.
struct Read {
    verifier: Verifier,
    batches: Vec<(u64, Batch)>,
}

/// Reads as far as there is something. A number that is there is never without its block and its batch, whatever crashed and
/// whoever lied.
fn read(world: &World<Part>) -> Result<Read, String> {
    let trust = trust();
    let mut verifier = Verifier::new(trust.clone());
    let is_signed = |whole: &[u8]| Attestation::parse(whole).is_ok_and(|it| trust.has_signed(&it));
    while let Some(attestation) = fetch(world, &names::attestation(verifier.next()), is_signed) {
        let number = verifier.next();
        let link = Attestation::parse(&attestation).expect("it was looked at").link;
        let is_it = |whole: &[u8]| Proposal::parse(whole).is_ok_and(|it| it.token.link() == link);
        let proposal = fetch(world, &names::proposal(&link), is_it)
            .ok_or_else(|| format!("number {number} was given and its block is in no bucket"))?;
        verifier.admit(&attestation, &proposal).map_err(|why| why.to_string())?;
    }
    let mut batches = Vec::new();
    for (number, proposal) in verifier.blocks() {
        let name = names::batch(&proposal.block.batch);
        let is_it = |whole: &[u8]| {
            Batch::parse(whole).is_ok_and(|it| Tree::of(&it).root() == proposal.block.root)
        };
        let batch = fetch(world, &name, is_it).ok_or_else(|| format!("{name} is in no bucket"))?;
        batches.push((number, Batch::parse(&batch).expect("it was looked at")));
    }
    Ok(Read { verifier, batches })
}

/// A client reads whenever no bucket is away: what it verifies has to be there at the end, and no number changes.
fn read_meanwhile(world: &World<Part>, before: &mut Verified) -> Result<(), String> {
    if (0..BUCKETS).any(|index| world.node(FIRST_BUCKET + index, 0).is_none()) {
        return Ok(());
    }
    let Read { verifier, batches } = read(world)?;
    for number in 1..verifier.next() {
        let (attestation, _) = verifier.admitted(number).expect("it was admitted");
        let known = *before.links.entry(number).or_insert(attestation.link);
        if known != attestation.link {
            return Err(format!("number {number} was another block's before"));
        }
    }
    before.transactions.extend(batches.into_iter().flat_map(|(_, it)| it.transactions));
    Ok(())
}

/// The finding of a reader who has the buckets and two public keys.
fn at_the_end(world: &World<Part>, before: &Verified) -> Result<Found, String> {
    let Read { verifier, batches } = read(world)?;
    let mut on_chain: BTreeSet<Vec<u8>> = BTreeSet::new();
    for (number, batch) in batches {
        let tree = Tree::of(&batch);
        for (index, transaction) in (0..).zip(batch.transactions) {
            let proof = tree.proof(index).expect("a leaf").encoded();
            verifier.verify(&transaction, &proof, number).map_err(|why| why.to_string())?;
            if !on_chain.insert(transaction.clone()) {
                let text = String::from_utf8_lossy(&transaction);
                return Err(format!("transaction {text} is on the main chain twice"));
            }
        }
    }
    for client in clients(world) {
        let lost = client.acknowledged.difference(&on_chain).next();
        if let Some(lost) = lost.or_else(|| before.transactions.difference(&on_chain).next()) {
            let text = String::from_utf8_lossy(lost);
            return Err(format!(
                "transaction {text} was acknowledged or verified and is not on the main chain"
            ));
        }
    }
    let submitted: BTreeSet<Vec<u8>> =
        clients(world).flat_map(|client| client.submitted.iter().cloned()).collect();
    if let Some(phantom) = on_chain.difference(&submitted).next() {
        return Err(format!("{} was never submitted", String::from_utf8_lossy(phantom)));
    }
    let (height, numbers) = (verifier.height(), verifier.next() - 1);
    Ok(Found { transactions: on_chain.len() as u64, height, off: numbers - height })
}
