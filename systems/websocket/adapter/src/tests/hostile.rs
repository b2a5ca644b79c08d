//! Something that a server may do to a connection: the handshake, frames, and the messages inside of them, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Drip, Flood, Hush, Right, Say};
use sut::conformance::hostile_websocket::{FRAMES, HANDSHAKES};
use sut::conformance::{Behaviour, Peer, Subject, hostile_conformance};
use sut::{Session, System as _, Workload};

use super::peer::{called, echo, peer, said};
use super::{BY_ID, IN_TURN, session, system};

/// The most unread bytes that a session may leave to the engine: the head of the handshake, or of a frame.
const UNREAD_MAX: usize = 16 << 10;

/// Frames that mean something else to a client that knows no words: a message without an id is the server's own.
const OF_NODES: [&str; 3] = ["a binary message", "an empty object", "a number"];

macro_rules! behaviour {
    ($name:expr, $answers:expr, $seen:expr) => {
        Behaviour { name: $name, does: $name, greets: &[], answers: $answers, seen: $seen }
    };
}

/// Claim: where answers carry an id, of each behaviour the session sees what must be seen, however it is cut.
#[test]
fn answers_with_an_id() {
    let another = said(r#"{"id":77,"result":1}"#);
    let as_text = said(r#"{"id":"0","result":1}"#);
    let refused = said(r#"{"id":0,"error":"no"}"#);
    let list = [
        behaviour!("answers for another", &[Say(&another)], Broken),
        behaviour!("answers with the id as a text", &[Say(&as_text)], Broken),
        behaviour!("answers an error", &[Say(&refused)], Failed),
        behaviour!("answers twice", &[Right, Right], BrokenBehind),
        behaviour!("takes its answer back", &[Right, Say(&refused)], BrokenBehind),
        behaviour!(
            "says things of its own first",
            &[Say(b"\x81\x02{}"), Say(b"\x82\x02[]"), Say(b"\x81\x017"), Right],
            Fine
        ),
        behaviour!("says things of its own without end", &[Flood(b"", b"\x81\x02{}")], Failed),
        behaviour!("pings byte by byte", &[Drip(b"\x89\x02hi", 1), Right], Fine),
        behaviour!("closes with a reason", &[Say(b"\x88\x09\x03\xf5restart"), Close], Failed),
        behaviour!(
            "closes within a message",
            &[Say(b"\x01\x03{\"i\x88\x02\x03\xe8"), Close],
            Failed
        ),
    ];
    let frames = FRAMES.iter().filter(|it| !OF_NODES.contains(&it.name)).copied();
    let all: Vec<Behaviour<'_>> = HANDSHAKES.iter().copied().chain(frames).chain(list).collect();
    let system = system(BY_ID);
    let made = || -> Box<dyn Session> { session(&system) };
    let server = || -> Peer { peer(called) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    hostile_conformance(&Subject::new(&made, &server, &source), &all, UNREAD_MAX).unwrap();
}

/// Claim: the same where a message is answered by the next one: an unsolicited message is seen. Any whole message is an answer.
#[test]
fn answers_in_turn() {
    let list = [
        behaviour!("answers twice", &[Right, Right], BrokenBehind),
        behaviour!("goes on with garbage", &[Right, Say(b"hello\r\n")], BrokenBehind),
        behaviour!("answers with bytes", &[Say(b"\x82\x02{}")], Fine),
        behaviour!(
            "answers in fragments",
            &[Say(b"\x01\x01{"), Say(b"\x89\x00"), Say(b"\x80\x01}")],
            Fine
        ),
        behaviour!("says nothing", &[Hush], Failed),
        Behaviour {
            name: "speaks first",
            does: "speaks before it is asked",
            greets: &[Right, Say(b"\x81\x02hi")],
            answers: &[Hush],
            seen: Broken,
        },
    ];
    let any = ["no JSON", "an empty message", "endless empty messages", "JSON without end"];
    let frames =
        FRAMES.iter().filter(|it| !OF_NODES.contains(&it.name) && !any.contains(&it.name)).copied();
    let frames = frames.filter(|it| !list.iter().any(|own| own.name == it.name));
    let all: Vec<Behaviour<'_>> = HANDSHAKES.iter().copied().chain(frames).chain(list).collect();
    let system = system(IN_TURN);
    let made = || -> Box<dyn Session> { session(&system) };
    let server = || -> Peer { peer(echo) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    hostile_conformance(&Subject::new(&made, &server, &source), &all, UNREAD_MAX).unwrap();
}

/// Claim: messages beyond the bound are refused when they are announced, in one frame and in several.
#[test]
fn messages_that_are_too_long() {
    let list = [
        behaviour!("announces too much", &[Say(b"\x81\x7e\x08\x00"), Hush], Broken),
        behaviour!("goes on for too long", &[Flood(b"\x01\x00", b"\x00\x0aaaaaaaaaaa")], Broken),
    ];
    let system = system(r#"{"message":"hello","message_bytes_max":"1KiB"}"#);
    let made = || -> Box<dyn Session> { session(&system) };
    let server = || -> Peer { peer(echo) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    hostile_conformance(&Subject::new(&made, &server, &source), &list, UNREAD_MAX).unwrap();
}
