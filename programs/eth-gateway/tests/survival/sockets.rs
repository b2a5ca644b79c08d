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

/// The first fragment of a text (false), or the last (true), masked with nothing.
fn fragment(is_last: bool, text: &[u8]) -> Vec<u8> {
    let length = u64::try_from(text.len()).expect("small").to_be_bytes();
    let first = if is_last { 0x80 } else { 0x01 };
    [&[first, 0xff][..], &length, &[0; 4], text].concat()
}

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

/// Claim: a WebSocket whose message does not end is closed although it answers pings; one whose message has ended stands.
#[test]
fn a_message_that_never_ends() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--head-timeout", "2s"]);
    let (mut endless, mut ended) = (socket(&gateway), socket(&gateway));
    for stream in [&mut endless, &mut ended] {
        stream.write_all(&fragment(false, &[b' '; 20 << 10])).expect("it reads");
    }
    ended.write_all(&fragment(true, b"null")).expect("it reads");
    // The answer: something that is no call.
    let mut head = [0; 2];
    ended.read_exact(&mut head).expect("it stands");
    let mut answer = vec![0; usize::from(head[1])];
    assert!(head[0] == 0x81 && head[1] < 126, "{head:?}");
    ended.read_exact(&mut answer).expect("it stands");
    let mut is_closed = false;
    for _ in 0..10 {
        let mut ping = [0; 2];
        if !is_closed {
            endless.read_exact(&mut ping).expect("the gateway ends it in order");
            is_closed = ping[0] == CLOSE;
            // It may be closed meanwhile.
            let _ = endless.write_all(&PONG);
        }
        ended.read_exact(&mut ping).expect("it stands");
        assert_eq!(ping, PING);
        ended.write_all(&PONG).expect("it stands");
        if is_closed {
            return;
        }
    }
    panic!("it stands");
}

/// Claim: messages that do not end have a bound together, as bodies do: of two hundred of nearly a mebibyte some sockets are
/// closed, and small calls are answered.
#[test]
fn messages_that_never_end() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--head-timeout", "2m"]);
    let part = fragment(false, &vec![b' '; (1 << 20) - 1]);
    let endless: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = socket(&gateway);
            // One that is closed need not take all of it.
            let _ = stream.write_all(&part);
            stream
        })
        .collect();
    let standing = || gateway.metric("eth_gateway_connections ");
    for _ in 0..500 {
        if standing() < 199.5 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // One is that of the question.
    assert!((100.0..199.5).contains(&standing()), "{}", standing());
    let mut small = socket(&gateway);
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}"#;
    small.write_all(&fragment(false, call)).expect("it reads");
    small.write_all(&fragment(true, b"")).expect("it reads");
    let mut head = [0; 2];
    small.read_exact(&mut head).expect("it stands");
    let mut answer = vec![0; usize::from(head[1])];
    small.read_exact(&mut answer).expect("it stands");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("\"result\""), "{answer}");
    drop(endless);
}
