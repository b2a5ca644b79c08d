//! Planned faults reach real processes at their times, and none outlasts the trial.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

mod seen;

use std::time::Duration;

use clock::{Clock, Instant};
use model::fault::FaultDetail;
use model::plan::FaultPlan;
use testbed::{BedControl, FaultRunner, FaultSetup, NodeSpec, Testbed};

use seen::{Running, Seen, short};

const MS: i64 = 1_000_000;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn pause(node: &str, at_ms: u64, length_ms: u64) -> FaultPlan {
    FaultPlan::new("pause", &[node], ms(at_ms), ms(length_ms))
}

fn kill(node: &str, at_ms: u64) -> FaultPlan {
    FaultPlan::new("kill", &[node], ms(at_ms), Duration::ZERO)
}

/// Runs faults; the measured window begins 50 ms after the trial.
fn run(
    clock: Clock,
    faults: Vec<FaultPlan>,
    control: BedControl,
    trial_start: impl FnMut() -> Option<Instant> + Send + 'static,
) -> Running {
    let (seen, warmup) = (Seen::default(), ms(50));
    let setup = FaultSetup { faults, warmup, ..FaultSetup::default() };
    let runner = FaultRunner::start(clock, setup, control, trial_start, seen.sink()).unwrap();
    Running { runner, seen }
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

/// Claim: pauses and kills happen to the named nodes at their times, overlapping pauses end with the last, and
/// both records say when.
#[test]
fn faults_happen_at_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let bed = bed_of(folder.path(), clock, &["a-1", "a-2", "b"]);
    let trial_start = clock.now();
    let faults =
        vec![kill("b", 400), pause("a*", 50, 50), pause("a-1", 75, 325), pause("nobody", 0, 10)];
    let running = run(clock, faults, bed.control(), move || Some(trial_start));
    wait_until(clock, || is_stopped(&bed, "a-2"));
    wait_until(clock, || !is_stopped(&bed, "a-2"));
    assert!(is_stopped(&bed, "a-1"), "its second pause goes on for 300 ms");
    assert!(!running.seen.events().is_empty(), "what was done is said as it happens");
    wait_until(clock, || !is_stopped(&bed, "a-1"));
    wait_until(clock, || !bed.ends().is_empty());
    let events = running.finish();
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
    let known = ["a-1", "a-2", "b"].map(str::to_owned).to_vec();
    assert_eq!(events[0].detail, FaultDetail::NoSuchNode { known });
    for (event, due_ms) in events.iter().zip([50, 100, 100, 125, 150, 150, 450, 450]) {
        let late = event.at_ns - due_ms * MS;
        // Late is the machine's affair (a busy one may take long); early would be ours.
        assert!((0..2000 * MS).contains(&late), "{event:?} came {late} ns after it was due");
    }
    let faults: Vec<u32> = events.iter().map(|event| event.fault).collect();
    assert_eq!(faults, [3, 1, 1, 2, 1, 1, 0, 2]);
    assert_eq!(events[1].planned_ns, 50 * MS);
}

/// Claim: of two pauses of one node of which one lies within the other, each ends as itself: the inner one's end says
/// that another goes on, the node stands still until the outer one's, and that has its whole length.
#[test]
fn nested_pauses_end_as_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let bed = bed_of(folder.path(), clock, &["n"]);
    let start = clock.now();
    let faults = vec![pause("n", 0, 900), pause("n", 100, 100)];
    let running = run(clock, faults, bed.control(), move || Some(start));
    wait_until(clock, || running.seen.events().len() == 3);
    assert!(is_stopped(&bed, "n"), "the outer pause goes on");
    wait_until(clock, || running.seen.events().len() == 4);
    assert!(!is_stopped(&bed, "n"));
    let events = running.finish();
    let seen: Vec<_> = events.iter().map(|it| (it.phase.word(), it.fault)).collect();
    let (begun, ended) = ("fault_start", "fault_end");
    assert_eq!(seen, [(begun, 0), (begun, 1), (ended, 1), (ended, 0)]);
    for (event, (at_least_ms, is_inner)) in events[2..].iter().zip([(100, true), (900, false)]) {
        let FaultDetail::After { ns, goes_on, .. } = &event.detail else { panic!("{event:?}") };
        // The first stamp of a pause is taken just before its length counts.
        assert!(*ns >= (at_least_ms - 20) * MS && *goes_on == is_inner, "{event:?}");
    }
}

/// Claim: when the trial ends early, paused nodes go on and it is said; what did not happen is not claimed.
#[test]
fn an_early_end_undoes_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let bed = bed_of(folder.path(), clock, &["n"]);
    let start = clock.now();
    let faults = vec![pause("n", 0, 600_000), kill("n", 300_000)];
    let running = run(clock, faults, bed.control(), move || Some(start));
    wait_until(clock, || is_stopped(&bed, "n"));
    let events = running.finish();
    assert!(!is_stopped(&bed, "n"));
    assert_eq!(short(&events), ["fault_start pause n", "fault_failed kill n", "fault_end pause n"]);
    assert_eq!(events[1].detail, FaultDetail::NotReached);
    let FaultDetail::After { cut_short, .. } = events[2].detail else { panic!("{events:?}") };
    assert!(cut_short);
    assert_eq!(bed.nodes()[0].ended, "");
}

/// Claim: a trial whose load never began has no faults, says so, and does not wait for them.
#[test]
fn nothing_happens_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::start();
    let bed = bed_of(folder.path(), clock, &["n"]);
    let running = run(clock, vec![kill("n", 0)], bed.control(), || None);
    clock.sleep_until(clock.now().plus(ms(20)));
    let events = running.finish();
    assert_eq!(short(&events), ["fault_failed kill n"]);
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
    let faults = vec![pause("n", 0, 10), pause("seen", 0, 600_000)];
    bed.spawn(NodeSpec::new("seen", "/bin/sh").args(["-c", "read line"])).unwrap();
    let running = run(clock, faults, bed.control(), move || Some(start));
    wait_until(clock, || is_stopped(&bed, "seen"));
    let events = running.finish();
    assert_eq!(
        short(&events),
        ["fault_failed pause n", "fault_start pause seen", "fault_end pause seen"]
    );
    assert_eq!(
        events[0].detail.in_words(),
        "node `n` cannot be asked to pause: it has ended (killed by SIGKILL, as asked)"
    );
}
