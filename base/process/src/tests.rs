//! One small node, in virtual time and on real sockets: what the two ways of running it promise.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};

mod encrypted;
mod machines;
mod peers;
mod writes;

use crate::rehearsal::Rehearsal;
use crate::shell::{Bounds, Facts, Shell, Until, listen_address};
use crate::{Connection, Input, Node, Outputs};

/// Reads lines: `later N` is answered after N microseconds, `flood N` with N bytes, `bye` closes, `to-all TEXT`
/// goes to every connection, anything else comes back at once.
#[derive(Default)]
struct Lines {
    open: Vec<Connection>,
    closed: u32,
    due: Vec<(Instant, Connection)>,
    wakes: Vec<Instant>,
    drained: u32,
    /// Who said `bye`, and how often bytes came after it.
    gone: Vec<Connection>,
    after_bye: u32,
}

impl Lines {
    fn line(&mut self, now: Instant, from: Connection, line: &str, out: &mut Outputs) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.parse::<usize>().expect("a number");
        match word {
            "later" => {
                let us = u64::try_from(number()).expect("fits");
                self.due.push((now.plus(Duration::from_micros(us)), from));
                self.due.sort();
                out.wake_at(self.due[0].0);
            }
            "flood" => out.send(from).resize(number(), b'x'),
            "bye" => {
                self.gone.push(from);
                out.close(from);
            }
            "to-all" => {
                self.open.iter().for_each(|to| out.send(*to).extend_from_slice(rest.as_bytes()));
            }
            _ => {
                out.send(from).extend_from_slice(line.as_bytes());
                out.send(from).push(b'\n');
            }
        }
    }
}

impl Node for Lines {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, .. } => self.open.push(connection),
            Input::Bytes(from, bytes) => {
                self.after_bye += u32::from(self.gone.contains(&from));
                let mut used = 0;
                while let Some(length) = bytes[used..].iter().position(|byte| *byte == b'\n') {
                    let line = std::str::from_utf8(&bytes[used..used + length]).expect("text");
                    self.line(now, from, line, out);
                    used += length + 1;
                }
                out.used(used);
            }
            Input::Closed(connection) => {
                self.closed += 1;
                self.open.retain(|open| *open != connection);
            }
            Input::Wake => {
                self.wakes.push(now);
                while self.due.first().is_some_and(|(at, _)| *at <= now) {
                    let (_, to) = self.due.remove(0);
                    out.send(to).extend_from_slice(b"now\n");
                }
                if let Some((at, _)) = self.due.first() {
                    out.wake_at(*at);
                }
            }
            Input::Stop => {
                self.open.iter().for_each(|to| out.send(*to).extend_from_slice(b"stopped\n"));
            }
            Input::Drained(_) => self.drained += 1,
            _ => panic!("nothing else was asked for"),
        }
    }
}

/// Claim: in virtual time a node is woken exactly when it asked, parts of a message are offered again, and what
/// is sent on a closed connection goes nowhere.
#[test]
fn a_rehearsal() {
    let mut stage = Rehearsal::new(Lines::default());
    let (a, b) = (stage.open(0), stage.open(0));
    stage.send(a, b"hel");
    assert_eq!(stage.take_bytes(a), b"");
    stage.send(a, b"lo\nlater 250\nlater 100\n");
    assert_eq!(stage.take_bytes(a), b"hello\n");
    stage.advance(Instant::from_ns(1_000_000));
    assert_eq!(stage.node().wakes, [100_000, 250_000].map(Instant::from_ns));
    let at: Vec<i64> = stage.take_sent().iter().map(|sent| sent.at.as_ns()).collect();
    assert_eq!(at, [100_000, 250_000]);
    stage.send(b, b"bye\n");
    assert!(!stage.is_open(b) && stage.is_open(a));
    stage.send(a, b"to-all x\n");
    assert_eq!(stage.take_sent().len(), 1);
    stage.close(a);
    assert_eq!(
        (stage.node().closed, stage.node().open.len()),
        (1, 1),
        "a closed by itself, b by us"
    );
}

/// A served node. Dropping the pipe ends it.
struct Served {
    addresses: Vec<SocketAddr>,
    pipe: Option<std::io::PipeWriter>,
    thread: Option<JoinHandle<(Facts, Lines)>>,
}

impl Served {
    fn start(bounds: Bounds) -> Self {
        Self::serve(Shell::bind(&[("lines", listen_address("0").unwrap())], bounds).unwrap())
    }

    fn serve(shell: Shell) -> Self {
        let addresses = shell.addresses();
        let (theirs, ours) = std::io::pipe().unwrap();
        let thread = std::thread::spawn(move || {
            let mut node = Lines::default();
            let until = [Until::EndOfFile(OwnedFd::from(theirs))];
            (shell.run(&mut node, Clock::start(), &until).unwrap(), node)
        });
        Self { addresses, pipe: Some(ours), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        self.connect_to(0)
    }

    fn connect_to(&self, listener: usize) -> TcpStream {
        let stream = TcpStream::connect(self.addresses[listener]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn end(mut self) -> (Facts, Lines) {
        self.pipe = None;
        self.thread.take().unwrap().join().unwrap()
    }
}

fn read(stream: &mut TcpStream, bytes: usize) -> String {
    let mut buffer = vec![0; bytes];
    stream.read_exact(&mut buffer).unwrap();
    String::from_utf8(buffer).unwrap()
}

/// Claim: over real sockets, messages in parts, pipelined ones, delayed ones, ones for others and closes come
/// out as in virtual time, and the end of the pipe ends the shell after a last word.
#[test]
fn a_real_server() {
    let served = Served::start(Bounds::default());
    let (mut a, mut b) = (served.connect(), served.connect());
    a.set_nodelay(true).unwrap();
    a.write_all(b"he").unwrap();
    a.write_all(b"llo\none\ntwo\nlater 2000\n").unwrap();
    assert_eq!(read(&mut a, 18), "hello\none\ntwo\nnow\n");
    b.write_all(b"hi\n").unwrap();
    assert_eq!(read(&mut b, 3), "hi\n");
    a.write_all(b"to-all y").unwrap();
    a.write_all(b"\n").unwrap();
    assert_eq!((read(&mut a, 1), read(&mut b, 1)), ("y".to_owned(), "y".to_owned()));
    b.write_all(b"last\nbye\n").unwrap();
    let mut rest = String::new();
    b.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "last\n");
    let (facts, node) = served.end();
    assert_eq!(read(&mut a, 8), "stopped\n");
    assert_eq!(facts.ended_by, "the end of the parent's pipe");
    assert_eq!((facts.counters.accepted, facts.lateness.count()), (2, 1));
    assert_eq!(node.closed, 0, "the node itself closed one, the shell the other");
}

/// Claim: a peer that does not read is not read from while its bytes wait, loses nothing, and goes on when it
/// has read.
#[test]
fn back_pressure_loses_nothing() {
    let bounds = Bounds { unsent_bytes_pause: 100_000, ..Bounds::default() };
    let served = Served::start(bounds);
    let (mut a, mut b) = (served.connect(), served.connect());
    // More than the kernel's buffers of both sides take together.
    let flood = 40_000_000;
    a.write_all(format!("flood {flood}\n").as_bytes()).unwrap();
    // One thread: when this is answered, the flood has been sent as far as nobody reading it allows.
    b.write_all(b"x\n").unwrap();
    assert_eq!(read(&mut b, 2), "x\n");
    a.write_all(b"after\n").unwrap();
    let text = read(&mut a, flood + 6);
    assert!(text.ends_with("xxafter\n"));
    let (facts, node) = served.end();
    assert_eq!((facts.counters.paused, facts.counters.unsent_full), (1, 0));
    assert_eq!(node.drained, 1, "told once that all has been sent");
}

/// Claim: each bound cuts off the peer that passes it, counts it, and leaves others alone.
#[test]
fn bounds_cut_off() {
    let bounds = Bounds {
        connections_max: 3,
        unread_bytes_max: 1000,
        unsent_bytes_pause: 1_000_000,
        unsent_bytes_max: 20_000_000,
        ..Bounds::default()
    };
    let served = Served::start(bounds);
    let (mut good, mut endless, mut greedy) =
        (served.connect(), served.connect(), served.connect());
    for stream in [&mut good, &mut endless, &mut greedy] {
        stream.write_all(b"x\n").unwrap();
        assert_eq!(read(stream, 2), "x\n");
    }
    let mut refused = served.connect();
    assert_eq!(refused.read(&mut [0; 8]).unwrap_or(0), 0);
    endless.write_all(&[b'.'; 1500]).unwrap();
    assert_eq!(endless.read(&mut [0; 8]).unwrap_or(0), 0);
    greedy.write_all(b"flood 40000000\n").unwrap();
    good.write_all(b"still here\n").unwrap();
    assert_eq!(read(&mut good, 11), "still here\n");
    let (facts, node) = served.end();
    let counters = facts.counters;
    assert_eq!(
        (counters.refused, counters.unread_full, counters.unsent_full, counters.accepted),
        (1, 1, 1, 3)
    );
    assert_eq!(node.closed, 2);
}

/// Two listeners.
fn two_doors(bounds: Bounds) -> Shell {
    let any = || listen_address("0").unwrap();
    Shell::bind(&[("lines", any()), ("metrics", any())], bounds).unwrap()
}

/// Claim: what waits for all who do not read has a bound, too, by whatever listener they came: whoever passes it is cut off
/// though it keeps to its own, and others are left alone.
#[test]
fn what_nobody_reads_is_bounded_in_all() {
    let bounds = Bounds {
        unsent_bytes_pause: 1_000_000,
        unsent_bytes_max: 40_000_000,
        unsent_bytes_of_all_max: 80_000_000,
        ..Bounds::default()
    };
    for listener in 0..2 {
        let served = Served::serve(two_doors(bounds));
        let mut good = served.connect();
        // The kernel takes some megabytes of each.
        let greedy: Vec<TcpStream> = (0..4)
            .map(|_| {
                let mut stream = served.connect_to(listener);
                stream.write_all(b"flood 36000000\n").unwrap();
                good.write_all(b"still here\n").unwrap();
                assert_eq!(read(&mut good, 11), "still here\n");
                stream
            })
            .collect();
        let (facts, _) = served.end();
        drop(greedy);
        let cut_off = facts.counters.unsent_full;
        assert!(
            (1..=2).contains(&cut_off),
            "{cut_off} of 4, each with 36 MB less what the kernel took"
        );
    }
}

/// Claim: a listener that says metrics takes few; one more takes the place of the one that has been silent for longest; others
/// come by another listener however many want in there.
#[test]
fn few_ask_for_metrics() {
    let bounds = Bounds { connections_max: 100, ..Bounds::default() };
    let served = Served::serve(two_doors(bounds).saying_metrics_at(1));
    let say = |stream: &mut TcpStream| {
        stream.write_all(b"x\n").unwrap();
        assert_eq!(read(stream, 2), "x\n");
    };
    let come = |listener| {
        let mut stream = served.connect_to(listener);
        say(&mut stream);
        stream
    };
    let mut readers: Vec<TcpStream> = (0..64).map(|_| come(1)).collect();
    say(&mut readers[0]);
    let mut late = come(1);
    assert_eq!(readers[1].read(&mut [0; 8]).unwrap_or(0), 0);
    say(&mut readers[0]);
    say(&mut readers[2]);
    say(&mut late);
    let clients: Vec<TcpStream> = (0..36).map(|_| come(0)).collect();
    assert_eq!(served.connect().read(&mut [0; 8]).unwrap_or(0), 0);
    let (facts, _) = served.end();
    drop((readers, clients));
    let counters = facts.counters;
    assert_eq!((counters.displaced, counters.refused, counters.accepted), (1, 1, 101));
}

/// Claim: of a connection that the node has closed it is told no more bytes, however many come in the same turn.
#[test]
fn nothing_comes_after_a_close() {
    let served = Served::start(Bounds::default());
    let _other = served.connect();
    // Each line gives the other connection something to be carried out, and nothing to read.
    let lines = "to-all \n".repeat(100_000);
    for _ in 0..8 {
        let mut a = served.connect();
        // The connection may be gone before all is written.
        let _ = a.write_all(format!("{lines}bye\n{lines}").as_bytes());
        let _ = a.read_to_string(&mut String::new());
    }
    let (_, node) = served.end();
    assert_eq!((node.gone.len(), node.after_bye), (8, 0));
}

/// Claim: a node asked to wake is woken, neither early nor never, for far and near times alike; where none
/// asked for exact wake-ups, the shell never looks in vain instead of sleeping, and where one did, it does.
#[test]
fn wake_ups_come() {
    let shell = || Shell::bind(&[("lines", listen_address("0").unwrap())], Bounds::default());
    assert_eq!(woken(Served::serve(shell().unwrap())).looks, 0);
    assert!(woken(Served::serve(shell().unwrap().waking_exactly())).looks > 0);
}

fn woken(served: Served) -> Facts {
    let mut a = served.connect();
    let clock = Clock::start();
    for us in [0, 10, 500, 2_500, 20_000] {
        let before = clock.now();
        a.write_all(format!("later {us}\n").as_bytes()).unwrap();
        assert_eq!(read(&mut a, 4), "now\n");
        assert!(clock.now().saturating_since(before) >= Duration::from_micros(us), "{us} us");
    }
    let (facts, _) = served.end();
    assert_eq!(facts.lateness.count(), 5);
    facts
}

/// Claim: a port alone is a port of loopback, and nonsense is refused with an example.
#[test]
fn where_to_listen() {
    assert_eq!(listen_address("4000"), Ok("127.0.0.1:4000".parse().unwrap()));
    assert_eq!(listen_address(":0"), Ok("127.0.0.1:0".parse().unwrap()));
    assert_eq!(listen_address("0.0.0.0:1"), Ok("0.0.0.0:1".parse().unwrap()));
    assert!(listen_address("here").unwrap_err().contains("127.0.0.1:4000"));
}
