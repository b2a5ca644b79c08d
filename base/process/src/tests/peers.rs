//! A node that dials: what it is told of peers that are there, are not, and are there again.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::time::Duration;

use clock::{Clock, Instant};

use crate::shell::{Bounds, Facts, Peer, Shell, Until};
use crate::{Input, Node, Outputs};

/// A node that is a closure.
pub(super) struct Script<F>(pub(super) F);

impl<F: FnMut(Instant, Input<'_>, &mut Outputs)> Node for Script<F> {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        (self.0)(now, input, out);
    }
}

/// Runs a node that listens nowhere on a thread of this test, until the pipe that it is given with is dropped.
pub(super) fn run(
    shell: Shell,
    until: std::io::PipeReader,
    step: impl FnMut(Instant, Input<'_>, &mut Outputs),
) -> Facts {
    shell.run(&mut Script(step), Clock::start(), &[Until::EndOfFile(OwnedFd::from(until))]).unwrap()
}

/// Claim: a peer that listens is dialled, and what is sent in the first step arrives; one that nobody listens
/// for is unreachable, once for each dial and not before the next turn; a peer that closes is told as closed.
#[test]
fn dialled_and_not() {
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    // Bound and not listening: nobody else can be given its port.
    let nobody = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&nobody, &"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap()).unwrap();
    let nobody_at = rustix::net::getsockname(&nobody).unwrap().try_into().unwrap();
    let shell = Shell::bind(&[], Bounds::default())
        .unwrap()
        .dialling(vec![Peer::at(there.local_addr().unwrap()), Peer::at(nobody_at)]);
    let (until, pipe) = std::io::pipe().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = there.accept().unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(b"answer").unwrap();
        word
    });
    let mut pipe = Some(pipe);
    let mut seen = Vec::new();
    let mut unreachable = 0;
    let facts = run(shell, until, |_, input, out| match input {
        Input::Wake => {
            out.dial(0);
            out.dial(1);
        }
        Input::Dialled { connection, peer } => {
            assert_eq!(peer, 0);
            out.send(connection).extend_from_slice(b"hello");
        }
        Input::Unreachable { peer } => {
            assert_eq!(peer, 1);
            unreachable += 1;
            if unreachable < 3 {
                out.dial(1);
            }
        }
        Input::Bytes(_, bytes) => {
            seen.extend_from_slice(bytes);
            out.used(bytes.len());
        }
        Input::Closed(_) => pipe = None,
        Input::Stop => {}
        other => panic!("{other:?}"),
    });
    assert_eq!(server.join().unwrap(), *b"hello");
    assert_eq!(seen, b"answer");
    assert_eq!(unreachable, 3);
    let counters = facts.counters;
    assert_eq!((counters.dialled, counters.unreachable, counters.late), (1, 3, 0));
    drop(nobody);
}

/// Claim: a peer whose host says nothing is given up after the bound, and counted.
#[test]
fn a_peer_that_says_nothing_is_given_up() {
    // Nobody accepts, and its one place is taken: what the kernel is then asked for it never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&silent, 0).unwrap();
    let address = silent.local_addr().unwrap();
    let _taken = std::net::TcpStream::connect(address).unwrap();
    let bounds = Bounds { handshake_max: Duration::from_millis(50), ..Bounds::default() };
    let shell = Shell::bind(&[], bounds).unwrap().dialling(vec![Peer::at(address)]);
    let (until, pipe) = std::io::pipe().unwrap();
    let mut pipe = Some(pipe);
    let facts = run(shell, until, |_, input, out| match input {
        Input::Wake => out.dial(0),
        Input::Unreachable { peer: 0 } => pipe = None,
        Input::Stop => {}
        other => panic!("{other:?}"),
    });
    assert_eq!((facts.counters.unreachable, facts.counters.late), (1, 1));
}

/// Claim: who comes by another listener than the first is told before hundreds of clients of that one who were ready
/// earlier; and those all have their turn.
#[test]
fn other_replicas_before_the_crowd() {
    const CLIENTS: usize = 700;
    let any = "127.0.0.1:0".parse().unwrap();
    let shell = Shell::bind(&[("clients", any), ("peers", any)], Bounds::default()).unwrap();
    let addresses = shell.addresses();
    let (until, pipe) = std::io::pipe().unwrap();
    let ((all_stand, stand), (all_wrote, wrote)) =
        (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let others = std::thread::spawn(move || {
        let connect = |address| std::net::TcpStream::connect(address).unwrap();
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| connect(addresses[0])).collect();
        let mut peer = connect(addresses[1]);
        stand.recv().unwrap();
        clients.iter_mut().for_each(|client| client.write_all(b"c").unwrap());
        peer.write_all(b"p").unwrap();
        all_wrote.send(()).unwrap();
        (clients, peer)
    });
    let (mut pipe, mut opened, mut told) = (Some(pipe), 0, Vec::new());
    run(shell, until, |_, input, out| match input {
        Input::Opened { .. } => {
            opened += 1;
            if opened == CLIENTS + 1 {
                // Nothing is read before everybody has written.
                all_stand.send(()).unwrap();
                wrote.recv().unwrap();
            }
        }
        Input::Bytes(_, bytes) => {
            told.extend_from_slice(bytes);
            out.used(bytes.len());
            if told.len() == CLIENTS + 1 {
                pipe = None;
            }
        }
        Input::Wake | Input::Stop => {}
        other => panic!("{other:?}"),
    });
    assert_eq!(told[0], b'p', "the peer was told first");
    assert_eq!(told.iter().filter(|byte| **byte == b'c').count(), CLIENTS);
    drop(others.join().unwrap());
}

/// Claim: the end of a turn is told once for everything that arrived in it, and before what was sent in it leaves.
#[test]
fn the_end_of_a_turn() {
    let any = "127.0.0.1:0".parse().unwrap();
    let shell = Shell::bind(&[("one", any)], Bounds::default()).unwrap();
    let address = shell.addresses()[0];
    let (until, pipe) = std::io::pipe().unwrap();
    let ((all_stand, stand), (all_wrote, wrote)) =
        (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let others = std::thread::spawn(move || {
        let connect = |_| std::net::TcpStream::connect(address).unwrap();
        let mut clients: Vec<_> = (0..20).map(connect).collect();
        stand.recv().unwrap();
        clients.iter_mut().for_each(|client| client.write_all(b"c").unwrap());
        all_wrote.send(()).unwrap();
        let mut answer = [0; 2];
        clients[0].read_exact(&mut answer).unwrap();
        answer
    });
    let (mut pipe, mut opened, mut ends) = (Some(pipe), Vec::new(), 0);
    let mut heard = 0;
    run(shell, until, |_, input, out| match input {
        Input::Opened { connection, .. } => {
            opened.push(connection);
            if opened.len() == 20 {
                all_stand.send(()).unwrap();
                wrote.recv().unwrap();
            }
        }
        Input::Bytes(_, bytes) => {
            heard += bytes.len();
            out.used(bytes.len());
            out.at_turn_end();
        }
        Input::TurnEnd => {
            ends += 1;
            assert_eq!(heard, 20, "all that had arrived was told before");
            out.send(opened[0]).extend_from_slice(b"20");
            pipe = None;
        }
        Input::Closed(_) | Input::Wake | Input::Stop => {}
        other => panic!("{other:?}"),
    });
    assert_eq!(ends, 1);
    assert_eq!(others.join().unwrap(), *b"20");
}
