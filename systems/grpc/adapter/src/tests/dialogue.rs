//! Bytes of a session, and what it says of answers.

use sut::{Mark, Marks, Session, System as _, Transaction};

use super::hostile_list::{SETTINGS, behaviours, fields, frame, head, message, trailers};
use super::{session, system};

pub(super) fn told(mark: &Mark, marks: &Marks) -> String {
    match mark {
        Mark::Reached { tx, stage: 0, .. } => format!("{tx} first_message"),
        Mark::Reached { tx, code, .. } => format!("{tx} committed {code}"),
        Mark::Ended { tx, answer } => {
            format!("{tx} {} {} {}", answer.outcome, answer.code, marks.text(answer))
        }
    }
}

/// Submits one call of a system whose server then says this; gives how it ended.
fn ends(session: &mut dyn Session, says: &[u8]) -> String {
    let (mut out, mut marks) = (Vec::new(), Marks::default());
    session.open(&mut out);
    session.receive(SETTINGS, &mut out, &mut marks).unwrap();
    session.submit(&Transaction::new(0, 0, &[]), &mut out);
    let result = session.receive(says, &mut out, &mut marks);
    match (marks.list().last(), result) {
        (Some(mark), _) => told(mark, &marks),
        (None, result) => format!("{result:?}"),
    }
}

/// Claim: a call is a POST of its method with gRPC's headers, the metadata and the deadline, and its message has its length.
#[test]
fn a_call() {
    let system = system(
        r#""method":"shop.v1.Orders/Get","message":"{\"id\":\"a\",\"count\":{{$tx}}}","deadline":"250ms","metadata":{"X-Id":"7"}"#,
    );
    let mut source = system.workload(model::Seed(1), 0, 1);
    let mut payload = Vec::new();
    let made = source.next(3, None, &mut payload);
    assert_eq!((made.kind, payload.as_slice()), (0, &b"\0\0\0\0\x05\x0a\x01a\x10\x03"[..]));
    let (mut session, mut out) = (session(&system), Vec::new());
    session.open(&mut out);
    session.receive(SETTINGS, &mut Vec::new(), &mut Marks::default()).unwrap();
    out.clear();
    assert_eq!(session.submit(&Transaction::new(3, 0, &payload), &mut out), 10);
    let text = String::from_utf8_lossy(&out);
    for part in [
        "/shop.v1.Orders/Get",
        "application/grpc",
        "grpc-timeout",
        "250000u",
        "x-id",
        "127.0.0.1:50051",
    ] {
        assert!(text.contains(part), "{part}: {text:?}");
    }
    assert!(out.ends_with(&payload));
}

/// Claim: each end has its class by the status's name, and says so; the table and expectations change it.
#[test]
fn ends_of_calls() {
    let get = |more: &str| session(&system(&format!("\"method\":\"shop.v1.Orders/Get\"{more}")));
    let fails = |code: &str, words: &str| {
        [head(1), trailers(1, &[("grpc-status", code), ("grpc-message", words)])].concat()
    };
    let order = || {
        [head(1), message(1, b"\0\0\0\0\x03", b"\x0a\x017"), trailers(1, &[("grpc-status", "0")])]
            .concat()
    };
    for (more, says, expected) in [
        ("", order(), "0 committed 0"),
        ("", fails("5", "no%20order%0a7"), "0 rejected(bad_request) 5 NOT_FOUND: no order 7"),
        ("", fails("8", ""), "0 rejected(limited) 8 RESOURCE_EXHAUSTED"),
        ("", fails("14", ""), "0 rejected(overloaded) 14 UNAVAILABLE"),
        ("", fails("10", ""), "0 rejected(conflict) 10 ABORTED"),
        ("", fails("4", ""), "0 rejected(server) 4 DEADLINE_EXCEEDED"),
        (r#","status":{"NOT_FOUND":"committed"}"#, fails("5", ""), "0 committed 5"),
        (
            r#","status":{"UNAVAILABLE":"limited"}"#,
            fails("14", ""),
            "0 rejected(limited) 14 UNAVAILABLE",
        ),
        (r#","expect":{"status":["NOT_FOUND","OK"]}"#, fails("5", ""), "0 committed 5"),
        (
            r#","expect":{"status":"NOT_FOUND"}"#,
            order(),
            "0 rejected(server) 0 OK: expected status NOT_FOUND",
        ),
        (r#","expect":{"json":{"/id":"7","/state":"UNKNOWN"}}"#, order(), "0 committed 0"),
        (
            r#","expect":{"json":{"/id":"8"}}"#,
            order(),
            "0 rejected(server) 0 OK: expected \"8\" at `/id` of a JSON body, got \"7\"",
        ),
        ("", frame(3, 0, 1, &[0, 0, 0, 8]), "0 rejected(bad_request) 1 CANCELLED: reset: CANCEL"),
        (
            "",
            frame(1, 5, 1, &fields(&[(":status", "502")])),
            "0 rejected(overloaded) 14 UNAVAILABLE: HTTP 502 Bad Gateway",
        ),
    ] {
        assert_eq!(ends(&mut *get(more), &says), expected, "{more}");
    }
}

/// Claim: metadata that is expected is looked for before and after the messages, whatever is expected of these, and neither
/// spares the other its look.
#[test]
fn expected_metadata() {
    let both = r#","expect":{"json":{"/state":"PAID"},"header":{"x-v":"1"}}"#;
    let alone = r#","expect":{"header":{"x-v":"1"}}"#;
    let missing = r#","expect":{"status":["NOT_FOUND","OK"],"header":{"x-v":"1"}}"#;
    let begins = |value: &str| {
        let list = [(":status", "200"), ("content-type", "application/grpc"), ("x-v", value)];
        frame(1, 4, 1, &fields(&list))
    };
    let (ok, not_found) = ([("grpc-status", "0")], [("grpc-status", "5")]);
    let paid = message(1, b"\0\0\0\0\x05", b"\x0a\x017\x10\x01");
    let sent = message(1, b"\0\0\0\0\x05", b"\x0a\x017\x10\x02");
    let none = "rejected(server) 0 OK: expected header x-v `1`, got none";
    let state = "rejected(server) 0 OK: expected \"PAID\" at `/state` of a JSON body, got \"SENT\"";
    for (more, says, expected) in [
        (both, [head(1), sent.clone(), trailers(1, &ok)].concat(), none),
        (both, [head(1), paid.clone(), trailers(1, &ok)].concat(), none),
        (both, [begins("1"), sent, trailers(1, &ok)].concat(), state),
        (both, [begins("1"), paid.clone(), trailers(1, &ok)].concat(), "committed 0"),
        (alone, [head(1), paid.clone(), trailers(1, &ok)].concat(), none),
        (
            alone,
            [begins("2"), paid.clone(), trailers(1, &ok)].concat(),
            "rejected(server) 0 OK: expected header x-v `1`, got `2`",
        ),
        (alone, [begins("1"), paid.clone(), trailers(1, &ok)].concat(), "committed 0"),
        (alone, [head(1), paid, trailers(1, &[ok[0], ("x-v", "1")])].concat(), "committed 0"),
        (
            missing,
            [head(1), trailers(1, &not_found)].concat(),
            "rejected(server) 5 NOT_FOUND: expected header x-v `1`, got none",
        ),
        (missing, [begins("1"), trailers(1, &not_found)].concat(), "committed 5"),
    ] {
        let mut session = session(&system(&format!("\"method\":\"shop.v1.Orders/Get\"{more}")));
        assert_eq!(ends(&mut *session, &says), format!("0 {expected}"), "{more}");
    }
}

/// Claim: an answer that breaks the protocol says how.
#[test]
fn words_of_broken_answers() {
    let list = behaviours();
    for (does, expected) in [
        ("ends without trailers", "INTERNAL: the answer ends without grpc-status"),
        ("has no message", "INTERNAL: expected one message, got 0"),
        ("has two messages", "INTERNAL: expected one message, got 2"),
        ("ends within a message", "INTERNAL: the answer ends within a message"),
        (
            "announces a message of 4 GiB",
            "INTERNAL: a message of 4294967295 bytes, more than workload.message_bytes_max",
        ),
        (
            "compresses what it was not asked to",
            "INTERNAL: a compressed message, and no encoding was accepted",
        ),
        ("is a web server", "UNKNOWN: the answer is not gRPC: its content-type is `text/html`"),
        ("refuses the stream", "UNAVAILABLE: not processed: REFUSED_STREAM"),
    ] {
        let (_, bytes, _) = list.iter().find(|(name, ..)| *name == does).unwrap();
        let mut session = session(&system("\"method\":\"shop.v1.Orders/Get\""));
        let end = ends(&mut *session, bytes);
        assert!(end.ends_with(expected), "{does}: {end}");
    }
}

/// Claim: a call whose answer broke is given up, so that the rest of it harms no other.
#[test]
fn a_broken_answer_is_given_up() {
    let mut session = session(&system("\"method\":\"shop.v1.Orders/Get\""));
    let (mut out, mut marks) = (Vec::new(), Marks::default());
    session.open(&mut out);
    session.receive(SETTINGS, &mut out, &mut marks).unwrap();
    session.submit(&Transaction::new(0, 0, &[]), &mut out);
    session.submit(&Transaction::new(1, 0, &[]), &mut out);
    out.clear();
    let says = [head(1), message(1, b"\x07\0\0\0\x03", b"abc"), message(1, b"", b"more"), head(3)]
        .concat();
    session.receive(&says, &mut out, &mut marks).unwrap();
    assert!(out.windows(13).any(|it| it == frame(3, 0, 1, &[0, 0, 0, 8])), "{out:?}");
    let rest =
        [message(3, b"\0\0\0\0\x03", b"\x0a\x017"), trailers(3, &[("grpc-status", "0")])].concat();
    session.receive(&rest, &mut out, &mut marks).unwrap();
    assert_eq!(told(marks.list().last().unwrap(), &marks), "1 committed 0");
}
