//! What is broken on purpose is found by the simulation within a thousand seeds: one that finds nothing where there is
//! something shows nothing where it finds nothing.

#[path = "../examples/sim_atomizer/sender.rs"]
mod sender;
#[path = "../examples/sim_atomizer/world.rs"]
mod world;

use world::{Broken, Plan};

/// Claim: each way in which the atomizer may be broken is found, and the words say what a user would have seen.
#[test]
fn each_is_found() {
    for (name, broken) in Broken::NAMES {
        let plan = Plan { transactions: 1_000, broken };
        let (seed, words) = sim::first_wrong(name, |seed| world::run(seed, &plan));
        println!("{name}: seed {seed}: {words}");
        let expected: &[&str] = match name {
            "window" | "snapshot" => &["spent twice", "holds something else"],
            "one-attestation" | "highest-height" => &["spent twice"],
            "prune" => &["pruned at each atomizer", "the archive", "still has"],
            "archiver" => &["the archive", "still has", "refuses to start"],
            _ => &[
                "holds something else",
                "two ways",
                "another block",
                "spent twice",
                "still has",
                "the archive",
                "refuses to start",
                "stands at",
            ],
        };
        assert!(expected.iter().any(|part| words.contains(part)), "{name}: {words}");
    }
}

/// Claim: nothing is found where nothing is broken, and each run had what makes it worth something.
#[test]
fn nothing_is_found_where_nothing_is() {
    let plan = Plan { transactions: 1_000, broken: Broken::Nothing };
    for seed in 5_000..5_010 {
        let ran = world::run(seed, &plan).unwrap_or_else(|wrong| panic!("{wrong}"));
        let (led, done) = (ran.coverage.of(world::LED), ran.coverage.of(world::DONE));
        let spent = ran.coverage.of(world::SPENT);
        assert!(ran.steps > 2_000 && led > 2 && done >= 1_000, "{seed}\n{}", ran.coverage);
        assert!(spent > 50, "{seed}: rivals lose\n{}", ran.coverage);
    }
}
