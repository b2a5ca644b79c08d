//! The adapter against the contract: with a program of a few lines as the peer, and with the example of the book as a
//! real process.

mod again;
mod example;
mod hostile;
mod programs;

use std::sync::Arc;

use model::Seed;
use model::options::Value;
use sut::conformance::options::{read, text, texts};
use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Marks, Session, System, Transaction, Workload};

use crate::line::{LINE_BYTES_MAX, Vocabulary};
use crate::session::LineSession;
use crate::workload::Letters;

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn words(stages: &[&str], kinds: &[&str]) -> Arc<Vocabulary> {
    let steps = list(&["queued"]);
    Arc::new(Vocabulary { stages: list(stages), kinds: list(kinds), steps, keys: None })
}

fn session(words: &Arc<Vocabulary>, in_flight_max: u32) -> LineSession {
    LineSession::new(Arc::clone(words), Arc::default(), in_flight_max)
}

fn letters() -> Box<dyn Workload> {
    Box::new(Letters::of(Seed(3), 9, 2))
}

/// The ids in the lines of a request.
fn ids(bytes: &[u8]) -> Vec<u64> {
    let text = std::str::from_utf8(bytes).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .flat_map(|line| {
            assert_eq!(line["do"], "submit");
            line["tx"].as_array().unwrap().clone()
        })
        .map(|tx| tx["id"].as_u64().unwrap())
        .collect()
}

/// A program that takes every transaction through both stages, in two lines.
fn peer() -> Peer {
    Box::new(|bytes| {
        let mut answers = String::new();
        for stage in ["accepted", "committed"] {
            let said: Vec<String> = ids(bytes)
                .iter()
                .map(|id| format!("{{\"id\":{id},\"reached\":\"{stage}\",\"code\":200}}"))
                .collect();
            if !said.is_empty() {
                answers += &format!("{{\"observed\":[{}]}}\n", said.join(","));
            }
        }
        answers.into_bytes()
    })
}

/// Claim: the session keeps its side of the contract, one or many in flight, and the system its pure properties.
#[test]
fn conforms() {
    let words = words(&["accepted", "committed"], &["put", "get"]);
    for in_flight_max in [1, 64] {
        let make = || -> Box<dyn Session> { Box::new(session(&words, in_flight_max)) };
        session_conformance(&Subject::new(&make, &peer, &letters).ladder(2, 1)).unwrap();
    }
    let system = build(&[("command", text("true")), ("stages", texts(&["a", "b"]))]).unwrap();
    system_conformance(&*system).unwrap();
}

/// Claim: what leaves together is one line, with what differs from the ordinary and nothing else; a line that grows long
/// is closed, and another begun.
#[test]
fn lines_of_transactions() {
    let mut session = session(&words(&["committed"], &["put", "get"]), 64);
    let mut out = Vec::new();
    session.submit(&Transaction::new(1, 0, b"a\"b"), &mut out);
    let second = Transaction { client: 3, attempt: 2, ..Transaction::new(2, 1, b"") };
    session.submit(&second, &mut out);
    session.gathered(&mut out);
    assert_eq!(
        String::from_utf8(std::mem::take(&mut out)).unwrap(),
        "{\"do\":\"submit\",\"tx\":[{\"id\":1,\"kind\":\"put\",\"payload\":\"a\\\"b\"},\
         {\"id\":2,\"kind\":\"get\",\"client\":3,\"attempt\":2}]}\n"
    );
    let long = vec![b'x'; 100 << 10];
    for id in 10..30 {
        session.submit(&Transaction::new(id, 0, &long), &mut out);
    }
    session.gathered(&mut out);
    assert_eq!(ids(&out), (10..30).collect::<Vec<_>>());
    assert!(out.split(|byte| *byte == b'\n').all(|line| line.len() < LINE_BYTES_MAX));
}

/// Claim: of one transaction stages come upwards, and what it returned before its end; afterwards it is nobody's, and one
/// that was given up still is itself.
#[test]
fn observations() {
    let mut session = session(&words(&["accepted", "committed"], &["put"]), 64);
    for id in 1..5 {
        session.submit(&Transaction::new(id, 0, b""), &mut Vec::new());
    }
    session.abandon(3);
    let line = br#"{"observed":[{"id":1,"reached":"accepted","seen":"v","steps":[["queued",5,6]]},
        {"id":2,"ended":"limited","code":429,"text":"too fast"},{"id":3,"ended":"committed"}]}"#;
    let line = [line.iter().copied().filter(|byte| *byte != b'\n').collect(), vec![b'\n']].concat();
    let mut marks = Marks::default();
    assert_eq!(session.receive(&line, &mut Vec::new(), &mut marks).unwrap(), line.len());
    let said = format!("{:?}", marks.list());
    for words in ["tx: 1, stage: 0", "tx: 2", "Rejected(Limited), code: 429", "tx: 3, stage: 1"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(marks.observations().iter().map(|one| one.bytes.to_vec()).next().unwrap(), b"v");
    for (line, why) in [
        (r#"{"id":1,"reached":"accepted"}"#, "past it already"),
        (r#"{"id":2,"reached":"committed"}"#, "not outstanding here"),
        (r#"{"id":7,"reached":"committed"}"#, "not outstanding here"),
        (r#"{"id":4,"reached":"verified"}"#, "`verified` that there is not"),
        (r#"{"id":4,"ended":"lost"}"#, "`lost` that there is not"),
        (r#"{"id":4}"#, "nothing at all"),
        (r#"{"id":4,"reached":"accepted","ended":"server"}"#, "both"),
        (r#"{"id":4,"steps":[["dequeued",1,2]]}"#, "a step `dequeued`"),
        (r#"{"id":4,"reach":"accepted"}"#, "unknown field"),
    ] {
        let line = format!("{{\"observed\":[{line}]}}\n");
        let error =
            session.receive(line.as_bytes(), &mut Vec::new(), &mut Marks::default()).unwrap_err();
        assert!(error.0.contains(why), "{line}: {error}");
    }
}

fn build(deploy: &[(&str, Value)]) -> Result<Box<dyn System>, String> {
    read(crate::ADAPTER.build, 7, deploy, &[]).map_err(|problems| problems.join("; "))
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let command = || ("command", texts(&["python3", "client.py"]));
    assert!(build(&[command()]).is_ok());
    assert!(build(&[command(), ("steps", texts(&["queued"]))]).is_ok());
    for (deploy, words) in [
        (vec![], "`system.deploy.command` is missing"),
        (vec![("command", texts(&[]))], "names no program"),
        (vec![command(), ("stages", texts(&["On-Chain"]))], "is no name"),
        (vec![command(), ("stages", texts(&["a", "a"]))], "stands here twice"),
        (vec![command(), ("stages", texts(&["a"])), ("steps", texts(&["a"]))], "stands here twice"),
        (vec![command(), ("in_flight", text("1"))], "system.deploy.in_flight"),
    ] {
        let said = build(&deploy).err().unwrap_or_default();
        assert!(said.contains(words), "{deploy:?}: {said}");
    }
}
