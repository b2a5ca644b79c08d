//! WebSockets that stand: they are counted, and silent ones end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::programs::{Answer, Program, ask, connect};

/// First bytes of frames (RFC 6455): a ping without content, and the beginning of a close.
const PING: [u8; 2] = [0x89, 0];
const CLOSE: u8 = 0x88;
/// A pong of a client, masked, without content.
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

fn socket(gateway: &Program) -> TcpStream {
    let mut stream = connect(gateway.address);
    write!(
        stream,
        "GET /rpc HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .expect("it reads");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    stream
}

/// Claim: WebSockets count among the connections that there may be, as long as they stand, and one that ends makes room.
#[test]
fn one_socket_too_many() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--connections-max", "3"]);
    let mut standing: Vec<TcpStream> = (0..3).map(|_| socket(&gateway)).collect();
    for _ in 0..5 {
        assert_eq!(Answer::read(&mut connect(gateway.address)).status, 503);
        std::thread::sleep(Duration::from_millis(50));
    }
    standing.pop();
    for _ in 0..500 {
        let mut stream = connect(gateway.address);
        ask(&mut stream, "/");
        let mut first = [0; 12];
        if stream.read_exact(&mut first).is_ok() && &first[9..] == b"200" {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no room was made");
}

/// Claim: a WebSocket from which nothing comes is asked with a ping and closed when that is not answered; one that answers
/// stands.
#[test]
fn a_silent_socket() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--head-timeout", "2s"]);
    let (mut silent, mut lively) = (socket(&gateway), socket(&gateway));
    for _ in 0..3 {
        let mut ping = [0; 2];
        lively.read_exact(&mut ping).expect("it stands");
        assert_eq!(ping, PING);
        lively.write_all(&PONG).expect("it stands");
    }
    let mut said = Vec::new();
    silent.read_to_end(&mut said).expect("the gateway ends it in order");
    assert!(said.starts_with(&PING) && said.get(2) == Some(&CLOSE), "{said:?}");
}
