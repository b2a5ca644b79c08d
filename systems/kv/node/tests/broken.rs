//! What is broken on purpose is found by the simulation within a thousand seeds: one that finds nothing where there is
//! something shows nothing where it finds nothing.

#[path = "../examples/sim_kv/client.rs"]
mod client;
#[path = "../examples/sim_kv/world.rs"]
mod world;

use world::{Broken, Plan};

/// Claim: each way in which the database may be broken is found, and the words say what a user would have seen.
#[test]
fn each_is_found() {
    for (name, broken) in Broken::NAMES {
        let plan = Plan { operations: 2_000, broken };
        let (seed, words) = sim::first_wrong(name, |seed| world::run(seed, &plan));
        println!("{name}: seed {seed}: {words}");
        let expected: &[&str] = match name {
            "reads" => &["acknowledged and reads"],
            "results" => &["acknowledged and reads", "appended"],
            _ => &[
                "transactions, and another had",
                "acknowledged",
                "appended",
                "holds something else",
                "no list",
                "refuses to start",
            ],
        };
        assert!(expected.iter().any(|part| words.contains(part)), "{name}: {words}");
    }
}

/// Claim: nothing is found where nothing is broken, and each run had what makes it worth something.
#[test]
fn nothing_is_found_where_nothing_is() {
    let plan = Plan { operations: 2_000, broken: Broken::Nothing };
    for seed in 5_000..5_020 {
        let ran = world::run(seed, &plan).unwrap_or_else(|wrong| panic!("{wrong}"));
        let (led, done) = (ran.coverage.of(world::LED), ran.coverage.of(world::DONE));
        assert!(ran.steps > 2_000 && led > 2 && done >= 2_000, "{seed}\n{}", ran.coverage);
    }
}
