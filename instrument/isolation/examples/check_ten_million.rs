//! How long a check of ten million transactions takes, and how much memory: `check_ten_million [TRANSACTIONS] [CLIENTS]
//! [STALE]`. A simulated store, strictly serializable, that answers one transaction in STALE from an old state.

use std::collections::HashMap;

use clock::{Clock, CpuTime, Instant};
use isolation::{Effect, Element, History, Key, MicroOp, Prefix, Transaction};
use model::Seed;
use model::seed::Rng;

/// Lists in use at one time, and how many elements each gets before another takes its place.
const LIVE: u64 = 100;
const APPENDS: u32 = 100;
/// Clients hand over lists by session, of which there are so many; each remembers what it has handed over.
const SESSIONS: u64 = 4;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let count = arguments.next().unwrap_or(10_000_000);
    let clients = arguments.next().unwrap_or(64);
    let stale = arguments.next();
    let clock = Clock::start();
    let history = made(count, clients, stale);
    println!("{count} transactions of {clients} clients made in {:.2} s", seconds(&clock));
    let before = peak_mib();
    let (clock, processor) = (Clock::start(), CpuTime::of_this_process());
    let verdict = history.check();
    let (took, spent) = (seconds(&clock), CpuTime::of_this_process().since(processor));
    let level = verdict.level().words();
    println!("checked in {took:.2} s, {:.2} s of a processor: {level}", spent.as_secs_f64());
    println!("{} reads, {} of them of lists not handed over", verdict.reads, verdict.unread);
    for ((anomaly, is_real_time), broken) in &verdict.anomalies {
        let time = if *is_real_time { " in real time" } else { "" };
        println!("{}{time}: {}", anomaly.name(), broken.count);
        broken.instances.iter().take(3).for_each(|one| println!("  {}", one.words()));
    }
    println!("memory at its peak: {} MiB, of which {before} MiB to make the history", peak_mib());
}

fn seconds(clock: &Clock) -> f64 {
    clock.now().saturating_since(Instant::from_ns(0)).as_secs_f64()
}

/// A list as the store has it.
#[derive(Default)]
struct List {
    elements: Vec<Element>,
    prefix: Prefix0,
    /// How much of it each session has handed over.
    handed_over: [Prefix0; SESSIONS as usize],
}

/// [`Prefix`] with a default.
#[derive(Clone, Copy)]
struct Prefix0(Prefix);

impl Default for Prefix0 {
    fn default() -> Self {
        Self(Prefix::EMPTY)
    }
}

/// Each transaction takes effect at one moment between its sending and its answer. Clients wait for their answers.
fn made(count: u64, clients: u64, stale: Option<u64>) -> History {
    let mut rng = Seed(1).rng();
    let mut history = History::default();
    let mut lists: HashMap<Key, List> = HashMap::new();
    let mut slots: Vec<Key> = (0..).take(LIVE as usize).collect();
    let (mut next_key, mut next_element) = (LIVE as Key, 0);
    let mut answered = vec![0_i64; clients as usize];
    for id in 0..count {
        let now = i64::try_from(id * 1_000).expect("few enough");
        // The client that has waited longest is the next one; moments are a microsecond apart.
        let client = (id % clients) as usize;
        let span = (clients * 900).max(2) as i64;
        let invoked = (now - 1 - below(&mut rng, span as u64 / 2) as i64).max(answered[client] + 1);
        let completed = now + 1 + below(&mut rng, span as u64 / 2) as i64;
        answered[client] = completed;
        let is_stale = stale.is_some_and(|stale| id % stale == stale / 2);
        let mut ops = [MicroOp::Read { key: 0, found: None }; 5];
        let ops = &mut ops[..1 + below(&mut rng, 5) as usize];
        for op in &mut *ops {
            let slot = below(&mut rng, LIVE) as usize;
            let key = slots[slot];
            let list = lists.entry(key).or_default();
            if below(&mut rng, 2) == 0 || is_stale {
                let mut found = list.prefix.0;
                if is_stale && found.len > 20 {
                    found = Prefix::of(&list.elements[..list.elements.len() - 20]);
                }
                *op = MicroOp::Read { key, found: Some(found) };
                let session = &mut list.handed_over[(id % SESSIONS) as usize];
                if session.0.len < found.len {
                    let from = session.0.len as usize;
                    history.list(key, session.0, &list.elements[from..found.len as usize]);
                    session.0 = found;
                }
            } else {
                *op = MicroOp::Append { key, element: next_element };
                list.elements.push(next_element);
                list.prefix.0 = list.prefix.0.then(next_element);
                next_element += 1;
                if list.prefix.0.len == APPENDS {
                    slots[slot] = next_key;
                    next_key += 1;
                }
            }
        }
        history.add(Transaction { id, invoked, completed, effect: Effect::Certain }, ops);
        if next_key % 1_000 == 0 {
            let live: std::collections::HashSet<Key> = slots.iter().copied().collect();
            lists.retain(|key, _| live.contains(key));
        }
    }
    history
}

fn below(rng: &mut Rng, bound: u64) -> u64 {
    rng.below(bound)
}

/// The most memory that this process has had.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
