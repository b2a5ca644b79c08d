//! The adapter against the contract, with the node itself as the peer, in virtual time.

mod hostile;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use echo_node::events::Events;
use echo_node::ledger::Ledger;
use echo_node::{
    CommitWay, Confession, Distribution, EchoNode, FRAMES_LISTENER, HTTP_LISTENER, Options,
};
use model::Seed;
use model::options::Value;
use process::rehearsal::Rehearsal;
use sut::conformance::options::{read, text, texts};
use sut::conformance::{
    Peer, Subject, observer_conformance, session_conformance, system_conformance,
};
use sut::{Session, System, Transaction};

use crate::session::{FrameSession, Use};
use crate::workload::Payloads;

const RUN: u64 = 0xfeed;

fn node(options: Options) -> Rehearsal<EchoNode> {
    Rehearsal::new(EchoNode::new(options, Ledger::in_memory(), Confession::none(), Events::none()))
}

/// A connection to a node of its own; each request is given a second of virtual time to be served.
fn peer(options: Options, listener: usize) -> Peer {
    let mut stage = node(options);
    let connection = stage.open(listener);
    Box::new(move |bytes| {
        stage.send(connection, bytes);
        stage.advance(stage.now().plus(Duration::from_secs(1)));
        stage.take_bytes(connection)
    })
}

fn options(commit: CommitWay, stages: u8) -> Options {
    let service = Duration::from_micros(50);
    Options {
        service,
        distribution: Distribution::Exponential,
        servers: 4,
        commit,
        stages,
        ..Options::default()
    }
}

fn workload() -> Box<dyn sut::Workload> {
    Box::new(Payloads::new(Seed(3), 40, 3, Some(4)))
}

/// Claim: over frames the session keeps the contract, one stage or two, answered or asked for, one or many in
/// flight, with reads among them or without.
#[test]
fn frames_keep_the_contract() {
    for (commit, purpose) in
        [(CommitWay::Answer, Use::Submit), (CommitWay::Poll, Use::SubmitAndAsk)]
    {
        for stages in [1, 2, 3] {
            for in_flight_max in [1, 64] {
                let session = || {
                    Box::new(FrameSession::new(RUN, stages, in_flight_max, purpose, false))
                        as Box<dyn Session>
                };
                let reads = (in_flight_max > 1).then_some(1);
                let options = || Options { reads, ..options(commit, stages) };
                let peer = || peer(options(), FRAMES_LISTENER);
                let subject = Subject::new(&session, &peer, &workload)
                    .ladder(usize::from(stages), stages - 1);
                session_conformance(&subject).unwrap_or_else(|breaches| {
                    panic!("{commit:?} {stages} {in_flight_max}: {breaches}")
                });
            }
        }
    }
}

/// Claim: with batches, what leaves together is one frame, whose one answer settles each of its transactions.
#[test]
fn batches_keep_the_contract() {
    for in_flight_max in [1, 64] {
        let session = || {
            Box::new(FrameSession::new(RUN, 1, in_flight_max, Use::Submit, true))
                as Box<dyn Session>
        };
        let options = || Options { batches: true, ..options(CommitWay::Answer, 1) };
        let peer = || peer(options(), FRAMES_LISTENER);
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
    }
}

/// Claim: with a server that keeps each client's order the session keeps the contract, and says whose each transaction
/// is, also when it is sent again.
#[test]
fn order_keeps_the_contract() {
    use echo_node::protocol::{Request, read_request};
    for in_flight_max in [1, 64] {
        let session = || {
            let session = FrameSession::new(RUN, 1, in_flight_max, Use::Submit, false);
            Box::new(session.keeping_order(true)) as Box<dyn Session>
        };
        let options = || Options { ordered: true, ..options(CommitWay::Answer, 1) };
        let peer = || peer(options(), FRAMES_LISTENER);
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
        for attempt in [1, 2] {
            let mut out = Vec::new();
            let of = Transaction { client: 9, attempt, ..Transaction::new(5, 0, b"x") };
            session().submit(&of, &mut out);
            let frame = wire::frames::next_frame(&out).unwrap().unwrap();
            let Ok(Request::OfClient(9, submit)) = read_request(frame.payload) else {
                panic!("{out:?}")
            };
            assert_eq!((submit.tx, submit.is_intact), (5, true));
        }
    }
}

/// Claim: more than one frame holds goes into several, none longer than may be.
#[test]
fn a_batch_that_is_too_large_is_two() {
    use echo_node::protocol::{BATCH_COUNT_MAX, Request, read_request};
    let mut session = FrameSession::new(RUN, 1, 65_536, Use::Submit, true);
    let mut out = Vec::new();
    for id in 0..BATCH_COUNT_MAX as u64 + 3 {
        session.submit(&Transaction::new(id, 0, b"x"), &mut out);
    }
    session.gathered(&mut out);
    let (mut counts, mut rest) = (Vec::new(), out.as_slice());
    while let Some(frame) = wire::frames::next_frame(rest).unwrap() {
        let Ok(Request::Batch(batch)) = read_request(frame.payload) else { panic!("not a batch") };
        counts.push(batch.count());
        rest = &rest[frame.used..];
    }
    assert_eq!(counts, [BATCH_COUNT_MAX, 3]);
}

/// Claim: where commits are seen by observers, the submitting connection reports the first of two stages.
#[test]
fn a_submitting_connection_beside_observers() {
    let session =
        || Box::new(FrameSession::new(RUN, 2, 64, Use::Submit, false)) as Box<dyn Session>;
    let peer = || peer(options(CommitWay::Observer, 2), FRAMES_LISTENER);
    session_conformance(&Subject::new(&session, &peer, &workload).ladder(2, 0)).unwrap();
}

/// Claim: an observer sees each commit of its run once, whatever the pieces, and none of another run.
#[test]
fn observers_keep_the_contract() {
    let stage = Rc::new(RefCell::new(node(options(CommitWay::Observer, 2))));
    let (observer, submitter) = {
        let mut stage = stage.borrow_mut();
        (stage.open(FRAMES_LISTENER), stage.open(FRAMES_LISTENER))
    };
    let make = || Box::new(FrameSession::new(RUN, 2, 64, Use::Observe, false)) as Box<dyn Session>;
    let mut greeting = Vec::new();
    make().open(&mut greeting);
    stage.borrow_mut().send(observer, &greeting);
    for (run, ids) in [(RUN, 0..50), (RUN + 1, 50..60)] {
        let mut session = FrameSession::new(run, 2, 64, Use::Submit, false);
        for id in ids {
            let mut out = Vec::new();
            session.submit(&Transaction::new(id, 0, b"x"), &mut out);
            stage.borrow_mut().send(submitter, &out);
        }
    }
    let mut stage = stage.borrow_mut();
    stage.advance(clock::Instant::ZERO.plus(Duration::from_secs(1)));
    let stream = stage.take_bytes(observer);
    let watched: Vec<u64> = (0..50).collect();
    observer_conformance(&make, &stream, &watched, 2, 1).unwrap();
}

/// Claim: over HTTP the session keeps the contract, with and without pipelining.
#[test]
fn http_keeps_the_contract() {
    let address = "127.0.0.1:80".parse().unwrap();
    for in_flight_max in [1, 16] {
        let session = || {
            Box::new(crate::http_session::HttpSession::new(address, in_flight_max))
                as Box<dyn Session>
        };
        let peer = || peer(options(CommitWay::Answer, 1), HTTP_LISTENER);
        session_conformance(&Subject::new(&session, &peer, &workload)).unwrap();
    }
}

/// Claim: each question is about all that are outstanding, old and new; beyond what one holds, all come up in
/// turn.
#[test]
fn every_question_is_about_all() {
    let asked = |session: &mut FrameSession| {
        let mut out = Vec::new();
        session.poll(&mut out).unwrap();
        let frame = wire::frames::next_frame(&out).unwrap().unwrap();
        let Ok(echo_node::protocol::Request::Status { ids, .. }) =
            echo_node::protocol::read_request(frame.payload)
        else {
            panic!("not a question")
        };
        let id = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        ids.chunks_exact(8).map(id).collect::<Vec<u64>>()
    };
    let mut session = FrameSession::new(RUN, 1, 4096, Use::SubmitAndAsk, false);
    let submit = |session: &mut FrameSession, ids: std::ops::Range<u64>| {
        ids.for_each(|id| {
            session.submit(&Transaction::new(id, 0, b""), &mut Vec::new());
        });
    };
    submit(&mut session, 0..5);
    assert_eq!(asked(&mut session), [0, 1, 2, 3, 4]);
    submit(&mut session, 5..7);
    session.abandon(6);
    assert_eq!(asked(&mut session), [0, 1, 2, 3, 4, 5]);
    submit(&mut session, 10..2510);
    let turn: std::collections::BTreeSet<u64> = (0..3).flat_map(|_| asked(&mut session)).collect();
    assert_eq!(turn.len(), 6 + 2500);
}

fn built(
    deploy: &[(&str, Value)],
    workload: &[(&str, Value)],
) -> Result<Box<dyn System>, Vec<String>> {
    read(crate::ADAPTER.build, RUN, deploy, workload)
}

/// Claim: the systems that experiments can ask for keep what can be seen of the contract without starting them.
#[test]
fn systems_keep_the_contract() {
    for deploy in [
        &[][..],
        &[("stages", Value::Integer(2)), ("commit", text("observer"))],
        &[("protocol", text("http"))],
    ] {
        let is_http = deploy.iter().any(|(key, _)| *key == "protocol");
        let second = if is_http { "scan" } else { "get" };
        let kinds = texts(&["put", second]);
        let system = built(deploy, &[("payload", text("100B")), ("kinds", kinds)]).unwrap();
        system_conformance(&*system).unwrap();
        assert_eq!(sut::Kind::names(&system.kinds()), ["put", second]);
        assert_eq!(system.kinds()[1].is_recorded, is_http);
    }
    let stamping = built(&[("events", Value::Boolean(true))], &[]).unwrap();
    system_conformance(&*stamping).unwrap();
    let names: Vec<String> = stamping.node_stages().into_iter().map(|stage| stage.name).collect();
    assert_eq!(names, ["received", "started", "stored", "answered"]);
    assert!(built(&[], &[]).unwrap().node_stages().is_empty());
    let two = built(&[("stages", Value::Integer(2)), ("commit", text("observer"))], &[]).unwrap();
    assert_eq!(
        (two.stages(), two.observers()),
        (vec!["accepted".to_owned(), "committed".to_owned()], 1)
    );
    let one = built(&[], &[]).unwrap();
    assert_eq!((one.stages(), one.observers()), (vec!["committed".to_owned()], 0));
}

/// Claim: every mistake in the tables is found, in one reading, in words that name the key.
#[test]
fn mistakes_are_named() {
    let wrong = built(
        &[
            ("servers", Value::Integer(0)),
            ("service", Value::Integer(5)),
            ("comit", text("poll")),
            ("faults.lose", text("often")),
            ("faults.stall.at", text("5s")),
            ("faults.refuse", text("get")),
            ("faults.limit.burst", Value::Integer(5)),
            ("faults.unordered", Value::Integer(9)),
            ("faults.stale", Value::Integer(9)),
        ],
        &[("payload", text("2MiB"))],
    )
    .err()
    .unwrap();
    for words in [
        "`system.deploy.servers` must lie between 1 and 10000, but is 0",
        "`system.deploy.service` must be a duration such as 250us",
        "`system.deploy.comit` is not a key that Assay knows",
        "`system.deploy.faults.lose` must be a whole number",
        "`system.deploy.faults.stall.for` is missing",
        "`get` is not among the workload's kinds",
        "`system.deploy.faults.limit.rate` is missing",
        "one stage cannot be out of order",
        "nothing reads",
        "expected `workload.payload` between 0B and 1MiB",
    ] {
        assert!(wrong.iter().any(|said| said.contains(words)), "{words}\nnot in {wrong:#?}");
    }
    assert_eq!(wrong.len(), 10, "{wrong:#?}");
    let both = built(&[("attach", text("127.0.0.1:1")), ("servers", Value::Integer(2))], &[])
        .err()
        .unwrap();
    assert!(both[0].contains("a server that is already running has its own queue and faults"));
    let http =
        built(&[("protocol", text("http")), ("stages", Value::Integer(2))], &[]).err().unwrap();
    assert!(http[0].contains("over HTTP there is one stage"), "{http:?}");
    let stamping = [("events", Value::Boolean(true)), ("protocol", text("http"))];
    let stamping = built(&stamping, &[]).err().unwrap();
    assert!(stamping[0].contains("a node stamps events over frames"), "{stamping:?}");
}
