//! Sessions against what the node's own code writes, and the system against the contract.

mod chain;
mod heights;
mod hostile;
mod watching;

use std::sync::Arc;

use atomizer_node::protocol::block::{Head, write_block_head};
use atomizer_node::protocol::errors::{Error, Why, write_errors};
use atomizer_node::protocol::request::{Request as Asked, Standing, read_request, write_standing};
use atomizer_node::protocol::{next_frame, write_frame};
use model::options::Value;
use model::{Class, Outcome, Seed, TxId};
use sut::conformance::options::read;
use sut::conformance::{observer_conformance, series_conformance, system_conformance};
use sut::{Mark, Marks, Role, Session, System, Transaction, Workload as _};

use crate::archive::ArchiveSession;
use crate::known::Known;
use crate::session::{BlockSession, COMMITTED, ErrorSession, Refresh, SubmitSession};
use crate::wallet::{Shares, Sort, Wallet};
use crate::workload::Spends;

/// How an atomizer stands.
fn stands(replica: u8, leader: u8, height: u64) -> Standing {
    Standing { replica, leader, height, chain: 7, has_vote: true }
}

fn system(
    deploy: &[(&str, Value)],
    workload: &[(&str, Value)],
) -> Result<Box<dyn System>, Vec<String>> {
    read(crate::options::build, 1, deploy, workload)
}

fn known() -> Arc<Known> {
    Arc::new(Known::new(10_000))
}

fn wallet() -> Wallet {
    Wallet::new(Seed(3), 2, 1_000, Shares([200, 100, 100, 100, 100]))
}

fn told(known: &Known, ids: std::ops::Range<TxId>) {
    ids.for_each(|tx| known.tell(&wallet().transaction(tx).id, tx));
}

/// Claim: what is submitted is what the wallet says, in the messages that vouch for each sort, with the height that was
/// seen last, the one before for a double spend, or one that is too old or too new where that is the point; and its hash is
/// known from then on.
#[test]
fn submissions() {
    let known = known();
    known.saw(100);
    let mut session = SubmitSession::new(Arc::clone(&known), Refresh::every(1), 1, 64);
    let mut source = Spends::new(wallet());
    let mut seen = [0; 6];
    for tx in 0..600 {
        let (mut payload, mut out) = (Vec::new(), Vec::new());
        let made = source.next(tx, None, &mut payload);
        session.submit(&Transaction::new(tx, made.kind, &payload), &mut out);
        let sort = Sort::ALL[made.kind as usize];
        seen[made.kind as usize] += 1;
        let (mut used, mut attested) = (0, Vec::new());
        while let Ok(Some(frame)) = next_frame(&out[used..], 1 << 20) {
            used += frame.used;
            let Ok(Asked::Notify(it)) = read_request(frame.payload) else { panic!("{tx}") };
            assert_eq!(it.transaction, wallet().transaction(tx).as_transaction());
            let (low, high) = match sort {
                Sort::Stale => (0, 98),
                Sort::Future => (102, 200),
                Sort::Double => (99, 99),
                _ => (100, 100),
            };
            assert!((low..=high).contains(&it.height), "{sort:?} {}", it.height);
            attested.push(it.attested());
        }
        assert_eq!(used, out.len());
        let wanted: &[u128] = match sort {
            Sort::Partial => &[1, 2],
            Sort::Unknown => &[1],
            _ => &[3],
        };
        assert_eq!(attested, wanted, "{sort:?}");
        assert_eq!(known.find(&wallet().transaction(tx).id), Some(tx));
    }
    assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    let mut plain = Vec::new();
    let spend = (0..).find(|tx| wallet().sort(*tx) == Sort::Spend).unwrap();
    wallet().transaction(spend).write(&mut plain);
    assert_eq!(plain.len(), 217, "as published");
}

/// Claim: whoever says that another leads sends the connection there; anything else than that is not of the protocol.
#[test]
fn who_does_not_lead() {
    let known = known();
    let mut session = SubmitSession::new(Arc::clone(&known), Refresh::every(1), 1, 64);
    let (mut bytes, mut out, mut marks) = (Vec::new(), Vec::new(), Marks::default());
    write_standing(&mut bytes, &stands(1, 1, 5));
    assert_eq!(session.receive(&bytes, &mut out, &mut marks), Ok(bytes.len()));
    assert!(!marks.wants_close() && known.take_leader().is_none());
    bytes.clear();
    write_standing(&mut bytes, &stands(1, 2, 5));
    assert_eq!(session.receive(&bytes[..9], &mut out, &mut marks), Ok(0));
    session.receive(&bytes, &mut out, &mut marks).unwrap();
    assert!(marks.wants_close());
    assert_eq!((known.take_leader(), known.take_leader()), (Some(2), None));
    assert!(session.receive(&u64::MAX.to_le_bytes(), &mut out, &mut marks).is_err());
}

/// Claim: to whom blocks are sent as well it passes over them, in whatever pieces they come and holding nothing of them, and
/// hears between them who leads; a new connection begins with a frame; where nobody sends blocks one is not of the protocol.
#[test]
fn blocks_between_answers() {
    let mut standing = Vec::new();
    write_standing(&mut standing, &stands(1, 2, 5));
    let said = [block(1, 0..40), block(2, 0..0), standing.clone(), block(3, 0..3)].concat();
    for piece in [1, 7, 100, said.len()] {
        let known = known();
        let session = SubmitSession::new(Arc::clone(&known), Refresh::every(1), 1, 64);
        let mut session = session.hearing_blocks(true);
        let (mut held, mut out, mut marks) = (Vec::new(), Vec::new(), Marks::default());
        let mut held_max = 0;
        for bytes in said.chunks(piece) {
            held.extend_from_slice(bytes);
            let used = session.receive(&held, &mut out, &mut marks).unwrap();
            held.drain(..used);
            held_max = held_max.max(held.len());
        }
        assert!(held.is_empty() && held_max < standing.len(), "{held_max} in pieces of {piece}");
        assert!(out.is_empty() && marks.list().is_empty() && marks.wants_close());
        assert_eq!(known.take_leader(), Some(2), "in pieces of {piece}");
        let cut = &block(4, 0..9)[..100];
        assert_eq!(session.receive(cut, &mut out, &mut marks), Ok(100));
        session.reset();
        assert_eq!(session.receive(&standing, &mut out, &mut marks), Ok(standing.len()));
        assert_eq!(known.take_leader(), Some(2));
    }
    let (mut session, mut marks) =
        (SubmitSession::new(known(), Refresh::every(1), 1, 64), Marks::default());
    assert!(session.receive(&block(1, 0..40), &mut Vec::new(), &mut marks).is_err());
}

/// Claim: whoever leads is asked for the height, one question at a time, and transactions bear what was said from then on;
/// only a double spend, and what is sent again, keeps to the blocks that were seen. What a node says for a height stops nothing.
#[test]
fn heights_are_asked_for() {
    let known = known();
    known.saw(5);
    let session = SubmitSession::new(Arc::clone(&known), Refresh::every(1), 1, 64);
    let (mut session, mut marks) = (session.asking(true), Marks::default());
    let (mut asked, mut said) = (Vec::new(), Vec::new());
    assert!(session.poll(&mut asked).is_some() && session.poll(&mut asked).is_some());
    assert_eq!(read_request(&asked[8..]), Ok(Asked::Standing), "once");
    write_standing(&mut said, &stands(1, 1, 9));
    session.receive(&said, &mut Vec::new(), &mut marks).unwrap();
    assert!(session.poll(&mut asked).is_some() && asked.len() == 2 * 9);
    let mut height_of = |sort: Sort, attempt: u8| {
        let tx = (0..600).find(|tx| wallet().sort(*tx) == sort).unwrap();
        let (mut payload, mut out) = (Vec::new(), Vec::new());
        wallet().transaction(tx).write(&mut payload);
        let sent = Transaction { attempt, ..Transaction::new(tx, sort as u32, &payload) };
        session.submit(&sent, &mut out);
        match read_request(next_frame(&out, 1 << 20).unwrap().unwrap().payload) {
            Ok(Asked::Notify(it)) => it.height,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([Sort::Spend, Sort::Partial, Sort::Double].map(|it| height_of(it, 1)), [9, 9, 4]);
    assert_eq!([height_of(Sort::Spend, 2), height_of(Sort::Stale, 2)], [5, 0]);
    known.said(u64::MAX);
    assert_eq!(height_of(Sort::Future, 1), u64::MAX);
    let mut silent = SubmitSession::new(known, Refresh::every(1), 1, 64);
    assert!(silent.poll(&mut asked).is_none());
}

/// A block of these transactions, as it is sent out.
fn block(height: u64, ids: std::ops::Range<TxId>) -> Vec<u8> {
    let mut bytes = Vec::new();
    ids.clone().for_each(|tx| wallet().transaction(tx).as_transaction().write(&mut bytes));
    let mut out = Vec::new();
    let head = Head { height, ledger: 1, count: ids.end - ids.start, ..Head::default() };
    write_block_head(&mut out, &head, bytes.len() as u64);
    out.extend_from_slice(&bytes);
    out
}

/// The same as an archiver answers.
fn archived(height: u64, ids: std::ops::Range<TxId>) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, |out| {
        out.push(1);
        out.extend_from_slice(&block(height, ids)[8..]);
    });
    out
}

fn nothing_yet() -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, |out| out.push(0));
    out
}

/// Claim: who follows atomizers or an archiver sees each transaction of each block once, in whatever pieces it comes, and
/// none that nobody submitted; heights are known from it.
#[test]
fn observers_conform() {
    let known = known();
    told(&known, 0..9);
    let watched: Vec<TxId> = (0..9).collect();
    let blocks = [block(1, 0..4), block(2, 4..4), block(3, 4..12), block(2, 0..3)].concat();
    let session = || -> Box<dyn Session> { Box::new(BlockSession::new(Arc::clone(&known))) };
    observer_conformance(&session, &blocks, &watched, 1, 0).unwrap();
    // Damaged blocks say any height.
    let known = Arc::new(Known::new(100));
    told(&known, 0..9);
    let answers =
        [nothing_yet(), archived(1, 0..4), archived(2, 4..4), nothing_yet(), archived(3, 4..12)];
    let session =
        || -> Box<dyn Session> { Box::new(ArchiveSession::new(Arc::clone(&known), COMMITTED)) };
    observer_conformance(&session, &answers.concat(), &watched, 1, 0).unwrap();
    assert_eq!(known.height(), 3);
}

/// Claim: an archiver is asked for one block after another, and again for one that is not there yet, never twice at once.
#[test]
fn archivers_are_asked() {
    let mut session = ArchiveSession::new(known(), COMMITTED);
    let mut marks = Marks::default();
    let asked = |out: &mut Vec<u8>| {
        let heights: Vec<u8> = out.chunks(16).map(|frame| frame[8]).collect();
        out.clear();
        heights
    };
    let mut out = Vec::new();
    session.open(&mut out);
    assert_eq!(asked(&mut out), [1]);
    assert!(session.poll(&mut out).is_some());
    assert_eq!(asked(&mut out), [0; 0], "it is asked already");
    session.receive(&nothing_yet(), &mut out, &mut marks).unwrap();
    session.poll(&mut out);
    assert_eq!(asked(&mut out), [1]);
    session.receive(&archived(1, 0..2), &mut out, &mut marks).unwrap();
    assert_eq!(asked(&mut out), [2]);
    let other = archived(7, 0..2);
    assert!(session.receive(&other, &mut out, &mut marks).is_err(), "nobody asked for that");
    session.reset();
    session.open(&mut out);
    assert_eq!(asked(&mut out), [2], "a new connection goes on");
}

/// Claim: each reason is its class; where transactions are sent again, only what can never be committed is over.
#[test]
fn refusals() {
    let known = known();
    told(&known, 0..600);
    let of = |sort: Sort| (0..600).find(|tx| wallet().sort(*tx) == sort).unwrap();
    let (spend, double) = (of(Sort::Spend), of(Sort::Double));
    let hash = |tx: TxId| wallet().transaction(tx).id;
    let inputs = [[7; 32]];
    let all = [
        (Why::NotTaken, Class::Overloaded),
        (Why::Unknown(&inputs), Class::BadRequest),
        (Why::Range, Class::Expired),
        (Why::Incomplete, Class::BadRequest),
        (Why::Spent(&inputs), Class::Conflict),
    ];
    for (why, class) in all {
        let (mut list, mut bytes) = (Vec::new(), Vec::new());
        for id in [hash(spend), hash(double), [9; 32]] {
            Error { id: &id, why }.write(&mut list);
        }
        write_errors(&mut bytes, 3, &list);
        let ended = |resends: Option<Wallet>| {
            let (mut out, mut marks) = (Vec::new(), Marks::default());
            let mut session = ErrorSession::new(Arc::clone(&known), resends);
            assert_eq!(session.receive(&bytes, &mut out, &mut marks), Ok(bytes.len()));
            let of = marks.list().iter().map(|mark| match mark {
                Mark::Ended { tx, answer } => (*tx, answer.outcome),
                Mark::Reached { .. } => panic!("nothing is committed here"),
            });
            of.collect::<Vec<_>>()
        };
        let rejected = Outcome::Rejected(class);
        assert_eq!(ended(None), [(spend, rejected), (double, rejected)]);
        assert_eq!(ended(Some(wallet())), [(double, rejected)]);
    }
    let session = || -> Box<dyn Session> { Box::new(ErrorSession::new(Arc::clone(&known), None)) };
    assert!(session().receive(&[255; 16], &mut Vec::new(), &mut Marks::default()).is_err());
}

/// Claim: the system keeps the contract, plain and with every sort; mistakes in its options are found.
#[test]
fn systems_conform() {
    let plain = system(&[], &[]).unwrap();
    system_conformance(&*plain).unwrap();
    let shares = ["partial", "double_spend", "unknown_input", "stale", "future"];
    let shares = shares.map(|key| (key, Value::String("10%".to_owned())));
    let mixed = system(&[("stamps", Value::Boolean(true))], &shares).unwrap();
    system_conformance(&*mixed).unwrap();
    assert_eq!(mixed.node_stages().len(), 13);
    for (key, value) in [
        ("log", Value::String("paper".to_owned())),
        ("atomizers", Value::Integer(0)),
        ("nonsense", Value::Integer(1)),
    ] {
        assert!(system(&[(key, value)], &[]).is_err(), "{key}");
    }
    let memory = Value::String("memory".to_owned());
    assert!(system(&[("log", memory), ("atomizers", Value::Integer(3))], &[]).is_err());
    let all = ["double_spend", "stale"].map(|key| (key, Value::String("60%".to_owned())));
    assert!(system(&[], &all).is_err(), "nothing is left to spend twice");
}

/// Claim: what nodes say of themselves is declared, and the same by all.
#[test]
fn series_of_nodes() {
    let address = ([127, 0, 0, 1], 1).into();
    let of = |node: &str| crate::metrics::atomizer(node, address);
    series_conformance(&[of("atomizer0"), of("atomizer1")]).unwrap();
    series_conformance(&[crate::metrics::archiver("archiver", address)]).unwrap();
}

/// Claim: an observer's connection goes where its index says: blocks first, then errors.
#[test]
fn roles() {
    let system = system(&[("atomizers", Value::Integer(3))], &[]).unwrap();
    assert_eq!(system.observers(), 1 + 3);
    let _ = Role::Observe;
}

/// Claim: connections that were closed together look for whoever leads at different atomizers, and at the next in their next
/// life.
#[test]
fn a_leader_is_looked_for_everywhere_at_once() {
    let system = system(&[("atomizers", Value::Integer(3))], &[]).unwrap();
    let at = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let place = |port| crate::places::Place { clients: at(port), blocks: at(1), errors: at(1) };
    let mut to = sut::Deployment::new(clock::Clock::start());
    to.state = Some(Arc::new(crate::places::Places {
        atomizers: [10, 11, 12].map(place).into(),
        shards: Vec::new(),
        archiver: at(1),
        archive: std::path::PathBuf::new(),
        watchtower: None,
        events: Vec::new(),
    }));
    let ports = |life| {
        let of = |index| system.route(&to, Role::Submit, index, life).unwrap().address.port();
        [0, 1, 2, 3].map(of)
    };
    assert_eq!(ports(1), [11, 12, 10, 11]);
    assert_eq!(ports(2), [12, 10, 11, 12]);
    assert!(system.route(&to, Role::Observe, 0, 1).is_none());
}
