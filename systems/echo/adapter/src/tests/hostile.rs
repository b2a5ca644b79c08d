//! What a server may do to a connection of frames, and to one of HTTP, played to sessions.

use std::time::Duration;

use echo_node::protocol::{
    Answer, Code, REPLY_BYTES_MAX, write_answer, write_answers, write_checked, write_entries,
    write_subscribed, write_synced, write_value,
};
use echo_node::{CommitWay, FRAMES_LISTENER, HTTP_LISTENER, Options};
use sut::Session;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Drip, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Peer, Subject, hostile_conformance};
use wire::frames::{LENGTH_BYTES, write_frame};

use super::{RUN, options, peer, workload};
use crate::session::{FrameSession, Use};

#[path = "../../../../http/adapter/src/tests/hostile_list.rs"]
mod over_http;

/// What the frames protocol has to say.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn answer(code: Code, tx: u64) -> Vec<u8> {
    written(|out| write_answer(out, Answer { code, tx, wait_ms: 0 }))
}

fn framed(payload: &[u8]) -> Vec<u8> {
    written(|out| write_frame(out, |out| out.extend_from_slice(payload)))
}

/// The same with a bit of its payload turned.
fn damaged(mut frame: Vec<u8>, at: usize) -> Vec<u8> {
    frame[LENGTH_BYTES + at] ^= 1;
    frame
}

/// Claim: of each behaviour the session sees what must be seen, however its frames are cut, and holds no more than the
/// longest reply: one transaction outstanding, of a server that answers when it commits.
#[test]
#[rustfmt::skip]
fn frames_that_must_not_be() {
    let yes = answer(Code::Committed, 0);
    let others = answer(Code::Committed, 1_000_000);
    let empty = framed(&[]);
    let unknown = framed(&[0x7f, 1, 2, 3]);
    let cut_off = framed(&yes[LENGTH_BYTES..yes.len() - 5]);
    let longer = framed(&[&yes[LENGTH_BYTES..], b"more"].concat());
    let (bad_code, bad_id) = (damaged(yes.clone(), 1), damaged(yes.clone(), 8));
    let bad_sum = damaged(yes.clone(), yes.len() - LENGTH_BYTES - 1);
    let huge = u32::MAX.to_le_bytes();
    let larger = u32::try_from(REPLY_BYTES_MAX + 1).unwrap().to_le_bytes();
    let largest = u32::try_from(REPLY_BYTES_MAX).unwrap().to_le_bytes();
    let batch = written(|out| write_answers(out, &[Answer { code: Code::Committed, tx: 0, wait_ms: 0 }; 2]));
    let cut_batch = framed(&batch[LENGTH_BYTES..batch.len() - 9]);
    let synced = written(|out| write_synced(out, 7, true));
    let entries = written(|out| write_entries(out, 0, |_| ()));
    let checked = written(|out| write_checked(out, 0, true));
    let subscribed = written(|out| write_subscribed(out, RUN));
    let of_another = written(|out| write_value(out, 99, Some(1)));
    let limited = answer(Code::Limited, 0);
    let list = [
        Behaviour { name: "text", does: "answers in another protocol", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n")], seen: Broken },
        Behaviour { name: "an empty frame", does: "answers nothing in a frame", greets: &[], answers: &[Say(&empty)], seen: Broken },
        Behaviour { name: "an unknown frame", does: "answers a frame of no kind", greets: &[], answers: &[Say(&unknown)], seen: Broken },
        Behaviour { name: "a frame cut off", does: "answers a frame that is too short", greets: &[], answers: &[Say(&cut_off)], seen: Broken },
        Behaviour { name: "a longer frame", does: "answers a frame that is too long", greets: &[], answers: &[Say(&longer)], seen: Broken },
        Behaviour { name: "another code", does: "turns a bit of the code", greets: &[], answers: &[Say(&bad_code)], seen: Broken },
        Behaviour { name: "another id", does: "turns a bit of the id", greets: &[], answers: &[Say(&bad_id)], seen: Broken },
        Behaviour { name: "another checksum", does: "turns a bit of the checksum", greets: &[], answers: &[Say(&bad_sum)], seen: Broken },
        Behaviour { name: "4 GiB", does: "announces more than any frame has", greets: &[], answers: &[Say(&huge), Hush], seen: Broken },
        Behaviour { name: "a frame beyond the bound", does: "announces more than any reply has", greets: &[], answers: &[Say(&larger), Hush], seen: Broken },
        Behaviour { name: "another's answer", does: "answers for another's transaction", greets: &[], answers: &[Say(&others)], seen: Broken },
        Behaviour { name: "another's value", does: "answers a read that was not asked for", greets: &[], answers: &[Say(&of_another)], seen: Broken },
        Behaviour { name: "two answers", does: "answers twice", greets: &[], answers: &[Right, Right], seen: BrokenBehind },
        Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
        Behaviour { name: "two in a batch", does: "answers twice in one frame", greets: &[], answers: &[Say(&batch)], seen: BrokenBehind },
        Behaviour { name: "a batch cut off", does: "cuts a frame of answers off", greets: &[], answers: &[Say(&cut_batch)], seen: Broken },
        Behaviour { name: "garbage behind the answer", does: "goes on with bytes of no frame", greets: &[], answers: &[Right, Say(b"\xff\xff\xff\xff")], seen: BrokenBehind },
        Behaviour { name: "an empty frame behind", does: "goes on with nothing in a frame", greets: &[], answers: &[Right, Say(&empty)], seen: BrokenBehind },
        Behaviour { name: "a refusal behind", does: "takes its answer back", greets: &[], answers: &[Right, Say(&limited)], seen: BrokenBehind },
        Behaviour { name: "a commit behind a refusal", does: "refuses, and commits", greets: &[], answers: &[Say(&limited), Right], seen: Broken },
        Behaviour { name: "stored", does: "answers what only an auditor asks", greets: &[], answers: &[Say(&synced)], seen: Broken },
        Behaviour { name: "entries", does: "shows its ledger unasked", greets: &[], answers: &[Say(&entries)], seen: Broken },
        Behaviour { name: "taken", does: "answers a question of the preflight", greets: &[], answers: &[Say(&checked)], seen: Broken },
        Behaviour { name: "subscribed", does: "promises what was not asked for", greets: &[], answers: &[Say(&subscribed)], seen: Broken },
        Behaviour { name: "an answer before the request", does: "answers before anybody asked", greets: &[Say(&others)], answers: &[Hush], seen: Broken },
        Behaviour { name: "garbage first", does: "greets in another protocol", greets: &[Say(b"220 mail ESMTP\r\n")], answers: &[Right], seen: Broken },
        Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Flood(&[], &yes)], seen: BrokenBehind },
        Behaviour { name: "endless answers of others", does: "answers for others without end", greets: &[], answers: &[Flood(&[], &others)], seen: Broken },
        Behaviour { name: "endless empty frames", does: "sends empty frames without end", greets: &[], answers: &[Flood(&[], &empty)], seen: Broken },
        Behaviour { name: "an endless frame", does: "fills the longest frame with nothing", greets: &[], answers: &[Flood(&largest, &[0; 64])], seen: Broken },
        Behaviour { name: "silence", does: "takes the request and says nothing", greets: &[], answers: &[Hush], seen: Failed },
        Behaviour { name: "half a length", does: "stops in the middle of the length", greets: &[], answers: &[Say(&yes[..2]), Hush], seen: Failed },
        Behaviour { name: "half a frame", does: "stops in the middle of the frame", greets: &[], answers: &[Say(&yes[..9]), Hush], seen: Failed },
        Behaviour { name: "closed in a frame", does: "closes in the middle of the frame", greets: &[], answers: &[Say(&yes[..9]), Close], seen: Failed },
        Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
        Behaviour { name: "limited", does: "refuses", greets: &[], answers: &[Say(&limited)], seen: Failed },
        Behaviour { name: "byte by byte", does: "drips a good answer", greets: &[], answers: &[Drip(&yes, 1)], seen: Fine },
    ];
    let unread_max = LENGTH_BYTES + REPLY_BYTES_MAX;
    for (in_flight_max, purpose) in [(1, Use::Submit), (64, Use::Submit), (64, Use::SubmitAndAsk)] {
        let session = || {
            let session = FrameSession::new(RUN, 1, in_flight_max, purpose, false);
            Box::new(session) as Box<dyn Session>
        };
        let peer = || peer(options(CommitWay::Answer, 1), FRAMES_LISTENER);
        let subject = Subject::new(&session, &peer, &workload);
        hostile_conformance(&subject, &list, unread_max).unwrap();
    }
}

/// Claim: an observer sees what is no word of the protocol, and what is one and was not asked for.
#[test]
#[rustfmt::skip]
fn observers_that_are_told_nonsense() {
    let unknown = framed(&[0x7f]);
    let again = written(|out| write_subscribed(out, RUN));
    let of_another_run = written(|out| write_subscribed(out, RUN + 1));
    let list = [
        Behaviour { name: "an unknown frame", does: "says what is no word", greets: &[], answers: &[Say(&unknown)], seen: Broken },
        Behaviour { name: "subscribed twice", does: "promises the same again", greets: &[], answers: &[Say(&again)], seen: Broken },
        Behaviour { name: "another run", does: "promises another run", greets: &[Say(&of_another_run)], answers: &[], seen: Broken },
        Behaviour { name: "text", does: "greets in text", greets: &[Say(b"220 mail ESMTP\r\n")], answers: &[], seen: Broken },
        Behaviour { name: "silence", does: "says nothing", greets: &[Hush], answers: &[], seen: Failed },
    ];
    let session =
        || Box::new(FrameSession::new(RUN, 2, 64, Use::Observe, false)) as Box<dyn Session>;
    let peer = || -> Peer {
        let options = Options { service: Duration::from_micros(50), ..Options::default() };
        peer(Options { commit: CommitWay::Observer, stages: 2, ..options }, FRAMES_LISTENER)
    };
    let subject = Subject::new(&session, &peer, &workload).ladder(2, 1).watching();
    hostile_conformance(&subject, &list, LENGTH_BYTES + REPLY_BYTES_MAX).unwrap();
}

/// Claim: over HTTP the canary's own session sees all that the adapter for HTTP must see.
#[test]
fn every_behaviour_over_http() {
    let address = "127.0.0.1:80".parse().unwrap();
    let session =
        || Box::new(crate::http_session::HttpSession::new(address, 1)) as Box<dyn Session>;
    let peer = || peer(options(CommitWay::Answer, 1), HTTP_LISTENER);
    let subject = Subject::new(&session, &peer, &workload);
    // The canary never says 304, and its session takes one for a failure.
    let all = over_http::BEHAVIOURS.iter().filter(|it| it.name != "body behind a 304");
    hostile_conformance(&subject, &all.copied().collect::<Vec<_>>(), (64 << 10) + 64).unwrap();
}
