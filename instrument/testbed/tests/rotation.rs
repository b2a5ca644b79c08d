//! Nodes that faults take down come back: under the same name, as another process, watched again, and if they do not,
//! it is said.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, Instant};
use model::facts::Event;
use model::plan::{FaultKind, FaultPlan};
use testbed::{FaultRunner, FaultSetup, NodeCare, NodeSpec, ResourceSampler, Testbed};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn fault(kind: FaultKind, at_ms: u64, length_ms: u64) -> FaultPlan {
    FaultPlan { at: ms(at_ms), length: ms(length_ms), kind }
}

fn restart(node: &str) -> FaultKind {
    FaultKind::Restart { node: node.to_owned() }
}

fn rotate(node: &str, cycles: u32) -> FaultKind {
    FaultKind::Rotate { node: node.to_owned(), cycles }
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

    fn run(&self, faults: Vec<FaultPlan>, care: Option<Toy>) -> FaultRunner {
        let start = self.clock.now();
        let care = care.map(|care| Arc::new(care) as Arc<dyn NodeCare>);
        let setup = FaultSetup { faults, care, ..FaultSetup::default() };
        FaultRunner::start(self.clock, setup, self.bed.control(), move || Some(start)).unwrap()
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

fn short(events: &[Event]) -> Vec<String> {
    let first_words = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    events.iter().map(|event| format!("{} {}", event.name, first_words(&event.detail))).collect()
}

/// Claim: a restarted node is another process under its old name, down for as long as was asked, and its resource use
/// is sampled in both of its lives.
#[test]
fn a_restarted_node_comes_back() {
    let place = Place::new(&[("n", STAYS), ("other", STAYS)]);
    let before = place.pid("n");
    let sampler =
        ResourceSampler::start(place.clock, ms(20), vec![("n".to_owned(), before)]).unwrap();
    let start = place.clock.now();
    let setup = FaultSetup {
        faults: vec![fault(restart("n"), 100, 200)],
        watcher: Some(sampler.watcher()),
        ..FaultSetup::default()
    };
    let control = place.bed.control();
    let runner = FaultRunner::start(place.clock, setup, control, move || Some(start)).unwrap();
    place.wait_until(|| !place.is_running("n"));
    let down = place.bed.nodes()[0].clone();
    assert_eq!((down.pid, down.ended.as_str()), (before, "killed by SIGKILL, as asked"));
    place.wait_until(|| place.is_running("n"));
    place.clock.sleep_until(place.clock.now().plus(ms(100)));
    let (events, lines) = runner.finish(start);
    assert_ne!(place.pid("n"), before);
    let names: Vec<String> = place.bed.nodes().into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["n", "other"]);
    assert_eq!(short(&events), ["fault_start restart n", "fault_end restart n"]);
    assert!(events[1].detail.starts_with("restart n: started again after 2"), "{events:?}");
    assert!(events[1].at - events[0].at >= 200_000_000, "{events:?}");
    assert_eq!(lines.len(), 2);
    let samples = sampler.finish(start);
    let of_node =
        |sample: &&model::facts::MetricSample| sample.source == "n" && sample.name == "rss_bytes";
    let times: Vec<i64> = samples.iter().filter(of_node).map(|sample| sample.at).collect();
    assert!(times.first().unwrap() < &events[0].at, "{times:?}");
    assert!(times.last().unwrap() > &events[1].at, "{times:?}");
}

/// Claim: a restart without a pause between is one, and of a node that has ended by itself it is told as failed and
/// leaves it as it is.
#[test]
fn a_restart_at_once_and_one_too_late() {
    let place = Place::new(&[("n", STAYS), ("gone", "exit 3")]);
    let before = place.pid("n");
    place.wait_until(|| !place.is_running("gone"));
    let faults = vec![fault(restart("n"), 0, 0), fault(restart("gone"), 0, 0)];
    let runner = place.run(faults, None);
    place.wait_until(|| place.pid("n") != before);
    place.clock.sleep_until(place.clock.now().plus(ms(50)));
    let (events, _) = runner.finish(Instant::ZERO);
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
    let runner = place.run(vec![fault(restart("n"), 0, 600_000)], None);
    place.wait_until(|| !place.is_running("n"));
    let (events, _) = runner.finish(Instant::ZERO);
    assert!(place.is_running("n"));
    assert_eq!(short(&events), ["fault_start restart n", "fault_end restart n"]);
    assert!(events[1].detail.ends_with("the trial ended before its time"), "{events:?}");
}

/// Claim: a rotation stops, wipes and starts all nodes that it means, waits for every one of them to catch up, does
/// so again, ends after the cycles asked for, and leaves other nodes alone.
#[test]
fn a_rotation_goes_round() {
    let place = Place::new(&[("full1", CATCHES_UP), ("full2", CATCHES_UP), ("val", STAYS)]);
    let untouched = place.pid("val");
    place.wait_until(|| place.starts("full1") == 1 && place.starts("full2") == 1);
    let runner = place.run(vec![fault(rotate("full*", 2), 50, 600_000)], Some(place.care()));
    place.wait_until(|| place.starts("full1") == 3 && place.starts("full2") == 3);
    let care = place.care();
    place.wait_until(|| ["full1", "full2"].iter().all(|n| care.has_caught_up(n) == Ok(true)));
    // More than it takes to notice, and to begin what must not begin.
    place.clock.sleep_until(place.clock.now().plus(ms(500)));
    let (events, lines) = runner.finish(Instant::ZERO);
    assert_eq!((place.starts("full1"), place.starts("full2")), (3, 3));
    assert_eq!(place.pid("val"), untouched);
    assert!(["full1", "full2", "val"].iter().all(|name| place.is_running(name)));
    let of = |name: &str, node: &str, cycle: u32| {
        let is_it = |event: &&Event| {
            event.name == name
                && event.detail.starts_with(&format!("rotate {node}: "))
                && event.detail.ends_with(&format!("cycle {cycle}"))
        };
        let found: Vec<&Event> = events.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{name} {node} {cycle}: {events:?}");
        found[0].clone()
    };
    for node in ["full1", "full2"] {
        for cycle in [1, 2] {
            let (start, end) = (of("fault_start", node, cycle), of("fault_end", node, cycle));
            assert!(end.detail.starts_with(&format!("rotate {node}: caught up after ")), "{end:?}");
            assert!(end.at - start.at > 200_000_000, "it needs 0.2 s: {events:?}");
        }
    }
    // The second cycle begins when all of the first are done.
    let first_over = of("fault_end", "full1", 1).at.max(of("fault_end", "full2", 1).at);
    assert!(of("fault_start", "full1", 2).at >= first_over, "{events:?}");
    assert_eq!((events.len(), lines.len()), (8, 8));
    let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((&line["kind"], &line["node"]), (&"rotate".into(), &"full1".into()));
}

/// Claim: a node that never catches up is waited for until the time is over and told as such, with what it said last;
/// it is left running.
#[test]
fn what_never_catches_up_is_said() {
    let place = Place::new(&[("n", STAYS)]);
    let care = Toy { says: Some(Err("height 3 of 900".to_owned())), ..place.care() };
    let before = place.pid("n");
    let runner = place.run(vec![fault(rotate("n", 0), 0, 700)], Some(care));
    place.clock.sleep_until(place.clock.now().plus(ms(1_500)));
    let (events, _) = runner.finish(Instant::ZERO);
    assert!(place.is_running("n") && place.pid("n") != before);
    assert_eq!(short(&events), ["fault_start rotate n", "fault_end rotate n"]);
    let detail = &events[1].detail;
    assert!(detail.starts_with("rotate n: had not caught up "), "{detail}");
    let end = "when the time of the rotation was over (it said last: height 3 of 900), cycle 1";
    assert!(detail.ends_with(end), "{detail}");
    let length_ms = (events[1].at - events[0].at) / 1_000_000;
    assert!((690..1_400).contains(&length_ms), "its time is 700 ms: {events:?}");
}

/// Claim: nodes that end again as soon as they are started end a rotation that would only repeat itself, and a node
/// that may not be wiped is started again as it was.
#[test]
fn a_rotation_that_comes_to_nothing_ends() {
    let once = "test -e $0.once && exit 4; : > $0.once; read line";
    let place = Place::new(&[("n", once)]);
    let mark = stored(place.folder.path(), "n").with_extension("data.once");
    place.wait_until(|| mark.exists());
    let runner = place.run(vec![fault(rotate("n", 0), 0, 600_000)], Some(place.care()));
    place.clock.sleep_until(place.clock.now().plus(ms(700)));
    let (events, _) = runner.finish(Instant::ZERO);
    assert_eq!(
        short(&events),
        ["fault_start rotate n", "fault_end rotate n", "fault_failed rotate n"]
    );
    assert!(events[1].detail.contains("ended again"), "{events:?}");
    assert!(events[1].detail.contains("exited with status 4"), "{events:?}");
    assert!(events[2].detail.contains("given up"), "{events:?}");

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
    let start = place.clock.now();
    let faults = vec![fault(rotate("val", 0), 0, 600_000)];
    let setup = FaultSetup { faults, care: Some(Arc::new(Refuses)), ..FaultSetup::default() };
    let control = place.bed.control();
    let runner = FaultRunner::start(place.clock, setup, control, move || Some(start)).unwrap();
    place.clock.sleep_until(place.clock.now().plus(ms(500)));
    let (events, _) = runner.finish(Instant::ZERO);
    assert!(place.is_running("val"));
    let words = "rotate val: started again without being wiped: val is a validator, cycle 1";
    assert_eq!(events[1].detail, words);
    assert!(events[2].detail.contains("given up"), "{events:?}");
}

/// Claim: a rotation in the middle of which the trial ends leaves no node down and closes what it began; without
/// somebody who can wipe it does not begin.
#[test]
fn an_early_end_of_a_rotation_leaves_nothing_down() {
    let place = Place::new(&[("a", "sleep 1; read line"), ("b", STAYS)]);
    let care = Toy { says: Some(Ok(false)), ..place.care() };
    let before = (place.pid("a"), place.pid("b"));
    let faults = vec![fault(rotate("*", 0), 0, 600_000)];
    let runner = place.run(faults.clone(), Some(care));
    place.wait_until(|| place.pid("a") != before.0 && place.pid("b") != before.1);
    let (events, _) = runner.finish(Instant::ZERO);
    assert!(place.is_running("a") && place.is_running("b"));
    let (starts, ends): (Vec<&Event>, Vec<&Event>) =
        events.iter().partition(|event| event.name == "fault_start");
    assert_eq!((starts.len(), ends.len()), (2, 2), "{events:?}");
    let is_said = |event: &&Event| event.detail.contains("when the trial had ended");
    assert!(ends.iter().all(is_said), "{events:?}");

    let runner = place.run(faults, None);
    place.clock.sleep_until(place.clock.now().plus(ms(50)));
    let (events, _) = runner.finish(Instant::ZERO);
    assert_eq!(short(&events), ["fault_failed rotate *"]);
}

/// Claim: a node that does not end when it is asked is killed after five seconds, and the rotation goes on.
#[test]
fn a_stubborn_node_is_killed() {
    let stubborn = "trap '' TERM; echo x >> ${0%.data}.starts; : > $0; while :; do sleep 1; done";
    let place = Place::new(&[("n", stubborn)]);
    place.wait_until(|| place.starts("n") == 1);
    let runner = place.run(vec![fault(rotate("n", 1), 0, 600_000)], Some(place.care()));
    place.wait_until(|| place.starts("n") == 2);
    place.clock.sleep_until(place.clock.now().plus(ms(300)));
    let (events, _) = runner.finish(Instant::ZERO);
    assert!(events[1].detail.starts_with("rotate n: caught up after "), "{events:?}");
    assert!(events[1].at - events[0].at >= 5_000_000_000, "{events:?}");
}
