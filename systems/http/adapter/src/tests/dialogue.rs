//! Sessions by dialogue: transactions and bytes in, bytes and marks out. No socket.

use sut::{Abandon, Mark, Marks, Session, Transaction};

use super::system;
use crate::session::HttpSession;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const MISSING: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!";

fn session(workload: &str) -> HttpSession {
    let system = system("http://h/", workload);
    HttpSession::new(system.requests.clone(), system.rules.clone(), system.pipeline)
}

fn submit(session: &mut HttpSession, id: u64, kind: u32) -> String {
    let mut out = Vec::new();
    session.submit(&Transaction::new(id, kind, &[]), &mut out);
    String::from_utf8(out).unwrap()
}

/// What a session finds in `bytes`, as text, with `!` at the end if it wants the connection closed.
fn receive(session: &mut HttpSession, bytes: &str) -> Result<(usize, String), String> {
    let mut marks = Marks::default();
    let used = session.receive(bytes.as_bytes(), &mut Vec::new(), &mut marks).map_err(|e| e.0)?;
    Ok((used, shown(&marks)))
}

fn shown(marks: &Marks) -> String {
    let mut text: Vec<String> = marks
        .list()
        .iter()
        .map(|mark| match mark {
            Mark::Reached { tx, stage, code, bytes_in } => {
                format!("{tx} reached {stage} {code} {bytes_in}")
            }
            Mark::Ended { tx, answer } => {
                format!(
                    "{tx} {} {} {} {}",
                    answer.outcome,
                    answer.code,
                    answer.bytes_in,
                    marks.text(answer)
                )
            }
        })
        .collect();
    if marks.wants_close() {
        text.push("!".to_owned());
    }
    text.join("; ")
}

/// Claim: a request goes out whole and at once; its answer, however it is cut, is one mark; the next request
/// follows on the same connection.
#[test]
fn one_after_another() {
    let mut session = session("{}");
    assert_eq!(session.in_flight_max(), 1);
    for id in 0..3 {
        assert!(submit(&mut session, id, 0).starts_with("GET / HTTP/1.1\r\nHost: h\r\n"));
        let (used, marks) = receive(&mut session, &OK[..10]).unwrap();
        assert_eq!((used, marks.as_str()), (0, ""), "the head is not complete");
        let (used, marks) = receive(&mut session, &OK[..OK.len() - 1]).unwrap();
        assert_eq!((used, marks.as_str()), (OK.len() - 1, ""));
        let (used, marks) = receive(&mut session, "k").unwrap();
        assert_eq!((used, marks), (1, format!("{id} reached 0 200 2")));
    }
}

/// Claim: pipelined answers belong to their requests in order, with the status table's outcome and vegeta's
/// error text.
#[test]
fn pipelined() {
    let mut session = session(r#"{"pipeline":3,"targets_text":"GET /a\nHEAD /b\nGET /c"}"#);
    assert_eq!(session.in_flight_max(), 3);
    for id in 0..3 {
        submit(&mut session, id + 10, u32::try_from(id).unwrap());
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
    let (used, marks) = receive(&mut session, &format!("{MISSING}{head}{OK}")).unwrap();
    assert_eq!(used, MISSING.len() + head.len() + OK.len());
    assert_eq!(
        marks,
        "10 rejected(bad_request) 404 3 404 Not Found; 11 reached 0 200 0; 12 reached 0 200 2"
    );
}

/// Claim: the payload picks the request where several share a kind.
#[test]
fn requests_of_one_kind() {
    let mut session = session(r#"{"targets_text":"GET /a\nX: 1\n\nGET /a\nX: 2"}"#);
    let mut out = Vec::new();
    session.submit(&Transaction::new(0, 0, &1_u32.to_le_bytes()), &mut out);
    assert!(String::from_utf8(out).unwrap().contains("X: 2\r\n"));
}

/// Claim: `Connection: close` ends the connection after its answer, and what follows it means nothing.
#[test]
fn the_server_closes() {
    let mut session = session(r#"{"pipeline":2}"#);
    submit(&mut session, 0, 0);
    submit(&mut session, 1, 0);
    let text = format!("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n{OK}");
    let (used, marks) = receive(&mut session, &text).unwrap();
    assert_eq!((used, marks.as_str()), (text.len(), "0 rejected(overloaded) 503 0 503 Busy; !"));
    session.reset();
    submit(&mut session, 2, 0);
    assert_eq!(receive(&mut session, OK).unwrap().1, "2 reached 0 200 2");
}

/// Claim: an answer that ends with the connection is complete then; one that is cut off is no answer.
#[test]
fn answers_that_end_with_the_connection() {
    for (text, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\nall of it", "0 reached 0 200 9; !"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot all", ""),
        ("", ""),
    ] {
        let mut session = session("{}");
        submit(&mut session, 0, 0);
        receive(&mut session, text).unwrap();
        let mut marks = Marks::default();
        session.closed(&mut marks);
        assert_eq!(shown(&marks), expected, "{text}");
    }
}

/// Claim: bytes that nobody asked for are a protocol error, but for the 408 of a server that gives an idle
/// connection up.
#[test]
fn unasked_bytes() {
    let mut session = session("{}");
    assert_eq!(
        receive(&mut session, OK),
        Err("the server sent bytes that no request had asked for".into())
    );
    let timeout = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
    assert_eq!(receive(&mut session, timeout), Ok((timeout.len(), "!".into())));
    submit(&mut session, 0, 0);
    let twice = format!("{OK}{OK}");
    assert_eq!(
        receive(&mut session, &twice),
        Err("the server sent bytes that no request had asked for".into())
    );
}

/// Claim: what is no HTTP is a protocol error in words.
#[test]
fn garbage() {
    let mut session = session("{}");
    submit(&mut session, 0, 0);
    let message = "the answer does not begin with an HTTP/1.x status line".to_owned();
    assert_eq!(receive(&mut session, "220 mail ready\r\n\r\n"), Err(message));
}

/// Claim: after a timeout the connection cannot be used, because the late answer would be taken for the next.
#[test]
fn abandoned() {
    let mut session = session("{}");
    submit(&mut session, 5, 0);
    assert_eq!(session.abandon(5), Abandon::Close);
    assert_eq!(session.abandon(4), Abandon::Keep);
}

/// Claim: rules for bodies reach the marks.
#[test]
fn an_error_in_a_good_answer() {
    let mut session = session(r#"{"error_pointer":"/error"}"#);
    submit(&mut session, 0, 0);
    let body = r#"{"error":{"message":"nonce too low"}}"#;
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    assert_eq!(
        receive(&mut session, &text).unwrap().1,
        "0 rejected(bad_request) 200 37 200 OK: nonce too low"
    );
}

/// Claim: bytes that no request asked for are counted, with the error that they are and, behind the last answer of a
/// connection that closes, without one; a body where none can be is one of them.
#[test]
fn unasked_bytes_are_counted() {
    for (asked, bytes, unasked, is_error) in [
        (0, OK, OK.len(), true),
        (1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", 9, true),
        (1, "HTTP/1.1 204 No Content\r\n\r\nbody", 4, true),
        (1, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok more", 5, false),
        (0, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", 0, false),
    ] {
        let mut session = session("{}");
        for id in 0..asked {
            submit(&mut session, id, 0);
        }
        let mut marks = Marks::default();
        let result = session.receive(bytes.as_bytes(), &mut Vec::new(), &mut marks);
        assert_eq!(
            (marks.unasked_bytes(), result.is_err()),
            (unasked as u64, is_error),
            "{bytes:?}"
        );
        assert_eq!(marks.list().len() as u64, asked, "{bytes:?}");
    }
}

/// Claim: with `correlate` each request carries its id, and an answer counts only where it brings that id back: another's
/// ends the connection, and none at all is no commit.
#[test]
fn answers_are_correlated() {
    let answer = |id: &str, status: &str| {
        format!("HTTP/1.1 {status}\r\nX-Request-Id: {id}\r\nContent-Length: 0\r\n\r\n")
    };
    let mut session = session(r#"{"correlate":"header:x-request-id","pipeline":3}"#);
    let request = submit(&mut session, 0xab, 0);
    assert!(request.contains("\r\nx-request-id: 00000000000000ab\r\n"), "{request}");
    let (_, marks) = receive(&mut session, &answer("00000000000000ab", "200 OK")).unwrap();
    assert_eq!(marks, "171 reached 0 200 0");
    submit(&mut session, 0xac, 0);
    let (_, marks) = receive(&mut session, OK).unwrap();
    assert_eq!(marks, "172 rejected(server) 200 2 200: the answer does not echo x-request-id");
    submit(&mut session, 0xad, 0);
    let (_, marks) = receive(&mut session, MISSING).unwrap();
    assert_eq!(marks, "173 rejected(bad_request) 404 3 404 Not Found");
    submit(&mut session, 0xae, 0);
    submit(&mut session, 0xaf, 0);
    let error = receive(&mut session, &answer("00000000000000af", "200 OK")).unwrap_err();
    assert_eq!(error, "the answer carries another request's x-request-id");
}
