//! The adapter against the contract, with a server of a few lines as the peer.

mod hostile;

use std::sync::Arc;

use model::Seed;
use model::options::Value;
use sut::conformance::options::{read, text};
use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Marks, Session, System, Transaction, Workload};

use crate::session::{Common, PublishSession};
use crate::stream;
use crate::workload::{body, told};

const RUN: u64 = 0xfeed;

fn build(deploy: &[(&str, Value)]) -> Result<Box<dyn System>, String> {
    read(crate::ADAPTER.build, RUN, deploy, &[]).map_err(|problems| problems.join("; "))
}

fn system() -> Box<dyn System> {
    build(&[("attach", text("127.0.0.1:4222"))]).unwrap()
}

fn session(has_ids: bool) -> PublishSession {
    let common = Common {
        run_mark: RUN,
        stream: stream::name(RUN),
        subject: stream::subject(RUN),
        in_flight_max: 16,
        has_ids,
    };
    PublishSession::new(Arc::new(common), "c0")
}

/// A server whose stream takes every message.
fn peer() -> Peer {
    let (mut kept, mut place) = (Vec::<u8>::new(), 0);
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some(end) = kept.windows(2).position(|pair| pair == b"\r\n") {
            let line = String::from_utf8(kept[..end].to_vec()).unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            let mut used = end + 2;
            match words[0] {
                "CONNECT" => out.extend_from_slice(b"INFO {\"version\":\"2.12.1\"}\r\n"),
                "SUB" => assert!(words[1].starts_with("_INBOX.") && words[1].ends_with(".*")),
                "PING" => out.extend_from_slice(b"PONG\r\n"),
                "PUB" | "HPUB" => {
                    let size: usize = words.last().unwrap().parse().unwrap();
                    if kept.len() < used + size + 2 {
                        break;
                    }
                    let headers =
                        if words[0] == "HPUB" { words[3].parse().unwrap() } else { 0_usize };
                    let (tx, is_right) = told(RUN, &kept[used + headers..used + size]).unwrap();
                    assert!(is_right && words[1] == stream::subject(RUN));
                    assert!(words[2].ends_with(&format!(".{tx:016x}")), "{line}");
                    used += size + 2;
                    place += 1;
                    let ack = format!("{{\"stream\":\"{}\", \"seq\":{place}}}", stream::name(RUN));
                    let message = format!("MSG {} 1 {}\r\n{ack}\r\n", words[2], ack.len());
                    out.extend_from_slice(message.as_bytes());
                }
                other => panic!("{other}"),
            }
            kept.drain(..used);
        }
        out
    })
}

/// Claim: the session keeps its side of the contract, with ids of messages and without, and the system its pure properties.
#[test]
fn conforms() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    for has_ids in [false, true] {
        let session = || -> Box<dyn Session> { Box::new(session(has_ids)) };
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
    }
    system_conformance(&*system()).unwrap();
}

/// Claim: a body names its transaction, and one that differs in a bit is not taken for the one that was sent.
#[test]
fn bodies_tell_of_damage() {
    let mut held = Vec::new();
    body(RUN, 77, 64, &mut held);
    assert_eq!(held.len(), 64);
    sut::conformance::expect_damage_told(&held, 77, |held| told(RUN, held));
    assert!(told(RUN + 1, &held).is_some_and(|(_, is_right)| !is_right), "another trial's");
}

/// Claim: answers are told apart by their subjects, in any order; one to a transaction that was given up is taken, and one
/// of another life of the connection is not.
#[test]
fn answers_in_any_order() {
    let (mut session, mut out) = (session(false), Vec::new());
    session.open(&mut out);
    let mut marks = Marks::default();
    session.receive(b"INFO {}\r\nPONG\r\n", &mut out, &mut marks).unwrap();
    for id in 0..4 {
        session.submit(&Transaction::new(id, 0, b"x"), &mut out);
    }
    session.abandon(2);
    let stored = |life: u32, id: u64| {
        let ack = format!("{{\"stream\":\"{}\",\"seq\":9}}", stream::name(RUN));
        let inbox = format!("_INBOX.{RUN:016x}.c0.{life}.{id:016x}");
        format!("MSG {inbox} 1 {}\r\n{ack}\r\n", ack.len()).into_bytes()
    };
    for id in [3, 2, 0] {
        session.receive(&stored(0, id), &mut out, &mut marks).unwrap();
    }
    let said = format!("{:?}", marks.list());
    assert!(said.find("tx: 3") < said.find("tx: 2") && said.contains("tx: 0"), "{said}");
    let none =
        format!("HMSG _INBOX.{RUN:016x}.c0.0.{:016x} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", 1);
    session.receive(none.as_bytes(), &mut out, &mut marks).unwrap();
    assert!(format!("{:?}", marks.list()).contains("Rejected(Server)"));
    let again = session.receive(&stored(0, 3), &mut out, &mut marks).unwrap_err();
    assert!(again.0.contains("no request outstanding"), "{again}");
    session.reset();
    session.open(&mut out);
    session.receive(b"PONG\r\n", &mut out, &mut marks).unwrap();
    session.submit(&Transaction::new(5, 0, b"x"), &mut out);
    assert!(session.receive(&stored(0, 5), &mut out, &mut marks).is_err());
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let number = |n| Value::Integer(n);
    for deploy in [
        vec![],
        vec![("sync_interval", text("always")), ("version", text("2.12.1"))],
        vec![("sync_interval", text("10s")), ("servers", number(1))],
        vec![("attach", text("127.0.0.1:1"))],
    ] {
        assert!(build(&deploy).is_ok(), "{deploy:?}");
    }
    for (deploy, words) in [
        (vec![("sync_interval", text("often"))], "got `often`"),
        (vec![("servers", number(2))], "an odd number"),
        (vec![("version", text("1.0"))], "system.deploy.version"),
        (vec![("attach", text("here"))], "got `here`"),
        (vec![("attach", text("127.0.0.1:1")), ("servers", number(3))], "their own settings"),
        (vec![("sync", text("no"))], "system.deploy.sync"),
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
