//! The adapter against the contract, with a member of a few lines as the peer.

use std::path::Path;

use model::Seed;
use model::options::{Options, Problems, Span, Value};
use sut::conformance::Seen::{Broken, BrokenBehind, Failed};
use sut::conformance::Step::{Close, Flood, Hush, Right, Say, Wait};
use sut::conformance::{
    Behaviour, Peer, Subject, hostile_conformance, session_conformance, system_conformance,
};
use sut::{Request, Session, System, Workload};

use crate::session::PutSession;

const RUN: u64 = 0xfeed;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 77\r\n\r\n\
{\"header\":{\"cluster_id\":\"1\",\"member_id\":\"2\",\"revision\":\"17\",\"raft_term\":\"2\"}}";

fn text(text: &str) -> Options {
    Options { value: Value::String(text.to_owned()), span: Span::default() }
}

fn build(deploy: &[(&str, Options)]) -> Result<Box<dyn System>, String> {
    let mut table = Options::empty();
    deploy.iter().for_each(|(key, value)| table.set(key, value.clone()));
    let (workload, folder) = (Options::empty(), Path::new("/"));
    let request =
        Request { deploy: &table, workload: &workload, folder, run_mark: RUN, load: None };
    let mut problems = Problems::default();
    let system = (crate::ADAPTER.build)(&request, &mut problems);
    let said = || problems.list.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; ");
    system.ok_or_else(said)
}

fn system() -> Box<dyn System> {
    build(&[("attach", text("127.0.0.1:2379"))]).unwrap()
}

fn session() -> Box<dyn Session> {
    Box::new(PutSession::new(RUN))
}

/// A member that takes every put.
fn peer() -> Peer {
    let mut kept = Vec::<u8>::new();
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some(end) = kept.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8(kept[..end].to_vec()).unwrap();
            assert!(head.starts_with("POST /v3/kv/put HTTP/1.1\r\n"), "{head}");
            let length = head.split("Content-Length: ").nth(1).unwrap();
            let length: usize = length.split('\r').next().unwrap().parse().unwrap();
            if kept.len() < end + 4 + length {
                break;
            }
            kept.drain(..end + 4 + length);
            out.extend_from_slice(ANSWER);
        }
        out
    })
}

#[rustfmt::skip]
static BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour { name: "garbage", does: "answers bytes of no protocol", greets: &[], answers: &[Say(b"hello\r\n\r\n")], seen: Broken },
    Behaviour { name: "no revision", does: "answers well without a revision", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")], seen: Broken },
    Behaviour { name: "a page", does: "answers as a web server", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html")], seen: Broken },
    Behaviour { name: "an endless body", does: "sends a body without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n", b"xxxxxxxxxxxxxxxx")], seen: Broken },
    Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "refused", does: "refuses the put", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\n\r\n{\"message\":\"x\"}")], seen: Failed },
    Behaviour { name: "unknown", does: "does not know what became of the put", greets: &[], answers: &[Say(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 15\r\n\r\n{\"message\":\"x\"}")], seen: Failed },
    Behaviour { name: "silence", does: "takes the put and says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "closed", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
];

/// Claim: the session keeps its side of the contract and sees what a hostile member does, and the system has its pure
/// properties.
#[test]
fn conforms() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &peer, &workload);
    session_conformance(&subject).unwrap();
    hostile_conformance(&subject, BEHAVIOURS, 64 << 10).unwrap();
    system_conformance(&*system()).unwrap();
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let number = |n| Options { value: Value::Integer(n), span: Span::default() };
    for deploy in [
        vec![],
        vec![("members", number(1)), ("options", text("unsafe-no-fsync"))],
        vec![("attach", text("127.0.0.1:1"))],
    ] {
        assert!(build(&deploy).is_ok(), "{deploy:?}");
    }
    for (deploy, words) in [
        (vec![("members", number(2))], "an odd number"),
        (vec![("options", text("--unsafe-no-fsync"))], "without its dashes"),
        (vec![("attach", text("here"))], "got `here`"),
        (vec![("attach", text("127.0.0.1:1")), ("members", number(3))], "their own settings"),
        (vec![("fsync", text("no"))], "system.deploy.fsync"),
    ] {
        let said = build(&deploy).err().unwrap_or_default();
        assert!(said.contains(words), "{deploy:?}: {said}");
    }
}
