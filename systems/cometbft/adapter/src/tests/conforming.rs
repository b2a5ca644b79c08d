//! The contract's own suite, for every kind of connection and the system.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::options::Value;
use model::{Seed, TxId};
use serde_json::Value as Json;
use sut::conformance::{
    Peer, Subject, expect_ready_once_subscribed, observer_conformance, series_conformance,
    session_conformance, system_conformance,
};
use sut::{Mark, Marks, Role, Session, System as _, Workload};

use super::peer::{commit_node, new_block, peer, said, subscribed, sync_node};
use super::{RUN_MARK, system, text, value};
use crate::transaction::KeyValues;

const NODE: &str = "127.0.0.1:26657";

fn submits(method: &str, answer: fn(&Json) -> String, settled_stage: u8) {
    let system = system(&[("method", text(method))], &[("size", text("100B"))]).unwrap();
    let session = || -> Box<dyn Session> { system.session(Role::Submit, 3, NODE.parse().unwrap()) };
    let node = || -> Peer { peer(answer) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &node, &source).ladder(2, settled_stage);
    session_conformance(&subject).unwrap();
}

/// Claim: submitting keeps the contract with each of the three methods; `commit` settles by itself, the others
/// when they are accepted.
#[test]
fn submitting_sessions_conform() {
    submits("sync", sync_node, 0);
    submits("async", sync_node, 0);
    submits("commit", commit_node, 1);
}

/// Transactions as they stand in a block.
fn in_base64(run_mark: u64, ids: std::ops::Range<TxId>) -> Vec<String> {
    let mut source = KeyValues::new(Seed(9), 0, run_mark, 200);
    let encoded = ids.map(|id| {
        let mut payload = Vec::new();
        source.next(id, None, &mut payload);
        STANDARD.encode(payload)
    });
    encoded.collect()
}

fn observer() -> Box<dyn Session> {
    let system = system(&[], &[]).unwrap();
    system.session(Role::Observe, 7, NODE.parse().unwrap())
}

/// What a node sends to an observer: the handshake, the subscription, three blocks.
fn watched_stream() -> Vec<u8> {
    let mut hello = Vec::new();
    observer().open(&mut hello);
    let mut node = peer(subscribed);
    let mut stream = node(&hello);
    let strangers = ["YT1i".to_owned(), "not base64".to_owned(), STANDARD.encode([b'a'; 60])];
    let others = in_base64(RUN_MARK + 1, 0..3);
    let ours = in_base64(RUN_MARK, 0..9);
    said(&mut stream, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    said(&mut stream, &new_block(4, None));
    said(&mut stream, &new_block(5, Some(&[&ours[..4], &strangers, &others].concat())));
    said(&mut stream, &new_block(6, Some(&ours[4..])));
    stream
}

/// Claim: an observer sees every transaction of its trial in blocks once, and neither those of other runs nor
/// what is not of this kind, whatever the pieces.
#[test]
fn observers_conform() {
    let watched: Vec<TxId> = (0..9).collect();
    observer_conformance(&observer, &watched_stream(), &watched, 2, 1).unwrap();
}

/// What a session of `system` marks of the blocks that a node tells of.
fn marks_of(session: &mut dyn Session, blocks: &[String]) -> Vec<TxId> {
    let mut hello = Vec::new();
    session.open(&mut hello);
    let mut stream = peer(subscribed)(&hello);
    blocks.iter().for_each(|block| said(&mut stream, block));
    let mut marks = Marks::default();
    session.receive(&stream, &mut Vec::new(), &mut marks).unwrap();
    let reached = marks.list().iter().map(|mark| match mark {
        Mark::Reached { tx, .. } => *tx,
        Mark::Ended { .. } => panic!("an observer ends nothing"),
    });
    reached.collect()
}

/// Claim: of several observers the first that sees a block marks its transactions, in whatever order they see
/// which, a block that one has missed is the other's, and a transaction in two blocks is marked twice.
#[test]
fn the_first_observer_marks() {
    let both = Value::Array(vec![value(Value::Integer(0)), value(Value::Integer(3))]);
    let system = system(&[("observe", both)], &[]).unwrap();
    let observer = || system.session(Role::Observe, 0, NODE.parse().unwrap());
    let (mut one, mut other) = (observer(), observer());
    let ours = in_base64(RUN_MARK, 0..9);
    let five = new_block(5, Some(&ours[..3]));
    let six = new_block(6, Some(&ours[3..6]));
    let seven = new_block(7, Some(&ours[5..]));
    assert_eq!(marks_of(&mut *one, &[five.clone(), seven.clone()]), [0, 1, 2, 5, 6, 7, 8]);
    assert_eq!(marks_of(&mut *other, &[five, six, seven]), [3, 4, 5]);
}

/// Claim: an observer is ready when its subscription is answered and not before, and a refused subscription is
/// an error that says why.
#[test]
fn an_observer_is_ready_when_it_is_subscribed() {
    let mut session = observer();
    let mut refusal = Vec::new();
    said(
        &mut refusal,
        r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"Internal error","data":"max_subscriptions_per_client 5 reached"}}"#,
    );
    let words = "max_subscriptions_per_client 5 reached";
    expect_ready_once_subscribed(&mut *session, peer(subscribed), &refusal, words);
}

/// Claim: the system keeps the contract with every size of transaction at its bounds.
#[test]
fn systems_conform() {
    for size in ["43B", "1KiB", "740kB"] {
        let system = system(&[], &[("size", text(size))]).unwrap();
        system_conformance(&system).unwrap();
    }
}

/// Claim: what nodes of a network say of themselves is declared, and the same by all.
#[test]
fn series_of_nodes() {
    let address = ([127, 0, 0, 1], 26660).into();
    let of = |node: &str| crate::metrics::scrape(node, address, crate::metrics::NAMESPACE);
    let nodes = [of("validator01"), of("full01")];
    series_conformance(&nodes).unwrap();
    let declared = |name: &str| {
        let found = nodes[0].series.iter().find(|it| it.series.name == name);
        found.map(|it| it.series.clone()).unwrap()
    };
    assert!(declared("mempool_transactions").adds_up() && !declared("height_blocks").adds_up());
}
