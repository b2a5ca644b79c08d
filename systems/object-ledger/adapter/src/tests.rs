//! The adapter against the contract, with a queue of a few lines as the peer.

mod hostile;

use model::Seed;
use model::options::Value;
use sut::conformance::options::{read, text, texts};
use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Marks, Session, System, Transaction, Workload};

use crate::session::QueueSession;
use crate::stages::STAGES;
use crate::system::ObjectLedger;
use crate::workload::transaction;

const RUN: u64 = 0xfeed;

fn build(deploy: &[(&str, Value)], workload: &[(&str, Value)]) -> Result<ObjectLedger, String> {
    read(crate::options::read, RUN, deploy, workload).map_err(|problems| problems.join("; "))
}

fn system() -> ObjectLedger {
    build(&[], &[]).unwrap()
}

/// The answer that acknowledges a submission.
fn acknowledged(number: u64) -> Vec<u8> {
    let mut answer = vec![0, 0, 0, 17, 0x81];
    answer.extend_from_slice(&number.to_be_bytes());
    answer.extend_from_slice(&[7; 8]);
    answer
}

/// A queue that takes every submission, and answers those that came together in the reverse of their order.
fn peer() -> Peer {
    let mut kept: Vec<u8> = Vec::new();
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let mut answers = Vec::new();
        while let Some((head, _)) = kept.split_first_chunk::<4>() {
            let length = usize::try_from(u32::from_be_bytes(*head)).unwrap();
            let Some(frame) = kept.get(4..4 + length) else { break };
            let (kind, rest) = frame.split_first().unwrap();
            let (number, payload) = rest.split_first_chunk::<8>().unwrap();
            assert_eq!(*kind, 0x01);
            let number = u64::from_be_bytes(*number);
            assert_eq!(transaction(payload, RUN), Some(number), "it says whose it is");
            answers.push(acknowledged(number));
            kept.drain(..4 + length);
        }
        answers.reverse();
        answers.concat()
    })
}

/// Claim: the session keeps its side of the contract, one or many in flight, and the system its pure properties.
#[test]
fn conforms() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    for in_flight_max in [1, 64] {
        let session = || -> Box<dyn Session> { Box::new(QueueSession::new(in_flight_max)) };
        let subject = Subject::new(&session, &peer, &workload).ladder(STAGES.len(), 0);
        session_conformance(&subject).unwrap();
    }
    system_conformance(&system()).unwrap();
}

/// Claim: what all services say of themselves goes together: a name means the same of each.
#[test]
fn series_go_together() {
    let at = ([127, 0, 0, 1], 1).into();
    let whats = ["queue", "timestamp", "sequencer", "bucket", "watcher", "pipeline"];
    let scrapes: Vec<_> = whats.map(|what| crate::metrics::scrape(what, what, at)).into();
    sut::conformance::series_conformance(&scrapes).unwrap();
}

/// Claim: an answer is of the submission that it names, in whatever order; refusals have their class; what names none that
/// waits is an error of the protocol.
#[test]
fn answers_by_number() {
    let mut session = QueueSession::new(8);
    let mut out = Vec::new();
    for id in [7, 8, 9] {
        session.submit(&Transaction::new(id, 0, b"v"), &mut out);
    }
    assert_eq!(out[..14], [0, 0, 0, 10, 1, 0, 0, 0, 0, 0, 0, 0, 7, b'v']);
    let refused = [0, 0, 0, 10, 0xff, 0, 0, 0, 0, 0, 0, 0, 7, 1];
    let bytes = [acknowledged(9), refused.to_vec(), acknowledged(8)[..9].to_vec()].concat();
    let mut marks = Marks::default();
    assert_eq!(session.receive(&bytes, &mut out, &mut marks), Ok(bytes.len() - 9));
    let said = format!("{:?}", marks.list());
    for words in ["Reached { tx: 9, stage: 0", "tx: 7", "Rejected(Overloaded)"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let again = session.receive(&acknowledged(9), &mut out, &mut marks).unwrap_err();
    assert!(again.0.contains("does not wait for one"), "{again}");
    assert_eq!(marks.unasked_bytes(), 21);
}

/// Claim: a transaction of the longest and the shortest size is known again, and no other is taken for one.
#[test]
fn transactions_are_known_again() {
    for bytes in [33_usize, 34, 128] {
        let system = build(&[], &[("payload", text(&format!("{bytes}B")))]).unwrap();
        let mut payload = Vec::new();
        system.workload(Seed(3), 0, 1).next(0xab_cdef, None, &mut payload);
        assert_eq!(payload.len(), bytes);
        assert_eq!(transaction(&payload, RUN), Some(0xab_cdef), "{payload:?}");
        assert_eq!(transaction(&payload, RUN + 1), None);
        assert!(payload.iter().all(|byte| byte.is_ascii_graphic()));
    }
    for other in [
        "",
        "000000000000feed-00000000000000",
        "000000000000feed-00000000000000012",
        "000000000000feed-000000000000000g",
        "000000000000feed_0000000000000001",
        "000000000000feed-+000000000000001",
    ] {
        assert_eq!(transaction(other.as_bytes(), RUN), None, "{other}");
    }
}

/// Claim: what can be meant is read, and what cannot is refused by its key.
#[test]
fn options_are_read() {
    let good = [
        ("pipelines", Value::Integer(3)),
        ("bucket_to_queue", text("10ms")),
        ("timestamp_delay", text("120ms")),
        ("push", Value::Boolean(true)),
        ("hedged", Value::Boolean(false)),
        ("audit_buckets", texts(&["bucket3", "bucket5"])),
        ("bucket_delay", text("lognormal(100ms,0.4,0.01,2s)")),
        ("byzantine", texts(&["bucket.lies", "bucket2.forgets@7", "sequencer.forks"])),
    ];
    let system = build(&good, &[]).unwrap();
    assert_eq!(system.wish.audit_buckets, ["bucket3", "bucket5"]);
    assert_eq!((system.wish.pipelines, system.wish.hedged), (3, false));
    assert_eq!((system.wish.acknowledge, system.wish.audit_margin), (3, 0));
    assert_eq!(build(&[], &[]).unwrap().wish.audit_margin, 1);
    assert_eq!(system.wish.timestamp_delay, "120000us");
    let faults = [("bucket0", "lies@20"), ("bucket2", "forgets@7"), ("sequencer", "forks@20")];
    let faults = faults.map(|(name, fault)| (name.to_owned(), fault.to_owned()));
    assert_eq!(system.wish.byzantine, faults.into());
    assert!(system.fidelity().iter().any(|words| words.contains("waits for every bucket")));
    for (key, value, words) in [
        ("pipelines", Value::Integer(0), "system.deploy.pipelines"),
        ("required", Value::Integer(7), "there are 6 buckets"),
        ("audit_buckets", texts(&["bucket6"]), "there is no bucket `bucket6`"),
        ("omc", text("soon"), "system.deploy.omc"),
        ("acknowledge", Value::Integer(2), "expected 3 (`required`) to 6"),
        ("bucket_delay", text("soon"), "system.deploy.bucket_delay"),
        ("bucket_delay", text("file:/none"), "there is no file /none"),
        ("bucket_delay", text("lognormal(1s)"), "expected lognormal(MEDIAN,SIGMA)"),
        ("byzantine", texts(&["queue.lies"]), "there is no fault `queue.lies`"),
        ("ledger", text("none.toml"), "none.toml`, which is none; write one"),
        ("sync", text("segment"), "system.deploy.sync"),
        ("bucket_to_cache", text("1ms"), "system.deploy.bucket_to_cache"),
    ] {
        let said = build(&[(key, value)], &[]).err().unwrap_or_default();
        assert!(said.contains(words), "{key}: {said}");
    }
    let stores = || ("ledger", text(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")));
    assert!(build(&[stores(), ("byzantine", texts(&["sequencer.forks"]))], &[]).is_ok());
    for (key, value) in [
        ("bucket_delay", text("1ms")),
        ("audit_buckets", texts(&["bucket3"])),
        ("byzantine", texts(&["bucket.lies"])),
    ] {
        let said = build(&[stores(), (key, value)], &[]).err().unwrap_or_default();
        assert!(said.contains("with `ledger` there are none"), "{key}: {said}");
    }
    for bytes in [32, 65_537] {
        let said = build(&[], &[("payload", text(&format!("{bytes}B")))]).err().unwrap_or_default();
        assert!(said.contains("`workload.payload` between 33B and 64KiB"), "{said}");
    }
}
