//! The contract's own suite, for sessions and systems.

use sut::conformance::{Peer, Subject, http2_peer, session_conformance, system_conformance};
use sut::{Session, System as _, Workload};

use super::hostile_list::{SETTINGS, head, message, right, trailers};
use super::{session, system};

/// A server that answers each call, the second of three before the first; one in five calls is not found.
pub(super) fn peer() -> Peer {
    http2_peer(SETTINGS, |stream| match stream % 10 {
        9 => [head(stream), trailers(stream, &[("grpc-status", "5")])].concat(),
        _ => right(stream),
    })
}

/// Claim: sessions and systems keep the contract with one stream and with many, with messages that differ and with one that
/// does not.
#[test]
fn grpc_conforms() {
    for (streams, message) in [(1, "{}"), (16, r#"{\"id\":\"{{$uuid}}\"}"#)] {
        let system = system(&format!(
            "\"streams\":{streams},\"method\":\"shop.v1.Orders/Get\",\"message\":\"{message}\""
        ));
        let made = || -> Box<dyn Session> { session(&system) };
        let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
        let subject = Subject::new(&made, &peer, &source).ladder(2, 1);
        session_conformance(&subject).unwrap();
        system_conformance(&system).unwrap();
    }
}

/// Claim: a message of a stream is told when it arrives, and the stream ends at its trailers with the number of them.
#[test]
fn a_stream() {
    let system = system(
        r#""method":"shop.v1.Orders/Watch","message":"{\"messages\":2}","expect":{"messages":2}"#,
    );
    let (mut session, mut out, mut marks) = (session(&system), Vec::new(), sut::Marks::default());
    session.open(&mut out);
    session.receive(SETTINGS, &mut out, &mut marks).unwrap();
    let mut answers = Vec::new();
    for (tx, messages) in [(0_u64, 2), (1, 3)] {
        session.submit(&sut::Transaction::new(tx, 0, &[]), &mut out);
        let stream = u32::try_from(2 * tx + 1).unwrap();
        answers.extend(head(stream));
        (0..messages).for_each(|_| answers.extend(message(stream, b"\0\0\0\0\x03", b"\x0a\x017")));
        answers.extend(trailers(stream, &[("grpc-status", "0")]));
    }
    session.receive(&answers, &mut out, &mut marks).unwrap();
    let said: Vec<String> =
        marks.list().iter().map(|mark| super::dialogue::told(mark, &marks)).collect();
    let expected = [
        "0 first_message",
        "0 committed 0",
        "1 first_message",
        "1 rejected(server) 0 OK: expected 2 messages, got 3",
    ];
    assert_eq!(said, expected);
    let counted: Vec<(u64, &[u8])> =
        marks.observations().iter().map(|one| (one.tx, one.bytes)).collect();
    assert_eq!(counted, [(0, &b"2"[..]), (1, b"3")]);
}
