//! The protocol under everything that can go wrong, from seeds: loss, repetition, delay, reordering, partitions, pauses,
//! crashes at any step with the loss of records that were not durable, changes of members, snapshots. Virtual time.
//!
//! `CONSENSUS_SEEDS=20000 cargo test --release -p consensus --test simulation` runs more, from
//! `CONSENSUS_FIRST` on; `CONSENSUS_SEED=17` runs one.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot go on is a test that fails")]

mod simulation {
    pub mod checks;
    pub mod faults;
    pub mod node;
    pub mod random;
    pub mod world;
}

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use consensus::Broken;
use simulation::world::{Shape, World};

fn shape(seed: u64, broken: Broken) -> Shape {
    let changes_members = seed % 3 == 1;
    Shape {
        voters: if seed % 5 == 4 { 5 } else { 3 },
        spares: if changes_members { 2 } else { 0 },
        changes_members,
        resends_values: seed % 7 == 3,
        faults_ms: 1_500,
        broken,
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs a seed; what was seen, or what does not hold.
fn run(seed: u64, broken: Broken) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut world = World::new(seed, shape(seed, broken));
    // An assertion of the replica's own is a finding like any other.
    let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
    let ran = ran.unwrap_or_else(|_| Err("a replica panicked".to_owned()));
    let at = world.now;
    ran.map(|()| world.seen).map_err(|wrong| format!("seed {seed}, at {at:?}: {wrong}"))
}

/// Claim: whatever goes wrong, at most one value is delivered at an instance, in order and once a life; what one leader
/// proposed keeps its order; nothing acknowledged is lost; a ballot has one leader; no read misses what was acknowledged
/// before it; and when all is well again, everybody agrees and goes on.
#[test]
fn agreement_holds() {
    if let Some(seed) = number("CONSENSUS_SEED") {
        println!("{:?}", run(seed, Broken::Nothing).unwrap());
        return;
    }
    let mut seen: BTreeMap<&'static str, u64> = BTreeMap::new();
    let first = number("CONSENSUS_FIRST").unwrap_or(0);
    let kept = include_str!("simulation/kept_seeds.txt").lines().filter(|it| !it.starts_with('#'));
    let kept = kept.map(|seed| seed.parse().expect("a kept seed is a number"));
    for seed in kept.chain(first..first + number("CONSENSUS_SEEDS").unwrap_or(200)) {
        let ran = run(seed, Broken::Nothing);
        if ran.is_err() {
            // For `cargo xtask mutants`.
            println!("seed={seed}");
        }
        for (what, count) in ran.unwrap() {
            *seen.entry(what).or_insert(0) += count;
        }
    }
    println!("{seen:#?}");
    for what in [
        "changes of members delivered",
        "crashes between write and sync",
        "leaders crashed",
        "logs trimmed",
        "reads served",
        "records lost",
        "snapshots installed",
        "values acknowledged",
    ] {
        assert!(
            seen.get(what).is_some_and(|count| *count >= 20),
            "{what} hardly happened: {seen:#?}"
        );
    }
}

fn is_found(broken: Broken, words: &[&str]) {
    let seeds = 1000;
    let wrong = (0..seeds).find_map(|seed| run(seed, broken).err());
    let wrong = wrong.unwrap_or_else(|| panic!("{broken:?} is not found in {seeds} seeds"));
    println!("{broken:?}: {wrong}");
    assert!(words.iter().any(|word| wrong.contains(word)), "{wrong}");
}

/// Claim: a replica that acknowledges before its disk has the record is found by what is lost.
#[test]
fn acknowledging_before_sync_is_found() {
    is_found(
        Broken::AcknowledgesBeforeSync,
        &[
            "was delivered before",
            "is led by",
            "a read that",
            "does not recover",
            "does not believe",
            "is not durable",
        ],
    );
}

/// Claim: a leader that serves reads without asking anybody is found by a read that misses what was acknowledged.
#[test]
fn stale_reads_are_found() {
    is_found(Broken::ReadsWithoutRound, &["a read that began after"]);
}

/// Claim: deliveries that changed places are found.
#[test]
fn deliveries_out_of_order_are_found() {
    is_found(Broken::DeliversOutOfOrder, &["delivers"]);
}

/// Claim: a leader that does not propose again what others have accepted is found by two values at an instance, or
/// by a read that misses one.
#[test]
fn forgotten_promises_are_found() {
    is_found(Broken::ForgetsPromises, &["was delivered before", "a read that", "does not believe"]);
}

/// Claim: a promise that is sent before it is durable, and one of its own that a candidate counts before, are found: what a
/// power cut takes was no promise.
#[test]
fn promises_that_are_not_durable_are_found() {
    is_found(Broken::PromisesBeforeSync, &["sends a promise"]);
    is_found(Broken::OwnPromiseAtOnce, &["its own promise is not durable"]);
}
