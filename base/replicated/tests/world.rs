//! A group under everything that the simulator has: connections that break, processes that are killed, disks that
//! lose and tear what was not synced.

mod counter;

use std::time::Duration;

use clock::Instant;
use counter::{Broken, Toy, Watch};
use replicated::Config;
use sim::{Coverage, Weather, Wrong};

const BUSY: Duration = Duration::from_secs(8);

fn run(
    seed: u64,
    broken: Broken,
    change: fn(&mut Config),
    coverage: &mut Coverage,
) -> Result<u64, Wrong> {
    let mut world = counter::world(seed, broken, change);
    let mut watch = Watch::default();
    let quiet = Instant::ZERO.plus(BUSY);
    world.begin_weather(Weather::all(counter::REPLICAS, quiet));
    world.run(quiet.plus(Duration::from_secs(5)), |world, process| watch.look(world, process))?;
    let total = watch.end(&world).map_err(|what| world.wrong(what))?;
    for at in 0..counter::REPLICAS {
        if let Some(Toy::Replica(it)) = world.node(at, 0) {
            let (installed, made) = (it.installed, it.made);
            world.coverage_mut().add("snapshots installed", installed);
            world.coverage_mut().add("snapshots made", made);
        }
    }
    world.coverage_mut().add("numbers acknowledged", total);
    coverage.merge(world.coverage());
    if total < 100 {
        return Err(world.wrong(format!("only {total} numbers were acknowledged in 13 s")));
    }
    Ok(total)
}

fn seeds(default: u64) -> std::ops::Range<u64> {
    let count =
        std::env::var("ASSAY_TEST_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(default);
    0..count
}

/// Claim: in any weather replicas agree on the order of entries, nothing acknowledged is lost, each number is counted
/// once however often it was sent, one replica leads in a ballot, and all of it goes on when the weather ends. The
/// weather was bad enough to show it.
#[test]
fn they_agree() {
    let mut coverage = Coverage::default();
    for seed in seeds(25) {
        run(seed, Broken::Nothing, |_| {}, &mut coverage).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    println!("{coverage}");
    for what in [
        "crashes between write and sync",
        "torn tails",
        "changes of the leader",
        "snapshots made",
        "snapshots installed",
        "processes paused",
        "processes isolated",
    ] {
        assert!(coverage.of(what) >= 10, "{what}\n{coverage}");
    }
}

/// Claim: a replica that counts as durable what is not, a new leader that forgets what others accepted, and a machine
/// that counts what is sent again, are each found.
#[test]
fn what_is_broken_is_found() {
    // A replica that is not what it promised may also leave a disk from which it refuses to start: that is found, too.
    let once = |seed, broken, change| {
        let run = || run(seed, broken, change, &mut Coverage::default());
        match std::panic::catch_unwind(run) {
            Ok(ran) => ran.err().map(|wrong| (wrong.seed, wrong.what)),
            Err(_) => Some((seed, "it refuses to start from its disk".to_owned())),
        }
    };
    let found =
        |broken, change: fn(&mut Config)| seeds(1_000).find_map(|seed| once(seed, broken, change));
    let acks = found(Broken::Nothing, |it| it.broken = consensus_broken(0));
    let forgets = found(Broken::Nothing, |it| it.broken = consensus_broken(1));
    let twice = found(Broken::CountsTwice, |_| {});
    println!("{acks:?}\n{forgets:?}\n{twice:?}");
    assert!(acks.is_some() && forgets.is_some() && twice.is_some());
}

fn consensus_broken(which: u8) -> consensus::Broken {
    match which {
        0 => consensus::Broken::AcknowledgesBeforeSync,
        _ => consensus::Broken::ForgetsPromises,
    }
}
