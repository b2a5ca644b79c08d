//! The replica by dialogue, in virtual time.

use clock::Instant;
use process::rehearsal::Rehearsal;
use process::{Connection, Input, Node as _, Outputs, Stored};
use replicated::{Config, Members, ReplicaId, Settings};
use wire::frames::next_frame;

use crate::database::compose::{Composer, published};
use crate::database::results::{Given, ResultReader};
use crate::database::transaction::Literal;
use crate::database::{Limits, Status, group};
use crate::ledger::{Ledger, read_entry};
use crate::node::PEERS_LISTENER;
use crate::protocol::{self, Reply, Why, read_reply};
use crate::{CLIENTS_LISTENER, KvNode, METRICS_LISTENER};

fn node() -> Rehearsal<KvNode> {
    Rehearsal::new(KvNode::new(0, Limits::default(), Ledger::in_memory()))
}

fn greeted(node: &mut Rehearsal<KvNode>) -> Connection {
    let connection = node.open(CLIENTS_LISTENER);
    let mut hello = Vec::new();
    protocol::write_hello(&mut hello, 0);
    node.send(connection, &hello);
    let bytes = node.take_bytes(connection);
    let frame = next_frame(&bytes).unwrap().unwrap();
    assert!(matches!(read_reply(frame.payload).unwrap(), Reply::Welcome(_)));
    connection
}

fn submission(number: u64, clients: std::ops::Range<u64>, sequence: u64) -> Vec<u8> {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    group::begin(&mut bytes, 0);
    for client in clients {
        group::push(&mut bytes, 0, client, sequence, |out| published(out, client, &[7; 16]));
    }
    protocol::write_submit(&mut out, number, &bytes);
    out
}

/// What a test wants of a reply.
#[derive(Debug, PartialEq)]
enum Said {
    Results(u64, u32, Vec<(Status, u64)>),
    Refused(u64, Why),
    Voters(Vec<u8>),
    Other,
}

fn replies(bytes: &[u8]) -> Vec<Said> {
    let (mut said, mut at) = (Vec::new(), 0);
    while let Some(frame) = next_frame(&bytes[at..]).unwrap() {
        at += frame.used;
        said.push(match read_reply(frame.payload).unwrap() {
            Reply::Results { number, first, results } => {
                let result = |bytes| {
                    let result = ResultReader::read(bytes).unwrap();
                    (result.status, result.position)
                };
                Said::Results(number, first, results.iter().map(result).collect())
            }
            Reply::Refused { number, why, .. } => Said::Refused(number, why),
            Reply::Voters(voters) => Said::Voters(voters.to_vec()),
            _ => Said::Other,
        });
    }
    assert_eq!(at, bytes.len());
    said
}

fn turn(node: &mut Rehearsal<KvNode>) {
    let now = node.now();
    node.advance(now);
}

/// Claim: replicas that have carried out the same say one digest at one position, and another as soon as they differ in
/// anything, were it only that one of them was sent something again; how one stands says that it has a vote.
#[test]
fn a_digest_is_of_all_that_is_held() {
    let digest = |node: &mut Rehearsal<KvNode>, connection| {
        let mut question = Vec::new();
        protocol::write_digest_request(&mut question);
        node.send(connection, &question);
        let bytes = node.take_bytes(connection);
        let frame = next_frame(&bytes).unwrap().unwrap();
        let Reply::Digest(digest) = read_reply(frame.payload).unwrap() else { panic!("no digest") };
        digest
    };
    let (mut a, mut b) = (node(), node());
    let (to_a, to_b) = (greeted(&mut a), greeted(&mut b));
    let empty = digest(&mut a, to_a);
    assert_eq!((empty.position, digest(&mut b, to_b)), (0, empty));
    let carry_out = |node: &mut Rehearsal<KvNode>, to, clients: std::ops::Range<u64>| {
        node.send(to, &submission(5, clients, 1));
        turn(node);
        node.take_bytes(to);
    };
    carry_out(&mut a, to_a, 10..13);
    carry_out(&mut b, to_b, 10..13);
    let same = digest(&mut a, to_a);
    assert_eq!((same.position, digest(&mut b, to_b)), (3, same));
    assert_ne!(same.digest, empty.digest);
    carry_out(&mut a, to_a, 20..21);
    carry_out(&mut b, to_b, 21..22);
    let (one, other) = (digest(&mut a, to_a), digest(&mut b, to_b));
    assert!(one.position == other.position && one.digest != other.digest);
    carry_out(&mut a, to_a, 10..11);
    let again = digest(&mut a, to_a);
    assert!(again.position == one.position && again.digest != one.digest, "its session was used");

    let mut question = Vec::new();
    protocol::write_status_request(&mut question);
    a.send(to_a, &question);
    let bytes = a.take_bytes(to_a);
    let frame = next_frame(&bytes).unwrap().unwrap();
    let Reply::State(state) = read_reply(frame.payload).unwrap() else { panic!("no status") };
    assert!(state.has_vote && state.position == 4, "{state:?}");
}

/// Claim: what arrives together on a connection is one entry; each transaction is answered once, in order, with
/// its position; one sent again is answered the same and executed once; and the ledger has each once.
#[test]
fn what_comes_together_is_an_entry_and_nothing_happens_twice() {
    let mut node = node();
    let (one, two) = (greeted(&mut node), greeted(&mut node));
    let first = submission(5, 10..13, 1);
    for cut in [1, 40, first.len() - 41] {
        // Cut anywhere.
        let start = if cut == 1 {
            0
        } else if cut == 40 {
            1
        } else {
            41
        };
        node.send(one, &first[start..start + cut]);
    }
    node.send(two, &submission(6, 20..22, 1));
    turn(&mut node);
    let done = |position| (Status::Done, position);
    let expected = Said::Results(5, 0, vec![done(1), done(2), done(3)]);
    assert_eq!(replies(&node.take_bytes(one)), [expected]);
    let expected = Said::Results(6, 0, vec![done(4), done(5)]);
    assert_eq!(replies(&node.take_bytes(two)), [expected]);
    assert_eq!(node.node().counts().entries, 2);
    node.send(two, &submission(7, 10..13, 1));
    turn(&mut node);
    let expected = Said::Results(7, 0, vec![done(1), done(2), done(3)]);
    assert_eq!(replies(&node.take_bytes(two)), [expected], "the first results");
    assert_eq!(node.node().database().position(), 5);

    let mut question = Vec::new();
    protocol::write_ledger_request(&mut question, 0);
    node.send(one, &question);
    let bytes = node.take_bytes(one);
    let frame = next_frame(&bytes).unwrap().unwrap();
    let Reply::Part { from: 0, total, whole_to: 5, bytes } = read_reply(frame.payload).unwrap()
    else {
        panic!("no ledger");
    };
    assert_eq!(total, bytes.len() as u64);
    let (mut clients, mut at) = (Vec::new(), 0);
    while let Some((entry, length)) = read_entry(&bytes[at..]) {
        clients.push((entry.position, entry.client, entry.sequence, entry.status));
        at += length;
    }
    assert_eq!(
        clients,
        [(1, 10, 1, 0), (2, 11, 1, 0), (3, 12, 1, 0), (4, 20, 1, 0), (5, 21, 1, 0)]
    );
}

/// Claim: reads see what was acknowledged before, do not enter the log, and cannot write.
#[test]
fn reads_do_not_enter_the_log() {
    let mut node = node();
    let connection = greeted(&mut node);
    node.send(connection, &submission(1, 3..4, 1));
    turn(&mut node);
    node.take_sent();
    let (mut reads, mut out) = (Vec::new(), Vec::new());
    for write in [false, true] {
        let mut transaction = Vec::new();
        let mut composer = Composer::begin(&mut transaction, &[b"3"]);
        composer.get(0, &[b"12"]);
        if write {
            composer.store(0, &[b"12"], Literal::Integer(1));
        }
        reads.extend_from_slice(&u32::try_from(transaction.len()).unwrap().to_le_bytes());
        reads.extend_from_slice(&transaction);
    }
    protocol::write_read(&mut out, 2, 2, &reads);
    node.send(connection, &out);
    let bytes = node.take_bytes(connection);
    let frame = next_frame(&bytes).unwrap().unwrap();
    let Reply::Results { number: 2, first: 0, results } = read_reply(frame.payload).unwrap() else {
        panic!("no results");
    };
    let results: Vec<&[u8]> = results.iter().collect();
    let mut result = ResultReader::read(results[0]).unwrap();
    assert!(matches!(result.next().unwrap(), Some(Given::Value(1, _))));
    assert_eq!(ResultReader::read(results[1]).unwrap().status, Status::Invalid);
    assert_eq!((node.node().counts().entries, node.node().database().position()), (1, 1));
}

/// Claim: results that are long leave in several bounded frames, each saying which it begins with.
#[test]
fn long_results_leave_in_pieces() {
    let mut node = node();
    let connection = greeted(&mut node);
    let value = vec![1; 300_000];
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    group::begin(&mut bytes, 0);
    for client in 0..8 {
        group::push(&mut bytes, 0, client, 1, |out| {
            Composer::begin(out, &[b"t"]).put(0, &[b"x"], Literal::Bytes(&value)).get(0, &[b"x"]);
        });
    }
    protocol::write_submit(&mut out, 1, &bytes);
    node.send(connection, &out);
    turn(&mut node);
    let said = replies(&node.take_bytes(connection));
    let firsts: Vec<(u32, usize)> = said
        .iter()
        .map(|said| match said {
            Said::Results(1, first, list) => (*first, list.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(firsts, [(0, 4), (4, 4)]);
}

/// A replica whose group is it alone, with the database 9.
fn of_itself() -> KvNode {
    let (database, disk) = (9_u64.to_le_bytes(), 5_u64.to_le_bytes());
    let identity = [&database[..], &[0, 0], &disk, &[1, 0], &disk].concat();
    let stored = Stored { cells: vec![None, None, Some(identity)], ..Stored::default() };
    let config = Config::new(ReplicaId(0), Members::new(&[ReplicaId(0)]).unwrap());
    let settings = Settings {
        service: 1,
        disk: 5,
        peers: Vec::new(),
        listener: PEERS_LISTENER,
        log: 0,
        cell: 0,
        unsent_bytes_max: 1 << 20,
    };
    KvNode::of_group(config, &settings, &stored, Limits::default(), Ledger::nowhere()).unwrap()
}

/// Claim: a client that means another database is refused and hung up on; one that means this one, or any, is not.
#[test]
fn another_database() {
    let mut node = Rehearsal::new(of_itself());
    for (database, is_taken) in [(0, true), (9, true), (8, false)] {
        let connection = node.open(CLIENTS_LISTENER);
        let mut hello = Vec::new();
        protocol::write_hello(&mut hello, database);
        node.send(connection, &hello);
        assert_eq!(node.is_open(connection), is_taken, "{database}");
        let said = replies(&node.take_bytes(connection));
        assert_eq!(said.contains(&Said::Refused(0, Why::OtherDatabase)), !is_taken, "{database}");
    }
}

/// Claim: whoever says hello while there is no leader is answered once there is one; whoever says it again is answered at once,
/// so that no more is kept of a connection than that it waits.
#[test]
fn hello_again_and_again() {
    let mut node = Rehearsal::new(of_itself());
    let connection = node.open(CLIENTS_LISTENER);
    let mut hello = Vec::new();
    protocol::write_hello(&mut hello, 0);
    node.send(connection, &hello);
    assert_eq!(replies(&node.take_bytes(connection)), []);
    node.send(connection, &hello.repeat(100));
    assert_eq!(replies(&node.take_bytes(connection)).len(), 100);
}

/// Claim: what one step answers to many connections together is bounded: those who would get more are hung up on, and the
/// others have their answers.
#[test]
fn answers_of_one_step_are_bounded() {
    let mut node = KvNode::new(0, Limits::default(), Ledger::in_memory());
    let mut out = Outputs::default();
    let submit = |number, clients: std::ops::Range<u64>, transaction: &[u8]| {
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        protocol::write_hello(&mut out, 0);
        group::begin(&mut bytes, 0);
        for client in clients {
            group::push(&mut bytes, 0, client, 1, |out| out.extend_from_slice(transaction));
        }
        protocol::write_submit(&mut out, number, &bytes);
        out
    };
    let (mut put, mut get) = (Vec::new(), Vec::new());
    let value = vec![7; 1_000_000];
    Composer::begin(&mut put, &[b"t"]).put(0, &[b"k"], Literal::Bytes(&value));
    Composer::begin(&mut get, &[b"t"]).get(0, &[b"k"]);
    let mut take = |requests: &[Vec<u8>], first: u32| {
        let of = |index| Connection::new(first + index, 0);
        for (request, connection) in requests.iter().zip((0..).map(of)) {
            out.open(connection);
            node.step(
                Instant::ZERO,
                Input::Opened { connection, listener: CLIENTS_LISTENER },
                &mut out,
            );
            node.step(Instant::ZERO, Input::Bytes(connection, request), &mut out);
        }
        node.step(Instant::ZERO, Input::TurnEnd, &mut out);
        let mut pending = |connection| {
            let (bytes, closes) = out.pending(connection).expect("it is open");
            (bytes.len(), closes)
        };
        let count = u32::try_from(requests.len()).unwrap();
        (0..count).map(of).map(&mut pending).collect::<Vec<(usize, bool)>>()
    };
    take(&[submit(1, 0..1, &put)], 0);
    let mut small = Vec::new();
    Composer::begin(&mut small, &[b"t"]).put(0, &[b"s"], Literal::Integer(1));
    let mut all: Vec<Vec<u8>> =
        (1..=24).map(|number| submit(number, 100 * number..100 * number + 10, &get)).collect();
    all.push(submit(25, 9_000..9_001, &small));
    let answers = take(&all, 1);
    let sum: usize = answers.iter().map(|answer| answer.0).sum();
    assert!((100 << 20..140 << 20).contains(&sum), "{answers:?}");
    assert!(answers[0].0 > 10_000_000 && !answers[0].1, "{answers:?}");
    assert!(answers[23].0 < 1_000 && answers[23].1, "{answers:?}");
    assert!(!answers[24].1, "one with a short answer is not hung up on: {answers:?}");
}

/// Claim: only whoever shows the operators' key is told of votes and may change them; without one there are none, and a replica that
/// does not lead, one that was never named and the last vote are each refused with the reason.
#[test]
fn operators_show_a_key() {
    let key = [7; 32];
    let ask = |node: &mut Rehearsal<KvNode>, change, shown: &[u8; 32]| {
        let connection = node.open(CLIENTS_LISTENER);
        let mut bytes = Vec::new();
        protocol::write_hello(&mut bytes, 0);
        protocol::write_votes_request(&mut bytes, change, shown);
        node.send(connection, &bytes);
        replies(&node.take_bytes(connection)).pop()
    };
    let refused = |why| Some(Said::Refused(0, why));
    for shown in [[7; 32], [0; 32]] {
        let mut closed = Rehearsal::new(of_itself());
        assert_eq!(ask(&mut closed, None, &shown), refused(Why::NotOperator));
    }
    let mut node = Rehearsal::new(of_itself().with_operators(Some(key)));
    assert_eq!(ask(&mut node, Some((1, true)), &[0; 32]), refused(Why::NotOperator));
    assert_eq!(ask(&mut node, None, &key), Some(Said::Voters(vec![0])));
    assert_eq!(ask(&mut node, Some((0, false)), &key), refused(Why::NotLeader));
    let mut alone = Rehearsal::new(
        KvNode::new(0, Limits::default(), Ledger::in_memory()).with_operators(Some(key)),
    );
    assert_eq!(ask(&mut alone, Some((1, true)), &key), refused(Why::UnknownReplica));
}

/// Claim: what is not of the protocol is refused and ends its connection: another version, no hello, garbage, lengths that
/// cannot be; nobody else is hurt, and the metrics count it.
#[test]
fn strange_bytes_end_their_connection() {
    let mut node = node();
    let good = greeted(&mut node);
    let mut old = Vec::new();
    protocol::write_hello(&mut old, 0);
    // After the length of the frame and its first byte.
    old[5] = 99;
    let mut short_group = submission(1, 0..1, 1);
    let at = 4 + 1 + 8 + 8;
    short_group[at] = 2;
    let greeting = {
        let mut hello = Vec::new();
        protocol::write_hello(&mut hello, 0);
        hello
    };
    let cases = [
        old,
        submission(1, 0..1, 1),
        vec![0xff; 64],
        vec![1, 0, 0, 0, 77],
        [greeting.clone(), short_group].concat(),
        [greeting, vec![0, 0, 0, 0]].concat(),
    ];
    for (case, number) in cases.iter().zip(1..) {
        let connection = node.open(CLIENTS_LISTENER);
        node.send(connection, case);
        assert!(!node.is_open(connection), "case {number}");
        let said = replies(&node.take_bytes(connection));
        assert_eq!(said.last(), Some(&Said::Refused(0, Why::Malformed)), "case {number}");
        assert_eq!(node.node().counts().malformed, number);
    }
    node.send(good, &submission(1, 0..1, 1));
    turn(&mut node);
    assert!(matches!(replies(&node.take_bytes(good))[..], [Said::Results(..)]));
    let metrics = node.open(METRICS_LISTENER);
    node.send(metrics, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    let said = String::from_utf8(node.take_bytes(metrics)).unwrap();
    assert!(said.contains("\nkv_malformed_total 6\n"), "{said}");
}
