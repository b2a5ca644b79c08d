//! Things that a server may do to a connection that sends prepared statements, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Subject, hostile_conformance};
use sut::{Session, Workload};

use super::{peer, session, system};
use crate::messages::MESSAGE_BYTES_MAX;

/// A whole answer to one entry, and its parts.
const BOUND: &[u8] = b"2\0\0\0\x04";
const DONE: &[u8] = b"C\0\0\0\x0fINSERT 0 1\0";
const READY: &[u8] = b"Z\0\0\0\x05I";
const WHOLE: &[u8] = b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I";
const CONFLICT: &[u8] = b"E\0\0\0\x1dSERROR\0C40001\0Mconflict\0\0";
const CONFLICT_LATE: &[u8] =
    b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0E\0\0\0\x1dSERROR\0C40001\0Mconflict\0\0Z\0\0\0\x05I";
const CONFLICT_WHOLE: &[u8] = b"E\0\0\0\x1dSERROR\0C40001\0Mconflict\0\0Z\0\0\0\x05I";

/// All of them.
#[rustfmt::skip]
static BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour { name: "garbage", does: "answers bytes of no protocol", greets: &[], answers: &[Say(b"hello\r\n")], seen: Broken },
    Behaviour { name: "another protocol", does: "answers as a web server", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close], seen: Broken },
    Behaviour { name: "a length of nothing", does: "announces less than a message has", greets: &[], answers: &[Say(b"2\0\0\0\0")], seen: Broken },
    Behaviour { name: "a length of two gigabytes", does: "announces more than any message has", greets: &[], answers: &[Say(b"D\x7f\xff\xff\xff\0\x01")], seen: Broken },
    Behaviour { name: "done without being bound", does: "leaves a step out", greets: &[], answers: &[Say(DONE), Say(READY)], seen: Broken },
    Behaviour { name: "bound twice", does: "takes a step twice", greets: &[], answers: &[Say(BOUND), Say(BOUND), Say(DONE), Say(READY)], seen: Broken },
    Behaviour { name: "nothing stored", does: "says that no row was inserted", greets: &[], answers: &[Say(BOUND), Say(b"C\0\0\0\x0fINSERT 0 0\0"), Say(READY)], seen: Broken },
    Behaviour { name: "another statement's tag", does: "answers another statement", greets: &[], answers: &[Say(BOUND), Say(b"C\0\0\0\x0dSELECT 1\0"), Say(READY)], seen: Broken },
    Behaviour { name: "a row", does: "answers a row that was not asked for", greets: &[], answers: &[Say(BOUND), Say(b"D\0\0\0\x06\0\0"), Say(DONE), Say(READY)], seen: Broken },
    Behaviour { name: "ready too early", does: "ends the transaction before its statement", greets: &[], answers: &[Say(READY)], seen: Broken },
    Behaviour { name: "a transaction left open", does: "says that the transaction goes on", greets: &[], answers: &[Say(BOUND), Say(DONE), Say(b"Z\0\0\0\x05T")], seen: Broken },
    Behaviour { name: "a refusal and then success", does: "goes on after an error", greets: &[], answers: &[Say(CONFLICT), Say(WHOLE)], seen: Broken },
    Behaviour { name: "two refusals", does: "refuses twice", greets: &[], answers: &[Say(CONFLICT), Say(CONFLICT_WHOLE)], seen: Broken },
    Behaviour { name: "two answers", does: "answers twice at once", greets: &[], answers: &[Say(WHOLE), Say(WHOLE)], seen: BrokenBehind },
    Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "an error after the answer", does: "takes its answer back", greets: &[], answers: &[Right, Say(CONFLICT)], seen: BrokenBehind },
    Behaviour { name: "the end of the session", does: "is shut down", greets: &[], answers: &[Say(b"E\0\0\0\x18SFATAL\0C57P01\0Mbye\0\0"), Close], seen: Failed },
    Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Flood(b"", WHOLE)], seen: BrokenBehind },
    Behaviour { name: "an endless row", does: "sends a row without end", greets: &[], answers: &[Flood(b"2\0\0\0\x04D\0\x1f\xff\xff\0\x01\0\x1f\xff\xf5", b"xxxxxxxxxxxxxxxx")], seen: Broken },
    Behaviour { name: "refused", does: "refuses the transaction", greets: &[], answers: &[Say(CONFLICT_WHOLE)], seen: Failed },
    Behaviour { name: "refused at its commit", does: "refuses the transaction when all of it was done", greets: &[], answers: &[Say(CONFLICT_LATE)], seen: Failed },
    Behaviour { name: "silence", does: "takes the statements and says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "done and never committed", does: "stops before it commits", greets: &[], answers: &[Say(BOUND), Say(DONE), Hush], seen: Failed },
    Behaviour { name: "half a message", does: "stops in the middle of a message", greets: &[], answers: &[Say(b"2\0\0"), Hush], seen: Failed },
    Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "closed before the commit", does: "closes when the statement is done", greets: &[], answers: &[Say(BOUND), Say(DONE), Close], seen: Failed },
    Behaviour { name: "a notice", does: "says something beside its answer", greets: &[], answers: &[Say(b"N\0\0\0\x05\0"), Right], seen: Fine },
];

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut, says so in few words, and holds
/// no more than a message.
#[test]
fn none_passes_unseen() {
    let workload = || -> Box<dyn Workload> { system("append").workload(Seed(1), 0, 1) };
    let session = || -> Box<dyn Session> { Box::new(session("append")) };
    hostile_conformance(&Subject::new(&session, &peer, &workload), BEHAVIOURS, MESSAGE_BYTES_MAX)
        .unwrap();
}
