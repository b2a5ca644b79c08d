//! How exact and how dear the testbed's own network is: round trips at several delays, one TCP stream, a flood of
//! datagrams, and the switch's processor time a packet. The figures of docs/links.md are what it prints.
//!
//! `cargo run --release -p testbed --example links` (as root); `--toy` takes a second and prints no figure to be quoted.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

use clock::Clock;
use model::facts::NetworkFacts;
use model::plan::{LinkPlan, LinksPlan, Through};
use rustix::net::sockopt;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use testbed::{NodeSpec, Testbed};

type Failed = Box<dyn std::error::Error + Send + Sync>;

const PORT: u16 = 7_000;

/// One network of two nodes that only sleep.
struct Place {
    bed: Testbed,
    pids: [u32; 2],
    there: Ipv4Addr,
    folder: std::path::PathBuf,
}

impl Place {
    fn make(delay: Duration) -> Result<Self, Failed> {
        let folder = std::env::temp_dir().join(format!("links-{}", std::process::id()));
        let mut bed = Testbed::new(&folder, Clock::start());
        let between = LinkPlan { delay, ..LinkPlan::default() };
        let client = LinkPlan::default();
        bed.with_network(&LinksPlan {
            through: Through::Switch,
            between,
            client,
            pairs: Vec::new(),
        })?;
        let mut start = |name: &str| -> Result<(u32, Ipv4Addr), Failed> {
            let address = bed.network_address(name)?.ok_or("the switch gives addresses")?;
            let node = bed.spawn(NodeSpec::new(name, "/bin/sleep").args(["300"]))?;
            Ok((node.pid, address))
        };
        let ((a, _), (b, there)) = (start("a")?, start("b")?);
        Ok(Self { bed, pids: [a, b], there, folder })
    }

    /// Does `work` where a node is.
    fn inside<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> Result<T, Failed> {
        let namespace = File::open(format!("/proc/{}/ns/net", self.pids[node]))?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| -> Result<T, Failed> {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok(work())
            });
            thread.join().map_err(|_| "the thread inside panicked")?
        })
    }

    fn report(&self) -> NetworkFacts {
        self.bed.network_report().unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The logs are empty.
        let _ = self.bed.stop_all(Duration::from_secs(1));
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn main() -> Result<(), Failed> {
    let is_toy = std::env::args().any(|word| word == "--toy");
    let (tries, bulk, flood) = if is_toy { (5, 1 << 20, 1_000) } else { (100, 512 << 20, 200_000) };
    for (delay_ms, tries) in [(0, tries * 20), (20, tries), (100, tries.min(50))] {
        round_trips(Duration::from_millis(delay_ms), tries)?;
    }
    stream(Duration::ZERO, bulk)?;
    stream(Duration::from_millis(100), bulk / 16)?;
    datagrams(1, flood / 20)?;
    datagrams(20, flood)
}

/// Round trips of a datagram of 64 bytes, one after another.
fn round_trips(delay: Duration, tries: usize) -> Result<(), Failed> {
    let place = Place::make(delay)?;
    let target = SocketAddr::from((place.there, PORT));
    let there = place.inside(1, || UdpSocket::bind(("0.0.0.0", PORT)))??;
    let here = place.inside(0, || UdpSocket::bind(("0.0.0.0", 0)))??;
    here.set_read_timeout(Some(Duration::from_secs(5)))?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let mut buffer = [0; 100];
        loop {
            let (bytes, from) = there.recv_from(&mut buffer)?;
            if bytes == 0 {
                return Ok(());
            }
            there.send_to(&buffer[..bytes], from)?;
        }
    });
    let clock = Clock::start();
    let mut took = Vec::with_capacity(tries);
    for _ in 0..tries {
        let sent = clock.now();
        here.send_to(&[0; 64], target)?;
        here.recv_from(&mut [0; 100])?;
        took.push(clock.now().saturating_since(sent));
    }
    here.send_to(&[], target)?;
    echo.join().map_err(|_| "the echo panicked")??;
    took.sort_unstable();
    let at = |per_cent: usize| took[(took.len() * per_cent / 100).min(took.len() - 1)];
    println!(
        "round trip, {} ms each way, {tries} times: min {:.3}  p50 {:.3}  p99 {:.3}  max {:.3} ms",
        delay.as_millis(),
        ms(at(0)),
        ms(at(50)),
        ms(at(99)),
        ms(at(100))
    );
    print(&place.report());
    Ok(())
}

/// One TCP stream as fast as it goes.
fn stream(delay: Duration, bytes: usize) -> Result<(), Failed> {
    let place = Place::make(delay)?;
    let target = SocketAddr::from((place.there, PORT));
    let listener = place.inside(1, || TcpListener::bind(("0.0.0.0", PORT)))??;
    let mut here = place.inside(0, || TcpStream::connect(target))??;
    let (mut there, _) = listener.accept()?;
    let clock = Clock::start();
    let reader = std::thread::spawn(move || -> std::io::Result<usize> {
        let mut buffer = vec![0; 1 << 16];
        let mut all = 0;
        loop {
            match there.read(&mut buffer)? {
                0 => return Ok(all),
                bytes => all += bytes,
            }
        }
    });
    let piece = vec![0; 1 << 16];
    for _ in 0..bytes / piece.len() {
        here.write_all(&piece)?;
    }
    drop(here);
    let all = reader.join().map_err(|_| "the reader panicked")??;
    let took = clock.now().saturating_since(clock::Instant::ZERO).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let mbit = all as f64 * 8.0 / 1e6 / took;
    println!(
        "one TCP stream, {} ms each way, {} MiB: {mbit:.0} Mbit/s",
        delay.as_millis(),
        bytes >> 20
    );
    print(&place.report());
    Ok(())
}

/// Datagrams of 1,000 bytes, so many at once each millisecond.
fn datagrams(at_once: u32, packets: u32) -> Result<(), Failed> {
    let place = Place::make(Duration::from_millis(10))?;
    let target = SocketAddr::from((place.there, PORT));
    let there = place.inside(1, || UdpSocket::bind(("0.0.0.0", PORT)))??;
    let here = place.inside(0, || UdpSocket::bind(("0.0.0.0", 0)))??;
    there.set_read_timeout(Some(Duration::from_millis(500)))?;
    // What a late reader leaves is not to look lost.
    sockopt::set_socket_recv_buffer_size_force(&there, 64 << 20)?;
    let reader = std::thread::spawn(move || {
        let mut came = 0_u64;
        while there.recv(&mut [0; 1_000]).is_ok() {
            came += 1;
        }
        came
    });
    let clock = Clock::start();
    for n in 0..packets / at_once {
        clock.sleep_until(clock::Instant::ZERO.plus(Duration::from_millis(1) * n));
        for _ in 0..at_once {
            here.send_to(&[0; 972], target)?;
        }
    }
    let came = reader.join().map_err(|_| "the reader panicked")?;
    println!("datagrams, {at_once} of 1,000 bytes each ms, over 10 ms: {came} of {packets} came");
    print(&place.report());
    Ok(())
}

fn print(network: &NetworkFacts) {
    let total = &network.total;
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let us_per_packet = network.cpu_ns as f64 / 1e3 / total.packets.max(1) as f64;
    let us = |ns: u64| Duration::from_nanos(ns).as_micros();
    println!(
        "    {} packets, late by p50 {} µs, p99 {} µs, most {} µs; {} dropped by itself; {us_per_packet:.1} CPU µs a packet",
        total.packets,
        us(total.late_p50_ns),
        us(total.late_p99_ns),
        us(total.late_max_ns),
        total.emulator_dropped + network.device_dropped
    );
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
