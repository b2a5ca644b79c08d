//! Bytes of a session, and what it says of answers.

use sut::{Abandon, Mark, Marks, Session, System as _, Transaction};
use wire::websocket::{Event, Limits, MessageReader, Sender};

use super::peer::{called, echo, peer, said};
use super::{BY_ID, IN_TURN, session, system};
use crate::system::WebSocketSystem;

fn told(marks: &Marks) -> Vec<String> {
    let told = |mark: &Mark| match mark {
        Mark::Reached { tx, bytes_in, .. } => format!("{tx} committed {bytes_in}"),
        Mark::Ended { tx, answer } => {
            format!("{tx} {} {} {}", answer.outcome, answer.code, marks.text(answer))
        }
    };
    marks.list().iter().map(told).collect()
}

/// An open session, and what it wrote when it was opened.
fn open(system: &WebSocketSystem, answer: fn(&str) -> Vec<String>) -> (Box<dyn Session>, String) {
    let (mut session, mut out) = (session(system), Vec::new());
    session.open(&mut out);
    let request = String::from_utf8(out.clone()).unwrap();
    let answer = peer(answer)(&out);
    out.clear();
    let used = session.receive(&answer, &mut out, &mut Marks::default()).unwrap();
    assert!(session.is_ready() && used == answer.len());
    (session, request)
}

/// Submits transactions from 0 on.
fn submit(session: &mut dyn Session, system: &WebSocketSystem, count: u64) -> Vec<u8> {
    let (mut source, mut out) = (system.workload(model::Seed(1), 0, 1), Vec::new());
    for tx in 0..count {
        let mut payload = Vec::new();
        let made = source.next(tx, None, &mut payload);
        session.submit(&Transaction::new(tx, made.kind, &payload), &mut out);
    }
    out
}

/// Messages that a client wrote.
fn written(mut bytes: &[u8]) -> Vec<String> {
    let mut reader = MessageReader::new(Sender::Client, Limits::CLIENT);
    let mut found = Vec::new();
    loop {
        let progress = reader.read(bytes).unwrap();
        bytes = &bytes[progress.used..];
        match progress.event {
            Some(Event::Text(text)) => found.push(text.to_owned()),
            Some(other) => found.push(format!("{other:?}")),
            None => return found,
        }
    }
}

/// Claim: the handshake carries headers and subprotocols, greetings follow it, and each message is filled in.
#[test]
fn what_is_sent() {
    let system = system(
        r#"{"headers":{"Authorization":"Bearer abc"},"message":"{\"n\":{{$tx}}}","greeting":["{\"login\":1}"]}"#,
    );
    let (mut session, mut out) = (session(&system), Vec::new());
    session.open(&mut out);
    let request = String::from_utf8(out.clone()).unwrap();
    assert!(request.contains("\r\nHost: 127.0.0.1:8080\r\n"), "{request}");
    assert!(request.contains("\r\nAuthorization: Bearer abc\r\nUser-Agent: assay/"), "{request}");
    let answer = peer(echo)(&out);
    out.clear();
    session.receive(&answer, &mut out, &mut Marks::default()).unwrap();
    assert_eq!(written(&out), ["{\"login\":1}", "Pong([116, 104, 101, 114, 101, 63])"]);
    let messages = submit(&mut *session, &system, 2);
    assert_eq!(written(&messages), ["{\"n\":0}", "{\"n\":1}"]);
}

/// Claim: answers that carry an id come in any order, one after a timeout is told from others, and errors have their class.
#[test]
fn answers_by_id() {
    let system = system(BY_ID);
    let (mut session, _) = open(&system, called);
    assert_eq!(session.in_flight_max(), 64);
    submit(&mut *session, &system, 4);
    assert_eq!(session.abandon(2), Abandon::Keep);
    let answers = [
        said(r#"{"id":3}"#),
        said(r#"{"event":1}"#),
        said(r#"{"id":2}"#),
        said(r#"{"id":0,"error":{"message":"full\nup"}}"#),
        said(r#"{"id":1,"error":null}"#),
    ]
    .concat();
    let mut marks = Marks::default();
    session.receive(&answers, &mut Vec::new(), &mut marks).unwrap();
    let expected = ["3 committed 8", "0 rejected(bad_request) 0 full up", "1 committed 21"];
    assert_eq!(told(&marks), expected);
    let again = session.receive(&said(r#"{"id":2}"#), &mut Vec::new(), &mut marks);
    assert!(again.unwrap_err().0.contains("no request outstanding"));
}

/// Claim: without an id the first message that is as awaited answers, it is held against what is expected, and a connection
/// whose answer was given up is closed.
#[test]
fn answers_in_turn() {
    let system = system(
        r#"{"message":"buy","await":{"json":{"/kind":"done"}},"expect":{"json":{"/ok":true}}}"#,
    );
    let (mut session, _) = open(&system, echo);
    assert_eq!(session.in_flight_max(), 1);
    let mut marks = Marks::default();
    for (tx, done) in [(0, r#"{"kind":"done","ok":true}"#), (1, r#"{"kind":"done","ok":false}"#)] {
        let mut payload = Vec::new();
        system.workload(model::Seed(1), 0, 1).next(tx, None, &mut payload);
        session.submit(&Transaction::new(tx, 0, &payload), &mut Vec::new());
        let says = [said(r#"{"kind":"tick"}"#), said(done)].concat();
        session.receive(&says, &mut Vec::new(), &mut marks).unwrap();
    }
    let expected =
        ["0 committed 25", "1 rejected(server) 0 expected true at `/ok` of a JSON body, got false"];
    assert_eq!(told(&marks), expected);
    submit(&mut *session, &system, 1);
    assert_eq!(session.abandon(0), Abandon::Close);
}

/// Claim: where answers have a place for errors, one that is not JSON is a failure of the server's and no commit.
#[test]
fn answers_that_are_not_json() {
    let system = system(r#"{"message":"buy","error_pointer":"/error"}"#);
    for (says, expected) in [
        ("<html>bad gateway</html>", "0 rejected(server) 0 the answer is not JSON"),
        ("", "0 rejected(server) 0 the answer is not JSON"),
        (r#"{"error":"full"}"#, "0 rejected(bad_request) 0 full"),
        (r#"{"ok":true}"#, "0 committed 11"),
    ] {
        let (mut session, _) = open(&system, echo);
        submit(&mut *session, &system, 1);
        let mut marks = Marks::default();
        session.receive(&said(says), &mut Vec::new(), &mut marks).unwrap();
        assert_eq!(told(&marks), [expected]);
    }
}

/// Claim: a close ends what is outstanding by its code, and is answered with it.
#[test]
fn closes() {
    for (frame, expected, answer) in [
        (
            &b"\x88\x02\x03\xe8"[..],
            "unknown 1000 closed: 1000 normal closure",
            "Close { code: Some(1000), reason: \"\" }",
        ),
        (b"\x88\x00", "unknown 1005 closed: 1005 no code", "Close { code: None, reason: \"\" }"),
        (
            b"\x88\x06\x03\xf5full",
            "rejected(overloaded) 1013 closed: 1013 try again later: full",
            "Close { code: Some(1013), reason: \"\" }",
        ),
        (
            b"\x88\x02\x03\xf3",
            "rejected(server) 1011 closed: 1011 internal error",
            "Close { code: Some(1011), reason: \"\" }",
        ),
        (
            b"\x88\x02\x03\xf1",
            "rejected(bad_request) 1009 closed: 1009 message too big",
            "Close { code: Some(1009), reason: \"\" }",
        ),
        (
            b"\x88\x02\x0f\xa0",
            "rejected(server) 4000 closed: 4000 a code of the application",
            "Close { code: Some(4000), reason: \"\" }",
        ),
    ] {
        for workload in [BY_ID, IN_TURN] {
            let system = system(workload);
            let (mut session, _) = open(&system, if workload == BY_ID { called } else { echo });
            submit(&mut *session, &system, 1);
            let (mut out, mut marks) = (Vec::new(), Marks::default());
            session.receive(frame, &mut out, &mut marks).unwrap();
            assert_eq!(told(&marks), [format!("0 {expected}")]);
            assert!(marks.wants_close());
            assert_eq!(written(&out), [answer]);
        }
    }
}
