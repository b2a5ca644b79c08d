//! The ways to learn of a commit, the stages, and the HTTP face.

use super::*;
use crate::protocol::{write_check, write_status, write_subscribe};
use crate::{CommitWay, Faults, HTTP_LISTENER, Lie, Limit, Window};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";

fn http(options: Options) -> (Rehearsal<EchoNode>, Connection) {
    let node = EchoNode::new(options, Ledger::in_memory(), Confession::in_memory(), Events::none());
    let mut rehearsal = Rehearsal::new(node);
    let connection = rehearsal.open(HTTP_LISTENER);
    (rehearsal, connection)
}

fn text(stage: &mut Rehearsal<EchoNode>, connection: Connection) -> String {
    String::from_utf8_lossy(&stage.take_bytes(connection)).into_owned()
}

/// Claim: with two stages a transaction is accepted when it comes and committed when it has been served.
#[test]
fn two_stages() {
    let service = Duration::from_millis(5);
    let mut stage = Stage::new(Options { stages: 2, service, ..Options::default() });
    stage.submit(ms(1), 9);
    stage.rehearsal.advance(ms(100));
    let said: Vec<_> = stage.answers().iter().map(|(at, a)| (at.as_ns(), a.code)).collect();
    assert_eq!(said, [(1_000_000, Code::Accepted), (6_000_000, Code::Committed)]);
}

/// Claim: what the server says of itself counts what was served and what waits, frames and HTTP together, and is said on a
/// listener of its own while the queue is full.
#[test]
fn metrics_of_its_own() {
    const METRICS_LISTENER: usize = 2;
    let options = Options { service: Duration::from_millis(5), ..Options::default() };
    let node = EchoNode::new(options, Ledger::in_memory(), Confession::in_memory(), Events::none());
    let mut rehearsal = Rehearsal::new(node.saying_metrics_at(METRICS_LISTENER));
    let http = rehearsal.open(HTTP_LISTENER);
    let metrics = rehearsal.open(METRICS_LISTENER);
    (0..3).for_each(|_| rehearsal.send(http, GET));
    let mut said = |at: Instant| {
        rehearsal.advance(at);
        rehearsal.send(metrics, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        let said = text(&mut rehearsal, metrics);
        let of = |name: &str| -> Option<u64> {
            let line = said.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        (of("echo_commits_total "), of("echo_queue_length "))
    };
    assert_eq!(said(ms(1)), (Some(0), Some(3)));
    assert_eq!(said(ms(7)), (Some(1), Some(2)));
    assert_eq!(said(ms(100)), (Some(3), Some(0)));
}

/// Claim: with three stages its service begins when a server is free.
#[test]
fn three_stages() {
    let service = Duration::from_millis(5);
    let mut stage = Stage::new(Options { stages: 3, service, ..Options::default() });
    (0..2).for_each(|tx| stage.submit(ms(1), tx));
    stage.rehearsal.advance(ms(100));
    let said = stage.answers();
    let of = |tx| -> Vec<_> {
        let mine = said.iter().filter(|(_, answer)| answer.tx == tx);
        mine.map(|(at, answer)| (at.as_ns() / 1_000_000, answer.code)).collect()
    };
    assert_eq!(of(0), [(1, Code::Accepted), (1, Code::Started), (6, Code::Committed)]);
    assert_eq!(of(1), [(1, Code::Accepted), (6, Code::Started), (11, Code::Committed)]);
}

/// Claim: with observers, the submitting connection is told of acceptance and refusals only, and each observer
/// of the run of each commit, once.
#[test]
fn observed_commits() {
    let mut stage =
        Stage::new(Options { commit: CommitWay::Observer, stages: 2, ..Options::default() });
    let observers = [stage.rehearsal.open(0), stage.rehearsal.open(0), stage.rehearsal.open(0)];
    for (observer, run) in observers.iter().zip([RUN, RUN, RUN + 1]) {
        let mut bytes = Vec::new();
        write_subscribe(&mut bytes, run);
        write_subscribe(&mut bytes, run);
        stage.rehearsal.send(*observer, &bytes);
    }
    stage.rehearsal.close(observers[1]);
    stage.rehearsal.take_sent();
    stage.submit(ms(0), 5);
    let sent = stage.rehearsal.take_sent();
    let to: Vec<Connection> = sent.iter().map(|sent| sent.connection).collect();
    assert_eq!(to, [stage.connection, observers[0]]);
    assert_eq!(sent[0].bytes.len(), sent[1].bytes.len(), "one answer each");
}

/// Claim: subscriptions have a bound, and the connection that passes it is hung up on.
#[test]
fn too_many_subscriptions() {
    let mut stage = Stage::new(Options { commit: CommitWay::Observer, ..Options::default() });
    let mut bytes = Vec::new();
    (0..1024).for_each(|run| write_subscribe(&mut bytes, run));
    stage.rehearsal.send(stage.connection, &bytes);
    assert!(stage.rehearsal.is_open(stage.connection));
    let mut bytes = Vec::new();
    write_subscribe(&mut bytes, 5000);
    stage.rehearsal.send(stage.connection, &bytes);
    assert!(!stage.rehearsal.is_open(stage.connection));
}

/// Claim: with polling nothing is told until it is asked for, then once; asking too early says nothing.
#[test]
fn polled_commits() {
    let service = Duration::from_millis(10);
    let mut stage = Stage::new(Options { commit: CommitWay::Poll, service, ..Options::default() });
    let mut question = Vec::new();
    write_status(&mut question, RUN, [1, 2, 3].into_iter());
    stage.submit(ms(0), 1);
    stage.submit(ms(0), 2);
    let mut ask = |at| {
        stage.rehearsal.advance(ms(at));
        stage.rehearsal.send(stage.connection, &question);
        with(&stage.answers(), Code::Committed)
    };
    assert_eq!(
        [ask(5), ask(10), ask(15), ask(20), ask(30)],
        [vec![], vec![1], vec![], vec![2], vec![]]
    );
}

/// Claim: while the server is stalled it says nothing at all: no acceptance, no refusal, no status, no HTTP.
#[test]
fn a_stalled_server_is_silent() {
    let stalls = vec![Window { at: Duration::from_millis(100), length: Duration::from_secs(1) }];
    let limit = Some(Limit { rate: 1e-3, burst: 3.0, backoff: Duration::ZERO });
    let faults = Faults { stalls, limit, ..Options::default().faults };
    let options = Options { stages: 2, faults, ..Options::default() };
    let mut stage = Stage::new(options);
    (0..2).for_each(|tx| stage.submit(ms(0), tx));
    assert_eq!(stage.answers().len(), 4);
    (2..5).for_each(|tx| stage.submit(ms(500), tx));
    let http = stage.rehearsal.open(HTTP_LISTENER);
    stage.rehearsal.send(http, GET);
    stage.rehearsal.advance(Instant::from_ns(1_099_999_999));
    assert_eq!(stage.rehearsal.take_sent(), []);
    stage.rehearsal.advance(ms(1100));
    let sent = stage.rehearsal.take_sent();
    assert!(sent.iter().all(|sent| sent.at == ms(1100)));
    assert_eq!(sent.len(), 2, "both connections, all at once");
}

/// Claim: a check says whether a kind would be taken, and stores nothing.
#[test]
fn checks() {
    let faults = Faults { refused_kind: Some(1), ..Options::default().faults };
    let mut stage = Stage::new(Options { faults, ..Options::default() });
    let mut bytes = Vec::new();
    (0..2).for_each(|kind| write_check(&mut bytes, kind));
    stage.rehearsal.send(stage.connection, &bytes);
    let said = stage.rehearsal.take_bytes(stage.connection);
    let first = next_frame(&said).unwrap().unwrap();
    let second = next_frame(&said[first.used..]).unwrap().unwrap();
    assert_eq!(read_reply(first.payload), Ok(Reply::Checked { kind: 0, is_taken: true }));
    assert_eq!(read_reply(second.payload), Ok(Reply::Checked { kind: 1, is_taken: false }));
    assert!(stage.ledger().is_empty());
}

/// Claim: frames that are none end the connection, and no other.
#[test]
fn nonsense_is_hung_up_on() {
    for nonsense in [&[0xff; 8][..], &[1, 0, 0, 0, 99], &[0, 0, 0, 0]] {
        let mut stage = Stage::new(Options::default());
        let other = stage.rehearsal.open(FRAMES_LISTENER);
        stage.rehearsal.send(stage.connection, nonsense);
        assert!(!stage.rehearsal.is_open(stage.connection), "{nonsense:?}");
        assert!(stage.rehearsal.is_open(other));
    }
    let (mut stage, connection) = http(Options::default());
    stage.send(connection, b"nonsense\r\n\r\n");
    assert!(text(&mut stage, connection).starts_with("HTTP/1.1 400 Bad Request\r\n"));
    assert!(!stage.is_open(connection));
}

/// Claim: pipelined HTTP requests are answered in order even where a later one is served sooner, and the
/// connection ends when the client asks.
#[test]
fn http_answers_in_order() {
    let slow_first = vec![crate::Slow {
        window: Window { at: Duration::ZERO, length: Duration::from_millis(1) },
        factor: 10.0,
    }];
    let faults = Faults { slows: slow_first, ..Options::default().faults };
    let (mut stage, connection) = http(Options {
        servers: 2,
        service: Duration::from_millis(1),
        faults,
        ..Options::default()
    });
    stage.send(connection, GET);
    stage.advance(ms(2));
    stage.send(connection, b"GET /status/404 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stage.advance(ms(9));
    assert_eq!(text(&mut stage, connection), "");
    stage.advance(ms(10));
    let said = text(&mut stage, connection);
    assert!(said.starts_with(&format!("{OK}HTTP/1.1 404 Not Found\r\n")), "{said}");
    assert!(!stage.is_open(connection));
}

/// Claim: over HTTP the limiter says 429 with how long to wait, the full queue 503, and the lies about answers
/// do what they say.
#[test]
fn http_faults() {
    let limit = Some(Limit { rate: 50.0, burst: 1.0, backoff: Duration::from_secs(30) });
    let faults = Faults { limit, ..Options::default().faults };
    let (mut stage, connection) = http(Options { faults, ..Options::default() });
    stage.send(connection, &[GET, GET].concat());
    let said = text(&mut stage, connection);
    assert!(said.starts_with(&format!("{OK}HTTP/1.1 429 Too Many Requests\r\n")), "{said}");
    assert!(said.contains("Retry-After: 30\r\n") && said.contains("\"allowed_rps\":50"), "{said}");
    let (mut stage, connection) =
        http(Options { service: Duration::from_secs(1), queue_max: Some(0), ..Options::default() });
    stage.send(connection, &[GET, GET].concat());
    stage.advance(ms(1000));
    let said = text(&mut stage, connection);
    assert!(said.starts_with(&format!("{OK}HTTP/1.1 503 ")), "{said}");
    for (lie, expected) in [(Lie::Drop, ""), (Lie::Twice, &*format!("{OK}{OK}")), (Lie::Close, "")]
    {
        let faults = Options::default().faults.lie(lie, 1);
        let (mut stage, connection) = http(Options { faults, ..Options::default() });
        stage.send(connection, GET);
        assert_eq!(text(&mut stage, connection), expected, "{lie:?}");
        assert_eq!(stage.is_open(connection), lie != Lie::Close);
        assert_eq!(stage.node().confession().list(), [(lie.word(), 0)]);
    }
    let faults = Options::default().faults.lie(Lie::Late, 1);
    let (mut stage, connection) = http(Options { faults, ..Options::default() });
    stage.send(connection, GET);
    stage.advance(ms(59_999));
    assert_eq!(text(&mut stage, connection), "");
    stage.advance(ms(60_000));
    assert_eq!(text(&mut stage, connection), OK);
}

/// Claim: no bytes whatever make either face panic, in any pieces, and a connection that survives them still
/// answers.
#[test]
fn arbitrary_bytes() {
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
    let mut rng = SplitMix64::seed_from_u64(5);
    let mut good = Vec::new();
    write_submit(&mut good, RUN, 1, 0, b"payload");
    write_status(&mut good, RUN, [1].into_iter());
    write_sync(&mut good);
    write_ledger_request(&mut good, u64::MAX, u32::MAX);
    for round in 0..3000 {
        let mut stage = Stage::new(Options::default());
        let listener = if round % 2 == 0 { FRAMES_LISTENER } else { HTTP_LISTENER };
        let connection = stage.rehearsal.open(listener);
        let mut bytes =
            if listener == FRAMES_LISTENER { good.clone() } else { [GET, GET].concat() };
        for _ in 0..1 + rng.next_u64() % 3 {
            let at = rng.next_u64() as usize % bytes.len();
            bytes[at] = rng.next_u64() as u8;
        }
        for piece in bytes.chunks(1 + rng.next_u64() as usize % bytes.len()) {
            if stage.rehearsal.is_open(connection) {
                stage.rehearsal.send(connection, piece);
            }
        }
        stage.submit(ms(1), 2);
        assert!(with(&stage.answers(), Code::Committed).contains(&2), "round {round}");
    }
}

/// Claim: whoever asks for long answers and does not read is hung up on, with no more than a bound waiting for it, whether the
/// answers leave at once or after their service.
#[test]
fn answers_that_are_not_read() {
    for service in [Duration::ZERO, Duration::from_millis(5)] {
        let (mut rehearsal, connection) = http(Options { service, ..Options::default() });
        let request = b"GET /bytes/8000000 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100);
        rehearsal.send(connection, &request);
        rehearsal.advance(ms(5));
        // One that was served later leaves alone, and the rehearsal takes what has left.
        let bytes = rehearsal.take_bytes(connection).len();
        assert!(bytes < 80_000_000, "{bytes}");
        assert_eq!(rehearsal.is_open(connection), !service.is_zero());
    }
}
