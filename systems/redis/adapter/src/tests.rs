//! The adapter against the contract, with a server of a few lines as the peer.

mod hostile;

use std::io::{Read as _, Write as _};

use model::Seed;
use model::options::Value;
use sut::conformance::options::{read, text};
use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Marks, Session, System, Transaction, Workload};

use crate::control::Control;
use crate::options::{AppendFsync, Redis};
use crate::resp::{self, Reply};
use crate::session::{KEY_BYTES, SetSession, prefix, transaction};

const RUN: u64 = 0xfeed;

fn system() -> Redis {
    Redis {
        sync: AppendFsync::Always,
        replicas: 0,
        promotes: false,
        program: None,
        attach: Some(([127, 0, 0, 1], 6379).into()),
        in_flight_max: 64,
        payload_bytes: 16,
        run_mark: RUN,
    }
}

/// A server that takes every SET.
fn peer() -> Peer {
    let mut kept = Vec::new();
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let mut answers = Vec::new();
        while let Some((command, used)) = resp::reply(&kept).unwrap() {
            let Reply::Array(parts) = command else { panic!("{command:?} is no command") };
            let [Reply::Bulk(Some(verb)), Reply::Bulk(Some(key)), Reply::Bulk(Some(_))] =
                &parts[..]
            else {
                panic!("{parts:?} is no SET")
            };
            assert_eq!((verb.as_slice(), key.len()), (&b"SET"[..], KEY_BYTES));
            assert!(transaction(key, &prefix(RUN)).is_some());
            answers.extend_from_slice(b"+OK\r\n");
            kept.drain(..used);
        }
        answers
    })
}

/// Claim: the session keeps its side of the contract, one or many in flight, and the system its pure properties.
#[test]
fn conforms() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    for in_flight_max in [1, 64] {
        let session = || -> Box<dyn Session> { Box::new(SetSession::new(RUN, in_flight_max)) };
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
    }
    system_conformance(&system()).unwrap();
}

/// Claim: a key is of its trial and its transaction, and of no other.
#[test]
fn keys() {
    let mut session = SetSession::new(RUN, 4);
    let mut out = Vec::new();
    session.submit(&Transaction::new(0x12_3456_789a, 0, b"v"), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("assay:000000000000feed:000000123456789a\r\n$1\r\nv\r\n"), "{text}");
    let found = |key: &str| transaction(key.as_bytes(), &prefix(RUN));
    assert_eq!(found("assay:000000000000feed:000000123456789a"), Some(0x12_3456_789a));
    for other in ["assay:000000000000feee:0000000000000001", "assay:000000000000feed:1", "x", ""] {
        assert_eq!(found(other), None, "{other}");
    }
}

/// Claim: each answer is that of the command whose turn it is, one that was given up included; errors say their class;
/// what nobody asked for is an error of the protocol.
#[test]
fn answers_in_turn() {
    let mut session = SetSession::new(RUN, 8);
    let mut out = Vec::new();
    for id in [7, 8, 9, 10] {
        session.submit(&Transaction::new(id, 0, b"v"), &mut out);
    }
    let mut marks = Marks::default();
    session.abandon(7);
    let bytes = b"+OK\r\n-OOM command not allowed\r\n-ERR what\r\n+O";
    assert_eq!(session.receive(bytes, &mut out, &mut marks).unwrap(), bytes.len() - 2);
    let said = format!("{:?}", marks.list());
    for words in ["tx: 7", "tx: 8", "Rejected(Overloaded)", "tx: 9", "Rejected(BadRequest)"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(session.receive(b"+OK\r\n", &mut out, &mut marks).unwrap(), 5);
    marks.clear();
    let more = session.receive(b"+OK\r\n", &mut out, &mut marks).unwrap_err();
    assert!(more.0.contains("nobody waits for"), "{more}");
    assert_eq!(marks.unasked_bytes(), 5, "and how many bytes they are is counted");
    session.submit(&Transaction::new(11, 0, b"v"), &mut out);
    let number = session.receive(b":1\r\n", &mut out, &mut marks).unwrap_err();
    assert!(number.0.contains("no answer to SET"), "{number}");
}

fn build(deploy: &[(&str, Value)]) -> Result<Box<dyn System>, String> {
    read(crate::ADAPTER.build, RUN, deploy, &[]).map_err(|problems| problems.join("; "))
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let yes = || Value::Boolean(true);
    let one = || Value::Integer(1);
    for deploy in [
        vec![],
        vec![("appendfsync", text("no"))],
        vec![("attach", text("127.0.0.1:1")), ("in_flight_max", one())],
        vec![("replicas", one()), ("promote", yes())],
    ] {
        assert!(build(&deploy).is_ok(), "{deploy:?}");
    }
    for (deploy, words) in [
        (vec![("appendfsync", text("sometimes"))], "system.deploy.appendfsync"),
        (vec![("attach", text("here"))], "an address such as 127.0.0.1:6379, got `here`"),
        (
            vec![("attach", text("127.0.0.1:1")), ("appendfsync", text("no"))],
            "has its own settings",
        ),
        (vec![("promote", yes())], "a replica to promote"),
        (vec![("in_flight_max", text("many"))], "system.deploy.in_flight_max"),
        (vec![("fsync", text("no"))], "system.deploy.fsync"),
    ] {
        let said = build(&deploy).err().unwrap_or_default();
        assert!(said.contains(words), "{deploy:?}: {said}");
    }
}

/// Claim: an error is the answer to the question that it came for, and to no other.
#[test]
fn an_error_answers_one_question() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut server, _) = listener.accept().unwrap();
            let mut asked = [0; 512];
            for answer in ["-NOPERM no permission\r\n", "*2\r\n$4\r\nsave\r\n$2\r\nno\r\n"] {
                assert!(server.read(&mut asked).unwrap() > 0);
                server.write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut control = Control::open(address, clock::Clock::start()).unwrap();
        assert_eq!(control.setting("requirepass"), None);
        assert_eq!(control.setting("save").as_deref(), Some("no"));
    });
}

/// Claim: the README has the durability settings as its table.
#[test]
fn the_table_of_the_readme() {
    sut::conformance::expect_in_readme(&crate::durability::LIST, include_str!("../../README.md"));
}
