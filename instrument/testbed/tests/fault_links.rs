//! Faults of links are what two programs on the network see, and all of it is undone.
//!
//! It takes root and /dev/net/tun; without them each test says by name that it was skipped.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

#[expect(dead_code, reason = "the tests of the network use the rest")]
mod place;
mod seen;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use clock::{Clock, Instant};
use model::fault::{FaultDetail, FaultEvent};
use model::plan::{FaultPlan, FaultValue, LinksPlan};
use testbed::{FaultRunner, FaultSetup};

use place::{Place, link, plan};
use seen::{Running, Seen};

const PORT: u16 = 7_100;

fn partition(nodes: &[&str], at_ms: u64, length_ms: u64) -> FaultPlan {
    let ms = Duration::from_millis;
    FaultPlan::new("partition", nodes, ms(at_ms), ms(length_ms))
}

fn inwards(plan: FaultPlan) -> FaultPlan {
    plan.with("one_way", FaultValue::Word("in".into()))
}

fn run(place: &Place, links: &LinksPlan, faults: Vec<FaultPlan>) -> Running {
    let (clock, seen) = (place.bed.clock(), Seen::default());
    let start = clock.now();
    let setup = FaultSetup { faults, links: Some(links.clone()), ..FaultSetup::default() };
    let control = place.bed.control();
    let runner = FaultRunner::start(clock, setup, control, move || Some(start), seen.sink());
    Running { runner: runner.unwrap(), seen }
}

/// Whether a datagram from one comes to the other within 150 ms, and after how long.
fn passes(place: &Place, from: &str, to: (&str, &UdpSocket)) -> Option<Duration> {
    let clock = Clock::start();
    let socket = place.socket(from, 0);
    to.1.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
    let sent = clock.now();
    // A sender may be told by its own kernel that there is no way; then nothing passes.
    let target = SocketAddr::from((place.address(to.0), PORT));
    let _ = socket.send_to(b"x", target);
    to.1.recv_from(&mut [0; 100]).ok().map(|_| clock.now().saturating_since(sent))
}

/// `fault_end partition a: after 2.00 s`.
fn said(events: &[FaultEvent]) -> Vec<String> {
    let with_words = |(short, event): (String, &FaultEvent)| match event.detail {
        FaultDetail::Nothing => short,
        _ => format!("{short}: {}", event.detail.in_words()),
    };
    seen::short(events).into_iter().zip(events).map(with_words).collect()
}

fn until(clock: Clock, start: Instant, ms: u64) {
    clock.sleep_until(start.plus(Duration::from_millis(ms)));
}

/// Claim: nodes that are cut off reach one another and the instrument, and no others, in neither direction, until the
/// time is over.
#[test]
fn a_partition_parts() {
    let links = plan(link());
    let nodes = ["a", "b", "c"];
    let Some(place) = Place::make("a_partition_parts", &links, &nodes) else { return };
    let sockets = nodes.map(|name| place.socket(name, PORT));
    let to =
        |name: &str| -> &UdpSocket { &sockets[nodes.iter().position(|n| *n == name).unwrap()] };
    let faults = vec![partition(&["a", "b"], 0, 5_000)];
    let (clock, start) = (place.bed.clock(), place.bed.clock().now());
    let runner = run(&place, &links, faults);
    until(clock, start, 500);
    for (from, end, is_open) in [
        ("a", "b", true),
        ("b", "a", true),
        ("client", "a", true),
        ("client", "c", true),
        ("a", "c", false),
        ("c", "a", false),
        ("c", "b", false),
    ] {
        assert_eq!(passes(&place, from, (end, to(end))).is_some(), is_open, "{from} to {end}");
    }
    assert!(clock.now() < start.plus(Duration::from_secs(5)), "too slow to have seen it");
    until(clock, start, 5_500);
    assert!(passes(&place, "a", ("c", to("c"))).is_some());
    assert!(passes(&place, "c", ("b", to("b"))).is_some());
    let events = runner.finish();
    let words = said(&events);
    assert_eq!(words[..2], ["fault_start partition a", "fault_start partition b"]);
    assert!(words[2].starts_with("fault_end partition a: after "), "{words:?}");
    assert_eq!(words.len(), 4);
}

/// Claim: a partition of one direction cuts that only, one that means the instrument cuts that too, of two that
/// overlap the link stays cut until the last ends, and when the trial ends early all of it is undone.
#[test]
fn partitions_of_one_way_overlap() {
    let links = plan(link());
    let nodes = ["a", "b"];
    let Some(place) = Place::make("partitions_of_one_way_overlap", &links, &nodes) else { return };
    let sockets = nodes.map(|name| place.socket(name, PORT));
    let (to_a, to_b) = (("a", &sockets[0]), ("b", &sockets[1]));
    let faults = vec![
        inwards(partition(&["a"], 0, 3_000)).with("client", FaultValue::Flag(true)),
        inwards(partition(&["a"], 100, 600_000)),
    ];
    let (clock, start) = (place.bed.clock(), place.bed.clock().now());
    let runner = run(&place, &links, faults);
    until(clock, start, 500);
    assert!(passes(&place, "b", to_a).is_none());
    assert!(passes(&place, "client", to_a).is_none());
    assert!(passes(&place, "a", to_b).is_some());
    until(clock, start, 3_500);
    assert!(passes(&place, "client", to_a).is_some(), "the first is over");
    assert!(passes(&place, "b", to_a).is_none(), "the second goes on");
    let events = runner.finish();
    assert!(passes(&place, "b", to_a).is_some());
    let words = said(&events);
    assert_eq!(words[0], "fault_start partition a: only what comes in, from the instrument, too");
    assert!(words[3].ends_with("the trial ended before its time"), "{words:?}");
}

/// Claim: a change of links holds for the links that it names, in their direction, over what the plan says, and goes
/// back; what is no link is told as failed.
#[test]
fn a_changed_link_goes_back() {
    let mut links = plan(link());
    links.between.delay = Duration::from_millis(10);
    let nodes = ["a", "b"];
    let Some(place) = Place::make("a_changed_link_goes_back", &links, &nodes) else { return };
    let sockets = nodes.map(|name| place.socket(name, PORT));
    let (to_a, to_b) = (("a", &sockets[0]), ("b", &sockets[1]));
    let of = |from: &str, to: &str| {
        FaultPlan::new("link", &[from, to], Duration::ZERO, Duration::from_secs(4))
            .with("delay", FaultValue::Duration(Duration::from_millis(80)))
    };
    let faults = vec![of("a", "b*"), of("a", "zz*")];
    let (clock, start) = (place.bed.clock(), place.bed.clock().now());
    let runner = run(&place, &links, faults);
    // The shortest of a few: late is the machine's affair.
    let ms = |from: &str, to| {
        (0..5).filter_map(|_| passes(&place, from, to)).min().expect("it passes").as_millis()
    };
    until(clock, start, 500);
    let (there, back) = (ms("a", to_b), ms("b", to_a));
    assert!(there >= 80 && (10..80).contains(&back), "{there} ms, {back} ms");
    until(clock, start, 4_500);
    let after = ms("a", to_b);
    assert!((10..80).contains(&after), "{after} ms");
    let events = runner.finish();
    let words = said(&events);
    assert_eq!(words[0], "fault_start link a to b*: delay 80ms");
    assert!(words[1].starts_with("fault_failed link a to zz*: there is no such link"), "{words:?}");
    assert!(words[2].starts_with("fault_end link a to b*: after "), "{words:?}");
}
