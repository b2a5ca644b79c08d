//! The gateway before nodes that a seed plays in virtual time: the chain grows, reorganises at any depth down to what is
//! final, and is rolled back; replicas lag; nodes are away and come back with less; calls are answered whenever they are.
//!
//! Claim: no answer contradicts every head that a replica had while the request was open (or, where `latest_age` allows it,
//! so long before). And what is said to be immutable is so at the end. `ETH_GATEWAY_SEEDS` sets how many seeds are played, from
//! `ETH_GATEWAY_FIRST_SEED` on; with `ETH_GATEWAY_SIM_SECONDS` they are others each day, and go on for so long.

mod world;

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clock::{Clock, Hand, Instant, WallTime};

use super::{Form, Gateway, Spent};
use crate::answers::{Keep, Problem};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::query::At;
use crate::routes::Operation;
use crate::rpc::{Answer, Call, Failure};
use crate::upstream::{Asked, Node};
use world::{ACCOUNTS, FINAL_DEPTH, World};

/// Seeds that the suite plays.
const SEEDS: u64 = 200;
/// How long a seed's history is, in virtual time.
const LENGTH: Duration = Duration::from_secs(25);

/// Numbers from a seed (splitmix64).
struct Random(Cell<u64>);

impl Random {
    fn below(&self, bound: u64) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn ms(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// Chosen once by a seed.
struct Plan {
    replicas: usize,
    /// Whether the node names final blocks.
    names_final: bool,
    knows_hashes: bool,
    block_ms: u64,
    lag_ms: u64,
    call_ms: u64,
    age: Duration,
}

impl Plan {
    fn of(random: &Random) -> Self {
        let names_final = random.below(4) > 0;
        Self {
            // Finality by depth says nothing of replicas that disagree.
            replicas: if names_final {
                1 + usize::try_from(random.below(3)).expect("few")
            } else {
                1
            },
            names_final,
            knows_hashes: random.below(5) > 0,
            block_ms: [200, 1000, 3000][usize::try_from(random.below(3)).expect("few")],
            lag_ms: [20, 500, 2000][usize::try_from(random.below(3)).expect("few")],
            call_ms: [4, 50, 1500][usize::try_from(random.below(3)).expect("few")],
            age: [Duration::ZERO, Duration::ZERO, Duration::from_millis(250)]
                [usize::try_from(random.below(3)).expect("few")],
        }
    }
}

/// The nodes, as the gateway sees them.
struct Played {
    world: Mutex<World>,
    random: Mutex<Random>,
    hand: Mutex<Hand>,
    began: tokio::time::Instant,
    plan: Plan,
}

impl Played {
    /// The time of the runtime, which that of the gateway's clock follows.
    fn now(&self) -> u64 {
        let passed = self.began.elapsed();
        let mut hand = self.hand.lock().unwrap();
        let now = Instant::ZERO.plus(passed);
        if now > hand.now() {
            hand.move_to(now);
        }
        u64::try_from(passed.as_nanos()).unwrap()
    }

    async fn sleep(&self, time: Duration) -> u64 {
        tokio::time::sleep(time).await;
        self.now()
    }

    fn random(&self, bound: u64) -> u64 {
        self.random.lock().unwrap().below(bound)
    }

    fn ms(&self, from: u64, to: u64) -> Duration {
        self.random.lock().unwrap().ms(from, to)
    }

    async fn answer(&self, call: Call) -> Answer {
        // Asked, evaluated at some time, and answered.
        self.sleep(self.ms(0, self.plan.call_ms + 1)).await;
        let replica = usize::try_from(self.random(self.plan.replicas as u64)).unwrap();
        let now = self.now();
        let answer = {
            let world = self.world.lock().unwrap();
            if now < world.replicas[replica].down_until {
                Err(Failure::Unreachable("down".to_owned()))
            } else {
                world.answer(replica, &call, self.plan.names_final, self.plan.knows_hashes)
            }
        };
        self.sleep(self.ms(0, self.plan.call_ms + 1)).await;
        answer
    }

    /// The chain's own life.
    async fn live(self: Arc<Self>) {
        loop {
            let each = self.plan.block_ms;
            let now = self.sleep(self.ms(each / 4, each * 2)).await;
            let (kind, depth, more) = (self.random(10), self.random(1 << 20), self.random(4));
            let down = self.ms(50, 1500);
            let mut world = self.world.lock().unwrap();
            match kind {
                0 | 1 => world.reorganise(now, depth, more),
                2 if depth % 3 == 0 => world.roll_back(now, depth),
                3 if depth % 3 == 0 => {
                    let down = u64::try_from(down.as_nanos()).unwrap();
                    world.restart(now, down, depth);
                }
                _ => world.grow(now, depth),
            }
        }
    }

    /// A replica that takes over the first one's head now and then.
    async fn lag(self: Arc<Self>, replica: usize) {
        loop {
            let now = self.sleep(self.ms(5, self.plan.lag_ms)).await;
            self.world.lock().unwrap().catch_up(now, replica);
        }
    }
}

impl Node for Played {
    fn ask(&self, call: Call) -> Asked<'_> {
        Box::pin(self.answer(call))
    }
}

/// Answers to a seed's clients.
#[derive(Default)]
struct Counts {
    answered: u64,
    failed: u64,
    immutable: u64,
}

/// An operation that a client might choose now.
fn choose(played: &Played) -> Operation {
    let world = played.world.lock().unwrap();
    let head = world.head_height();
    let near = (head + 2).saturating_sub(played.random(16));
    let old = played.random(head.max(1));
    let account = played.random(ACCOUNTS);
    let address = format!("0x{account:040x}");
    let transaction = world::transaction_hash(near * 2 + played.random(2));
    match played.random(14) {
        0 => Operation::LastHeight,
        1 | 2 => Operation::LastBlock { full: played.random(2) == 0 },
        3 | 4 => Operation::BlockByHeight { height: near, full: played.random(2) == 0 },
        5 => Operation::BlockByHeight { height: old, full: false },
        6 => Operation::Transaction(transaction),
        7 | 8 => Operation::Receipt(transaction),
        9 => Operation::Balance { address, at: At::Latest },
        10 => Operation::Balance { address, at: At::Height(near.min(head)) },
        11 => Operation::TransactionInBlock { height: near, index: played.random(2) },
        12 => {
            let to = (head + 1).saturating_sub(played.random(16));
            let from = to.saturating_sub(played.random(5));
            Operation::Logs { from, to, topic: world::TOPIC.to_owned() }
        }
        _ => Operation::Nonce { address, at: At::Latest },
    }
}

async fn client(played: Arc<Played>, gateway: Arc<Gateway>, counts: Arc<Mutex<Counts>>) {
    // A question that is asked again shows what is kept.
    let mut again: Option<Operation> = None;
    loop {
        let before = played.sleep(played.ms(1, 400)).await;
        let operation = match again.take() {
            Some(operation) if played.random(2) == 0 => operation,
            _ => choose(&played),
        };
        let given = gateway.perform(&operation, Form::Version1, &mut Spent::default()).await;
        let after = played.now();
        let age = u64::try_from(played.plan.age.as_nanos()).unwrap();
        let world = played.world.lock().unwrap();
        let mut counts = counts.lock().unwrap();
        let (text, keep) = match given {
            Ok((body, keep)) => (String::from_utf8(body.to_vec()).unwrap(), keep),
            Err(Problem::Absent(_)) => ("absent".to_owned(), Keep::No),
            Err(Problem::Node(_) | Problem::NodeError { .. }) => {
                counts.failed += 1;
                continue;
            }
            Err(other) => panic!("{operation:?}: {other:?}"),
        };
        counts.answered += 1;
        let heads = world.heads_between(before.saturating_sub(age), after);
        let confirms = |head: &&usize| world.says(**head, &operation) == text;
        assert!(
            heads.iter().any(|head| confirms(&head)),
            "{operation:?} from {before} to {after}: {text}\nno head says so: {:?}",
            heads
                .iter()
                .map(|head| (world.name(*head), world.says(*head, &operation)))
                .collect::<Vec<_>>()
        );
        if keep == Keep::Immutable {
            counts.immutable += 1;
            assert!(world.is_final_answer(&operation, &text), "{operation:?}: {text} is not final");
        }
        drop((world, counts));
        again = Some(operation);
    }
}

/// Plays a seed.
fn play(seed: u64) -> (Counts, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let random = Random(Cell::new(seed));
        let plan = Plan::of(&random);
        let (clock, hand) = Clock::by_hand(Instant::ZERO, WallTime::from_unix_ns(0));
        let mut options = Options::read(&[]).unwrap();
        (options.latest_age, options.final_depth) = (plan.age, FINAL_DEPTH);
        let world = World::new(plan.replicas);
        let played = Arc::new(Played {
            world: Mutex::new(world),
            random: Mutex::new(random),
            hand: Mutex::new(hand),
            // Now, in the runtime's time.
            began: tokio::time::sleep(Duration::ZERO).deadline(),
            plan,
        });
        let metrics = Arc::new(Metrics::default());
        let node: Arc<dyn Node> = Arc::<Played>::clone(&played);
        let gateway = Gateway::before(node, &options, clock, Arc::clone(&metrics));
        let counts = Arc::new(Mutex::new(Counts::default()));
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(Arc::clone(&played).live());
        for replica in 1..played.plan.replicas {
            tasks.spawn(Arc::clone(&played).lag(replica));
        }
        for _ in 0..4 {
            tasks.spawn(client(Arc::clone(&played), Arc::clone(&gateway), Arc::clone(&counts)));
        }
        tokio::select! {
            Some(ended) = tasks.join_next() => ended.unwrap_or_else(|error| {
                std::panic::resume_unwind(error.into_panic())
            }),
            () = tokio::time::sleep(LENGTH) => {}
        }
        tasks.shutdown().await;
        let kept = metrics.share_from_cache();
        (std::mem::take(&mut *counts.lock().unwrap()), kept)
    })
}

/// The first of seeds that no other day has, far more of them than a day can play.
fn seed_of_the_day() -> u64 {
    let now = WallTime::now().unix_ns();
    u64::try_from(now / 86_400_000_000_000).unwrap() * 10_000_000
}

/// Claim: as above. Most requests are answered, some from what is kept, and some for good: a gateway that says nothing
/// would contradict nothing.
#[test]
fn any_history() {
    let set = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = set("ETH_GATEWAY_SIM_SECONDS").map(Duration::from_secs);
    let real = Clock::start();
    let usual = if seconds.is_some() { seed_of_the_day() } else { 0 };
    let first = set("ETH_GATEWAY_FIRST_SEED").unwrap_or(usual);
    let wanted = set("ETH_GATEWAY_SEEDS").unwrap_or(SEEDS);
    let (mut all, mut seeds) = ((Counts::default(), 0.0), 0);
    while seeds < wanted
        || seconds.is_some_and(|seconds| real.now().saturating_since(Instant::ZERO) < seconds)
    {
        let seed = first + seeds;
        let done = std::panic::catch_unwind(|| play(seed));
        let (counts, kept) = done.unwrap_or_else(|_| panic!("seed {seed}"));
        all.0.answered += counts.answered;
        all.0.failed += counts.failed;
        all.0.immutable += counts.immutable;
        all.1 += kept;
        seeds += 1;
    }
    let (counts, kept) = all;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 seeds")]
    let kept = kept / seeds as f64;
    println!(
        "{seeds} seeds from {first} on: {} answered, {} failed, {} for good, {:.0} % of calls from what was kept",
        counts.answered,
        counts.failed,
        counts.immutable,
        kept * 100.0
    );
    assert!(counts.answered > 9 * counts.failed && counts.immutable > counts.answered / 50);
    assert!(kept > 0.1, "{kept}");
}
