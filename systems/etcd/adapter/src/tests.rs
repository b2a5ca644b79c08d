//! The adapter against the contract, with a member of a few lines as the peer.

use model::Seed;
use model::options::Value;
use sut::conformance::Seen::{self, Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Flood, Hush, Right, Say, Wait};
use sut::conformance::options::{read, text};
use sut::conformance::{
    Behaviour, Peer, Step, Subject, hostile_conformance, session_conformance, system_conformance,
};
use sut::{Mark, Marks, Session, System, Transaction, Workload};

use crate::session::PutSession;

const RUN: u64 = 0xfeed;

/// The most unread bytes that a session may leave: a frame that is not whole.
const UNREAD_MAX: usize = 9 + 16_384;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// A `PutResponse` whose header has the revision 17, after its prefix.
const ANSWER: &[u8] = b"\0\0\0\0\x06\x0a\x04\x08\x01\x18\x11";

const HEAD: [(&str, &str); 2] = [(":status", "200"), ("content-type", "application/grpc")];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Headers, each without a place in any table; the flags are END_STREAM (1) or none.
fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(1, 4 | flags, stream, &block)
}

/// An answer with this body and this status.
fn answer(stream: u32, body: &[u8], status: &str) -> Vec<u8> {
    let status = headers(stream, 1, &[("grpc-status", status)]);
    [headers(stream, 0, &HEAD), frame(0, 0, stream, body), status].concat()
}

/// An answer without a body, whose status stands in its headers.
fn refusal(stream: u32, status: &str, words: &str) -> Vec<u8> {
    headers(stream, 1, &[HEAD[0], HEAD[1], ("grpc-status", status), ("grpc-message", words)])
}

fn build(deploy: &[(&str, Value)]) -> Result<Box<dyn System>, String> {
    read(crate::ADAPTER.build, RUN, deploy, &[]).map_err(|problems| problems.join("; "))
}

fn system() -> Box<dyn System> {
    build(&[("attach", text("127.0.0.1:2379"))]).unwrap()
}

fn session() -> Box<dyn Session> {
    Box::new(PutSession::new(RUN, 16))
}

/// A member that takes every put, and answers the second of three before the first.
fn peer() -> Peer {
    let (mut kept, mut has_greeted, mut held) = (Vec::<u8>::new(), false, Vec::new());
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let mut out = Vec::new();
        if !has_greeted && kept.len() >= PREFACE.len() {
            assert!(kept.starts_with(PREFACE));
            kept.drain(..PREFACE.len());
            has_greeted = true;
            out.extend_from_slice(SETTINGS);
        }
        while has_greeted && kept.len() >= 9 {
            let length = usize::from(kept[1]) << 8 | usize::from(kept[2]);
            let Some(payload) = kept.get(9..9 + length) else { break };
            let (kind, flags) = (kept[3], kept[4]);
            let stream = u32::from_be_bytes(kept[5..9].try_into().unwrap());
            if kind == 1 {
                let path = payload.windows(20).any(|part| part == b"/etcdserverpb.KV/Put");
                assert!(path && flags == 4, "{payload:?}");
            }
            if kind == 0 {
                assert!(payload.windows(6).any(|part| part == b"assay/") && flags == 1);
                if stream % 6 == 1 && held.is_empty() {
                    held = answer(stream, ANSWER, "0");
                } else {
                    out.extend(answer(stream, ANSWER, "0"));
                    out.append(&mut held);
                }
            }
            kept.drain(..9 + length);
        }
        // The held answer comes when nothing more was asked.
        out.append(&mut held);
        out
    })
}

/// Something that a member may do to a put, which is on stream 1: its name, its bytes, and the reaction that is expected.
fn behaviours() -> Vec<(&'static str, Vec<u8>, Seen)> {
    let status = |status| headers(1, 1, &[("grpc-status", status)]);
    let said = |frames: &[Vec<u8>]| frames.concat();
    let (head, right) = (headers(1, 0, &HEAD), answer(1, ANSWER, "0"));
    let prefix = |prefix: &[u8]| [prefix, &ANSWER[5..]].concat();
    vec![
        ("answers bytes of no protocol", b"hello\r\n\r\n".to_vec(), Broken),
        ("answers in HTTP/1.1", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), Broken),
        ("answers on another's stream", answer(9, ANSWER, "0"), Broken),
        ("answers twice", said(&[right.clone(), right.clone()]), BrokenBehind),
        (
            "sends a message before the headers",
            said(&[frame(0, 0, 1, ANSWER), status("0")]),
            Broken,
        ),
        (
            "sends trailers that cannot be read",
            said(&[head.clone(), frame(1, 5, 1, &[0xff; 8])]),
            Broken,
        ),
        ("answers well without a message", said(&[head.clone(), status("0")]), Failed),
        ("answers well in its headers alone", refusal(1, "0", ""), Failed),
        ("answers well without a revision", answer(1, b"\0\0\0\0\0", "0"), Failed),
        (
            "answers well with a message that is none",
            answer(1, b"\0\0\0\0\x04\x0a\x04\x08\x01", "0"),
            Failed,
        ),
        ("answers well with two messages", answer(1, &[ANSWER, ANSWER].concat(), "0"), Failed),
        ("announces a message of 4 GiB", answer(1, &prefix(b"\0\xff\xff\xff\xff"), "0"), Failed),
        ("compresses what it was not asked to", answer(1, &prefix(b"\x01\0\0\0\x06"), "0"), Failed),
        ("ends without a status", said(&[head.clone(), frame(0, 1, 1, ANSWER)]), Failed),
        ("has a status that is no number", answer(1, ANSWER, "fine"), Failed),
        ("has a status that there is not", answer(1, ANSWER, "99999"), Failed),
        (
            "has its status before its message",
            said(&[
                headers(1, 0, &[HEAD[0], HEAD[1], ("grpc-status", "0")]),
                frame(0, 1, 1, ANSWER),
            ]),
            Failed,
        ),
        (
            "is a web server",
            said(&[
                headers(1, 0, &[HEAD[0], ("content-type", "text/html")]),
                frame(0, 0, 1, ANSWER),
                status("0"),
            ]),
            Failed,
        ),
        ("says 503 as a proxy does", headers(1, 1, &[(":status", "503")]), Failed),
        ("refuses the put", refusal(1, "3", "etcdserver: request is too large"), Failed),
        ("fails after a message", answer(1, ANSWER, "14"), Failed),
        ("resets the stream", said(&[head, frame(3, 0, 1, &[0, 0, 0, 2])]), Failed),
        ("refuses the stream", frame(3, 0, 1, &[0, 0, 0, 7]), Failed),
        ("goes without having processed it", frame(7, 0, 0, &[0; 8]), Failed),
        (
            "goes, and answers what it has",
            said(&[frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]), right.clone()]),
            Fine,
        ),
        (
            "cuts its message into frames",
            said(&[
                headers(1, 0, &HEAD),
                frame(0, 0, 1, &ANSWER[..3]),
                frame(0, 0, 1, &ANSWER[3..]),
                status("0"),
            ]),
            Fine,
        ),
        ("pings first", said(&[frame(6, 0, 0, b"12345678"), right]), Fine),
    ]
}

/// Claim: the session keeps its side of the contract and sees what a hostile member does, and the system has its pure
/// properties.
#[test]
fn conforms() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &peer, &workload);
    session_conformance(&subject).unwrap();
    system_conformance(&*system()).unwrap();
    let said = behaviours();
    let steps: Vec<[Step<'_>; 2]> = said
        .iter()
        .map(|(_, bytes, seen)| [Say(bytes), if *seen == Failed { Hush } else { Wait(0) }])
        .collect();
    let of = |does, answers, seen| Behaviour { name: does, does, greets: &[], answers, seen };
    let of_said = said.iter().zip(&steps).map(|((does, _, seen), steps)| of(*does, steps, *seen));
    let (head, zeros) = (headers(1, 0, &HEAD), frame(0, 0, 1, &[0; 500]));
    let others: [(&str, &[Step<'_>], Seen); 4] = [
        ("sends a body without end", &[Flood(&head, &zeros)], Broken),
        ("answers again after a while", &[Right, Wait(60), Right], BrokenBehind),
        ("takes the put and says nothing", &[Hush], Failed),
        ("closes instead of answering", &[Close], Failed),
    ];
    let of_others = others.iter().map(|(does, steps, seen)| of(*does, steps, *seen));
    let all: Vec<Behaviour<'_>> = of_said.chain(of_others).collect();
    hostile_conformance(&subject, &all, UNREAD_MAX).unwrap();
}

/// Claim: a put is refused only where a member says so that will not choose it, and else unknown, with the member's words.
#[test]
fn meanings_of_answers() {
    let full = "etcdserver: mvcc: database space exceeded";
    let many = "etcdserver: too many requests";
    for (said, expected) in [
        (answer(1, ANSWER, "0"), "committed 0"),
        (
            refusal(1, "3", "etcdserver: key is not provided"),
            "rejected(bad_request) 3 etcdserver: key is not provided",
        ),
        (
            refusal(1, "12", "unknown service etcdserverpb.KV"),
            "rejected(bad_request) 12 unknown service etcdserverpb.KV",
        ),
        (refusal(1, "8", many), "rejected(overloaded) 8 etcdserver: too many requests"),
        (refusal(1, "2", many), "rejected(overloaded) 2 etcdserver: too many requests"),
        (refusal(1, "8", full), "unknown 8 etcdserver: mvcc: database space exceeded"),
        (
            refusal(1, "14", "etcdserver: request timed out"),
            "unknown 14 etcdserver: request timed out",
        ),
        (refusal(1, "14", "etcdserver: leader changed"), "unknown 14 etcdserver: leader changed"),
        (refusal(1, "4", "context deadline exceeded"), "unknown 4 context deadline exceeded"),
        (refusal(1, "15", "etcdserver: corrupt cluster"), "unknown 15 etcdserver: corrupt cluster"),
        (refusal(1, "77", ""), "unknown 77 "),
        (answer(1, b"\0\0\0\0\0", "0"), "unknown 13 an answer without a revision"),
        (answer(1, ANSWER, ""), "unknown 13 a status that is none: ``"),
        (headers(1, 1, &[(":status", "502")]), "unknown 502 HTTP 502, which is not gRPC: ``"),
        (frame(3, 0, 1, &[0, 0, 0, 8]), "unknown 13 reset: CANCEL"),
        (frame(3, 0, 1, &[0, 0, 0, 7]), "rejected(overloaded) 14 not processed: REFUSED_STREAM"),
    ] {
        let (mut session, mut out, mut marks) = (session(), Vec::new(), Marks::default());
        session.receive(SETTINGS, &mut out, &mut marks).unwrap();
        session.submit(&Transaction::new(5, 0, b"value"), &mut out);
        session.receive(&said, &mut out, &mut marks).unwrap();
        let [mark] = marks.list() else { panic!("{expected}: {:?}", marks.list()) };
        let found = match mark {
            Mark::Reached { tx: 5, stage: 0, code, .. } => format!("committed {code}"),
            Mark::Ended { tx: 5, answer } => {
                format!("{} {} {}", answer.outcome, answer.code, marks.text(answer))
            }
            mark => panic!("{mark:?}"),
        };
        assert_eq!(found, expected);
    }
}

/// Claim: if a member takes fewer streams than the option asks for, the error says what to write.
#[test]
fn few_streams() {
    let settings = frame(4, 0, 0, &[0, 3, 0, 0, 0, 9]);
    let error = session().receive(&settings, &mut Vec::new(), &mut Marks::default()).unwrap_err();
    assert!(error.0.ends_with("write in_flight_max = 9"), "{error:?}");
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let number = |n| Value::Integer(n);
    for deploy in [
        vec![],
        vec![("members", number(1)), ("options", text("unsafe-no-fsync"))],
        vec![("attach", text("127.0.0.1:1")), ("in_flight_max", number(16))],
    ] {
        assert!(build(&deploy).is_ok(), "{deploy:?}");
    }
    for (deploy, words) in [
        (vec![("members", number(2))], "an odd number"),
        (vec![("options", text("--unsafe-no-fsync"))], "without its dashes"),
        (vec![("attach", text("here"))], "got `here`"),
        (vec![("in_flight_max", number(0))], "system.deploy.in_flight_max"),
        (vec![("attach", text("127.0.0.1:1")), ("members", number(3))], "their own settings"),
        (vec![("fsync", text("no"))], "system.deploy.fsync"),
    ] {
        let said = build(&deploy).err().unwrap_or_default();
        assert!(said.contains(words), "{deploy:?}: {said}");
    }
}

/// Claim: the README has the durability settings as its table.
#[test]
fn the_table_of_the_readme() {
    sut::conformance::expect_in_readme(&crate::durability::LIST, include_str!("../../README.md"));
}
