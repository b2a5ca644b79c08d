//! The adapter against the contract, with a broker of a few lines as the peer.

mod hostile;

use std::sync::Arc;

use model::Seed;
use model::options::Value;
use sut::conformance::options::{read, text};
use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Marks, Session, System, Transaction, Workload};

use crate::durability::{OF_BROKERS, OF_PRODUCER, OF_TOPIC};
use crate::records;
use crate::session::{Common, ProduceSession};
use crate::wire::{Reader, Write};
use crate::workload::{told, value};

const RUN: u64 = 0xfeed;

fn build(deploy: &[(&str, Value)]) -> Result<Box<dyn System>, String> {
    read(crate::ADAPTER.build, RUN, deploy, &[]).map_err(|problems| problems.join("; "))
}

fn system() -> Box<dyn System> {
    build(&[("attach", text("127.0.0.1:9092"))]).unwrap()
}

fn session(acks: i16, is_idempotent: bool) -> ProduceSession {
    let common = Common { topic: "t".to_owned(), acks, is_idempotent, in_flight_max: 16 };
    ProduceSession::new(Arc::new(common))
}

/// An answer with its length and its request's number.
fn answer(correlation: i32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let begun = out.begin();
    out.i32(correlation);
    body(&mut out);
    out.end(begun);
    out
}

/// An acknowledgement of the topic `t`.
fn produced(correlation: i32, code: i16, offset: i64) -> Vec<u8> {
    answer(correlation, |out| {
        out.count(1);
        out.text("t");
        out.count(1);
        out.i32(0);
        out.i16(code);
        out.i64(offset);
        out.i64(-1);
        out.i64(0);
        out.i32(0);
    })
}

/// A broker whose partition takes every batch; it counts a producer's records.
fn peer() -> Peer {
    let (mut kept, mut offset, mut sequence) = (Vec::<u8>::new(), 0_i64, 0_i32);
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some(length) = kept.first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).unwrap();
            let Some(request) = kept.get(4..4 + length).map(<[u8]>::to_vec) else { break };
            kept.drain(..4 + length);
            let mut reader = Reader(&request);
            let (key, version) = (reader.i16().unwrap(), reader.i16().unwrap());
            let correlation = reader.i32().unwrap();
            assert_eq!(reader.text().unwrap(), b"assay");
            if (key, version) == (22, 1) {
                out.extend(answer(correlation, |out| {
                    out.i32(0);
                    out.i16(0);
                    out.i64(4);
                    out.i16(1);
                }));
                continue;
            }
            assert_eq!((key, version), (0, 7));
            assert_eq!(reader.nullable_text().unwrap(), None);
            let acks = reader.i16().unwrap();
            reader.i32().unwrap();
            if reader.count().unwrap() == 0 {
                out.extend(answer(correlation, |out| {
                    out.count(0);
                    out.i32(0);
                }));
                continue;
            }
            assert_eq!(reader.text().unwrap(), b"t");
            assert_eq!((reader.count().unwrap(), reader.i32().unwrap()), (1, 0));
            let batch = reader.bytes().unwrap();
            let mut count = 0;
            let next = records::read(batch, |record| {
                assert!(record.is_whole && told(RUN, record.value).is_some_and(|it| it.1));
                count += 1;
            });
            assert_eq!(next.unwrap(), Some(count));
            // The producer's number and the place of its first record, after what a batch has before them.
            let mut producer = Reader(&batch[43..]);
            if producer.i64().unwrap() >= 0 {
                assert_eq!((producer.i16().unwrap(), producer.i32().unwrap()), (1, sequence));
                sequence += i32::try_from(count).unwrap();
            }
            if acks != 0 {
                out.extend(produced(correlation, 0, offset));
            }
            offset += count;
        }
        out
    })
}

/// Claim: the session keeps its side of the contract with every acknowledgement, and the system its pure properties.
#[test]
fn conforms() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    for (acks, is_idempotent) in [(-1, true), (-1, false), (1, false), (0, false)] {
        let session = || -> Box<dyn Session> { Box::new(session(acks, is_idempotent)) };
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
    }
    system_conformance(&*system()).unwrap();
}

/// Claim: a value names its transaction, and one that differs in a bit is not taken for the one that was sent.
#[test]
fn values_tell_of_damage() {
    let mut held = Vec::new();
    value(RUN, 77, 64, &mut held);
    assert_eq!(held.len(), 64);
    sut::conformance::expect_damage_told(&held, 77, |held| told(RUN, held));
}

/// A session on which three transactions have left in two batches.
fn waiting(acks: i16) -> ProduceSession {
    let (mut session, mut out) = (session(acks, false), Vec::new());
    session.open(&mut out);
    assert!(session.is_ready() && out.is_empty());
    for id in 0..2 {
        session.submit(&Transaction::new(id, 0, b"x"), &mut out);
    }
    session.gathered(&mut out);
    session.submit(&Transaction::new(2, 0, b"x"), &mut out);
    session.gathered(&mut out);
    session
}

/// Claim: an acknowledgement is of all records of its batch and of no other; a batch that was refused is not committed, and
/// one of which the broker does not know whether others will have it is unknown; after either the connection is closed,
/// since a broker that does not lead any more acknowledges nothing.
#[test]
fn acknowledged_by_the_batch() {
    let heard = |answers: &[Vec<u8>]| {
        let (mut session, mut marks) = (waiting(-1), Marks::default());
        session.receive(&answers.concat(), &mut Vec::new(), &mut marks).unwrap();
        (format!("{:?}", marks.list()), marks.wants_close())
    };
    let (said, is_closing) = heard(&[produced(1, 0, 0)]);
    assert!(said.contains("tx: 0") && said.contains("tx: 1") && !said.contains("tx: 2"), "{said}");
    assert!(!is_closing && !said.contains("Ended"), "{said}");
    let (said, is_closing) = heard(&[produced(1, 0, 0), produced(2, 19, -1)]);
    assert!(said.contains("Rejected(Server)") && is_closing, "{said}");
    // After it was appended, or where the broker does not lead any more, which it may say after it has appended it.
    for code in [20, 6, 3] {
        let (said, is_closing) = heard(&[produced(1, code, -1)]);
        assert!(said.contains("Unknown") && !said.contains("Reached") && is_closing, "{said}");
    }
}

/// Claim: with `acks = 0` a batch is acknowledged by the answer to the question that came after it.
#[test]
fn acknowledged_by_what_came_after() {
    let (mut session, mut marks) = (waiting(0), Marks::default());
    let nothing = |correlation| {
        answer(correlation, |out| {
            out.count(0);
            out.i32(0);
        })
    };
    session.receive(&nothing(2), &mut Vec::new(), &mut marks).unwrap();
    let said = format!("{:?}", marks.list());
    assert!(said.contains("tx: 1") && !said.contains("tx: 2"), "{said}");
    assert!(session.receive(&nothing(5), &mut Vec::new(), &mut marks).is_err());
    let (mut session, mut marks) = (waiting(0), Marks::default());
    assert!(session.receive(&produced(2, 0, 0), &mut Vec::new(), &mut marks).is_err());
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let number = |n| Value::Integer(n);
    let yes = || Value::Boolean(true);
    for deploy in [
        vec![],
        vec![("acks", text("0"))],
        vec![("acks", text("all")), ("enable_idempotence", yes())],
        vec![("brokers", number(3)), ("heap", text("512MiB"))],
        vec![("attach", text("127.0.0.1:1"))],
    ] {
        assert!(build(&deploy).is_ok(), "{deploy:?}");
    }
    for (deploy, words) in [
        (vec![("acks", text("2"))], "system.deploy.acks"),
        (vec![("acks", text("1")), ("enable_idempotence", yes())], "only with"),
        (vec![("brokers", number(2))], "a majority"),
        (vec![("heap", text("1MiB"))], "between 128MiB"),
        (vec![("attach", text("here"))], "got `here`"),
        (vec![("attach", text("127.0.0.1:1")), ("brokers", number(3))], "their own settings"),
        (vec![("flush", text("no"))], "system.deploy.flush"),
    ] {
        let said = build(&deploy).err().unwrap_or_default();
        assert!(said.contains(words), "{deploy:?}: {said}");
    }
}

/// Claim: the end of the partition is read from a leader's answer, its refusal from that of one that does not know it yet, and
/// an answer that is cut short is refused at each of its bytes.
#[test]
fn the_end_is_the_leaders() {
    let listed = |code: i16, offset: i64| {
        let mut out = Vec::new();
        out.i32(0);
        out.count(1);
        out.text("t");
        out.count(1);
        out.i32(0);
        out.i16(code);
        out.i64(-1);
        out.i64(offset);
        out.i32(7);
        out
    };
    let read = |bytes: &[u8]| crate::messages::listed_end(Reader(bytes));
    let whole = listed(0, 420);
    assert_eq!(read(&whole).unwrap(), (0, 420));
    assert_eq!(read(&listed(78, -1)).unwrap(), (78, -1));
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length} bytes");
    }
}

/// Claim: the README has the durability settings as its table.
#[test]
fn the_table_of_the_readme() {
    let list = [&OF_PRODUCER[..], &[OF_TOPIC], &OF_BROKERS].concat();
    sut::conformance::expect_in_readme(&list, include_str!("../../README.md"));
}
