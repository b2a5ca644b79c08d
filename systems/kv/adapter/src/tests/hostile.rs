//! What a server may do to a connection, played to sessions.

use kv_node::protocol::{
    REPLY_BYTES_MAX, State, Welcome, Why, write_part, write_refused, write_results, write_state,
    write_welcome,
};
use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Drip, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Subject, hostile_conformance};
use sut::{Session, System as _, Workload};
use wire::frames::{LENGTH_BYTES, write_frame};

use super::{peer, sort, system};
use crate::session::{KvSession, nobody};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn framed(payload: &[u8]) -> Vec<u8> {
    written(|out| write_frame(out, |out| out.extend_from_slice(payload)))
}

/// Results of a request, each with this status and these operations behind it.
fn results(number: u64, count: u32, status: u8, operations: &[u8]) -> Vec<u8> {
    written(|out| {
        write_results(out, number, count, |out| {
            out.push(status);
            out.extend_from_slice(&1_u64.to_le_bytes());
            out.extend_from_slice(operations);
        });
    })
}

/// Claim: of each behaviour the session sees what must be seen, however its frames are cut, and holds no more than the
/// longest reply: one transaction of seven operations outstanding.
#[test]
#[rustfmt::skip]
fn frames_that_must_not_be() {
    let yes = results(1, 1, 0, &[7, 6, 6, 6, 6, 6, 6, 6]);
    let (others, two) = (results(9, 1, 0, &[1, 6]), results(1, 2, 0, &[1, 6]));
    let later = {
        let mut bytes = yes.clone();
        // The first result is said to be of the second transaction.
        bytes[LENGTH_BYTES + 9] = 1;
        bytes
    };
    let fewer = results(1, 1, 0, &[7, 6, 6]);
    let more = results(1, 1, 0, &[1, 6, 6]);
    let strange_tag = results(1, 1, 0, &[1, 99]);
    let strange_status = results(1, 1, 77, &[0]);
    let short = results(1, 1, 0, &[]);
    let none = framed(&[&[130][..], &1_u64.to_le_bytes(), &[0; 8]].concat());
    let many = framed(&[&[130][..], &1_u64.to_le_bytes(), &[0; 4], &[0xff; 4]].concat());
    let (empty, unknown) = (framed(&[]), framed(&[0x7f, 1, 2, 3]));
    let cut_off = framed(&yes[LENGTH_BYTES..yes.len() - 5]);
    let longer = framed(&[&yes[LENGTH_BYTES..], b"more"].concat());
    let huge = u32::MAX.to_le_bytes();
    let larger = u32::try_from(REPLY_BYTES_MAX + 1).unwrap().to_le_bytes();
    let largest = u32::try_from(REPLY_BYTES_MAX).unwrap().to_le_bytes();
    let says = |version| Welcome { version, replica: 0, leader: 0, position: 0 };
    let welcome = written(|out| write_welcome(out, &says(1)));
    let newer = written(|out| write_welcome(out, &says(2)));
    let state = written(|out| write_state(out, &State::default()));
    let part = written(|out| write_part(out, 0, 0, 0, |_| ()));
    let busy = written(|out| write_refused(out, 1, Why::Busy, 0));
    let busy_other = written(|out| write_refused(out, 5, Why::Busy, 0));
    let malformed = written(|out| write_refused(out, 0, Why::Malformed, 0));
    let conflict = results(1, 1, 4, &[0]);
    let list = [
        Behaviour { name: "text", does: "answers in another protocol", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n")], seen: Broken },
        Behaviour { name: "an empty frame", does: "answers nothing in a frame", greets: &[], answers: &[Say(&empty)], seen: Broken },
        Behaviour { name: "an unknown frame", does: "answers a frame of no kind", greets: &[], answers: &[Say(&unknown)], seen: Broken },
        Behaviour { name: "a frame cut off", does: "answers a frame that is too short", greets: &[], answers: &[Say(&cut_off)], seen: Broken },
        Behaviour { name: "a longer frame", does: "answers a frame that is too long", greets: &[], answers: &[Say(&longer)], seen: Broken },
        Behaviour { name: "fewer operations", does: "announces more operations than it has results for", greets: &[], answers: &[Say(&fewer)], seen: Broken },
        Behaviour { name: "more operations", does: "has results for more operations than it announces", greets: &[], answers: &[Say(&more)], seen: Broken },
        Behaviour { name: "a strange value", does: "gives a value of no type", greets: &[], answers: &[Say(&strange_tag)], seen: Broken },
        Behaviour { name: "a strange status", does: "answers with no known status", greets: &[], answers: &[Say(&strange_status)], seen: Broken },
        Behaviour { name: "a short result", does: "answers with less than a result", greets: &[], answers: &[Say(&short)], seen: Broken },
        Behaviour { name: "no results", does: "answers with none", greets: &[], answers: &[Say(&none)], seen: Broken },
        Behaviour { name: "4 billion results", does: "announces more results than it has", greets: &[], answers: &[Say(&many)], seen: Broken },
        Behaviour { name: "4 GiB", does: "announces more than any frame has", greets: &[], answers: &[Say(&huge), Hush], seen: Broken },
        Behaviour { name: "a frame beyond the bound", does: "announces more than any reply has", greets: &[], answers: &[Say(&larger), Hush], seen: Broken },
        Behaviour { name: "another's answer", does: "answers another request", greets: &[], answers: &[Say(&others)], seen: Broken },
        Behaviour { name: "a later answer", does: "answers the second transaction of one", greets: &[], answers: &[Say(&later)], seen: Broken },
        Behaviour { name: "another's refusal", does: "refuses another request", greets: &[], answers: &[Say(&busy_other)], seen: Broken },
        Behaviour { name: "malformed", does: "says that it did not understand", greets: &[], answers: &[Say(&malformed)], seen: Broken },
        Behaviour { name: "two answers", does: "answers twice", greets: &[], answers: &[Right, Right], seen: BrokenBehind },
        Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
        Behaviour { name: "two in one", does: "answers two transactions of one", greets: &[], answers: &[Say(&two)], seen: BrokenBehind },
        Behaviour { name: "garbage behind the answer", does: "goes on with bytes of no frame", greets: &[], answers: &[Right, Say(b"\xff\xff\xff\xff")], seen: BrokenBehind },
        Behaviour { name: "a refusal behind", does: "takes its answer back", greets: &[], answers: &[Right, Say(&busy)], seen: BrokenBehind },
        Behaviour { name: "a commit behind a refusal", does: "refuses, and commits", greets: &[], answers: &[Say(&busy), Right], seen: Broken },
        Behaviour { name: "a state", does: "says unasked how it stands", greets: &[], answers: &[Say(&state)], seen: Broken },
        Behaviour { name: "a ledger", does: "shows its ledger unasked", greets: &[], answers: &[Say(&part)], seen: Broken },
        Behaviour { name: "welcome again", does: "welcomes once more", greets: &[], answers: &[Say(&welcome)], seen: Broken },
        Behaviour { name: "another version", does: "welcomes in another version", greets: &[Say(&newer)], answers: &[Right], seen: Broken },
        Behaviour { name: "an answer before the request", does: "answers before anybody asked", greets: &[Say(&yes)], answers: &[Hush], seen: Broken },
        Behaviour { name: "garbage first", does: "greets in another protocol", greets: &[Say(b"220 mail ESMTP\r\n")], answers: &[Right], seen: Broken },
        Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Flood(&[], &yes)], seen: BrokenBehind },
        Behaviour { name: "endless empty results", does: "answers nothing without end", greets: &[], answers: &[Flood(&[], &none)], seen: Broken },
        Behaviour { name: "endless empty frames", does: "sends empty frames without end", greets: &[], answers: &[Flood(&[], &empty)], seen: Broken },
        Behaviour { name: "an endless frame", does: "fills the longest frame with nothing", greets: &[], answers: &[Flood(&largest, &[0; 64])], seen: Failed },
        Behaviour { name: "silence", does: "takes the request and says nothing", greets: &[], answers: &[Hush], seen: Failed },
        Behaviour { name: "no welcome", does: "never says who leads", greets: &[Hush], answers: &[], seen: Failed },
        Behaviour { name: "half a length", does: "stops in the middle of the length", greets: &[], answers: &[Say(&yes[..2]), Hush], seen: Failed },
        Behaviour { name: "half a frame", does: "stops in the middle of the frame", greets: &[], answers: &[Say(&yes[..9]), Hush], seen: Failed },
        Behaviour { name: "closed in a frame", does: "closes in the middle of the frame", greets: &[], answers: &[Say(&yes[..9]), Close], seen: Failed },
        Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
        Behaviour { name: "busy", does: "refuses", greets: &[], answers: &[Say(&busy)], seen: Failed },
        Behaviour { name: "a conflict", does: "says that a check failed", greets: &[], answers: &[Say(&conflict)], seen: Failed },
        Behaviour { name: "byte by byte", does: "drips a good answer", greets: &[], answers: &[Drip(&yes, 1)], seen: Fine },
    ];
    let kv = system(sort("map-and-list"));
    let workload = || -> Box<dyn Workload> { kv.workload(Seed(1), 0, 1) };
    let session = || -> Box<dyn Session> { Box::new(KvSession::new(kv.common(0), nobody())) };
    let subject = Subject::new(&session, &peer, &workload);
    hostile_conformance(&subject, &list, LENGTH_BYTES + REPLY_BYTES_MAX).unwrap();
}
