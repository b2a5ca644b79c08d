//! Things that a server may do to a connection that publishes, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Subject, hostile_conformance};
use sut::{Session, Workload};

use super::{peer, session, system};
use wire::nats::MESSAGE_BYTES_MAX;

/// All of them. The transaction is number 0, on the first life of the connection `c0`.
#[rustfmt::skip]
static BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour { name: "garbage", does: "answers bytes of no protocol", greets: &[], answers: &[Say(b"hello\r\n")], seen: Broken },
    Behaviour { name: "another protocol", does: "answers as a web server", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close], seen: Broken },
    Behaviour { name: "an empty line", does: "answers an empty line", greets: &[], answers: &[Say(b"\r\n")], seen: Broken },
    Behaviour { name: "an OK", does: "acknowledges the line and not the message", greets: &[], answers: &[Say(b"+OK\r\n")], seen: Broken },
    Behaviour { name: "a PONG", does: "answers a PING that was not sent", greets: &[], answers: &[Say(b"PONG\r\n")], seen: Broken },
    Behaviour { name: "another transaction", does: "acknowledges a message that was not sent", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000001 1 44\r\n{\"stream\":\"ASSAY_000000000000FEED\",\"seq\":1} \r\n")], seen: Broken },
    Behaviour { name: "another inbox", does: "delivers what was not subscribed to", greets: &[], answers: &[Say(b"MSG other 1 2\r\nhi\r\n")], seen: Broken },
    Behaviour { name: "another stream", does: "acknowledges for another stream", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 21\r\n{\"stream\":\"B\",\"seq\":1\r\n")], seen: Broken },
    Behaviour { name: "no place", does: "acknowledges without a place", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 35\r\n{\"stream\":\"ASSAY_000000000000FEED\"}\r\n")], seen: Broken },
    Behaviour { name: "place zero", does: "acknowledges a place that there is not", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 44\r\n{\"stream\":\"ASSAY_000000000000FEED\",\"seq\":0} \r\n")], seen: Broken },
    Behaviour { name: "an empty answer", does: "answers nothing", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 0\r\n\r\n")], seen: Broken },
    Behaviour { name: "a length that is none", does: "announces a length in words", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 many\r\n")], seen: Broken },
    Behaviour { name: "a length of gigabytes", does: "announces more than any message has", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 4294967296\r\n")], seen: Broken },
    Behaviour { name: "a complaint", does: "complains", greets: &[], answers: &[Say(b"-ERR 'Stale Connection'\r\n"), Close], seen: Broken },
    Behaviour { name: "a complaint first", does: "takes no more clients", greets: &[Say(b"-ERR 'maximum connections exceeded'\r\n"), Close], answers: &[], seen: Broken },
    Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Right, Flood(b"", b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 2\r\n{}\r\n")], seen: BrokenBehind },
    Behaviour { name: "an endless line", does: "sends a line without end", greets: &[], answers: &[Flood(b"MSG ", b"and so on and on ")], seen: Broken },
    Behaviour { name: "no responders", does: "says that nobody leads the stream", greets: &[], answers: &[Say(b"HMSG _INBOX.000000000000feed.c0.0.0000000000000000 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n")], seen: Failed },
    Behaviour { name: "refused", does: "refuses the message", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 63\r\n{\"error\":{\"code\":503,\"err_code\":10023,\"description\":\"no room\"}}\r\n")], seen: Failed },
    Behaviour { name: "silence", does: "takes the message and says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half a message", does: "stops in the middle of its answer", greets: &[], answers: &[Say(b"MSG _INBOX.000000000000feed.c0.0.0000000000000000 1 44\r\n{\"stream\""), Hush], seen: Failed },
    Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "pings", does: "asks whether the client lives", greets: &[], answers: &[Say(b"PING\r\n"), Right], seen: Fine },
    Behaviour { name: "news of the cluster", does: "says what it is once more", greets: &[], answers: &[Say(b"INFO {\"connect_urls\":[]}\r\n"), Right], seen: Fine },
];

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut, says so in few words, and holds
/// no more than a message.
#[test]
fn none_passes_unseen() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    let session = || -> Box<dyn Session> { Box::new(session(false)) };
    hostile_conformance(&Subject::new(&session, &peer, &workload), BEHAVIOURS, MESSAGE_BYTES_MAX)
        .unwrap();
}
