//! Things that a broker may do to a connection that produces, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed};
use sut::conformance::Step::{Close, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Subject, hostile_conformance};
use sut::{Session, Workload};

use super::{peer, session, system};
use crate::messages::ANSWER_BYTES_MAX;

/// An acknowledgement whose fields are these, of the topic `t`.
macro_rules! ack {
    ($length:literal $correlation:literal $topics:literal $topic:literal $partition:literal $code:literal $offset:literal) => {
        concat!(
            "\0\0\0",
            $length,
            "\0\0\0",
            $correlation,
            "\0\0\0",
            $topics,
            "\0\x01",
            $topic,
            "\0\0\0\x01\0\0\0",
            $partition,
            "\0",
            $code,
            $offset,
            "\0\0\0\0\0\0\0\0",
            "\0\0\0\0\0\0\0\0",
            "\0\0\0\0"
        )
        .as_bytes()
    };
}

/// Offset 0.
macro_rules! first {
    () => {
        "\0\0\0\0\0\0\0\0"
    };
}

/// All of them. The transaction is alone in the first request, which has number 1.
#[rustfmt::skip]
static BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour { name: "garbage", does: "answers bytes of no protocol", greets: &[], answers: &[Say(b"hello there, client\r\n")], seen: Broken },
    Behaviour { name: "another protocol", does: "answers as a web server", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close], seen: Broken },
    Behaviour { name: "an empty answer", does: "answers with a length of nothing", greets: &[], answers: &[Say(b"\0\0\0\0")], seen: Broken },
    Behaviour { name: "a negative length", does: "announces less than nothing", greets: &[], answers: &[Say(b"\xff\xff\xff\xff")], seen: Broken },
    Behaviour { name: "a length of gigabytes", does: "announces more than any answer has", greets: &[], answers: &[Say(b"\x7f\xff\xff\xff")], seen: Broken },
    Behaviour { name: "another request", does: "answers a request that was not sent", greets: &[], answers: &[Say(ack!("\x31" "\x09" "\x01" "t" "\0" "\0" "\0\0\0\0\0\0\0\0"))], seen: Broken },
    Behaviour { name: "another topic", does: "acknowledges for another topic", greets: &[], answers: &[Say(ack!("\x31" "\x01" "\x01" "u" "\0" "\0" "\0\0\0\0\0\0\0\0"))], seen: Broken },
    Behaviour { name: "another partition", does: "acknowledges for a partition that there is not", greets: &[], answers: &[Say(ack!("\x31" "\x01" "\x01" "t" "\x05" "\0" "\0\0\0\0\0\0\0\0"))], seen: Broken },
    Behaviour { name: "several topics", does: "announces more topics than were asked for", greets: &[], answers: &[Say(ack!("\x31" "\x01" "\x02" "t" "\0" "\0" "\0\0\0\0\0\0\0\0"))], seen: Broken },
    Behaviour { name: "no topic", does: "acknowledges nothing", greets: &[], answers: &[Say(b"\0\0\0\x0c\0\0\0\x01\0\0\0\0\0\0\0\0")], seen: Broken },
    Behaviour { name: "too long", does: "says more than an acknowledgement", greets: &[], answers: &[Say(concat!("\0\0\0\x32\0\0\0\x01\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\0\0", first!(), first!(), first!(), "\0\0\0\0x").as_bytes())], seen: Broken },
    Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Right, Flood(b"", b"\0\0\0\x04\0\0\0\x01")], seen: BrokenBehind },
    Behaviour { name: "refused", does: "does not lead the partition", greets: &[], answers: &[Say(ack!("\x31" "\x01" "\x01" "t" "\0" "\x06" "\0\0\0\0\0\0\0\0"))], seen: Failed },
    Behaviour { name: "silence", does: "takes the record and says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half an answer", does: "stops in the middle of its answer", greets: &[], answers: &[Say(b"\0\0\0\x31\0\0\0\x01\0"), Hush], seen: Failed },
    Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
];

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut, says so in few words, and holds
/// no more than an answer.
#[test]
fn none_passes_unseen() {
    let workload = || -> Box<dyn Workload> { system().workload(Seed(1), 0, 1) };
    let session = || -> Box<dyn Session> { Box::new(session(-1, false)) };
    hostile_conformance(&Subject::new(&session, &peer, &workload), BEHAVIOURS, ANSWER_BYTES_MAX)
        .unwrap();
}
