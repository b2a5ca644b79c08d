//! The contract's own suite, for both kinds of connection and the system.

use model::options::Value;
use model::{Outcome, Seed, TxId};
use sut::conformance::{
    Peer, Subject, expect_ready_once_subscribed, observer_conformance, session_conformance,
    system_conformance,
};
use sut::{Mark, Marks, Role, Session, System as _, Transaction, Workload};

use super::peer::{head, peer, pool, receipts, said, watched};
use super::{system, text};
use crate::hex::Hash;
use crate::system::Ethereum;
use crate::transfer;

const NODE: &str = "127.0.0.1:8545";

/// Claim: submitting keeps the contract, with replies as nodes write them and others.
#[test]
fn submitting_sessions_conform() {
    let system = system(&[], &[("accounts", Value::Integer(4))]).unwrap();
    let session =
        || -> Box<dyn Session> { system.session(Role::Submit, 3, NODE.parse().unwrap(), 0) };
    let node = || -> Peer { peer(pool) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &node, &source).ladder(2, 0);
    session_conformance(&subject).unwrap();
}

/// Submits nine transfers of a system; gives their hashes.
fn submitted(system: &Ethereum) -> Vec<Hash> {
    let mut session = system.session(Role::Submit, 0, NODE.parse().unwrap(), 0);
    let mut source = system.workload(Seed(9), 0, 1);
    let submit = |id| {
        let mut payload = Vec::new();
        let made = source.next(id, None, &mut payload);
        session.submit(&Transaction::new(id, made.kind, &payload), &mut Vec::new());
        *transfer::split(&payload).unwrap().0
    };
    (0..9).map(submit).collect()
}

/// The stream of a node that says this, behind the handshake and the subscription.
fn stream(session: &mut dyn Session, words: &[String]) -> Vec<u8> {
    let mut hello = Vec::new();
    session.open(&mut hello);
    let mut stream = peer(watched)(&hello);
    said(&mut stream, r#"{"jsonrpc":"2.0","id":0,"result":"0x1"}"#);
    words.iter().for_each(|words| said(&mut stream, words));
    stream
}

fn all(hashes: &[Hash]) -> Vec<(Hash, bool)> {
    hashes.iter().map(|hash| (*hash, true)).collect()
}

/// Claim: an observer sees every transfer of its trial in blocks once, and none of others, whatever the pieces; here with
/// confirmations, so that the last of it come with a later head.
#[test]
fn observers_conform() {
    let watched: Vec<TxId> = (0..9).collect();
    for confirmations in [0, 1] {
        let make = || {
            let deploy = [("confirmations", Value::Integer(confirmations))];
            let system = system(&deploy, &[("accounts", Value::Integer(4))]).unwrap();
            let hashes = submitted(&system);
            (system.session(Role::Observe, 7, NODE.parse().unwrap(), 4), hashes)
        };
        let (mut session, ours) = make();
        let strangers = [([7; 32], true), ([8; 32], false)];
        let words = [
            head(5, 5, 4),
            receipts(1, &[&all(&ours[..4]), &strangers[..]].concat()),
            head(6, 6, 5),
            receipts(2, &all(&ours[4..])),
            head(7, 7, 6),
            receipts(3, &[]),
        ];
        let bytes = stream(&mut *session, &words);
        let observer = || -> Box<dyn Session> { make().0 };
        let stages = if confirmations == 0 { 2 } else { 3 };
        let last = u8::try_from(stages - 1).unwrap();
        observer_conformance(&observer, &bytes, &watched, stages, last).unwrap();
    }
}

/// What a session marks of what a node says.
fn marks_of(session: &mut dyn Session, words: &[String]) -> (Vec<String>, String) {
    let stream = stream(session, words);
    let (mut out, mut marks) = (Vec::new(), Marks::default());
    session.receive(&stream, &mut out, &mut marks).unwrap();
    let said = marks.list().iter().map(|mark| match mark {
        Mark::Reached { tx, stage, .. } => format!("{tx} at {stage}"),
        Mark::Ended { tx, answer } => {
            assert_eq!(answer.outcome, Outcome::Rejected(model::Class::BadRequest));
            format!("{tx} {}", marks.text(answer))
        }
    });
    (said.collect(), unmasked(&out))
}

/// The text of masked frames, for a look at what was asked.
fn unmasked(out: &[u8]) -> String {
    use wire::websocket::{Event, Limits, MessageReader, Sender};
    let mut reader = MessageReader::new(Sender::Client, Limits::CLIENT);
    let (mut used, mut all) = (0, String::new());
    loop {
        let progress = reader.read(&out[used..]).unwrap();
        used += progress.used;
        match progress.event {
            Some(Event::Text(text)) => all.push_str(text),
            Some(_) => {}
            None => return all,
        }
    }
}

/// Claim: a transfer that reverted is rejected as that, unless inclusion is taken for success; a block that comes again, or
/// in another branch, marks nothing twice.
#[test]
fn reverted_and_repeated() {
    let of = |success: &str| {
        let system = system(&[("success", text(success))], &[]).unwrap();
        let ours = submitted(&system);
        let mut session = system.session(Role::Observe, 0, NODE.parse().unwrap(), 4);
        let content = [(ours[0], true), (ours[1], false)];
        let words = match success {
            "receipt" => {
                let again = receipts(2, &content[..1]);
                [head(5, 5, 4), receipts(1, &content), head(5, 6, 4), again]
            }
            _ => {
                let block = |id: u64| {
                    let hashes = content.map(|(hash, _)| crate::hex::text(&hash));
                    serde_json::json!({"jsonrpc": "2.0", "id": id, "result": {
                        "hash": crate::hex::text(&[5; 32]), "parentHash": crate::hex::text(&[4; 32]),
                        "number": "0x5", "transactions": hashes}})
                    .to_string()
                };
                [head(5, 5, 4), block(1), head(5, 6, 4), block(2)]
            }
        };
        marks_of(&mut *session, &words)
    };
    let (said, asked) = of("receipt");
    assert_eq!(said, ["0 at 1", "1 reverted"]);
    assert!(asked.contains(r#""method":"eth_getBlockReceipts","params":["0x0505"#), "{asked}");
    let (said, asked) = of("inclusion");
    assert_eq!(said, ["0 at 1", "1 at 1"]);
    assert!(asked.contains(r#""method":"eth_getBlockByHash","params":["0x0505"#), "{asked}");
}

/// Claim: an observer is ready when its subscription is answered and not before, and a refused one is an error that says
/// why.
#[test]
fn an_observer_is_ready_when_it_is_subscribed() {
    let system = system(&[], &[]).unwrap();
    let mut session = system.session(Role::Observe, 0, NODE.parse().unwrap(), 0);
    let mut refusal = Vec::new();
    let words = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"notifications not supported"}}"#;
    said(&mut refusal, words);
    let words = "notifications not supported";
    expect_ready_once_subscribed(&mut *session, peer(watched), &refusal, words);
}

/// Claim: the system keeps the contract, with one account and with many, sharing, replacing and reverting.
#[test]
fn systems_conform() {
    let shares = [("replacing", text("10%")), ("reverting", text("10%"))];
    for accounts in [1, 7] {
        let mut workload = vec![("accounts", Value::Integer(accounts))];
        workload.extend(shares.clone());
        system_conformance(&system(&[], &workload).unwrap()).unwrap();
    }
}

/// Claim: a receipt of a status that there is not is no success: the connection is broken, and nothing is marked.
#[test]
fn receipts_of_no_status() {
    let system = system(&[], &[]).unwrap();
    for status in ["", "0x00", "0x2", "0x01"] {
        let mut session = system.session(Role::Observe, 0, NODE.parse().unwrap(), 4);
        let receipts = receipts(1, &[([9; 32], true)]).replace("0x1\"", &format!("{status}\""));
        let stream = stream(&mut *session, &[head(5, 5, 4), receipts]);
        let (mut out, mut marks) = (Vec::new(), Marks::default());
        let error = session.receive(&stream, &mut out, &mut marks).unwrap_err();
        assert!(error.0.contains(&format!("got `{status}`")), "{error}");
        assert!(marks.list().is_empty());
    }
}

/// Claim: a height above all others, told to an observer that waits for confirmations, breaks the connection and no more.
#[test]
fn the_highest_height() {
    let system = system(&[("confirmations", Value::Integer(1))], &[]).unwrap();
    let mut session = system.session(Role::Observe, 0, NODE.parse().unwrap(), 4);
    let stream = stream(&mut *session, &[head(u64::MAX, 5, 4)]);
    let error = session.receive(&stream, &mut Vec::new(), &mut Marks::default()).unwrap_err();
    assert!(error.0.contains("`0xffffffffffffffff`, which no chain has"), "{error}");
}
