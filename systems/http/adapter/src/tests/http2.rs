//! HTTP/2 against peers that are functions of bytes: honest ones, for the contract's suite, and a list of what a server may do.

use sut::conformance::{
    Behaviour, Peer, Seen, Step, Subject, hostile_conformance, http2_peer, session_conformance,
    system_conformance,
};
use sut::{Link, Mark, Marks, Role, Session, System as _, Transaction, Workload};

use super::http2_hostile_list::{SETTINGS, behaviours, frame};
use super::{built, system};
use crate::server::HttpSystem;

const SERVER: &str = "http://127.0.0.1:8080/";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The most unread bytes that a session may leave: a frame that is not whole.
const UNREAD_MAX: usize = 9 + 16_384;

fn of(workload: &str) -> HttpSystem {
    let deploy = format!("{{\"url\":\"{SERVER}\",\"http_version\":\"2\"}}");
    built(&deploy, workload, std::path::Path::new(".")).unwrap()
}

fn session(system: &HttpSystem) -> Box<dyn Session> {
    let address = "127.0.0.1:8080".parse().unwrap();
    let to = sut::Deployment {
        endpoints: vec![("http".into(), address)],
        ..sut::Deployment::new(clock::Clock::start())
    };
    match system.connect(&to, Role::Submit, 0).unwrap() {
        Link::Wire(_, session) => session,
        _ => panic!("an HTTP server is reached over a wire"),
    }
}

/// A server that answers each request with 200 and `ok`, the second of three before the first.
fn peer() -> Peer {
    http2_peer(SETTINGS, |stream| {
        [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, b"ok")].concat()
    })
}

/// Claim: sessions and systems keep the contract over HTTP/2, with one stream and with many, with bodies and without.
#[test]
fn http2_conforms() {
    for streams in [1, 16] {
        let system = of(&format!(
            "{{\"streams\":{streams},\"targets_text\":\"GET /a\\nPOST /b\\nContent-Type: text/plain\\n\\nGET /c\\n\"}}"
        ));
        let made = || session(&system);
        let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
        session_conformance(&Subject::new(&made, &peer, &source)).unwrap();
        system_conformance(&system).unwrap();
    }
}

/// Claim: the same requests go out as over HTTP/1.1, kinds and outcomes are the same, and a request that was given up is told
/// to the server.
#[test]
fn a_dialogue() {
    let system = of(
        r#"{"method":"POST","path":"/tx?a","body":"{}","headers":{"Connection":"close","X-Id":"7"},"streams":4}"#,
    );
    assert_eq!(sut::Kind::names(&system.kinds()), ["POST /tx?a"]);
    let (mut session, mut out, mut marks) = (session(&system), Vec::new(), Marks::default());
    session.open(&mut out);
    assert!(out.starts_with(PREFACE) && !session.is_ready());
    let mut greeted = Vec::new();
    session.receive(SETTINGS, &mut greeted, &mut marks).unwrap();
    assert!(session.is_ready() && greeted == b"\0\0\0\x04\x01\0\0\0\0");
    for tx in 0..4 {
        out.clear();
        assert_eq!(session.submit(&Transaction::new(tx, 0, &[]), &mut out), 2);
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("/tx?a") && text.contains("x-id") && text.ends_with("{}"), "{text}");
        assert!(!text.contains("connection"), "what only HTTP/1.1 has is left out");
    }
    session.abandon(1);
    let answers = [
        frame(1, 5, 7, &[0x8d]),
        frame(3, 0, 1, &[0, 0, 0, 7]),
        frame(1, 4, 5, &[0x88]),
        frame(7, 0, 0, &[0, 0, 0, 7, 0, 0, 0, 0]),
        frame(0, 1, 5, b"ok"),
    ]
    .concat();
    out.clear();
    session.receive(&answers, &mut out, &mut marks).unwrap();
    let said: Vec<String> = marks
        .list()
        .iter()
        .map(|mark| match mark {
            Mark::Reached { tx, code, bytes_in, .. } => format!("{tx} {code} {bytes_in}"),
            Mark::Ended { tx, answer } => format!("{tx} {} {}", answer.outcome, marks.text(answer)),
        })
        .collect();
    let expected = [
        "3 rejected(bad_request) 404 Not Found",
        "0 rejected(overloaded) not processed: REFUSED_STREAM",
        "2 200 2",
    ];
    assert_eq!(said, expected);
    assert!(marks.wants_drain() && !marks.wants_close());
    assert!(out.starts_with(&frame(3, 0, 3, &[0, 0, 0, 8])), "{out:?}");
}

const FLOW: &str = r#"{"streams":4,"headers":{"X-App":"a"},"redirects":1,"step":[
    {"name":"log in","path":"/login","body":"{}","take":{"token":"json:/t"}},
    {"name":"pay","path":"/pay/{{$user}}","headers":{"Authorization":"Bearer {{token}}","Connection":"close"}}]}"#;

/// A user who begins, and the answer to his login on a stream of a cookie and a token of his own.
fn begin(
    session: &mut dyn Session,
    source: &mut dyn Workload,
    tx: u64,
    stream: u32,
) -> (Vec<u8>, Vec<u8>) {
    let (mut payload, mut out) = (Vec::new(), Vec::new());
    let kind = source.next(tx, None, &mut payload).kind;
    session.submit(&Transaction::new(tx, kind, &payload), &mut out);
    let cookie = format!("\x0aset-cookie\x05sid={tx}");
    let head = [b"\x88\0".as_slice(), cookie.as_bytes()].concat();
    let body = format!("{{\"t\":\"token-{tx}\"}}");
    (out, [frame(1, 4, stream, &head), frame(0, 1, stream, body.as_bytes())].concat())
}

/// Claim: users share a connection, each on streams of his own: whichever answer comes first, each user's next request has his
/// own token and cookie; and nothing of HTTP/1.1 is in it.
#[test]
fn users_share_a_connection() {
    let system = of(FLOW);
    let (mut session, mut marks, mut out) = (session(&system), Marks::default(), Vec::new());
    let mut source = system.workload(model::Seed(1), 0, 1);
    session.open(&mut out);
    session.receive(SETTINGS, &mut out, &mut marks).unwrap();
    let (asked, first) = begin(&mut *session, &mut *source, 0, 1);
    assert!(String::from_utf8_lossy(&asked).contains("/login") && asked.ends_with(b"{}"));
    let (_, second) = begin(&mut *session, &mut *source, 1, 3);
    session.receive(&[second, first].concat(), &mut out, &mut marks).unwrap();
    let ended: Vec<u64> = marks
        .list()
        .iter()
        .map(|mark| match mark {
            Mark::Reached { tx, .. } => *tx,
            Mark::Ended { answer, .. } => panic!("{}", marks.text(answer)),
        })
        .collect();
    assert_eq!(ended, [1, 0]);
    for (tx, user) in [(0_u64, 0), (1, 1)] {
        let (next, state) = marks.follow_up(tx).expect("he goes on");
        out.clear();
        session.submit(&Transaction::new(10 + tx, next.kind, state), &mut out);
        let text = String::from_utf8_lossy(&out);
        let has = [
            format!("/pay/{user}"),
            format!("Bearer token-{tx}"),
            format!("sid={tx}"),
            "x-app".into(),
        ];
        assert!(has.iter().all(|it| text.contains(it)) && !text.contains("connection"), "{text}");
    }
}

/// Claim: a reset, a refusal and a GOAWAY in mid-flow end the flows of the users whose streams they are, each with its class; a
/// user whose answer still comes goes on elsewhere; and a redirect is followed.
#[test]
fn streams_that_end_in_mid_flow() {
    let system = of(FLOW);
    let (mut session, mut marks, mut out) = (session(&system), Marks::default(), Vec::new());
    let mut source = system.workload(model::Seed(1), 0, 1);
    session.open(&mut out);
    session.receive(SETTINGS, &mut out, &mut marks).unwrap();
    let answers: Vec<Vec<u8>> = (0..4_u32)
        .map(|nth| begin(&mut *session, &mut *source, u64::from(nth), 1 + 2 * nth).1)
        .collect();
    let moved = frame(1, 5, 3, b"\x08\x03302\0\x08location\x05/next");
    let bytes = [
        frame(3, 0, 1, &[0, 0, 0, 2]),
        // The last one that it answers is the third.
        frame(7, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]),
        moved,
        answers[2].clone(),
    ]
    .concat();
    session.receive(&bytes, &mut out, &mut marks).unwrap();
    let said: Vec<String> = marks
        .list()
        .iter()
        .map(|mark| match mark {
            Mark::Reached { tx, code, .. } => format!("{tx} {code}"),
            Mark::Ended { tx, answer } => format!("{tx} {} {}", answer.outcome, marks.text(answer)),
        })
        .collect();
    let expected = [
        "0 rejected(server) reset: INTERNAL_ERROR",
        "3 rejected(overloaded) not processed: NO_ERROR",
        "1 302",
        "2 200",
    ];
    assert_eq!(said, expected);
    assert!(marks.wants_drain());
    let goes_on = [0, 1, 2, 3].map(|tx| marks.follow_up(tx).is_some());
    assert_eq!(goes_on, [false, true, true, false]);
    let (next, state) = marks.follow_up(1).map(|(next, state)| (next, state.to_vec())).unwrap();
    session.reset();
    out.clear();
    session.submit(&Transaction::new(9, next.kind, &state), &mut out);
    assert!(String::from_utf8_lossy(&out).contains("/next"), "{out:?}");
}

/// Claim: sessions with flows keep the contract, one user at a time and many.
#[test]
fn flows_conform() {
    for streams in [1, 16] {
        let system = of(&format!(
            "{{\"streams\":{streams},\"step\":[{{\"path\":\"/a\",\"take\":{{\"s\":\"status\"}}}},{{\"path\":\"/b/{{{{s}}}}\",\"body\":\"{{{{$user}}}}\"}}]}}"
        ));
        let made = || session(&system);
        let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
        session_conformance(&Subject::new(&made, &peer, &source)).unwrap();
        system_conformance(&system).unwrap();
    }
}

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut.
#[test]
fn hostile_servers() {
    let list = behaviours();
    let steps: Vec<[Step<'_>; 2]> =
        list.iter().map(|(_, bytes, seen)| Step::saying(bytes, *seen)).collect();
    let mut behaviours: Vec<Behaviour<'_>> = list
        .iter()
        .zip(&steps)
        .map(|((does, _, seen), answers)| Behaviour::answering(does, answers, *seen))
        .collect();
    let pings = frame(6, 0, 0, b"12345678");
    let (head, empty) = (frame(1, 4, 1, &[0x88]), frame(0, 0, 1, b""));
    let endless = [[Step::Flood(&pings, &pings)], [Step::Flood(&head, &empty)]];
    let does = ["pings without end", "sends frames of nothing without end"];
    behaviours.extend(
        does.iter().zip(&endless).map(|(does, it)| Behaviour::answering(does, it, Seen::Broken)),
    );
    assert!(behaviours.len() >= 30);
    let system = of("{\"streams\":2}");
    let made = || session(&system);
    let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
    hostile_conformance(&Subject::new(&made, &peer, &source), &behaviours, UNREAD_MAX).unwrap();
}

/// Claim: what is for one version alone is refused with the other.
#[test]
fn mistakes() {
    for (deploy, workload, expected) in [
        ("\"1.1\"", r#"{"streams":4}"#, "`workload.streams` is for HTTP/2 ("),
        ("\"2\"", r#"{"pipeline":4}"#, "`workload.pipeline` is for HTTP/1.1: "),
        ("\"2\"", r#"{"correlate":"header:x-id"}"#, "`workload.correlate` is for HTTP/1.1: "),
        (
            "\"2\"",
            r#"{"step":[{"path":"/","take":{"h":"status"}},{"path":"/","headers":{"Host":"{{h}}"}}]}"#,
            "over HTTP/2 `Host` is the same in each request of a step, and holds no value",
        ),
        ("\"3\"", "{}", "`system.deploy.http_version` cannot be `3`; it is one of 1.1, 2"),
    ] {
        let deploy = format!("{{\"url\":\"{SERVER}\",\"http_version\":{deploy}}}");
        let wrong = built(&deploy, workload, std::path::Path::new(".")).map(drop).unwrap_err();
        assert!(wrong.iter().any(|it| it.starts_with(expected)), "{workload}: {wrong:?}");
    }
    assert_eq!(system(SERVER, "{}").streams, None);
}
