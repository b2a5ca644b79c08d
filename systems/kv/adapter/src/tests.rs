//! The adapter against the contract, with a real replica stepped in virtual time as the peer.

mod hostile;

use std::sync::atomic::Ordering;

use kv_node::database::Limits;
use kv_node::ledger::Ledger;
use kv_node::protocol::{self, Why};
use kv_node::{CLIENTS_LISTENER, KvNode};
use model::Seed;
use model::options::{Options, Value};
use process::rehearsal::Rehearsal;
use sut::conformance::options::{read, table, text};
use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Marks, Session, System, Transaction, Workload};

use crate::options::Kv;
use crate::session::{Common, KvSession, nobody};
use crate::workload::Sort;

const RUN: u64 = 0xfeed;

fn system(sort: Sort) -> Kv {
    Kv {
        program: None,
        arguments: Vec::new(),
        attach: Some(([127, 0, 0, 1], 1).into()),
        identity: None,
        replicas: 3,
        tls: true,
        keeps: true,
        ledger: true,
        election_timeout_ms: 1000,
        in_flight_max: 64,
        resends: false,
        sort,
        workload: Options::empty(),
        value_bytes: 16,
        clients: 16,
        run_mark: RUN,
        leaders: Vec::new(),
    }
}

/// What transactions of a kind do.
fn sort(kind: &str) -> Sort {
    crate::options::sort(&table(&[("kind", text(kind))]), Seed(1)).unwrap()
}

/// A replica on one connection.
fn peer() -> Peer {
    let mut node = Rehearsal::new(KvNode::new(0, Limits::default(), Ledger::nowhere()));
    let connection = node.open(CLIENTS_LISTENER);
    Box::new(move |bytes| {
        if !node.is_open(connection) {
            return Vec::new();
        }
        node.send(connection, bytes);
        let now = node.now();
        node.advance(now);
        node.take_bytes(connection)
    })
}

fn common(resends: bool) -> Common {
    Common { resends, ..system(Sort::MapAndList).common(0) }
}

/// Claim: the session keeps its side of the contract with each workload, and the system its pure properties.
#[test]
fn conforms() {
    for kind in ["map-and-list", "proposal", "put", "list-append", "bank"] {
        let sort = sort(kind);
        let workload = || -> Box<dyn Workload> { system(sort).workload(Seed(1), 0, 1) };
        let session =
            || -> Box<dyn Session> { Box::new(KvSession::new(system(sort).common(0), nobody())) };
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
        system_conformance(&system(sort)).unwrap();
    }
}

/// A session that has been welcomed and has submitted transactions 1 and 2.
fn submitted(resends: bool) -> (KvSession, std::sync::Arc<std::sync::atomic::AtomicU8>) {
    let leader = nobody();
    let mut session = KvSession::new(common(resends), leader.clone());
    let (mut out, mut marks) = (Vec::new(), Marks::default());
    session.open(&mut out);
    assert!(!session.is_ready());
    let mut welcome = Vec::new();
    let said = protocol::Welcome { version: 1, replica: 0, leader: 0, position: 9 };
    protocol::write_welcome(&mut welcome, &said);
    session.receive(&welcome, &mut out, &mut marks).unwrap();
    assert!(session.is_ready());
    for id in [1, 2] {
        session.submit(&Transaction::new(id, 0, b"x"), &mut out);
    }
    session.gathered(&mut out);
    (session, leader)
}

/// Claim: a replica that does not lead sends the connection to the one that does; what it did not take is refused where
/// nothing is sent again, and left to be sent again where that is planned.
#[test]
fn who_does_not_lead_sends_us_on() {
    for resends in [false, true] {
        let (mut session, leader) = submitted(resends);
        let (mut refusal, mut out, mut marks) = (Vec::new(), Vec::new(), Marks::default());
        protocol::write_refused(&mut refusal, 1, Why::NotLeader, 2);
        session.receive(&refusal, &mut out, &mut marks).unwrap();
        assert!(marks.wants_close());
        assert_eq!(leader.load(Ordering::Relaxed), 2);
        assert_eq!(marks.list().len(), if resends { 0 } else { 2 });
    }
}

/// Claim: each status is said as what it means for the client, and what may have been executed before is unknown.
#[test]
fn what_statuses_mean() {
    for (status, words) in [
        (4, "Rejected(Conflict)"),
        (1, "Rejected(BadRequest)"),
        (6, "Rejected(Overloaded)"),
        (7, "Unknown"),
        (8, "Unknown"),
    ] {
        let (mut session, _) = submitted(false);
        let (mut bytes, mut out, mut marks) = (Vec::new(), Vec::new(), Marks::default());
        let mut status = Some(status);
        protocol::write_results(&mut bytes, 1, 2, |out| {
            out.push(status.take().unwrap_or(0));
            out.extend_from_slice(&[0; 9]);
        });
        session.receive(&bytes, &mut out, &mut marks).unwrap();
        let said = format!("{:?}", marks.list());
        assert!(said.contains(words) && said.contains("Reached { tx: 2"), "{words}: {said}");
    }
}

/// Claim: answers to what was not asked end the connection.
#[test]
fn strange_answers() {
    let mut cases = Vec::new();
    let mut result = |number, count| {
        let mut bytes = Vec::new();
        protocol::write_results(&mut bytes, number, count, |out| out.extend_from_slice(&[0; 10]));
        cases.push(bytes);
    };
    result(2, 1);
    result(1, 3);
    cases.push([(64_u32 << 20).to_le_bytes(), [0; 4]].concat());
    cases.push([4_u32.to_le_bytes(), [0; 4]].concat());
    for case in cases {
        let (mut session, _) = submitted(false);
        let (mut out, mut marks) = (Vec::new(), Marks::default());
        assert!(session.receive(&case, &mut out, &mut marks).is_err(), "{case:?}");
    }
}

fn build(deploy: &[(&str, Value)], workload: &[(&str, Value)]) -> Result<Box<dyn System>, String> {
    read(crate::ADAPTER.build, RUN, deploy, workload).map_err(|problems| problems.join("; "))
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    assert!(build(&[], &[]).is_ok());
    assert!(build(&[("memory_max", text("1GiB"))], &[("kind", text("proposal"))]).is_ok());
    for (deploy, workload, words) in [
        (vec![("attach", text("here"))], vec![], "an address such as 127.0.0.1:4000, got `here`"),
        (
            vec![("attach", text("127.0.0.1:1")), ("memory_max", text("1GiB"))],
            vec![],
            "has its own settings",
        ),
        (vec![], vec![("value", text("1MiB"))], "`workload.value` between"),
        (vec![], vec![("kind", text("maps"))], "it is one of"),
        (vec![], vec![("kind", text("put")), ("puts", text("65"))], "workload.puts"),
        (vec![("fsync", text("no"))], vec![], "system.deploy.fsync"),
        (vec![("identity", text("tls"))], vec![], "certificates of their own"),
        (vec![("keeps", Value::Boolean(false))], vec![], "replicas of a group keep a log"),
    ] {
        let said = build(&deploy, &workload).err().unwrap_or_default();
        assert!(said.contains(words), "{words}: {said}");
    }
}
