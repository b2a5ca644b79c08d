//! The testbed's own network carries real packets between real sockets: what the plan asks of a link is what two
//! programs on it see, and nothing of it is left behind. The programs are threads of this test that enter the
//! namespace of a node.
//!
//! It takes root and /dev/net/tun; without them each test says by name that it was skipped. Other programs may keep
//! this machine busy, so what is compared with a time is the best of many tries, never one.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

mod place;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use clock::Clock;
use model::facts::LinkTraffic;
use model::plan::{LinkPair, LinkPlan};

use place::{Place, link, own_descriptors, owns_namespace, plan};

const PORT: u16 = 7_000;
const PATIENCE: Duration = Duration::from_secs(5);

fn late(ms: u64) -> LinkPlan {
    LinkPlan { delay: Duration::from_millis(ms), ..LinkPlan::default() }
}

/// Answers every datagram until it hears nothing for a while, or an empty one.
fn echo(socket: &UdpSocket) {
    let mut buffer = [0; 2_000];
    while let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
        if bytes == 0 {
            return;
        }
        socket.send_to(&buffer[..bytes], from).unwrap();
    }
}

/// Smallest round trip of so many datagrams, milliseconds.
fn round_trip_ms(place: &Place, from: &str, to: &str, tries: u32) -> f64 {
    // A port of its own: a process that another test starts right now may still hold the last one's socket.
    let there = place.socket(to, 0);
    let target = SocketAddr::from((place.address(to), there.local_addr().unwrap().port()));
    let here = place.socket(from, 0);
    std::thread::scope(|scope| {
        scope.spawn(move || echo(&there));
        let clock = Clock::start();
        let mut best = f64::MAX;
        for _ in 0..tries {
            let sent = clock.now();
            here.send_to(b"question", target).unwrap();
            here.recv_from(&mut [0; 100]).unwrap();
            let took = clock.now().saturating_since(sent);
            best = best.min(took.as_secs_f64() * 1e3);
        }
        here.send_to(b"", target).unwrap();
        best
    })
}

/// Claim: with 20 ms each way a round trip takes no less than 40 ms, and longer than without a delay; the emulator itself
/// lost nothing and says how late it was. How much longer is the machine's affair: `timing`.
#[test]
fn a_delay_is_kept() {
    let mut plan = plan(late(20));
    plan.pairs = ["a", "b"].map(|name| (name, "client")).into_iter().flat_map(both).collect();
    let Some(place) = Place::make("a_delay_is_kept", &plan, &["a", "b"]) else { return };
    let without = round_trip_ms(&place, "client", "b", 50);
    let with = round_trip_ms(&place, "a", "b", 15);
    assert!(with >= 40.0 && without < with, "{without} ms, {with} ms");
    let facts = place.bed.network_report().unwrap();
    assert_eq!(facts.nodes, ["a", "b"]);
    assert_eq!((facts.total.emulator_dropped, facts.device_dropped), (0, 0), "{facts:?}");
    assert_eq!(facts.delay_ns_min, 20_000_000);
    assert!(facts.total.late_p50_ns > 0 && facts.total.late_p99_ns <= facts.total.late_max_ns);
    assert_eq!(traffic(&place, "a", "b").packets, 16);
    assert_eq!(traffic(&place, "b", "a").packets, 15);
    assert!(facts.cpu_ns > 0 && facts.failed.is_empty(), "{facts:?}");
}

fn both((one, other): (&str, &str)) -> [LinkPair; 2] {
    let pair =
        |from: &str, to: &str| LinkPair { from: from.to_owned(), to: to.to_owned(), link: link() };
    [pair(one, other), pair(other, one)]
}

fn traffic(place: &Place, from: &str, to: &str) -> LinkTraffic {
    let facts = place.bed.network_report().unwrap();
    let found = facts.links.into_iter().find(|link| link.from == from && link.to == to);
    found.map(|link| link.traffic).unwrap_or_default()
}

/// Claim: of three nodes each directed pair has its own delay.
#[test]
fn each_direction_has_its_own() {
    let mut plan = plan(late(5));
    let pair = |from: &str, to: &str, ms| LinkPair {
        from: from.to_owned(),
        to: to.to_owned(),
        link: late(ms),
    };
    plan.pairs = vec![pair("a", "c", 30), pair("c", "a", 0)];
    let Some(place) = Place::make("each_direction_has_its_own", &plan, &["a", "b", "c"]) else {
        return;
    };
    for (from, to, right) in [("a", "b", 10.0), ("a", "c", 30.0), ("c", "a", 30.0)] {
        let took = round_trip_ms(&place, from, to, 20);
        assert!(took >= right, "{from} to {to}: {took} ms");
    }
}

/// Claim: of 2,000 datagrams over a link that loses 10 %, as many come as such a link lets through within five
/// standard deviations, and the counters say exactly how many.
#[test]
fn loss_is_as_asked() {
    let plan = plan(LinkPlan { loss: 0.1, ..LinkPlan::default() });
    let Some(place) = Place::make("loss_is_as_asked", &plan, &["a", "b"]) else { return };
    let target = SocketAddr::from((place.address("b"), PORT));
    let (here, there) = (place.socket("a", 0), place.socket("b", PORT));
    there.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let came = std::thread::scope(|scope| {
        let came = scope.spawn(move || {
            (0..2_000_u64).take_while(|_| there.recv_from(&mut [0; 100]).is_ok()).count() as u64
        });
        for n in 0..2_000 {
            here.send_to(b"datagram", target).unwrap();
            if n % 100 == 99 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        came.join().unwrap()
    });
    let link = traffic(&place, "a", "b");
    assert_eq!((link.packets, link.packets - link.lost), (2_000, came), "{link:?}");
    // The deviation of the number lost is √(2,000 · 0.1 · 0.9) = 13.4.
    assert!((1_733..=1_867).contains(&came), "{came}");
}

mod timing {
    use super::*;

    /// Claim: the shortest round trip is at most a millisecond longer than its delays, with a delay each way, with another
    /// in each direction, and with none.
    #[test]
    fn delays_are_no_longer() {
        let mut plan = plan(late(5));
        plan.pairs = vec![LinkPair { from: "a".into(), to: "c".into(), link: late(30) }];
        plan.pairs.extend(both(("b", "client")));
        let Some(place) = Place::make("delays_are_no_longer", &plan, &["a", "b", "c"]) else {
            return;
        };
        for (from, to, right) in [("a", "b", 10.0), ("a", "c", 35.0), ("client", "b", 0.0)] {
            let took = round_trip_ms(&place, from, to, 50);
            assert!((right..right + 1.0).contains(&took), "{from} to {to}: {took} ms");
        }
    }

    /// Claim: a link of 1 MB/s carries 1 MB/s within 5 %, headers included, of a stream that is twice as fast; what its
    /// queue cannot take is dropped there, and nowhere else.
    #[test]
    fn bandwidth_is_as_asked() {
        let plan = plan(LinkPlan { bandwidth: 1_000_000, ..LinkPlan::default() });
        let Some(place) = Place::make("bandwidth_is_as_asked", &plan, &["a", "b"]) else { return };
        let target = SocketAddr::from((place.address("b"), PORT));
        let (here, there) = (place.socket("a", 0), place.socket("b", PORT));
        there.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let clock = Clock::start();
        let came = std::thread::scope(|scope| {
            let came = scope.spawn(move || {
                let mut came = Vec::new();
                while there.recv_from(&mut [0; 1_000]).is_ok() {
                    came.push(clock.now());
                }
                came
            });
            for n in 0..1_500_u32 {
                clock.sleep_until(clock::Instant::ZERO.plus(Duration::from_millis(1) * n));
                for _ in 0..2 {
                    here.send_to(&[0; 972], target).unwrap();
                }
            }
            came.join().unwrap()
        });
        let took = came[came.len() - 1].saturating_since(came[0]).as_secs_f64();
        // A datagram of 972 bytes is a packet of 1,000.
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let rate = (came.len() - 1) as f64 * 1_000.0 / took;
        assert!((950_000.0..1_050_000.0).contains(&rate), "{rate} bytes/s");
        let link = traffic(&place, "a", "b");
        assert!(link.tail_dropped > 1_000, "{link:?}");
        assert_eq!(link.packets - link.tail_dropped, came.len() as u64, "{link:?}");
    }
}

/// Claim: a cut holds in its direction only, and ends when it is joined; a link that is changed while packets pass
/// does what it was changed to, and what the plan says when it is reset. Unknown ends are named.
#[test]
fn links_change_in_mid_run() {
    let name = "links_change_in_mid_run";
    let Some(place) = Place::make(name, &plan(late(1)), &["a", "b"]) else { return };
    let links = place.bed.control().links().unwrap();
    assert_eq!(links.nodes(), ["a", "b"]);
    let (a, b) = (place.socket("a", PORT), place.socket("b", PORT));
    let to = |name: &str| SocketAddr::from((place.address(name), PORT));
    let comes = |from: &UdpSocket, to: SocketAddr, at: &UdpSocket| {
        from.send_to(b"x", to).unwrap();
        at.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        at.recv_from(&mut [0; 10]).is_ok()
    };
    assert!(comes(&a, to("b"), &b) && comes(&b, to("a"), &a));
    links.cut("a", "b", true).unwrap();
    assert!(!comes(&a, to("b"), &b), "a is cut off from b");
    assert!(comes(&b, to("a"), &a), "b is not cut off from a");
    links.cut("a", "b", false).unwrap();
    assert!(comes(&a, to("b"), &b), "what was sent before is lost, what is sent now comes");
    assert_eq!(traffic(&place, "a", "b").cut, 1);
    drop((a, b));
    links.set("a", "b", late(30)).unwrap();
    let changed = round_trip_ms(&place, "a", "b", 10);
    assert!(changed >= 31.0, "{changed} ms");
    links.reset("a", "b").unwrap();
    let reset = round_trip_ms(&place, "a", "b", 20);
    assert!(reset >= 2.0, "{reset} ms");
    let error = links.cut("a", "x", true).unwrap_err().to_string();
    assert!(error.contains("no node `x`") && error.contains("client, a, b"), "{error}");
}

/// Claim: a million bytes of TCP arrive whole, in order, over a link with delay, jitter, loss and little bandwidth;
/// loopback and every port are the node's own.
#[test]
fn tcp_arrives_whole() {
    let link = LinkPlan {
        delay: Duration::from_millis(5),
        jitter: Duration::from_millis(1),
        loss: 0.001,
        bandwidth: 4_000_000,
        reorder: 0.001,
    };
    let Some(place) = Place::make("tcp_arrives_whole", &plan(link), &["a", "b"]) else { return };
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[(n % 3) as usize]).collect();
    let listeners = ["a", "b"]
        .map(|name| place.inside(name, || TcpListener::bind(("0.0.0.0", 26_656)).unwrap()));
    let target = SocketAddr::from((place.address("b"), 26_656));
    let mut there = place.inside("a", || TcpStream::connect_timeout(&target, PATIENCE).unwrap());
    let (mut here, from) = listeners[1].accept().unwrap();
    assert_eq!(from.ip(), place.address("a"));
    let came = std::thread::scope(|scope| {
        let all = &sent;
        scope.spawn(move || there.write_all(all).unwrap());
        let mut came = Vec::new();
        here.set_read_timeout(Some(PATIENCE)).unwrap();
        here.read_to_end(&mut came).unwrap();
        came
    });
    assert!(came == sent, "{} bytes", came.len());
    let own = place.inside("b", || TcpStream::connect(("127.0.0.1", 26_656)).is_ok());
    assert!(own, "a node reaches itself on its own loopback");
}

/// Claim: the instrument's thread and those that it starts are on the network while it has entered it, and nothing of
/// the host is reachable from there; afterwards the thread is where it was. A node that is started again is where
/// it was.
#[test]
fn entering_and_leaving() {
    let name = "entering_and_leaving";
    let Some(mut place) = Place::make(name, &plan(link()), &["a"]) else { return };
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let on_the_host = host.local_addr().unwrap();
    let a = place.inside("a", || TcpListener::bind(("0.0.0.0", PORT)).unwrap());
    let target = SocketAddr::from((place.address("a"), PORT));
    let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    {
        let _inside = place.bed.enter_network().unwrap();
        assert!(TcpStream::connect(on_the_host).is_err(), "the host's loopback is not here");
        let of_a_thread = std::thread::scope(|scope| {
            scope.spawn(|| TcpStream::connect_timeout(&target, PATIENCE).is_ok()).join().unwrap()
        });
        assert!(of_a_thread, "a thread that was started inside is inside");
        assert_ne!(std::fs::read_link("/proc/thread-self/ns/net").unwrap(), own);
    }
    assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").unwrap(), own);
    assert!(TcpStream::connect(on_the_host).is_ok());
    drop(a);
    let before = place.namespace("a");
    let again = place.bed.restart("a").unwrap();
    let after = std::fs::read_link(format!("/proc/{}/ns/net", again.pid)).unwrap();
    assert_eq!(after, before);
    let error = place.bed.network_address("client").unwrap_err().to_string();
    assert!(error.contains("instrument's own end"), "{error}");
    let error = place.bed.with_network(&plan(link())).unwrap_err().to_string();
    assert!(error.contains("one already"), "{error}");
}

/// Claim: when the testbed is dropped, while a control of it is still held, and when its process is killed with
/// SIGKILL, no process is in its namespaces and nobody holds them; the host's own devices are as before.
#[test]
fn nothing_is_left() {
    if std::env::var_os("TESTBED_NETWORK_PARENT").is_some() {
        let Some(place) = Place::make("nothing_is_left", &plan(late(5)), &["a", "b"]) else {
            return;
        };
        for name in ["a", "b"] {
            println!("namespace {}", place.namespace(name).display());
        }
        println!("ready");
        std::thread::sleep(Duration::from_mins(1));
        return;
    }
    let devices = || std::fs::read_to_string("/proc/self/net/dev").unwrap().lines().count();
    let before = devices();
    let Some(place) = Place::make("nothing_is_left", &plan(late(5)), &["a", "b"]) else { return };
    round_trip_ms(&place, "a", "b", 2);
    let namespaces = ["a", "b"].map(|name| place.namespace(name));
    let control = place.bed.control();
    assert!(namespaces.iter().all(|namespace| owns_namespace(namespace)));
    drop(place);
    assert!(!namespaces.iter().any(|namespace| owns_namespace(namespace)));
    assert!(!own_descriptors().iter().any(|name| namespaces.contains(name)));
    assert!(control.links().is_some(), "a control may be asked still");
    assert_eq!(devices(), before);

    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_is_left", "--nocapture"])
        .env("TESTBED_NETWORK_PARENT", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut namespaces = Vec::new();
    for line in std::io::BufRead::lines(std::io::BufReader::new(parent.stdout.take().unwrap())) {
        let line = line.unwrap();
        namespaces.extend(line.strip_prefix("namespace ").map(std::path::PathBuf::from));
        if line == "ready" {
            break;
        }
    }
    assert_eq!(namespaces.len(), 2);
    parent.kill().unwrap();
    parent.wait().unwrap();
    let clock = Clock::start();
    while namespaces.iter().any(|namespace| owns_namespace(namespace)) {
        assert!(clock.now() < clock::Instant::ZERO.plus(PATIENCE), "{namespaces:?} is in use");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(devices(), before);
}
