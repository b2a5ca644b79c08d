//! Both drivers against the same raw peers: bytes whole and in order, ends reported once, nothing after a close.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use clock::{Clock, WallTime};
use rustix::io::Errno;

use super::epoll::Epoll;
use super::ring::Ring;
use super::{Driver, Event, KernelDriver, Key, Wait, stamps};

/// Waits no longer than this for anything.
const TURNS_MAX: usize = 5_000;

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A driver's reports, chunks as bytes.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Connected(u32),
    Bytes(u32, Vec<u8>),
    Ended(u32, Option<Errno>),
}

fn take<D: Driver>(driver: &mut D, seen: &mut Vec<Seen>) -> usize {
    let before = seen.len();
    driver.wait(Wait::at_most(Some(Duration::from_millis(2)))).unwrap();
    while let Some(event) = driver.next_event() {
        seen.push(match event {
            Event::Connected { token, .. } => Seen::Connected(token),
            Event::Ended { token, error, .. } => Seen::Ended(token, error),
            Event::Received { token, chunk, .. } => {
                let bytes = driver.bytes(&chunk).to_vec();
                driver.release(chunk);
                Seen::Bytes(token, bytes)
            }
        });
    }
    seen.len() - before
}

/// Takes events until `enough`.
fn take_until<D: Driver>(driver: &mut D, enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
    let mut seen = Vec::new();
    for _ in 0..TURNS_MAX {
        take(driver, &mut seen);
        if enough(&seen) {
            return seen;
        }
    }
    panic!("not in {TURNS_MAX} turns; {} events, the last: {:?}", seen.len(), seen.last());
}

fn connect<D: Driver>(driver: &mut D, token: u32, listener: &TcpListener) -> (Key, TcpStream) {
    let key = driver.connect(token, listener.local_addr().unwrap(), token % 2 == 1).unwrap();
    let (peer, _) = listener.accept().unwrap();
    let seen = take_until(driver, |seen| !seen.is_empty());
    assert_eq!(seen, [Seen::Connected(token)]);
    (key, peer)
}

fn bytes_of(seen: &[Seen], wanted: u32) -> Vec<u8> {
    let mut all = Vec::new();
    for event in seen {
        if let Seen::Bytes(token, bytes) = event
            && *token == wanted
        {
            all.extend_from_slice(bytes);
        }
    }
    all
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(31) + at / 4099 + seed) as u8).collect()
}

/// More than all receive buffers arrives before anyone looks: nothing is lost or out of order, and the end of
/// the connection comes after its last byte.
fn floods_arrive_whole<D: KernelDriver>() {
    const LENGTH: usize = 6 * 1024 * 1024;
    let (listener, _) = listen();
    let mut driver = D::new(4).unwrap();
    let peers: Vec<_> = (0..3).map(|token| connect(&mut driver, token, &listener).1).collect();
    let writers: Vec<_> = peers
        .into_iter()
        .enumerate()
        .map(|(seed, mut peer)| {
            std::thread::spawn(move || peer.write_all(&pattern(LENGTH, seed)).unwrap())
        })
        .collect();
    let ended = |seen: &[Seen]| seen.iter().filter(|s| matches!(s, Seen::Ended(..))).count();
    let seen = take_until(&mut driver, |seen| ended(seen) == 3);
    for (seed, writer) in writers.into_iter().enumerate() {
        writer.join().unwrap();
        let token = seed as u32;
        assert!(bytes_of(&seen, token) == pattern(LENGTH, seed), "connection {seed}");
        let last = seen.iter().rposition(|s| matches!(s, Seen::Bytes(t, _) if *t == token));
        let end = seen.iter().position(|s| *s == Seen::Ended(token, None));
        assert!(end > last);
    }
}

/// A peer that reads slowly gets everything that was sent, in order, though the socket's buffer is far smaller.
fn slow_readers_get_everything<D: KernelDriver>() {
    const LENGTH: usize = 12 * 1024 * 1024;
    let (listener, _) = listen();
    let mut driver = D::new(4).unwrap();
    let (key, mut peer) = connect(&mut driver, 0, &listener);
    let sent = pattern(LENGTH, 5);
    for part in sent.chunks(1_000_003) {
        driver.send(key, &mut part.to_vec());
    }
    let reader = std::thread::spawn(move || {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 100_000]);
        while all.len() < LENGTH {
            let length = peer.read(&mut buffer).unwrap();
            assert!(length > 0, "closed after {}", all.len());
            all.extend_from_slice(&buffer[..length]);
        }
        peer.write_all(b"done").unwrap();
        all
    });
    take_until(&mut driver, |seen| bytes_of(seen, 0) == b"done");
    assert!(reader.join().unwrap() == sent);
}

/// A refused connection is reported once, with its error.
fn refusals_are_reported<D: KernelDriver>() {
    let (listener, address) = listen();
    drop(listener);
    let mut driver = D::new(4).unwrap();
    match driver.connect(9, address, true) {
        Ok(_) => {
            let seen = take_until(&mut driver, |seen| !seen.is_empty());
            assert_eq!(seen, [Seen::Ended(9, Some(Errno::CONNREFUSED))]);
        }
        Err(error) => assert_eq!(error, Errno::CONNREFUSED),
    }
}

/// After a close nothing more is heard of the connection, the peer sees its end, and a new one in its place is
/// another one: the old key does nothing to it.
fn closed_is_closed<D: KernelDriver>() {
    let (listener, _) = listen();
    let mut driver = D::new(4).unwrap();
    let (old, mut peer) = connect(&mut driver, 1, &listener);
    peer.write_all(b"too late").unwrap();
    driver.close(old);
    let mut seen = Vec::new();
    for _ in 0..5 {
        take(&mut driver, &mut seen);
    }
    assert_eq!(seen, []);
    let mut rest = Vec::new();
    assert!(matches!(peer.read_to_end(&mut rest), Ok(0) | Err(_)));
    let (new, mut peer) = connect(&mut driver, 2, &listener);
    assert_ne!(old, new);
    driver.close(old);
    driver.send(old, &mut b"lost".to_vec());
    driver.send(new, &mut b"kept".to_vec());
    take(&mut driver, &mut seen);
    let mut got = [0; 4];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"kept");
}

/// A reset by the peer is an error, not an orderly end; a send into it does no harm.
fn resets_are_errors<D: KernelDriver>() {
    let (listener, _) = listen();
    let mut driver = D::new(4).unwrap();
    let (key, peer) = connect(&mut driver, 3, &listener);
    driver.send(key, &mut vec![1; 1000]);
    let mut seen = Vec::new();
    take(&mut driver, &mut seen);
    // Closing with unread bytes makes the kernel send a reset (RFC 1122, 4.2.2.13).
    drop(peer);
    driver.send(key, &mut vec![2; 1000]);
    let seen = take_until(&mut driver, |seen| !seen.is_empty());
    assert!(matches!(seen[..], [Seen::Ended(3, Some(Errno::CONNRESET | Errno::PIPE))]), "{seen:?}");
}

/// Many lives of few connections: slots are used again, and none is mistaken for another.
fn slots_are_used_again<D: KernelDriver>() {
    let (listener, _) = listen();
    let mut driver = D::new(2).unwrap();
    for life in 0..200 {
        let (key, mut peer) = connect(&mut driver, life, &listener);
        driver.send(key, &mut life.to_le_bytes().to_vec());
        driver.wait(Wait::LOOK).unwrap();
        while driver.next_event().is_some() {}
        let mut got = [0; 4];
        peer.read_exact(&mut got).unwrap();
        assert_eq!(u32::from_le_bytes(got), life);
        if life % 2 == 0 {
            driver.close(key);
        } else {
            drop(peer);
            let seen = take_until(&mut driver, |seen| !seen.is_empty());
            assert_eq!(seen, [Seen::Ended(life, None)]);
        }
    }
}

/// A driver that is dropped with operations under way takes them back before it frees their memory.
fn dropping_lets_go<D: KernelDriver>() {
    let (listener, _) = listen();
    for _ in 0..20 {
        let mut driver = D::new(4).unwrap();
        let (key, _peer) = connect(&mut driver, 0, &listener);
        // Far more than the peer, who does not read, will take.
        driver.send(key, &mut vec![7; 8 * 1024 * 1024]);
        driver.wait(Wait::LOOK).unwrap();
    }
}

/// A connection that sends as fast as it is read does not keep the turn, whatever it sends: each turn ends, and who says
/// a word meanwhile is heard in the next one.
fn a_flood_has_its_share<D: KernelDriver>() {
    const LENGTH: usize = 256 << 20;
    // All of its buffers, or four reads and the one that goes beyond them.
    let turn_bytes_max = if D::GATHERS { 4 << 20 } else { 5 * 64 * 1024 };
    let (listener, _) = listen();
    let mut driver = D::new(4).unwrap();
    let (_, mut flood) = connect(&mut driver, 0, &listener);
    let (_, mut word) = connect(&mut driver, 1, &listener);
    let writer = std::thread::spawn(move || flood.write_all(&vec![7; LENGTH]).unwrap());
    let (mut taken, mut said, mut heard) = (0, 0, 0);
    while taken < LENGTH {
        if said == heard {
            word.write_all(b"w").unwrap();
            said += 1;
        }
        driver.wait(Wait::at_most(Some(Duration::from_millis(2)))).unwrap();
        let mut turn = 0;
        while let Some(event) = driver.next_event() {
            let Event::Received { token, chunk, .. } = event else { continue };
            match token {
                0 => turn += driver.bytes(&chunk).len(),
                _ => heard += driver.bytes(&chunk).len(),
            }
            driver.release(chunk);
        }
        assert!(turn <= turn_bytes_max, "one turn took {turn} bytes in");
        assert_eq!(said, heard, "a word waited for longer than a turn");
        taken += turn;
    }
    writer.join().unwrap();
}

/// Whether this kernel stamps what arrives on loopback. It begins to a moment after it was first asked.
fn kernel_stamps(listener: &TcpListener) -> bool {
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    assert!(stamps::ask(&socket), "every Linux has the option");
    (0..200).any(|_| {
        peer.write_all(b"w").unwrap();
        let (length, stamp) = stamps::receive(&socket, &mut [0; 8]).unwrap();
        assert_eq!(length, 1);
        std::thread::sleep(Duration::from_millis(1));
        stamp.is_some()
    })
}

/// What arrived is stamped with the time at which it did, however late it is read; what is not asked for is not stamped,
/// and the bytes are the same.
fn arrivals_are_stamped<D: KernelDriver>() {
    const HELD_UP: Duration = Duration::from_millis(20);
    let (listener, _) = listen();
    if !kernel_stamps(&listener) {
        return eprintln!("this kernel stamps nothing");
    }
    let mut driver = D::new(4).unwrap();
    let mut peers: Vec<_> = (0..2).map(|token| connect(&mut driver, token, &listener).1).collect();
    for round in 0..5 {
        let before = WallTime::now();
        peers.iter_mut().for_each(|peer| peer.write_all(&[round; 100]).unwrap());
        let after = WallTime::now();
        std::thread::sleep(HELD_UP);
        let mut seen = [None; 2];
        for _ in 0..TURNS_MAX {
            driver.wait(Wait::at_most(Some(Duration::from_millis(2)))).unwrap();
            while let Some(event) = driver.next_event() {
                let Event::Received { token, chunk, arrived, .. } = event else {
                    panic!("{event:?}")
                };
                assert_eq!(driver.bytes(&chunk), [round; 100]);
                driver.release(chunk);
                seen[token as usize] = Some(arrived);
            }
            if seen.iter().all(Option::is_some) {
                break;
            }
        }
        assert_eq!(seen[0], Some(None), "nobody asked");
        let arrived = seen[1].flatten().expect("it stamped before");
        assert!((before..=after).contains(&arrived), "{before:?} {arrived:?} {after:?}");
        let late_ns = WallTime::now().unix_ns() - arrived.unix_ns();
        assert!(late_ns >= 20_000_000, "{late_ns}");
    }
}

/// A wait that is shorter than a millisecond ends when its time is up, and not when a millisecond is: the promptest of many,
/// because a busy machine is late with others. One that is longer ends within its time or a millisecond before it.
fn waits_are_exact<D: KernelDriver>() {
    let (listener, _) = listen();
    let mut driver = D::new(4).unwrap();
    let _open = connect(&mut driver, 0, &listener);
    let clock = Clock::start();
    let mut took = |timeout| {
        let before = clock.now();
        driver.wait(Wait::at_most(Some(timeout))).unwrap();
        assert!(driver.next_event().is_none());
        clock.now().ns_since(before)
    };
    let promptest = (0..200).map(|_| took(Duration::from_micros(200))).min();
    assert!(promptest < Some(800_000), "{promptest:?}");
    let long = took(Duration::from_micros(60_900));
    assert!(long >= 60_000_000, "{long}");
}

/// Bytes that are handed over are on their way before any wait, and the wait after that is one for what comes back.
fn handed_over_is_on_its_way<D: KernelDriver>() {
    let (listener, _) = listen();
    let mut driver = D::new(4).unwrap();
    let (key, mut peer) = connect(&mut driver, 0, &listener);
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for round in 0..3 {
        driver.send(key, &mut pattern(1_000, round));
        driver.hand_over();
        driver.hand_over();
        let mut came = vec![0; 1_000];
        peer.read_exact(&mut came).unwrap();
        assert!(came == pattern(1_000, round));
        let mut answers = peer.try_clone().unwrap();
        let answering = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            answers.write_all(b"x").unwrap();
        });
        let mut waits = 0;
        loop {
            driver.wait(Wait::at_most(Some(Duration::from_secs(20)))).unwrap();
            waits += 1;
            if let Some(event) = driver.next_event() {
                let Event::Received { chunk, .. } = event else { panic!("{event:?}") };
                driver.release(chunk);
                break;
            }
        }
        // The other one may be woken by room for more to send.
        assert!(waits == 1 || !D::GATHERS, "{waits} waits");
        answering.join().unwrap();
    }
}

/// Claim: each of the above, by both drivers.
macro_rules! table {
    ($($name:ident),*) => {
        mod by_epoll { use super::*; $(#[test] fn $name() { super::$name::<Epoll>(); })* }
        mod by_io_uring {
            use super::*;
            $(#[test] fn $name() {
                if Ring::new(1).is_err() {
                    eprintln!("this kernel has no io_uring");
                    return;
                }
                super::$name::<Ring>();
            })*
        }
    };
}

table!(
    a_flood_has_its_share,
    arrivals_are_stamped,
    floods_arrive_whole,
    slow_readers_get_everything,
    refusals_are_reported,
    closed_is_closed,
    resets_are_errors,
    slots_are_used_again,
    dropping_lets_go,
    handed_over_is_on_its_way,
    waits_are_exact
);
