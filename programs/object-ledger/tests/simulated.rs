//! What is broken on purpose is found by the simulation, and nothing where nothing is.

#[path = "../examples/sim_object_ledger/bucket.rs"]
mod bucket;
#[path = "../examples/sim_object_ledger/client.rs"]
mod client;
#[path = "../examples/sim_object_ledger/lines.rs"]
mod lines;
#[path = "../examples/sim_object_ledger/maker.rs"]
mod maker;
#[path = "../examples/sim_object_ledger/world.rs"]
mod world;

use world::{Broken, Plan};

/// Claim: each way in which the services may be broken is found within a thousand seeds.
#[test]
fn each_is_found() {
    for (name, broken) in Broken::NAMES {
        let plan = Plan { transactions: 300, broken };
        let (seed, words) = sim::first_wrong(name, |seed| world::run(seed, &plan));
        println!("{name}: seed {seed}: {words}");
    }
}

/// Claim: nothing is found where nothing is broken, and the runs together had what makes them worth something: blocks that
/// lost, batches given out again, and crashes between write and sync.
#[test]
fn nothing_is_found_where_nothing_is() {
    let plan = Plan { transactions: 300, broken: Broken::Nothing };
    let mut coverage = sim::Coverage::default();
    for seed in 5_000..5_020 {
        let ran = world::run(seed, &plan).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(ran.steps > 1_000, "{seed}");
        coverage.merge(&ran.coverage);
    }
    for what in [
        "lost",
        "dequeued again",
        "crashes between write and sync",
        "transactions verified",
        "buckets that lie",
        "verified meanwhile",
    ] {
        assert!(coverage.of(what) > 20, "{what}\n{coverage}");
    }
}
