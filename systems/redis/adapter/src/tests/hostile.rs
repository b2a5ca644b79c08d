//! What a server may do to a connection that sends `SET`, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Drip, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Subject, hostile_conformance};
use sut::{Session, System as _, Workload};

use super::{RUN, peer, system};
use crate::resp::LINE_BYTES_MAX;
use crate::session::SetSession;

/// All of them.
#[rustfmt::skip]
static BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour { name: "garbage", does: "answers bytes of no protocol", greets: &[], answers: &[Say(b"hello\r\n")], seen: Broken },
    Behaviour { name: "binary", does: "answers bytes that are no text", greets: &[], answers: &[Say(b"\x00\xff\xfe\x01\r\n")], seen: Broken },
    Behaviour { name: "another protocol", does: "answers as a web server", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close], seen: Broken },
    Behaviour { name: "an empty line", does: "answers an empty line", greets: &[], answers: &[Say(b"\r\n")], seen: Broken },
    Behaviour { name: "a number", does: "answers a number", greets: &[], answers: &[Say(b":1\r\n")], seen: Broken },
    Behaviour { name: "a value", does: "answers a value", greets: &[], answers: &[Say(b"$2\r\nOK\r\n")], seen: Broken },
    Behaviour { name: "nothing stored", does: "answers that there is nothing", greets: &[], answers: &[Say(b"$-1\r\n")], seen: Broken },
    Behaviour { name: "a list", does: "answers a list", greets: &[], answers: &[Say(b"*1\r\n+OK\r\n")], seen: Broken },
    Behaviour { name: "a push", does: "pushes as the next protocol does", greets: &[], answers: &[Say(b">1\r\n+OK\r\n")], seen: Broken },
    Behaviour { name: "queued", does: "answers that it has queued the command", greets: &[], answers: &[Say(b"+QUEUED\r\n")], seen: Broken },
    Behaviour { name: "a longer OK", does: "answers more than OK", greets: &[], answers: &[Say(b"+OK and more\r\n")], seen: Broken },
    Behaviour { name: "a small ok", does: "answers in another spelling", greets: &[], answers: &[Say(b"+ok\r\n")], seen: Broken },
    Behaviour { name: "a bare sign", does: "answers a sign alone", greets: &[], answers: &[Say(b"+\r\n")], seen: Broken },
    Behaviour { name: "two answers", does: "answers twice at once", greets: &[], answers: &[Say(b"+OK\r\n+OK\r\n")], seen: BrokenBehind },
    Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "an error behind the answer", does: "takes its answer back", greets: &[], answers: &[Right, Say(b"-ERR not so\r\n")], seen: BrokenBehind },
    Behaviour { name: "half an answer more", does: "begins an answer to nothing", greets: &[], answers: &[Right, Say(b"+O"), Hush], seen: BrokenBehind },
    Behaviour { name: "a line end more", does: "sends a line end behind its answer", greets: &[], answers: &[Say(b"+OK\r\n\r\n")], seen: BrokenBehind },
    Behaviour { name: "an answer before the command", does: "answers before anybody asked", greets: &[Say(b"+OK\r\n")], answers: &[Right], seen: Broken },
    Behaviour { name: "too many clients", does: "takes no more clients, and says so first", greets: &[Say(b"-ERR max number of clients reached\r\n"), Close], answers: &[], seen: Broken },
    Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Flood(b"", b"+OK\r\n")], seen: BrokenBehind },
    Behaviour { name: "endless garbage", does: "sends garbage without end", greets: &[], answers: &[Flood(b"", b"garbage\r\n")], seen: Broken },
    Behaviour { name: "an endless line", does: "sends a line without end", greets: &[], answers: &[Flood(b"+", b"OK OK OK OK OK OK ")], seen: Broken },
    Behaviour { name: "an endless error", does: "sends an error without end", greets: &[], answers: &[Flood(b"-ERR ", b"and so on and on ")], seen: Broken },
    Behaviour { name: "an endless value", does: "sends a value without end", greets: &[], answers: &[Flood(b"$500000000\r\n", b"xxxxxxxxxxxxxxxx")], seen: Broken },
    Behaviour { name: "endless carriage returns", does: "never comes from its line ends to the line", greets: &[], answers: &[Flood(b"+OK", b"\r")], seen: Broken },
    Behaviour { name: "a long error", does: "answers an error of sixty thousand bytes", greets: &[], answers: &[Say(&LONG_ERROR)], seen: Failed },
    Behaviour { name: "a long answer", does: "answers sixty thousand bytes of nothing", greets: &[], answers: &[Say(&LONG_ANSWER)], seen: Broken },
    Behaviour { name: "an error that is no text", does: "answers an error of strange bytes", greets: &[], answers: &[Say(b"-\xff\xfe\x00\r\n")], seen: Failed },
    Behaviour { name: "an empty error", does: "answers an error without a word", greets: &[], answers: &[Say(b"-\r\n")], seen: Failed },
    Behaviour { name: "silence", does: "takes the command and says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half an answer", does: "stops in the middle of its answer", greets: &[], answers: &[Say(b"+OK"), Hush], seen: Failed },
    Behaviour { name: "half a line end", does: "stops in the middle of the line end", greets: &[], answers: &[Say(b"+OK\r"), Hush], seen: Failed },
    Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "closed in the answer", does: "closes in the middle of its answer", greets: &[], answers: &[Say(b"+OK\r"), Close], seen: Failed },
    Behaviour { name: "loading", does: "is still loading its data", greets: &[], answers: &[Say(b"-LOADING Redis is loading the dataset in memory\r\n")], seen: Failed },
    Behaviour { name: "byte by byte", does: "drips a good answer", greets: &[], answers: &[Drip(b"+OK\r\n", 1)], seen: Fine },
];

static LONG_ERROR: [u8; 60_003] = long(b'-');
static LONG_ANSWER: [u8; 60_003] = long(b'+');

const fn long(sign: u8) -> [u8; 60_003] {
    let mut line = [b'x'; 60_003];
    (line[0], line[60_001], line[60_002]) = (sign, b'\r', b'\n');
    line
}

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut, says so in few words, and holds
/// no more than a line.
#[test]
fn none_passes_unseen() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    for in_flight_max in [1, 64] {
        let session = || -> Box<dyn Session> { Box::new(SetSession::new(RUN, in_flight_max)) };
        let subject = Subject::new(&session, &peer, &workload);
        hostile_conformance(&subject, BEHAVIOURS, LINE_BYTES_MAX).unwrap();
    }
}
