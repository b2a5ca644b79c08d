//! Nodes that faults take down come back: under the same name, as another process, watched again, and if they do not,
//! it is said.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

mod seen;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use model::fault::{FaultDetail, FaultEvent, FaultPhase, RotationOver};
use model::plan::{FaultPlan, FaultValue};
use testbed::{FaultRunner, FaultSetup, NodeCare, NodeSpec, ResourceSampler, Testbed};

use seen::{Running, Seen, short};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn restart(node: &str, at_ms: u64, length_ms: u64) -> FaultPlan {
    FaultPlan::new("restart", &[node], ms(at_ms), ms(length_ms))
}

fn rotate(node: &str, cycles: u64, at_ms: u64, length_ms: u64) -> FaultPlan {
    let plan = FaultPlan::new("rotate", &[node], ms(at_ms), ms(length_ms));
    if cycles == 0 { plan } else { plan.with("cycles", FaultValue::Count(cycles)) }
}

/// A bed of shells that run `script`, whose `$0` is a file of the node's own.
struct Place {
    bed: Testbed,
    clock: Clock,
    folder: tempfile::TempDir,
}

impl Place {
    fn new(nodes: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::start();
        let mut bed = Testbed::new(folder.path(), clock);
        for (name, script) in nodes {
            let own = stored(folder.path(), name).display().to_string();
            bed.spawn(NodeSpec::new(*name, "/bin/sh").args(["-c", script, &own])).unwrap();
        }
        Self { bed, clock, folder }
    }

    fn run(&self, faults: Vec<FaultPlan>, care: Option<Toy>) -> Running {
        let care = care.map(|care| Arc::new(care) as Arc<dyn NodeCare>);
        self.run_with(FaultSetup { faults, care, ..FaultSetup::default() })
    }

    fn run_with(&self, setup: FaultSetup) -> Running {
        let (start, seen) = (self.clock.now(), Seen::default());
        let control = self.bed.control();
        let runner =
            FaultRunner::start(self.clock, setup, control, move || Some(start), seen.sink());
        Running { runner: runner.unwrap(), seen }
    }

    fn care(&self) -> Toy {
        Toy { folder: self.folder.path().to_owned(), says: None }
    }

    fn pid(&self, name: &str) -> u32 {
        self.bed.nodes().into_iter().find(|node| node.name == name).unwrap().pid
    }

    fn is_running(&self, name: &str) -> bool {
        self.bed.nodes().into_iter().any(|node| node.name == name && node.ended.is_empty())
    }

    fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        let deadline = self.clock.now().plus(Duration::from_secs(10));
        while !is_so() {
            assert!(self.clock.now() < deadline, "waited too long");
            self.clock.sleep_until(self.clock.now().plus(ms(2)));
        }
    }

    /// Every start of a shell that counts them.
    fn starts(&self, name: &str) -> usize {
        let starts = stored(self.folder.path(), name).with_extension("starts");
        std::fs::read_to_string(starts).unwrap_or_default().lines().count()
    }
}

fn stored(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.data"))
}

/// What a node stores is one file; it has caught up when the file is there.
#[derive(Debug)]
struct Toy {
    folder: PathBuf,
    /// What it answers in place of a look.
    says: Option<Result<bool, String>>,
}

impl NodeCare for Toy {
    fn wipe(&self, node: &str) -> Result<(), String> {
        let stored = stored(&self.folder, node);
        match std::fs::remove_file(&stored) {
            Err(error) if stored.exists() => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    fn has_caught_up(&self, node: &str) -> Result<bool, String> {
        self.says.clone().unwrap_or_else(|| Ok(stored(&self.folder, node).exists()))
    }
}

/// Counts its start, needs a moment for its file, and stays.
const CATCHES_UP: &str = "echo x >> ${0%.data}.starts; sleep 0.2; : > $0; read line";
const STAYS: &str = "read line";

/// Claim: a restarted node is another process under its old name, down for as long as was asked, and its resource use
/// is sampled in both of its lives.
#[test]
fn a_restarted_node_comes_back() {
    let place = Place::new(&[("n", STAYS), ("other", STAYS)]);
    let before = place.pid("n");
    let sampler = ResourceSampler::start(
        place.clock,
        ms(20),
        vec![("n".to_owned(), before)],
        Box::new(|_, _, _, _| ()),
    )
    .unwrap();
    let start = place.clock.now();
    let setup = FaultSetup {
        faults: vec![restart("n", 600, 200)],
        watcher: Some(sampler.watcher()),
        ..FaultSetup::default()
    };
    let runner = place.run_with(setup);
    place.wait_until(|| !place.is_running("n"));
    let down = place.bed.nodes()[0].clone();
    assert_eq!((down.pid, down.ended.as_str()), (before, "killed by SIGKILL, as asked"));
    place.wait_until(|| place.is_running("n"));
    // Time enough for a sample, as before it, where others keep the processors busy.
    place.clock.sleep_until(place.clock.now().plus(ms(500)));
    let events = runner.finish();
    assert_ne!(place.pid("n"), before);
    let names: Vec<String> = place.bed.nodes().into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["n", "other"]);
    assert_eq!(short(&events), ["fault_start restart n", "fault_end restart n"]);
    let FaultDetail::StartedAgain { ns, cut_short: false } = events[1].detail else {
        panic!("{events:?}")
    };
    // It ends 200 ms after it was due, however late it began.
    assert!(events[1].at_ns >= 800_000_000, "{events:?}");
    assert!((1..=events[1].at_ns - events[0].at_ns).contains(&ns), "{events:?}");
    let samples = sampler.finish(start);
    let of_node =
        |sample: &&model::facts::MetricSample| sample.source == "n" && sample.name == "rss_bytes";
    let times: Vec<i64> = samples.iter().filter(of_node).map(|sample| sample.at).collect();
    assert!(times.first().unwrap() < &events[0].at_ns, "{times:?}");
    assert!(times.last().unwrap() > &events[1].at_ns, "{times:?}");
}

/// Claim: a restart without a pause between is one, and of a node that has ended by itself it is told as failed and
/// leaves it as it is.
#[test]
fn a_restart_at_once_and_one_too_late() {
    let place = Place::new(&[("n", STAYS), ("gone", "exit 3")]);
    let before = place.pid("n");
    place.wait_until(|| !place.is_running("gone"));
    let faults = vec![restart("n", 0, 0), restart("gone", 0, 0)];
    let runner = place.run(faults, None);
    place.wait_until(|| place.pid("n") != before);
    place.clock.sleep_until(place.clock.now().plus(ms(50)));
    let events = runner.finish();
    assert_eq!(
        short(&events),
        ["fault_start restart n", "fault_end restart n", "fault_failed restart gone"]
    );
    assert!(place.is_running("n") && !place.is_running("gone"));
}

/// Claim: when the trial ends early, a node that a restart took down is started again and that is said.
#[test]
fn an_early_end_brings_nodes_back() {
    let place = Place::new(&[("n", STAYS)]);
    let runner = place.run(vec![restart("n", 0, 600_000)], None);
    place.wait_until(|| !place.is_running("n"));
    let events = runner.finish();
    assert!(place.is_running("n"));
    assert_eq!(short(&events), ["fault_start restart n", "fault_end restart n"]);
    let is_cut = |detail: &_| matches!(detail, FaultDetail::StartedAgain { cut_short: true, .. });
    assert!(is_cut(&events[1].detail), "{events:?}");
}

/// Claim: a rotation stops, wipes and starts all nodes that it means, waits for every one of them to catch up, does
/// so again, ends after the cycles asked for, and leaves other nodes alone.
#[test]
fn a_rotation_goes_round() {
    let place = Place::new(&[("full1", CATCHES_UP), ("full2", CATCHES_UP), ("val", STAYS)]);
    let untouched = place.pid("val");
    place.wait_until(|| place.starts("full1") == 1 && place.starts("full2") == 1);
    let runner = place.run(vec![rotate("full*", 2, 50, 600_000)], Some(place.care()));
    place.wait_until(|| place.starts("full1") == 3 && place.starts("full2") == 3);
    let care = place.care();
    place.wait_until(|| ["full1", "full2"].iter().all(|n| care.has_caught_up(n) == Ok(true)));
    // More than it takes to notice, and to begin what must not begin.
    place.clock.sleep_until(place.clock.now().plus(ms(500)));
    let events = runner.finish();
    assert_eq!((place.starts("full1"), place.starts("full2")), (3, 3));
    assert_eq!(place.pid("val"), untouched);
    assert!(["full1", "full2", "val"].iter().all(|name| place.is_running(name)));
    let of = |phase: FaultPhase, node: &str, cycle: u32| {
        let is_it = |event: &&FaultEvent| {
            (event.phase, event.node.as_str(), event.cycle) == (phase, node, cycle)
        };
        let found: Vec<&FaultEvent> = events.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{phase:?} {node} {cycle}: {events:?}");
        found[0].clone()
    };
    for node in ["full1", "full2"] {
        for cycle in [1, 2] {
            let (start, end) =
                (of(FaultPhase::Start, node, cycle), of(FaultPhase::End, node, cycle));
            assert!(matches!(end.detail, FaultDetail::CaughtUp { .. }), "{end:?}");
            assert!(end.at_ns - start.at_ns > 200_000_000, "it needs 0.2 s: {events:?}");
        }
    }
    // The second cycle begins when all of the first are done.
    let end_of = |node| of(FaultPhase::End, node, 1).at_ns;
    let first_over = end_of("full1").max(end_of("full2"));
    assert!(of(FaultPhase::Start, "full1", 2).at_ns >= first_over, "{events:?}");
    assert_eq!(events.len(), 8);
    assert_eq!((events[0].kind.as_str(), events[0].node.as_str()), ("rotate", "full1"));
}

/// Claim: a wiped node is killed, loses what it had stored, is started once and is waited for; a replaced one is away for as
/// long as was asked before. Neither is a round of anything.
#[test]
fn a_node_begins_anew_once() {
    for (word, away_ms) in [("wipe", 0), ("replace", 400)] {
        // It would not end if it were asked.
        let script = "trap '' TERM; test -e $0 && echo old >> ${0%.data}.starts; echo x >> ${0%.data}.starts; sleep 0.2; : > $0; while :; do sleep 0.1; done";
        let place = Place::new(&[("n", script), ("other", STAYS)]);
        let care = place.care();
        place.wait_until(|| care.has_caught_up("n") == Ok(true));
        let (before, other) = (place.pid("n"), place.pid("other"));
        let fault = FaultPlan::new(word, &["n"], ms(0), ms(away_ms));
        let runner = place.run(vec![fault], Some(place.care()));
        place.wait_until(|| place.starts("n") == 2);
        place.wait_until(|| care.has_caught_up("n") == Ok(true));
        place.clock.sleep_until(place.clock.now().plus(ms(300)));
        let events = runner.finish();
        assert_eq!(place.starts("n"), 2, "it was started once, and found nothing");
        assert!(place.pid("n") != before && place.pid("other") == other);
        let words = [format!("fault_start {word} n"), format!("fault_end {word} n")];
        assert_eq!(short(&events), words);
        assert!(events.iter().all(|event| event.cycle == 0), "{events:?}");
        let FaultDetail::CaughtUp { ns } = events[1].detail else { panic!("{events:?}") };
        let away = events[1].at_ns - events[0].at_ns - ns;
        assert!(away >= i64::try_from(away_ms).unwrap() * 1_000_000, "{events:?}");
    }
}

/// Claim: a replacement whose trial ends first leaves no node down, and says that it was not wiped.
#[test]
fn an_early_end_of_a_replacement_leaves_nothing_down() {
    let place = Place::new(&[("n", STAYS)]);
    let fault = FaultPlan::new("replace", &["n"], ms(0), ms(600_000));
    let runner = place.run(vec![fault], Some(place.care()));
    place.wait_until(|| !place.is_running("n"));
    let events = runner.finish();
    assert!(place.is_running("n"));
    let not_wiped = FaultDetail::NotWiped { why: None, over: Some(RotationOver::Trial) };
    assert_eq!(events[1].detail, not_wiped, "{events:?}");
}

/// Claim: a node that never catches up is waited for until the time is over and told as such, with what it said last;
/// it is left running.
#[test]
fn what_never_catches_up_is_said() {
    let place = Place::new(&[("n", STAYS)]);
    let care = Toy { says: Some(Err("height 3 of 900".to_owned())), ..place.care() };
    let before = place.pid("n");
    let runner = place.run(vec![rotate("n", 0, 0, 700)], Some(care));
    place.clock.sleep_until(place.clock.now().plus(ms(1_500)));
    let events = runner.finish();
    assert!(place.is_running("n") && place.pid("n") != before);
    assert_eq!(short(&events), ["fault_start rotate n", "fault_end rotate n"]);
    let FaultDetail::NotCaughtUp { over: RotationOver::Time, said, .. } = &events[1].detail else {
        panic!("{events:?}")
    };
    assert_eq!((said.as_str(), events[1].cycle), ("height 3 of 900", 1));
    // It is to be over 700 ms after it was due.
    let over_ms = events[1].at_ns / 1_000_000;
    assert!((690..1_400).contains(&over_ms), "its time is 700 ms: {events:?}");
}

/// Claim: nodes that end again as soon as they are started end a rotation that would only repeat itself, and a node
/// that may not be wiped is started again as it was.
#[test]
fn a_rotation_that_comes_to_nothing_ends() {
    let once = "test -e $0.once && exit 4; : > $0.once; read line";
    let place = Place::new(&[("n", once)]);
    let mark = stored(place.folder.path(), "n").with_extension("data.once");
    place.wait_until(|| mark.exists());
    let runner = place.run(vec![rotate("n", 0, 0, 600_000)], Some(place.care()));
    place.clock.sleep_until(place.clock.now().plus(ms(700)));
    let events = runner.finish();
    assert_eq!(
        short(&events),
        ["fault_start rotate n", "fault_end rotate n", "fault_failed rotate n"]
    );
    let FaultDetail::EndedAgain { how, .. } = &events[1].detail else { panic!("{events:?}") };
    assert!(how.contains("exited with status 4"), "{events:?}");
    assert_eq!(events[2].detail, FaultDetail::GivenUp);

    #[derive(Debug)]
    struct Refuses;
    impl NodeCare for Refuses {
        fn wipe(&self, node: &str) -> Result<(), String> {
            Err(format!("{node} is a validator"))
        }
        fn has_caught_up(&self, _: &str) -> Result<bool, String> {
            Ok(true)
        }
    }
    let place = Place::new(&[("val", STAYS)]);
    let faults = vec![rotate("val", 0, 0, 600_000)];
    let setup = FaultSetup { faults, care: Some(Arc::new(Refuses)), ..FaultSetup::default() };
    let runner = place.run_with(setup);
    place.clock.sleep_until(place.clock.now().plus(ms(500)));
    let events = runner.finish();
    assert!(place.is_running("val"));
    let why = Some("val is a validator".to_owned());
    assert_eq!(events[1].detail, FaultDetail::NotWiped { why, over: None });
    assert_eq!(events[2].detail, FaultDetail::GivenUp);
}

/// Claim: a rotation in the middle of which the trial ends leaves no node down and closes what it began; without
/// somebody who can wipe it does not begin.
#[test]
fn an_early_end_of_a_rotation_leaves_nothing_down() {
    let place = Place::new(&[("a", "sleep 1; read line"), ("b", STAYS)]);
    let care = Toy { says: Some(Ok(false)), ..place.care() };
    let before = (place.pid("a"), place.pid("b"));
    let faults = vec![rotate("*", 0, 0, 600_000)];
    let runner = place.run(faults.clone(), Some(care));
    place.wait_until(|| place.pid("a") != before.0 && place.pid("b") != before.1);
    let events = runner.finish();
    assert!(place.is_running("a") && place.is_running("b"));
    let (starts, ends): (Vec<&FaultEvent>, Vec<&FaultEvent>) =
        events.iter().partition(|event| event.phase == FaultPhase::Start);
    assert_eq!((starts.len(), ends.len()), (2, 2), "{events:?}");
    let is_said = |event: &&FaultEvent| match &event.detail {
        FaultDetail::NotCaughtUp { over, .. } => *over == RotationOver::Trial,
        _ => false,
    };
    assert!(ends.iter().all(is_said), "{events:?}");

    let runner = place.run(faults, None);
    place.clock.sleep_until(place.clock.now().plus(ms(50)));
    let events = runner.finish();
    assert_eq!(short(&events), ["fault_failed rotate *"]);
}

/// Claim: a node that does not end when it is asked is killed after five seconds, and the rotation goes on.
#[test]
fn a_stubborn_node_is_killed() {
    let stubborn = "trap '' TERM; echo x >> ${0%.data}.starts; : > $0; while :; do sleep 1; done";
    let place = Place::new(&[("n", stubborn)]);
    place.wait_until(|| place.starts("n") == 1);
    let runner = place.run(vec![rotate("n", 1, 0, 600_000)], Some(place.care()));
    place.wait_until(|| place.starts("n") == 2);
    place.clock.sleep_until(place.clock.now().plus(ms(300)));
    let events = runner.finish();
    assert!(matches!(events[1].detail, FaultDetail::CaughtUp { .. }), "{events:?}");
    assert!(events[1].at_ns - events[0].at_ns >= 5_000_000_000, "{events:?}");
}
