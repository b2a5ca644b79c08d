//! A group under everything that the simulator has: connections that break, processes that are killed, disks that
//! lose and tear what was not synced.

mod counter;

use std::time::Duration;

use clock::Instant;
use counter::{Broken, Toy, Watch};
use replicated::Config;
use sim::{Coverage, Fault, Weather, World, Wrong};

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

/// Claim: a replica whose disk is lost comes back without a vote, is let in again under an id that none had, and nothing
/// that was acknowledged is lost; also where the only other one that had it crashes meanwhile, and in bad weather; and where
/// each of the replicas loses its disk in turn.
#[test]
fn a_lost_disk_forgets_nothing() {
    let mut coverage = Coverage::default();
    for seed in seeds(12) {
        lost_disks(seed, &mut coverage).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    println!("{coverage}");
    for what in ["disks lost", "let in again", "snapshots installed", "losses of power"] {
        assert!(coverage.of(what) >= 5, "{what}\n{coverage}");
    }
}

fn lost_disks(seed: u64, coverage: &mut Coverage) -> Result<(), Wrong> {
    let mut world = counter::world(seed, Broken::Nothing, |_| {});
    let mut watch = Watch::default();
    let second = Duration::from_secs(1);
    world.run(Instant::ZERO.plus(second), |world, process| watch.look(world, process))?;
    for (turn, process) in [0, 1, 2, 1].into_iter().enumerate() {
        let down = Duration::from_millis(50);
        // Another one is down while the disk is lost: what only these two had is with it alone.
        let other = (process + 1 + turn % 2) % counter::REPLICAS;
        world.happens(&Fault::Power { process: other, down: Duration::from_millis(700) });
        world.happens(&Fault::LostDisk { process, down });
        let until = world.now().plus(3 * second);
        let mut weather = Weather::all(counter::REPLICAS, world.now().plus(second));
        weather.every = Duration::from_millis(100)..=Duration::from_millis(500);
        world.begin_weather(weather);
        world.run(until, |world, process| watch.look(world, process))?;
        // Until it is let in another lost disk would be one too many.
        let limit = world.now().plus(20 * second);
        while world.now() < limit && !is_let_in(&world, process) {
            let until = world.now().plus(second / 10);
            world.run(until, |world, process| watch.look(world, process))?;
        }
        if !is_let_in(&world, process) {
            let stand = |at| match world.node(at, 0) {
                Some(Toy::Replica(it)) => format!("{:?}", it.group),
                _ => "is down".to_owned(),
            };
            let all = [0, 1, 2].map(stand).join("; ");
            return Err(world.wrong(format!(
                "replica {process} has no vote 20 s after its disk was lost: {all}"
            )));
        }
        world.coverage_mut().count("let in again");
    }
    let until = world.now().plus(2 * second);
    world.run(until, |world, process| watch.look(world, process))?;
    let total = watch.end(&world).map_err(|what| world.wrong(what))?;
    let installed = (0..counter::REPLICAS).filter_map(|at| match world.node(at, 0) {
        Some(Toy::Replica(it)) => Some(it.installed),
        _ => None,
    });
    let installed = installed.sum();
    world.coverage_mut().add("snapshots installed", installed);
    coverage.merge(world.coverage());
    if total < 100 {
        return Err(world.wrong(format!("only {total} numbers were acknowledged")));
    }
    Ok(())
}

/// Claim: an operator takes a vote and gives it back, to the disk that had it and to an empty one, of followers and of the leader,
/// in bad weather; nothing that was acknowledged is lost, and those without a vote do not disturb the others.
#[test]
fn votes_are_given_and_taken() {
    let mut coverage = Coverage::default();
    for seed in seeds(12) {
        votes(seed, &mut coverage).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    println!("{coverage}");
    for what in ["votes taken", "votes of leaders taken", "votes given", "disks lost"] {
        assert!(coverage.of(what) >= 8, "{what}\n{coverage}");
    }
}

fn votes(seed: u64, coverage: &mut Coverage) -> Result<(), Wrong> {
    let mut world = counter::world(seed, Broken::Nothing, |_| {});
    let mut watch = Watch::default();
    let second = Duration::from_secs(1);
    world.run(Instant::ZERO.plus(second), |world, process| watch.look(world, process))?;
    for turn in 0..4 {
        let leader = (0..counter::REPLICAS).find(|at| leads(&world, *at)).unwrap_or(0);
        let process = if turn % 2 == 0 { leader } else { (leader + 1) % counter::REPLICAS };
        world.coverage_mut().count(if turn % 2 == 0 {
            "votes of leaders taken"
        } else {
            "votes taken"
        });
        let mut weather = Weather::all(counter::REPLICAS, world.now().plus(second));
        weather.every = Duration::from_millis(100)..=Duration::from_millis(500);
        world.begin_weather(weather);
        let has_none = |world: &World<Toy>| voters(world).iter().all(|it| !it.contains(&process));
        wish(&mut world, &mut watch, (process, false), has_none)?;
        let before = watch.changes;
        let quiet = world.now().plus(2 * second);
        world.run(quiet, |world, process| watch.look(world, process))?;
        if watch.changes > before + 3 {
            return Err(
                world.wrong(format!("{} changes of the leader in 2 s", watch.changes - before))
            );
        }
        if turn >= 2 {
            world.happens(&Fault::LostDisk { process, down: second / 10 });
        }
        wish(&mut world, &mut watch, (process, true), |world| is_let_in(world, process))?;
        world.coverage_mut().count("votes given");
    }
    let total = watch.end(&world).map_err(|what| world.wrong(what))?;
    coverage.merge(world.coverage());
    if total < 100 {
        return Err(world.wrong(format!("only {total} numbers were acknowledged")));
    }
    Ok(())
}

fn leads(world: &World<Toy>, at: usize) -> bool {
    matches!(world.node(at, 0), Some(Toy::Replica(it)) if it.group.replica().is_leader())
}

/// The votes that each replica knows of.
fn voters(world: &World<Toy>) -> Vec<Vec<usize>> {
    let of = |at| match world.node(at, 0) {
        Some(Toy::Replica(it)) => Some(it.group.voters().map(usize::from).collect()),
        _ => None,
    };
    (0..counter::REPLICAS).filter_map(of).collect()
}

/// An operator asks whoever leads for a vote, again and again until it is so, for 20 s.
fn wish(
    world: &mut World<Toy>,
    watch: &mut Watch,
    (process, has_vote): (usize, bool),
    is_so: impl Fn(&World<Toy>) -> bool,
) -> Result<(), Wrong> {
    let number = u8::try_from(process).expect("one of three");
    let limit = world.now().plus(Duration::from_secs(20));
    while world.now() < limit {
        let leader = (0..counter::REPLICAS).find(|at| leads(world, *at));
        if let Some(Toy::Replica(it)) = leader.and_then(|at| world.node_mut(at, 0)) {
            let _ = it.group.want_vote(number, has_vote);
        }
        let next = world.now().plus(Duration::from_millis(100));
        world.run(next, |world, process| watch.look(world, process))?;
        if is_so(world) {
            return Ok(());
        }
    }
    Err(world.wrong(format!("the votes after 20 s: {:?}", voters(world))))
}

fn is_let_in(world: &World<Toy>, process: usize) -> bool {
    let all = (0..counter::REPLICAS).all(|at| matches!(world.node(at, 0), Some(Toy::Replica(_))));
    let votes = matches!(world.node(process, 0), Some(Toy::Replica(it)) if it.group.has_vote());
    let members = |at| match world.node(at, 0) {
        Some(Toy::Replica(it)) => it.group.replica().members().count(),
        _ => 0,
    };
    all && votes && (0..counter::REPLICAS).all(|at| members(at) == counter::REPLICAS)
}

/// Claim: two of three whose disks are lost elect nobody: what the third holds is not forgotten, and when it is back nothing is
/// lost. (What the advice to begin with an empty folder lost before: 200 acknowledged values.)
#[test]
fn two_lost_disks_do_not_outvote_the_third() {
    let mut world = counter::world(3, Broken::Nothing, |_| {});
    let mut watch = Watch::default();
    let second = Duration::from_secs(1);
    world.run(Instant::ZERO.plus(2 * second), |world, process| watch.look(world, process)).unwrap();
    world.happens(&Fault::Kill { process: 0, down: 8 * second });
    for process in [1, 2] {
        world.happens(&Fault::LostDisk { process, down: second / 10 });
    }
    let until = world.now().plus(7 * second);
    let mut has_led = false;
    world
        .run(until, |world, process| {
            has_led |= matches!(world.node(process, 0), Some(Toy::Replica(it)) if it.group.replica().is_leader());
            Ok(())
        })
        .unwrap();
    assert!(!has_led, "two empty disks elected a leader");
    world.run(until.plus(4 * second), |_, _| Ok(())).unwrap();
    let Some(Toy::Replica(third)) = world.node(0, 0) else { panic!("it is back") };
    assert!(third.counts.counted > 0 && !third.group.replica().is_leader());
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
