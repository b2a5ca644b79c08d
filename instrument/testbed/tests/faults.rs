//! Planned faults reach real processes at their times, and none outlasts the trial.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

use std::time::Duration;

use clock::{Clock, Instant};
use model::facts::Event;
use model::plan::{FaultKind, FaultPlan};
use testbed::{BedControl, FaultRunner, FaultSetup, NodeSpec, Testbed};

const MS: i64 = 1_000_000;

fn fault(kind: FaultKind, at_ms: u64, length_ms: u64) -> FaultPlan {
    FaultPlan { at: Duration::from_millis(at_ms), length: Duration::from_millis(length_ms), kind }
}

fn pause(node: &str) -> FaultKind {
    FaultKind::Pause { node: node.to_owned() }
}

fn kill(node: &str) -> FaultKind {
    FaultKind::Kill { node: node.to_owned() }
}

fn run(
    clock: Clock,
    faults: Vec<FaultPlan>,
    control: BedControl,
    measure_start: impl FnMut() -> Option<Instant> + Send + 'static,
) -> Result<FaultRunner, testbed::TestbedError> {
    FaultRunner::start(
        clock,
        FaultSetup { faults, ..FaultSetup::default() },
        control,
        measure_start,
    )
}

fn bed_of(folder: &std::path::Path, clock: Clock, names: &[&str]) -> Testbed {
    let mut bed = Testbed::new(folder, clock);
    for name in names {
        bed.spawn(NodeSpec::new(*name, "/bin/sh").args(["-c", "read line"])).unwrap();
    }
    bed
}

fn is_stopped(bed: &Testbed, name: &str) -> bool {
    let pid = bed.nodes().into_iter().find(|node| node.name == name).unwrap().pid;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

fn wait_until(clock: Clock, mut is_so: impl FnMut() -> bool) {
    let deadline = clock.now().plus(Duration::from_secs(10));
    while !is_so() {
        assert!(clock.now() < deadline, "waited too long");
        clock.sleep_until(clock.now().plus(Duration::from_millis(1)));
    }
}

fn short(events: &[Event]) -> Vec<String> {
    let first_words = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    events.iter().map(|event| format!("{} {}", event.name, first_words(&event.detail))).collect()
}

/// Claim: pauses and kills happen to the named nodes at their times, overlapping pauses end with the last, and
/// both records say when.
#[test]
fn faults_happen_at_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let bed = bed_of(folder.path(), clock, &["a-1", "a-2", "b"]);
    let trial_start = clock.now();
    let measure_start = trial_start.plus(Duration::from_millis(50));
    let faults = vec![
        fault(kill("b"), 400, 0),
        fault(pause("a*"), 50, 50),
        fault(pause("a-1"), 75, 325),
        fault(pause("nobody"), 0, 10),
    ];
    let runner = run(clock, faults, bed.control(), move || Some(measure_start)).unwrap();
    wait_until(clock, || is_stopped(&bed, "a-2"));
    wait_until(clock, || !is_stopped(&bed, "a-2"));
    assert!(is_stopped(&bed, "a-1"), "its second pause goes on for 300 ms");
    wait_until(clock, || !is_stopped(&bed, "a-1"));
    wait_until(clock, || !bed.ends().is_empty());
    let (events, lines) = runner.finish(trial_start);
    assert_eq!(bed.nodes()[2].ended, "killed by SIGKILL, as asked");
    let mut found = short(&events);
    // The kill and the end of the last pause are due at the same moment, in the order written.
    assert_eq!(found.remove(0), "fault_failed pause nobody");
    assert_eq!(
        found,
        [
            "fault_start pause a-1",
            "fault_start pause a-2",
            "fault_start pause a-1",
            "fault_end pause a-1",
            "fault_end pause a-2",
            "fault_start kill b",
            "fault_end pause a-1",
        ]
    );
    assert_eq!(events[0].detail, "pause nobody: there is no such node; there are: a-1, a-2, b");
    for (event, due_ms) in events.iter().zip([50, 100, 100, 125, 150, 150, 450, 450]) {
        let late = event.at - due_ms * MS;
        // Late is the machine's affair (a busy one may take long); early would be ours.
        assert!((0..2000 * MS).contains(&late), "{event:?} came {late} ns after it was due");
    }
    let line: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!((&line["kind"], &line["node"]), (&"pause".into(), &"a-1".into()));
    assert_eq!(line["planned_ns_after_measure_start"], 50_000_000);
    assert_eq!(line["at_ns"], events[1].at);
}

/// Claim: when the trial ends early, paused nodes go on and it is said; what did not happen is not claimed.
#[test]
fn an_early_end_undoes_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let bed = bed_of(folder.path(), clock, &["n"]);
    let start = clock.now();
    let faults = vec![fault(pause("n"), 0, 600_000), fault(kill("n"), 300_000, 0)];
    let runner = run(clock, faults, bed.control(), move || Some(start)).unwrap();
    wait_until(clock, || is_stopped(&bed, "n"));
    let (events, _) = runner.finish(Instant::ZERO);
    assert!(!is_stopped(&bed, "n"));
    assert_eq!(short(&events), ["fault_start pause n", "fault_failed kill n", "fault_end pause n"]);
    assert_eq!(events[1].detail, "kill n: the trial ended before 5m");
    assert!(events[2].detail.ends_with("the trial ended before its time"), "{:?}", events[2]);
    assert_eq!(bed.nodes()[0].ended, "");
}

/// Claim: a trial whose load never began has no faults, says so, and does not wait for them.
#[test]
fn nothing_happens_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let bed = bed_of(folder.path(), clock, &["n"]);
    let faults = vec![fault(kill("n"), 0, 0)];
    let runner = run(clock, faults, bed.control(), || None).unwrap();
    clock.sleep_until(clock.now().plus(Duration::from_millis(20)));
    let (events, lines) = runner.finish(Instant::ZERO);
    assert_eq!(short(&events), ["fault_failed kill n"]);
    assert_eq!(lines.len(), 1);
    assert_eq!(bed.nodes()[0].ended, "");
}

/// Claim: a fault on a node that has ended is told as failed, with how the node had ended.
#[test]
fn a_fault_on_a_dead_node_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let mut bed = bed_of(folder.path(), clock, &["n"]);
    bed.kill("n").unwrap();
    wait_until(clock, || !bed.ends().is_empty());
    let start = clock.now();
    // The second fault, which can be seen from here, comes after the first.
    let faults = vec![fault(pause("n"), 0, 10), fault(pause("seen"), 0, 600_000)];
    bed.spawn(NodeSpec::new("seen", "/bin/sh").args(["-c", "read line"])).unwrap();
    let runner = run(clock, faults, bed.control(), move || Some(start)).unwrap();
    wait_until(clock, || is_stopped(&bed, "seen"));
    let (events, _) = runner.finish(start);
    assert_eq!(
        short(&events),
        ["fault_failed pause n", "fault_start pause seen", "fault_end pause seen"]
    );
    assert_eq!(
        events[0].detail,
        "pause n: node `n` cannot be asked to pause: it has ended (killed by SIGKILL, as asked)"
    );
}
