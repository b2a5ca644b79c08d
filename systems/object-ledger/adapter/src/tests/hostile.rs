//! What a queue may do to a connection of the load, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed};
use sut::conformance::Step::{Close, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Subject, hostile_conformance};
use sut::{Session, System as _, Workload};

use super::{peer, system};
use crate::frames::ANSWER_BYTES_MAX;
use crate::session::QueueSession;
use crate::stages::STAGES;

/// All of them. The transaction that is outstanding has the number 0.
#[rustfmt::skip]
static BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour { name: "garbage", does: "answers bytes of no protocol", greets: &[], answers: &[Say(b"hello, hello, hello\r\n")], seen: Broken },
    Behaviour { name: "another protocol", does: "answers as a web server", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close], seen: Broken },
    Behaviour { name: "an empty frame", does: "answers a frame without anything", greets: &[], answers: &[Say(b"\0\0\0\0")], seen: Broken },
    Behaviour { name: "a short frame", does: "answers a frame without a number", greets: &[], answers: &[Say(b"\0\0\0\x08\x81\0\0\0\0\0\0\0")], seen: Broken },
    Behaviour { name: "an endless frame", does: "announces four gigabytes", greets: &[], answers: &[Flood(b"\xff\xff\xff\xff\x81", b"more and more")], seen: Broken },
    Behaviour { name: "a long frame", does: "announces sixteen megabytes", greets: &[], answers: &[Say(b"\x01\0\0\0\x81\0\0\0")], seen: Broken },
    Behaviour { name: "a request", does: "asks itself", greets: &[], answers: &[Say(b"\0\0\0\x0a\x01\0\0\0\0\0\0\0\0v")], seen: Broken },
    Behaviour { name: "a batch", does: "gives a batch out", greets: &[], answers: &[Say(b"\0\0\0\x11\x82\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")], seen: Broken },
    Behaviour { name: "what stands", does: "says what stands in the queue, which nobody asked", greets: &[], answers: &[Say(b"\0\0\0\x19\x89\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")], seen: Broken },
    Behaviour { name: "no number", does: "acknowledges without the queue's number", greets: &[], answers: &[Say(b"\0\0\0\x09\x81\0\0\0\0\0\0\0\0")], seen: Broken },
    Behaviour { name: "half a number", does: "acknowledges with half of the queue's number", greets: &[], answers: &[Say(b"\0\0\0\x0d\x81\0\0\0\0\0\0\0\0\0\0\0\0")], seen: Broken },
    Behaviour { name: "another's answer", does: "acknowledges what was never submitted", greets: &[], answers: &[Say(b"\0\0\0\x11\x81\0\0\0\0\0\0\0\x63\0\0\0\0\0\0\0\0")], seen: Broken },
    Behaviour { name: "two answers", does: "acknowledges twice at once", greets: &[], answers: &[Right, Right], seen: BrokenBehind },
    Behaviour { name: "a second answer later", does: "acknowledges again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "taken back", does: "refuses what it has acknowledged", greets: &[], answers: &[Right, Say(b"\0\0\0\x0a\xff\0\0\0\0\0\0\0\0\x01")], seen: BrokenBehind },
    Behaviour { name: "an answer before the question", does: "acknowledges before anybody asked", greets: &[Say(b"\0\0\0\x11\x81\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")], answers: &[Right], seen: Broken },
    Behaviour { name: "endless garbage", does: "sends garbage without end", greets: &[], answers: &[Flood(b"", b"garbage")], seen: Broken },
    Behaviour { name: "full", does: "has no room", greets: &[], answers: &[Say(b"\0\0\0\x0a\xff\0\0\0\0\0\0\0\0\x01")], seen: Failed },
    Behaviour { name: "an unknown reason", does: "refuses for a reason of its own", greets: &[], answers: &[Say(b"\0\0\0\x0a\xff\0\0\0\0\0\0\0\0\x77")], seen: Failed },
    Behaviour { name: "silence", does: "takes the submission and says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half an answer", does: "stops in the middle of its answer", greets: &[], answers: &[Say(b"\0\0\0\x11\x81\0\0"), Hush], seen: Failed },
    Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "closed in the answer", does: "closes in the middle of its answer", greets: &[], answers: &[Say(b"\0\0\0\x11\x81"), Close], seen: Failed },
];

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut, says so in few words, and holds
/// no more than an answer.
#[test]
fn none_passes_unseen() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    for in_flight_max in [1, 64] {
        let session = || -> Box<dyn Session> { Box::new(QueueSession::new(in_flight_max)) };
        let subject = Subject::new(&session, &peer, &workload).ladder(STAGES.len(), 0);
        hostile_conformance(&subject, BEHAVIOURS, ANSWER_BYTES_MAX).unwrap();
    }
}
