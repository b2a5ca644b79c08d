//! What a program may do on a channel of the load, played to sessions.

use sut::Session;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Drip, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Subject, hostile_conformance};

use super::{letters, peer, session, words};
use crate::line::LINE_BYTES_MAX;

/// All of them.
#[rustfmt::skip]
static BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour { name: "garbage", does: "answers no JSON", greets: &[], answers: &[Say(b"hello\n")], seen: Broken },
    Behaviour { name: "binary", does: "answers bytes that are no text", greets: &[], answers: &[Say(b"\x00\xff\xfe\x01\n")], seen: Broken },
    Behaviour { name: "an empty line", does: "answers an empty line", greets: &[], answers: &[Say(b"\n")], seen: Broken },
    Behaviour { name: "a list", does: "answers a list", greets: &[], answers: &[Say(b"[]\n")], seen: Broken },
    Behaviour { name: "another object", does: "answers an object of other keys", greets: &[], answers: &[Say(b"{\"id\":0}\n")], seen: Broken },
    Behaviour { name: "control", does: "answers as on the control channel", greets: &[], answers: &[Say(b"{\"did\":\"submit\"}\n")], seen: Broken },
    Behaviour { name: "print", does: "prints its log there", greets: &[], answers: &[Say(b"INFO: submitting\n"), Right], seen: Broken },
    Behaviour { name: "a stranger", does: "answers for a transaction that was never submitted", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":99,\"reached\":\"committed\"}]}\n")], seen: Broken },
    Behaviour { name: "a number too large", does: "answers for a number that is none of ours", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":18446744073709551616,\"reached\":\"committed\"}]}\n")], seen: Broken },
    Behaviour { name: "a negative number", does: "answers for a number below 0", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":-1,\"reached\":\"committed\"}]}\n")], seen: Broken },
    Behaviour { name: "no such stage", does: "names a stage that there is not", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":0,\"reached\":\"done\"}]}\n")], seen: Broken },
    Behaviour { name: "no such outcome", does: "names an outcome that there is not", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":0,\"ended\":\"ok\"}]}\n")], seen: Broken },
    Behaviour { name: "twice in a line", does: "answers twice at once", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":0,\"reached\":\"committed\"},{\"id\":0,\"reached\":\"committed\"}]}\n")], seen: BrokenBehind },
    Behaviour { name: "twice", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "taken back", does: "takes its answer back", greets: &[], answers: &[Right, Say(b"{\"observed\":[{\"id\":0,\"ended\":\"server\"}]}\n")], seen: BrokenBehind },
    Behaviour { name: "before it was asked", does: "answers before anything was submitted", greets: &[Say(b"{\"observed\":[{\"id\":0,\"reached\":\"committed\"}]}\n")], answers: &[Right], seen: Broken },
    Behaviour { name: "an endless line", does: "sends a line without end", greets: &[], answers: &[Flood(b"{\"observed\":[", b"                ")], seen: Broken },
    Behaviour { name: "an endless list", does: "opens lists without end", greets: &[], answers: &[Flood(b"{\"observed\":", b"[[[[[[[[")], seen: Broken },
    Behaviour { name: "a deep list", does: "nests ten thousand lists", greets: &[], answers: &[Say(&DEEP)], seen: Broken },
    Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Flood(b"", b"{\"observed\":[{\"id\":0,\"reached\":\"committed\"}]}\n")], seen: BrokenBehind },
    Behaviour { name: "silence", does: "says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half a line", does: "stops in the middle of a line", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":0,"), Hush], seen: Failed },
    Behaviour { name: "no line end", does: "forgets the end of the line", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":0,\"reached\":\"committed\"}]}"), Close], seen: Failed },
    Behaviour { name: "closed", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "said to have failed", does: "says that the system refused", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":0,\"ended\":\"overloaded\",\"text\":\"the queue is full\"}]}\n")], seen: Failed },
    Behaviour { name: "not said in time", does: "says that the system did not answer", greets: &[], answers: &[Say(b"{\"observed\":[{\"id\":0,\"ended\":\"unknown\"}]}\n")], seen: Failed },
    Behaviour { name: "nothing new", does: "sends a line without observations first", greets: &[], answers: &[Say(b"{\"observed\":[]}\n"), Right], seen: Fine },
    Behaviour { name: "byte by byte", does: "drips a good answer", greets: &[], answers: &[Drip(b"{\"observed\":[{\"id\":0,\"reached\":\"committed\"}]}\n", 1)], seen: Fine },
];

static DEEP: [u8; 10_002] = {
    let mut line = [b'['; 10_002];
    line[10_001] = b'\n';
    line
};

/// Claim: each is seen as what it is; no line of a hostile program commits what it did not earn, grows memory or hangs.
#[test]
fn programs_that_are_hostile() {
    let words = words(&["accepted", "committed"], &["put", "get"]);
    let make = || -> Box<dyn Session> { Box::new(session(&words, 64)) };
    let subject = Subject::new(&make, &peer, &letters).ladder(2, 1);
    hostile_conformance(&subject, BEHAVIOURS, LINE_BYTES_MAX).unwrap();
}
