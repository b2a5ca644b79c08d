//! The adapter against the contract, with a server of a few lines as the peer.

mod hostile;

use isolation::observation;
use model::options::Value;
use model::{Seed, TxId};
use sut::conformance::options::{read, table, text};
use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Marks, Session, System, Transaction, Workload};

use crate::messages::answers;
use crate::observing::binary_list;
use crate::session::PostgresSession;
use crate::statements::{APPEND, READ, READ_ALL, RECORD, TRANSFER};
use crate::workload::split;

const RUN: u64 = 0xfeed;

fn build(deploy: &[(&str, Value)], workload: &[(&str, Value)]) -> Result<Box<dyn System>, String> {
    read(crate::ADAPTER.build, RUN, deploy, workload).map_err(|problems| problems.join("; "))
}

fn system(kind: &str) -> Box<dyn System> {
    build(&[("attach", text("127.0.0.1:5432"))], &[("kind", text(kind))]).unwrap()
}

fn session(kind: &str) -> PostgresSession {
    let sort = crate::options::sort(&table(&[("kind", text(kind))]), Seed(1));
    let tables = crate::statements::Tables { run_mark: RUN };
    let common = crate::session::Common {
        parameters: vec![("user", "assay".to_owned())],
        statements: tables.prepare(&sort.unwrap()),
        in_flight_max: 16,
    };
    PostgresSession::new(std::sync::Arc::new(common))
}

/// A server that takes every statement.
fn peer() -> Peer {
    let (mut kept, mut is_begun, mut bound) = (Vec::<u8>::new(), false, String::new());
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let mut out = Vec::new();
        loop {
            let at = usize::from(is_begun);
            let Some(length) = kept.get(at..at + 4) else { break };
            let length = usize::try_from(u32::from_be_bytes(length.try_into().unwrap())).unwrap();
            if kept.len() < at + length {
                break;
            }
            let body = &kept[at + 4..at + length];
            match (is_begun, kept[0]) {
                (false, _) => {
                    assert!(body.starts_with(&[0, 3, 0, 0]), "{body:?}");
                    answers::plain(b'R', &[0; 4], &mut out);
                    answers::plain(b'S', b"TimeZone\0UTC\0", &mut out);
                    answers::plain(b'K', &[0; 8], &mut out);
                    answers::ready(&mut out);
                    is_begun = true;
                }
                (true, b'P') => answers::plain(b'1', b"", &mut out),
                (true, b'B') => {
                    let name = body[1..].split(|byte| *byte == 0).next().unwrap();
                    bound = String::from_utf8(name.to_vec()).unwrap();
                    answers::plain(b'2', b"", &mut out);
                }
                (true, b'E') => executed(&bound, &mut out),
                (true, b'S') => answers::ready(&mut out),
                (true, kind) => panic!("a message {kind}"),
            }
            kept.drain(..at + length);
        }
        out
    })
}

fn executed(name: &str, out: &mut Vec<u8>) {
    let tag: &[u8] = match name {
        RECORD | APPEND => b"INSERT 0 1\0",
        TRANSFER => b"UPDATE 1\0",
        READ => {
            answers::row(&[Some(&binary_list(&[1, 2]))], out);
            b"SELECT 1\0"
        }
        READ_ALL => {
            for balance in [70_i64, 130] {
                answers::row(&[Some(&balance.to_be_bytes())], out);
            }
            b"SELECT 2\0"
        }
        other => panic!("a statement {other}"),
    };
    answers::plain(b'C', tag, out);
}

/// Claim: the session keeps its side of the contract with every workload, and the system its pure properties.
#[test]
fn conforms() {
    for kind in ["append", "list-append", "bank"] {
        let workload = || -> Box<dyn Workload> { system(kind).workload(Seed(1), 0, 1) };
        let session = || -> Box<dyn Session> { Box::new(session(kind)) };
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
        system_conformance(&*system(kind)).unwrap();
    }
}

/// A session on which the first `count` transactions of a workload are outstanding.
fn outstanding(kind: &str, count: TxId) -> PostgresSession {
    let (mut session, mut peer, mut out) = (session(kind), peer(), Vec::new());
    session.open(&mut out);
    while !session.is_ready() {
        let heard = peer(&std::mem::take(&mut out));
        session.receive(&heard, &mut out, &mut Marks::default()).unwrap();
    }
    let mut workload = system(kind).workload(Seed(1), 0, 1);
    for id in 0..count {
        let mut payload = Vec::new();
        let made = workload.next(id, None, &mut payload);
        session.submit(&Transaction::new(id, made.kind, &payload), &mut out);
    }
    session
}

/// Claim: a transaction is committed by the answer to its Sync and by nothing before; one that is refused, at its statement
/// or at its commit, is refused with its class, and the next one is answered in its turn.
#[test]
fn acknowledged_by_the_commit_alone() {
    let mut session = outstanding("append", 4);
    let (mut out, mut marks) = (Vec::new(), Marks::default());
    let mut done = Vec::new();
    answers::plain(b'2', b"", &mut done);
    answers::plain(b'C', b"INSERT 0 1\0", &mut done);
    session.receive(&done, &mut out, &mut marks).unwrap();
    assert!(marks.list().is_empty(), "the statement is done and not committed: {:?}", marks.list());
    let mut rest = Vec::new();
    answers::ready(&mut rest);
    // The second is refused at once, the third as it commits.
    answers::error("ERROR", "53100", "could not extend file", &mut rest);
    answers::ready(&mut rest);
    rest.extend_from_slice(&done);
    answers::error("ERROR", "40001", "could not serialize access", &mut rest);
    answers::ready(&mut rest);
    session.receive(&rest, &mut out, &mut marks).unwrap();
    let said = format!("{:?}", marks.list());
    for words in ["Reached { tx: 0", "Rejected(Overloaded)", "tx: 2", "Rejected(Conflict)"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    marks.clear();
    // A part of the answer is not all of it, and the end of the session is no refusal.
    let mut early = Vec::new();
    answers::ready(&mut early);
    let error = session.receive(&early, &mut out, &mut marks).unwrap_err();
    assert!(error.0.contains("unanswered"), "{error}");
    let mut end = Vec::new();
    answers::error("FATAL", "57P01", "terminating connection", &mut end);
    assert_eq!(outstanding("append", 1).receive(&end, &mut out, &mut marks).unwrap(), end.len());
    assert!(marks.wants_close() && marks.list().is_empty());
}

/// Claim: a server that recovers is asked again and has broken nothing; one that wants a password cannot be loaded.
#[test]
fn not_now() {
    let (mut out, mut marks, mut said) = (Vec::new(), Marks::default(), Vec::new());
    answers::error("FATAL", "57P03", "the database system is starting up", &mut said);
    let mut session = session("append");
    session.open(&mut out);
    assert_eq!(session.receive(&said, &mut out, &mut marks).unwrap(), said.len());
    assert!(marks.wants_close() && !session.is_ready() && marks.list().is_empty());
    session.reset();
    session.open(&mut out);
    said.clear();
    answers::plain(b'R', &[0, 0, 0, 10], &mut said);
    let error = session.receive(&said, &mut out, &mut Marks::default()).unwrap_err();
    assert!(error.0.contains("a demand for a password"), "{error}");
}

/// Claim: what reads returned is observed once the transaction has committed, and never of one that was refused.
#[test]
fn reads_are_observed() {
    for (kind, is_right) in [
        ("list-append", (|bytes| observation::lists(bytes).is_ok()) as fn(&[u8]) -> bool),
        ("bank", |bytes| {
            observation::transfer(bytes) == Ok(true)
                || observation::balances(bytes).is_ok_and(|found| found == [70, 130])
        }),
    ] {
        let mut seen = 0;
        let (mut live, mut refused) = (outstanding(kind, 12), outstanding(kind, 12));
        let mut workload = system(kind).workload(Seed(1), 0, 1);
        for id in 0..12 {
            let mut payload = Vec::new();
            workload.next(id, None, &mut payload);
            let (statements, wire) = split(&payload).unwrap();
            assert!(statements.count() > 0);
            let mut good = peer();
            let _ = good(b"\0\0\0\x08\0\x03\0\0");
            let good = good(wire);
            let mut marks = Marks::default();
            live.receive(&good, &mut Vec::new(), &mut marks).unwrap();
            assert_eq!(marks.list().len(), 1);
            seen += marks.observations().iter().filter(|one| is_right(one.bytes)).count();
            // The same, refused at its commit.
            let mut bad = good[..good.len() - 6].to_vec();
            answers::error("ERROR", "40001", "could not serialize access", &mut bad);
            answers::ready(&mut bad);
            let mut marks = Marks::default();
            refused.receive(&bad, &mut Vec::new(), &mut marks).unwrap();
            assert!(marks.observations().is_empty() && marks.list().len() == 1);
        }
        assert!(seen >= 8, "{kind}: {seen}");
    }
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let table = |key, value| table(&[(key, text(value))]).value;
    for deploy in [
        vec![],
        vec![("isolation", text("serializable"))],
        vec![("settings", table("fsync", "off"))],
        vec![("attach", text("127.0.0.1:1")), ("login", text("me"))],
    ] {
        assert!(build(&deploy, &[]).is_ok(), "{deploy:?}");
    }
    for (deploy, words) in [
        (vec![("isolation", text("snapshot"))], "system.deploy.isolation"),
        (vec![("attach", text("here"))], "got `here`"),
        (
            vec![("attach", text("127.0.0.1:1")), ("settings", table("fsync", "off"))],
            "its own settings",
        ),
        (vec![("settings", table("fsync off; x", "y"))], "the name of a setting"),
        (vec![("login", text("me"))], "for a server that is attached to"),
        (vec![("fsync", text("no"))], "system.deploy.fsync"),
    ] {
        let said = build(&deploy, &[]).err().unwrap_or_default();
        assert!(said.contains(words), "{deploy:?}: {said}");
    }
    assert!(build(&[], &[("payload", text("2MiB"))]).is_err());
    assert!(build(&[], &[("kind", text("list-append")), ("payload", text("1B"))]).is_err());
}

/// Claim: the README has the durability settings as its table.
#[test]
fn the_table_of_the_readme() {
    sut::conformance::expect_in_readme(&crate::durability::LIST, include_str!("../../README.md"));
}
