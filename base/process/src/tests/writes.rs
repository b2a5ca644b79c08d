//! Large frames and slow readers: every byte arrives, in order, and a sender can know what waits.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::peers::run;
use crate::Input;
use crate::shell::{Bounds, Peer, Shell, listen_address};
use crate::store::{Store, StoreOptions};

/// Bytes of which each place says where it is.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
}

/// Claim: a frame of 16 MiB is collected by the default bounds and given to the node whole, what stands behind it
/// too; one byte more than the bound ends the connection.
#[test]
fn a_frame_of_sixteen_mebibytes() {
    let shell =
        Shell::bind(&[("frames", listen_address("0").unwrap())], Bounds::default()).unwrap();
    let address = shell.addresses()[0];
    let (until, pipe) = std::io::pipe().unwrap();
    let length = 16 << 20;
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&pattern(length)).unwrap();
        stream.write_all(b"tail").unwrap();
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).unwrap();
        let mut endless = TcpStream::connect(address).unwrap();
        let block = vec![0; 1 << 20];
        while endless.write_all(&block).is_ok() {}
        drop(pipe);
        answer
    });
    let (mut whole, mut closed) = (0, 0);
    let facts = run(shell, until, |_, input, out| match input {
        Input::Bytes(connection, bytes) if connection.index() == 0 => {
            let mut used = 0;
            if whole == 0 && bytes.len() >= length {
                assert!(bytes[..length] == pattern(length));
                whole += 1;
                used += length;
            }
            if whole == 1 && &bytes[used..] == b"tail" {
                used += 4;
                out.send(connection).extend_from_slice(b"ok");
            }
            out.used(used);
        }
        Input::Closed(_) => closed += 1,
        _ => {}
    });
    assert_eq!(client.join().unwrap(), *b"ok");
    assert_eq!(facts.counters.unread_full, 1, "the endless one");
    assert_eq!((whole, facts.counters.accepted), (1, 2));
    assert!(closed >= 1);
}

/// Claim: a node that keeps to a bound by `unsent` and goes on at `Drained` sends everything, in order, to a
/// reader that is slow to begin; what waits is never more than it was told; nothing is lost where parts of
/// several steps wait.
#[test]
fn a_slow_reader() {
    let reader = TcpListener::bind("127.0.0.1:0").unwrap();
    let bounds = Bounds { unsent_bytes_pause: 1 << 20, ..Bounds::default() };
    let peers = vec![Peer::at(reader.local_addr().unwrap())];
    let shell = Shell::bind(&[], bounds).unwrap().dialling(peers);
    let (until, pipe) = std::io::pipe().unwrap();
    let length = 40 << 20;
    let block = 300_001;
    let expected = pattern(length);
    let (begin, began) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = reader.accept().unwrap();
        began.recv().unwrap();
        let mut all = vec![0; length];
        stream.read_exact(&mut all).unwrap();
        drop(pipe);
        all
    });
    let (mut sent, mut drained, mut most) = (0, 0, 0);
    let facts = run(shell, until, |_, input, out| {
        let connection = match input {
            Input::Wake => return out.dial(0),
            Input::Dialled { connection, .. } => connection,
            Input::Drained(connection) => {
                assert_eq!(out.unsent(connection), 0);
                drained += 1;
                connection
            }
            _ => return,
        };
        while sent < length && out.unsent(connection) <= 2 << 20 {
            let before = out.unsent(connection);
            let end = length.min(sent + block);
            out.send(connection).extend_from_slice(&expected[sent..end]);
            assert_eq!(out.unsent(connection), before + end - sent);
            sent = end;
        }
        most = most.max(out.unsent(connection));
        if drained == 0 {
            begin.send(()).unwrap();
        }
    });
    assert!(thread.join().unwrap() == pattern(length));
    assert!(drained >= length / (3 << 20), "{drained}");
    assert!(most <= (2 << 20) + block, "{most}");
    assert_eq!((facts.counters.unsent_full, facts.counters.paused), (0, 0));
}

/// Claim: with more appended than may wait for the disk nothing more is read until that is durable; then all of it is.
#[test]
fn what_waits_for_the_disk_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), &["log"], &[], StoreOptions::default()).unwrap();
    let bounds = Bounds { unpersisted_bytes_pause: 100_000, ..Bounds::default() };
    let shell = Shell::bind(&[("bytes", listen_address("0").unwrap())], bounds).unwrap();
    let shell = shell.keeping(store);
    let address = shell.addresses()[0];
    let (until, pipe) = std::io::pipe().unwrap();
    let length = 8 << 20;
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&pattern(length)).unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).unwrap();
        drop(pipe);
    });
    let (mut kept, mut most) = (0, 0);
    let facts = run(shell, until, |_, input, out| {
        if let Input::Bytes(connection, bytes) = input {
            out.append(0, bytes);
            most = most.max(out.unpersisted());
            out.used(bytes.len());
            kept += bytes.len();
            if kept == length {
                out.send(connection).extend_from_slice(b"kept");
            }
        }
    });
    client.join().unwrap();
    assert_eq!(facts.store.bytes > 8 << 20, kept == length);
    assert!(facts.counters.paused_for_disk > 10, "{:?}", facts.counters);
    assert!(most <= 100_000 + 2 * (64 << 10) + 128, "{most}");
}
