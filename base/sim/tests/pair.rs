//! A toy that keeps numbers on two disks: right in every weather, and found out when it is broken on purpose.
//! The primary appends what a client sends, hands it to its backup, and acknowledges once both have it on disk.

mod toy;

use std::time::Duration;

use clock::Instant;
use sim::{Coverage, Fault, Weather, World};
use toy::{Broken, CLIENTS, Toy, Wish};

const BUSY: Duration = Duration::from_secs(4);

/// One run: weather for a while, then quiet until everything that was asked has been acknowledged.
fn run(seed: u64, broken: Broken, coverage: &mut Coverage) -> Result<u64, sim::Wrong> {
    let mut world = toy::world(seed, broken);
    let quiet = Instant::ZERO.plus(BUSY);
    world.begin_weather(Weather::all(2, quiet));
    world.run(quiet.plus(Duration::from_secs(6)), toy::invariant)?;
    coverage.merge(world.coverage());
    for client in 2..2 + CLIENTS {
        let Some(Toy::Client(it)) = world.node(client, 0) else { panic!("clients do not end") };
        if it.wish != Wish::Done {
            return Err(world.wrong(format!("client {client} still waits for {:?}", it.wish)));
        }
    }
    Ok(world.hash())
}

/// Claim: no acknowledged number is lost in any weather, everybody is served in the end, and the weather was
/// bad enough to show it.
#[test]
fn nothing_acknowledged_is_lost() {
    let mut coverage = Coverage::default();
    for seed in 0..60 {
        run(seed, Broken::Nothing, &mut coverage).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    let wanted = [
        "crashes between write and sync",
        "torn tails",
        "kills",
        "losses of power",
        "processes paused",
        "processes isolated",
        "ways blocked",
        "connections cut",
        "disks slow",
        "disks full",
        "a machine learnt that its disk is full",
    ];
    for what in wanted {
        assert!(coverage.of(what) > 10, "{what}: {}\n{coverage}", coverage.of(what));
    }
}

/// Claim: the same seed takes the same steps, and another one others.
#[test]
fn a_seed_repeats_a_run() {
    let mut coverage = [Coverage::default(), Coverage::default()];
    let [once, again] = &mut coverage;
    let first = run(7, Broken::Nothing, once).expect("it holds");
    assert_eq!(first, run(7, Broken::Nothing, again).expect("it holds"));
    assert_eq!(once, again);
    assert_ne!(first, run(8, Broken::Nothing, again).expect("it holds"));
}

/// Claim: who acknowledges before the sync is found, with the words that repeat it.
#[test]
fn acknowledged_before_the_sync() {
    let found =
        (0..200).find_map(|seed| run(seed, Broken::AcksBeforeSync, &mut Coverage::default()).err());
    let wrong = found.expect("found within 200 seeds");
    assert!(wrong.what.contains("is acknowledged and not on the disk"), "{wrong}");
    assert!(wrong.to_string().starts_with(&format!("seed {}, step ", wrong.seed)), "{wrong}");
    assert!(wrong.trace.lines().count() > 10, "{wrong}");
}

/// Claim: who asks its backup once and never again waits for ever when the connection is lost: found as such.
#[test]
fn never_dials_again() {
    let found =
        (0..50).find_map(|seed| run(seed, Broken::DialsOnce, &mut Coverage::default()).err());
    assert!(found.expect("found within 50 seeds").what.contains("still waits"));
}

/// Claim: a pause holds back what comes, and gives it in order when it ends; a partition keeps bytes, and a
/// loss of power is not told to anybody.
#[test]
fn pauses_partitions_and_power() {
    let mut world: World<Toy> = toy::world(1, Broken::Nothing);
    let ms = |ms| Instant::ZERO.plus(Duration::from_millis(ms));
    world.run(ms(100), toy::invariant).expect("it holds");
    let before = toy::acknowledged(&world);
    assert!(before > 10, "{before} in 100 ms");
    world.happens(&Fault::Pause { process: 1, pause: Duration::from_millis(200) });
    world.run(ms(290), toy::invariant).expect("it holds");
    let paused = toy::acknowledged(&world);
    assert!(paused <= before + CLIENTS as u64, "{paused} after {before}");
    world.run(ms(400), toy::invariant).expect("it holds");
    let after = toy::acknowledged(&world);
    assert!(after > paused + 10, "{after} after {paused}");
    world.happens(&Fault::Isolate { process: 1, lasts: Duration::from_millis(100) });
    world.run(ms(490), toy::invariant).expect("it holds");
    assert!(toy::acknowledged(&world) <= after + CLIENTS as u64);
    world.run(ms(700), toy::invariant).expect("it holds");
    assert!(toy::acknowledged(&world) > after + 10);
}
