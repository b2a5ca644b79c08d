//! Forwarders carry real TCP connections, without root: what the plan asks of a link is what the two programs at its
//! ends see. The programs are threads of this test on loopback.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use clock::Clock;
use model::plan::{LinkPlan, LinksPlan, Through};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use testbed::Testbed;

const PATIENCE: Duration = Duration::from_secs(5);

struct Place {
    bed: Testbed,
    _folder: tempfile::TempDir,
}

fn place(client: LinkPlan) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(folder.path(), Clock::start());
    let between = LinkPlan::default();
    let plan = LinksPlan { through: Through::Forwarders, between, client, pairs: Vec::new() };
    bed.with_network(&plan).unwrap();
    assert_eq!(bed.network_address("a").unwrap(), None, "nodes stay on the host's network");
    Place { bed, _folder: folder }
}

fn late(ms: u64) -> LinkPlan {
    LinkPlan { delay: Duration::from_millis(ms), ..LinkPlan::default() }
}

/// A connection from `client` to a listener of node `a`: both ends.
fn connect(place: &mut Place) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let dialled = place.bed.forward("client", "a", target).unwrap().unwrap();
    assert_ne!(dialled, target);
    assert_eq!(place.bed.forward("client", "a", target).unwrap(), Some(dialled));
    let here = TcpStream::connect(dialled).unwrap();
    let (there, _) = listener.accept().unwrap();
    for stream in [&here, &there] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    (here, there)
}

fn byte(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(b"x").unwrap();
    to.read_exact(&mut [0]).unwrap();
}

/// Smallest round trip of one byte, milliseconds.
fn round_trip_ms(here: &mut TcpStream, there: &mut TcpStream, tries: u32) -> f64 {
    let clock = Clock::start();
    let once = |_| {
        let sent = clock.now();
        byte(here, there);
        byte(there, here);
        clock.now().saturating_since(sent).as_secs_f64() * 1e3
    };
    (0..tries).map(once).fold(f64::MAX, f64::min)
}

/// Claim: a delay holds for each direction, changes while a connection is open, and the counters say what passed.
#[test]
fn a_delay_is_kept() {
    let mut place = place(late(10));
    let (mut here, mut there) = connect(&mut place);
    let took = round_trip_ms(&mut here, &mut there, 10);
    assert!(took >= 20.0, "{took} ms");
    let links = place.bed.control().links().unwrap();
    assert_eq!(links.nodes(), ["a"]);
    links.set("a", "client", late(0)).unwrap();
    let changed = round_trip_ms(&mut here, &mut there, 10);
    assert!(changed >= 10.0, "{changed} ms");
    let facts = place.bed.network_report().unwrap();
    assert_eq!((facts.through.as_str(), facts.total.packets), ("forwarders", 40));
    assert_eq!((facts.total.bytes, facts.total.emulator_dropped), (40, 0), "{facts:?}");
    assert_eq!(facts.delay_ns_min, 10_000_000);
    assert!(
        facts.total.late_p50_ns > 0 && facts.cpu_ns > 0 && facts.failed.is_empty(),
        "{facts:?}"
    );
}

/// Claim: a cut holds a stream back in its direction and loses nothing of it.
#[test]
fn a_cut_holds_back() {
    let mut place = place(LinkPlan::default());
    let (mut here, mut there) = connect(&mut place);
    let links = place.bed.control().links().unwrap();
    links.cut("client", "a", true).unwrap();
    here.write_all(b"held").unwrap();
    there.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(there.read(&mut [0; 10]).is_err(), "nothing passes");
    byte(&mut there, &mut here);
    links.cut("client", "a", false).unwrap();
    there.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut came = [0; 4];
    there.read_exact(&mut came).unwrap();
    assert_eq!(&came, b"held");
}

/// Claim: a megabyte arrives whole, its end too, at 4 MB/s and never faster, while the other direction stays open.
#[test]
fn bandwidth_and_the_end_of_a_stream() {
    let mut place = place(LinkPlan { bandwidth: 4_000_000, ..late(5) });
    let (mut here, mut there) = connect(&mut place);
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[(n % 3) as usize]).collect();
    let clock = Clock::start();
    let came = std::thread::scope(|scope| {
        let (mut writer, all) = (here.try_clone().unwrap(), &sent);
        scope.spawn(move || {
            writer.write_all(all).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut came = Vec::new();
        there.read_to_end(&mut came).unwrap();
        came
    });
    let took = clock.now().saturating_since(clock::Instant::ZERO).as_secs_f64();
    assert!(came == sent, "{} bytes", came.len());
    // 250 ms of bandwidth and 5 of delay; longer is the machine's affair.
    assert!(took >= 0.255, "{took} s");
    byte(&mut there, &mut here);
}

/// Claim: a peer that is not there, and one that goes, are seen at the other end; when the testbed is dropped, so are
/// its connections, and no thread of it is left.
#[test]
fn ends_are_told() {
    let mut place = place(late(1));
    let nobody: SocketAddr = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let dialled = place.bed.forward("a", "b", nobody).unwrap().unwrap();
    let mut lonely = TcpStream::connect(dialled).unwrap();
    lonely.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(matches!(lonely.read(&mut [0]), Ok(0) | Err(_)), "nobody is there");
    let (mut here, there) = connect(&mut place);
    drop(there);
    assert_eq!(here.read(&mut [0]).unwrap(), 0, "it is told that its peer has ended");
    let (mut here, _there) = connect(&mut place);
    let clock = Clock::start();
    drop(place);
    assert!(clock.now().as_ns() < 2_000_000_000, "dropping does not wait for connections");
    assert!(matches!(here.read(&mut [0]), Ok(0) | Err(_)));
    assert!(TcpStream::connect(dialled).is_err(), "nobody listens any more");
}

/// Claim: a connection that cannot be taken for want of descriptors is counted, is looked for a bounded number of times, and
/// is carried when there are descriptors again.
#[test]
fn out_of_descriptors() {
    const ALONE: &str = "FORWARDERS_TEST_DESCRIPTORS";
    if std::env::var_os(ALONE).is_none() {
        // No other test is to be without descriptors.
        let run = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "out_of_descriptors", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        return;
    }
    let mut place = place(late(1));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let dialled = place.bed.forward("client", "a", target).unwrap().unwrap();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).unwrap();
    let mut held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(held.pop().is_some(), "one is left for the connection");
    let clock = Clock::start();
    let mut here = TcpStream::connect(dialled).unwrap();
    clock.sleep_until(clock.now().plus(Duration::from_millis(100)));
    held.clear();
    let (mut there, _) = listener.accept().unwrap();
    let looks_max = u64::try_from(clock.now().as_ns() / 2_000_000).unwrap() + 1;
    byte(&mut here, &mut there);
    let dropped = place.bed.network_report().unwrap().total.emulator_dropped;
    assert!((1..=looks_max).contains(&dropped), "{dropped}");
}
