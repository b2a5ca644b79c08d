//! Golden dialogues (the examples of RFC 6455 §1.3 and §5.7), each rule broken once, and damaged bytes.

use super::fuzz::{Findings, fuzz_websocket, read_all};
use super::*;

fn read(sender: Sender, bytes: &[u8]) -> Findings {
    let whole = read_all(sender, Limits::CLIENT, bytes, usize::MAX);
    for piece in 1..=bytes.len().min(40) {
        assert_eq!(read_all(sender, Limits::CLIENT, bytes, piece), whole, "in pieces of {piece}");
    }
    whole
}

fn found(sender: Sender, bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (found, error) = read(sender, bytes);
    assert_eq!(error, None);
    found
}

fn one(kind: &str, payload: &[u8]) -> Vec<(String, Vec<u8>)> {
    vec![(kind.to_owned(), payload.to_vec())]
}

const MASKED_HELLO: [u8; 11] = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];

/// Claim: the RFC's examples of frames are read as it says, on any cut.
#[test]
fn examples_of_the_rfc_are_read() {
    let hello = one("text", b"Hello");
    assert_eq!(found(Sender::Server, b"\x81\x05Hello"), hello);
    assert_eq!(found(Sender::Client, &MASKED_HELLO), hello);
    assert_eq!(found(Sender::Server, b"\x01\x03Hel\x80\x02lo"), hello);
    assert_eq!(found(Sender::Server, b"\x89\x05Hello"), one("ping", b"Hello"));
    let pong = [&[0x8a], &MASKED_HELLO[1..]].concat();
    assert_eq!(found(Sender::Client, &pong), one("pong", b"Hello"));
    for (header, length) in
        [(&b"\x82\x7e\x01\x00"[..], 256), (b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 1 << 16)]
    {
        let payload = vec![b'x'; length];
        assert_eq!(found(Sender::Server, &[header, &payload].concat()), one("binary", &payload));
    }
}

/// Claim: the RFC's examples are what is written, and every length class is read back, masked and not.
#[test]
fn written_frames_are_read_back() {
    let mut out = b"before".to_vec();
    write_frame(&mut out, Opcode::Text, Some([0x37, 0xfa, 0x21, 0x3d]), |out| {
        out.extend_from_slice(b"Hello");
    });
    assert_eq!(out, [b"before", &MASKED_HELLO[..]].concat());
    for length in [0, 1, 2, 3, 125, 126, 127, 65_535, 65_536, 70_001] {
        let payload: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
        for (sender, mask) in [(Sender::Server, None), (Sender::Client, Some([1, 2, 3, 254]))] {
            let mut out = Vec::new();
            write_frame(&mut out, Opcode::Binary, mask, |out| out.extend_from_slice(&payload));
            assert_eq!(found(sender, &out), one("binary", &payload), "{length} bytes");
        }
    }
}

/// Claim: control frames between the fragments of a message do not disturb it, and nothing is read behind a
/// close frame.
#[test]
fn control_frames_between_fragments() {
    let dialogue = b"\x01\x01a\x89\x02hi\x00\x01b\x8a\x00\x80\x01c\x88\x05\x03\xe9bye\x81\x01x";
    let expected =
        [("ping", &b"hi"[..]), ("pong", b""), ("text", b"abc"), ("close Some(1001)", b"bye")];
    let expected: Vec<_> =
        expected.iter().map(|(kind, text)| ((*kind).to_owned(), text.to_vec())).collect();
    assert_eq!(found(Sender::Server, dialogue), expected);
    assert_eq!(found(Sender::Server, b"\x88\x00\xff\xff"), one("close None", b""));
}

/// Claim: each rule of the framing is enforced by an error of its own, before any payload is waited for.
#[test]
fn refused_frames() {
    let cases: [(&[u8], WebSocketError); 15] = [
        (b"\xc1\x00", WebSocketError::ReservedBits),
        (b"\x83\x00", WebSocketError::ReservedOpcode(3)),
        (b"\x8f\x00", WebSocketError::ReservedOpcode(15)),
        (b"\x09\x00", WebSocketError::ControlFrame),
        (b"\x89\x7e", WebSocketError::ControlFrame),
        (b"\x82\x7e\x00\x7d", WebSocketError::Length),
        (b"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", WebSocketError::Length),
        (b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", WebSocketError::Length),
        (b"\x81\x80\x00\x00\x00\x00", WebSocketError::Mask),
        (b"\x80\x00", WebSocketError::Fragmentation),
        (b"\x01\x00\x81\x00", WebSocketError::Fragmentation),
        (b"\x82\x7f\x00\x00\x00\x00\x04\x00\x00\x01", WebSocketError::FrameTooLong(0x0400_0001)),
        (b"\x81\x02\xc3\x28", WebSocketError::Text),
        (b"\x88\x01\x03", WebSocketError::CloseBody),
        (b"\x88\x02\x03\xed", WebSocketError::CloseBody),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read(Sender::Server, bytes).1, Some(expected), "{bytes:02x?}");
    }
    assert_eq!(read(Sender::Client, b"\x81\x00").1, Some(WebSocketError::Mask));
}

/// Claim: a message in fragments is refused as soon as one announces more than the bound leaves.
#[test]
fn a_message_in_fragments_is_bounded() {
    let limits = Limits { message_bytes_max: 10, ..Limits::CLIENT };
    let at_the_bound = read_all(Sender::Server, limits, b"\x02\x0612345\x36\x80\x041234", 3);
    assert_eq!(at_the_bound.0.len(), 1);
    let (found, error) = read_all(Sender::Server, limits, b"\x02\x06123456\x80\x05", 3);
    assert_eq!((found, error), (vec![], Some(WebSocketError::MessageTooLong(10))));
}

/// Claim: a reset reader has forgotten a message that was begun, and a close.
#[test]
fn a_reset_reader_is_new() {
    for before in [&b"\x01\x05He"[..], b"\x01\x01a", b"\x88\x00"] {
        let mut reader = MessageReader::new(Sender::Server, Limits::CLIENT);
        reader.read(before).unwrap();
        reader.reset();
        let progress = reader.read(b"\x81\x02ok").unwrap();
        assert_eq!(progress, Progress { used: 4, event: Some(Event::Text("ok")) });
    }
}

/// The key of RFC 6455 §1.3, "the sample nonce", and the answer to it.
const KEY: [u8; KEY_BYTES] = *b"the sample nonce";
const ANSWER: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Claim: the RFC's example of a handshake is what is written and accepted, on any cut, and frames behind it
/// are left alone.
#[test]
fn the_example_of_a_handshake() {
    let mut request = Vec::new();
    let opening =
        Opening { host: "server.example.com".into(), target: "/chat".into(), ..Opening::default() };
    write_handshake(&mut request, &opening, KEY);
    let expected = "GET /chat HTTP/1.1\r\nHost: server.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    assert_eq!(String::from_utf8(request).unwrap(), expected);
    assert_eq!(accept_value("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let handshake = Handshake::new(KEY, &Limits::CLIENT);
    for cut in 0..ANSWER.len() {
        assert_eq!(handshake.read(&ANSWER.as_bytes()[..cut]), Ok(None), "cut at {cut}");
    }
    let with_frame = format!("{ANSWER}\u{1}");
    assert_eq!(handshake.read(with_frame.as_bytes()), Ok(Some(ANSWER.len())));
}

/// Claim: headers and subprotocols stand in the request, and the server may choose one of those and no other.
#[test]
fn subprotocols() {
    let protocols = vec!["graphql-ws".to_owned(), "json".to_owned()];
    let headers = vec![("Authorization".to_owned(), "Bearer x".to_owned())];
    let (host, target) = ("h".to_owned(), "/".to_owned());
    let mut client = Client::new(Limits::CLIENT);
    let mut request = Vec::new();
    client.open(&mut request, &Opening { host, target, headers, protocols }, KEY);
    let request = String::from_utf8(request).unwrap();
    let end = "\r\nSec-WebSocket-Protocol: graphql-ws, json\r\nAuthorization: Bearer x\r\n\r\n";
    assert!(request.ends_with(end), "{request}");
    let choosing = |word| ANSWER.replace("Upgrade: w", &format!("{word}\r\nUpgrade: w"));
    let other = choosing("Sec-WebSocket-Protocol: xml");
    let refused = WebSocketError::NotAskedFor("Sec-WebSocket-Protocol");
    assert_eq!(client.switch(other.as_bytes()), Err(refused));
    let chosen = choosing("Sec-WebSocket-Protocol: json");
    assert_eq!(client.switch(chosen.as_bytes()), Ok(Some(chosen.len())));
    assert!(client.is_open());
    client.reset();
    assert!(!client.is_open());
}

/// Claim: an answer that is not to this request, or switches to something else, is refused for its own reason.
#[test]
fn refused_handshakes() {
    let handshake = Handshake::new(KEY, &Limits::CLIENT);
    let refused = |answer: &str| handshake.read(answer.as_bytes()).unwrap_err();
    assert_eq!(refused("nonsense\r\n\r\n"), WebSocketError::Head);
    let not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(refused(not_found), WebSocketError::NotSwitched(404));
    for (from, to, name) in [
        ("Upgrade: websocket", "Upgrade: h2c", "Upgrade"),
        ("keep-alive, Upgrade", "keep-alive", "Connection"),
        ("s3pP", "S3pP", "Sec-WebSocket-Accept"),
    ] {
        let error = refused(&ANSWER.replace(from, to));
        assert_eq!(error, WebSocketError::HandshakeHeader(name));
    }
    let extended =
        ANSWER.replace("Upgrade: w", "Sec-WebSocket-Extensions: permessage-deflate\r\nUpgrade: w");
    assert_eq!(refused(&extended), WebSocketError::NotAskedFor("Sec-WebSocket-Extensions"));
    let endless = format!("HTTP/1.1 101 S\r\nX: {}", "x".repeat(Limits::CLIENT.head_bytes_max));
    assert_eq!(refused(&endless), WebSocketError::HeadTooLong(16 << 10));
}

/// Claim: no damage to a dialogue makes a reader panic, pass its bounds or depend on the cut.
#[test]
fn damaged_dialogues() {
    let server = b"\x01\x03Hel\x89\x02hi\x80\x02lo\x82\x7e\x00\x80".to_vec();
    let server = [server, vec![b'y'; 128], b"\x88\x02\x03\xe8".to_vec()].concat();
    let client = [&MASKED_HELLO[..], &MASKED_HELLO].concat();
    // SplitMix64 with a fixed seed: the same damage on every machine.
    let mut state = 0x5eed_u64;
    let mut random = |bound: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        usize::try_from((z ^ (z >> 27)) % bound as u64).unwrap()
    };
    for round in 0..4_000_usize {
        let golden = if round % 2 == 0 { &server } else { &client };
        let mut bytes = golden.clone();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] ^= 1 << random(8),
                1 => bytes[at] = u8::try_from(random(256)).unwrap(),
                2 => bytes.insert(at, u8::try_from(random(256)).unwrap()),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let side = u8::try_from(round % 2).unwrap();
        let cuts = u8::try_from(random(256)).unwrap();
        fuzz_websocket(&[&[side, cuts], &bytes[..]].concat());
    }
}
