//! What a node may do to a connection, played to each kind of session.

use std::sync::Arc;

use atomizer_node::protocol::block::{HEAD_BYTES, Head, write_block_head};
use atomizer_node::protocol::errors::{Error, Why, write_errors};
use atomizer_node::protocol::request::{STANDING_BYTES, write_standing};
use atomizer_node::protocol::status::{
    Question, Status, read_question, write_best_height, write_status_answer,
};
use atomizer_node::protocol::transaction::{INPUTS_MAX, OUTPUTS_MAX};
use atomizer_node::protocol::{
    BLOCK_BYTES_MAX, ERRORS_BYTES_MAX, FRAME_HEADER_BYTES, next_frame, write_frame,
};
use sut::conformance::Seen::{Broken, Failed, Fine};
use sut::conformance::Step::{Close, Drip, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Peer, Subject, hostile_conformance};
use sut::{Session, Workload};

use super::{archived, block, known, nothing_yet, stands, told, wallet};
use crate::archive::ArchiveSession;
use crate::session::{BlockSession, COMMITTED, ErrorSession, Refresh, SubmitSession};
use crate::watch::{ANSWER_BYTES_MAX, UNREAD_MAX, WatchSession};
use crate::workload::Spends;

/// The longest transaction: a reader of blocks waits for one as a whole.
const TRANSACTION_BYTES_MAX: usize = 48 + 32 * (INPUTS_MAX + OUTPUTS_MAX);

fn framed(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, |out| out.extend_from_slice(payload));
    out
}

const HEAD: u64 = HEAD_BYTES as u64;

/// A length, and nothing behind it.
fn length(bytes: usize) -> Vec<u8> {
    (bytes as u64).to_le_bytes().to_vec()
}

/// A block's head that says so, in a frame of so many bytes.
fn head(bytes: u64, height: u64, count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let head = Head { height, count, ..Head::default() };
    write_block_head(&mut out, &head, bytes - HEAD_BYTES as u64);
    out
}

/// Frames that no node sends, whatever is listened for.
#[rustfmt::skip]
const FRAMES: &[Behaviour<'static>] = &[
    Behaviour { name: "text", does: "speaks another protocol", greets: &[], answers: &[Say(b"HTTP/1.1 400 Bad Request\r\n\r\n")], seen: Broken },
    Behaviour { name: "an empty frame", does: "says nothing in a frame", greets: &[], answers: &[Say(&[0; 8])], seen: Broken },
    Behaviour { name: "a byte", does: "says a byte of no kind", greets: &[], answers: &[Say(&[1, 0, 0, 0, 0, 0, 0, 0, 99])], seen: Broken },
    Behaviour { name: "4 GiB", does: "announces more than any frame has", greets: &[], answers: &[Say(&[0, 0, 0, 0, 1, 0, 0, 0]), Hush], seen: Broken },
    Behaviour { name: "2^64 bytes", does: "announces more than there can be", greets: &[], answers: &[Say(&[0xff; 8]), Hush], seen: Broken },
    Behaviour { name: "endless empty frames", does: "says nothing without end", greets: &[], answers: &[Flood(&[], &[0; 8])], seen: Broken },
    Behaviour { name: "garbage", does: "says bytes of no protocol without end", greets: &[], answers: &[Flood(&[], b"garbage!")], seen: Broken },
    Behaviour { name: "garbage first", does: "greets in another protocol", greets: &[Say(b"220 mail ESMTP\r\n")], answers: &[Right], seen: Broken },
    Behaviour { name: "silence", does: "says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half a length", does: "stops in the middle of a length", greets: &[], answers: &[Say(&[18, 0, 0]), Hush], seen: Failed },
    Behaviour { name: "closed", does: "closes the connection", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "closed in a length", does: "closes in the middle of a length", greets: &[], answers: &[Say(&[18, 0, 0]), Close], seen: Failed },
];

fn play(session: &dyn Fn() -> Box<dyn Session>, own: &[Behaviour<'_>], unread_max: usize) {
    play_watching(session, &|| Box::new(|_| Vec::new()), own, unread_max);
}

fn play_watching(
    session: &dyn Fn() -> Box<dyn Session>,
    peer: &dyn Fn() -> Peer,
    own: &[Behaviour<'_>],
    unread_max: usize,
) {
    let workload = || -> Box<dyn Workload> { Box::new(Spends::new(wallet())) };
    let subject = Subject::new(session, peer, &workload).watching();
    let all = [FRAMES, own].concat();
    hostile_conformance(&subject, &all, unread_max).unwrap();
}

/// Claim: to whom nothing is said but who leads sees whatever else is said, and commits nothing for it; blocks are heard
/// only where the published system's way of sending them to all is switched on.
#[test]
#[rustfmt::skip]
fn submissions() {
    let said = |leader| {
        let mut out = Vec::new();
        write_standing(&mut out, &stands(1, leader, 5));
        out
    };
    let (leads, follows, nobody) = (said(1), said(2), said(255));
    let cut_off = framed(&leads[8..17]);
    let longer = framed(&[&leads[8..], &[0][..]].concat());
    let larger = length(BLOCK_BYTES_MAX + 1);
    let block = block(1, 0..40);
    let workload = || -> Box<dyn Workload> { Box::new(Spends::new(wallet())) };
    let peer = || -> Peer { Box::new(|_| Vec::new()) };
    for hears in [false, true] {
        let seen = if hears { Failed } else { Broken };
        let own = [
            Behaviour { name: "it leads", does: "says that it leads", greets: &[], answers: &[Say(&leads), Wait(5), Drip(&leads, 1)], seen: Failed },
            Behaviour { name: "it follows", does: "says that another leads", greets: &[], answers: &[Say(&follows)], seen: Failed },
            Behaviour { name: "nobody leads", does: "says that nobody leads", greets: &[], answers: &[Say(&nobody), Close], seen: Failed },
            Behaviour { name: "half a standing", does: "stops in the middle of a standing", greets: &[], answers: &[Say(&leads[..12]), Hush], seen: Failed },
            Behaviour { name: "a short standing", does: "says less than a standing", greets: &[], answers: &[Say(&cut_off)], seen: Broken },
            Behaviour { name: "a long standing", does: "says more than a standing", greets: &[], answers: &[Say(&longer)], seen: Broken },
            Behaviour { name: "more than a block", does: "announces more than any block has", greets: &[], answers: &[Say(&larger), Hush], seen: Broken },
            Behaviour { name: "a block", does: "sends a block unasked", greets: &[], answers: &[Say(&block)], seen },
            Behaviour { name: "blocks", does: "sends blocks without end", greets: &[], answers: &[Flood(&[], &block)], seen },
            Behaviour { name: "garbage behind a block", does: "goes on with bytes of no frame", greets: &[], answers: &[Say(&block), Say(&[0xff; 8])], seen: Broken },
        ];
        let session = || -> Box<dyn Session> { Box::new(SubmitSession::new(known(), Refresh::every(1), 1, 64).hearing_blocks(hears)) };
        let subject = Subject::new(&session, &peer, &workload);
        hostile_conformance(&subject, &[FRAMES, &own].concat(), STANDING_BYTES).unwrap();
    }
}

/// Claim: who follows an atomizer's blocks sees what is none, and holds no more than the longest transaction.
#[test]
#[rustfmt::skip]
fn blocks() {
    let good = block(1, 0..4);
    let larger = length(BLOCK_BYTES_MAX + 1);
    let headless = framed(&[0; HEAD_BYTES - 1]);
    let many = head(HEAD + 176, 1, u64::MAX);
    let more = head(HEAD + 176, 1, 4);
    let fewer = [head(HEAD + 2 * 176, 1, 1), block(1, 0..2)[8 + HEAD_BYTES..].to_vec()].concat();
    let rest = [head(HEAD + 5, 1, 0), vec![0; 5]].concat();
    let inputs = [head(HEAD + 48, 1, 1), vec![7; 32], vec![0xff; 8], vec![0; 8]].concat();
    let beyond = [head(HEAD + 48, 1, 1), vec![7; 32], 2_u64.to_le_bytes().to_vec(), vec![0; 8]].concat();
    let endless = head(BLOCK_BYTES_MAX as u64, 1, 1 << 20);
    let own = [
        Behaviour { name: "more than a block", does: "announces more than any block has", greets: &[], answers: &[Say(&larger), Hush], seen: Broken },
        Behaviour { name: "no head", does: "sends less than a block's head", greets: &[], answers: &[Say(&headless)], seen: Broken },
        Behaviour { name: "2^64 transactions", does: "announces more transactions than there can be", greets: &[], answers: &[Say(&many), Hush], seen: Broken },
        Behaviour { name: "more transactions", does: "announces more transactions than fit", greets: &[], answers: &[Say(&more), Say(&good[8 + HEAD_BYTES..])], seen: Broken },
        Behaviour { name: "fewer transactions", does: "sends more transactions than it announces", greets: &[], answers: &[Say(&fewer)], seen: Broken },
        Behaviour { name: "a rest", does: "leaves bytes behind the last transaction", greets: &[], answers: &[Say(&rest)], seen: Broken },
        Behaviour { name: "2^64 inputs", does: "announces more inputs than there can be", greets: &[], answers: &[Say(&inputs)], seen: Broken },
        Behaviour { name: "inputs beyond the block", does: "announces more inputs than the block has bytes", greets: &[], answers: &[Say(&beyond)], seen: Broken },
        Behaviour { name: "garbage behind a block", does: "goes on with bytes of no frame", greets: &[], answers: &[Say(&good), Say(&[0xff; 8])], seen: Broken },
        Behaviour { name: "an endless block", does: "fills the longest block with nothing", greets: &[], answers: &[Flood(&endless, &[0; 48])], seen: Failed },
        Behaviour { name: "the same block", does: "sends the same block without end", greets: &[], answers: &[Flood(&[], &good)], seen: Fine },
        Behaviour { name: "half a block", does: "stops in the middle of a block", greets: &[], answers: &[Say(&good[..100]), Hush], seen: Failed },
        Behaviour { name: "closed in a block", does: "closes in the middle of a block", greets: &[], answers: &[Say(&good[..100]), Close], seen: Failed },
    ];
    play(&|| Box::new(BlockSession::new(known())), &own, TRANSACTION_BYTES_MAX);
}

/// Claim: the same of who asks an archiver, which answers one question with one block, the next one.
#[test]
#[rustfmt::skip]
fn archives() {
    let answer = archived(1, 0..4);
    let with_flag = |bytes: Vec<u8>, flag: u8| [&bytes[..8], &[flag][..], &bytes[8..]].concat();
    let larger = length(BLOCK_BYTES_MAX + 2);
    let other = archived(2, 0..4);
    let strange = [&answer[..8], &[7][..], &answer[9..]].concat();
    let headless = framed(&[1; HEAD_BYTES]);
    let said_no = framed(&[0, 0]);
    let fewer = with_flag([head(1 + HEAD + 2 * 176, 1, 1), block(1, 0..2)[8 + HEAD_BYTES..].to_vec()].concat(), 1);
    let more = with_flag([head(1 + HEAD + 176, 1, 2), block(1, 0..2)[8 + HEAD_BYTES..].to_vec()].concat(), 1);
    let inputs = with_flag([head(1 + HEAD + 48, 1, 1), vec![7; 32], vec![0xff; 8], vec![0; 8]].concat(), 1);
    let endless = with_flag(head(BLOCK_BYTES_MAX as u64, 1, 1 << 20), 1);
    let own = [
        Behaviour { name: "more than a block", does: "announces more than any block has", greets: &[], answers: &[Say(&larger), Hush], seen: Broken },
        Behaviour { name: "another block", does: "answers with a block that nobody asked for", greets: &[], answers: &[Say(&other)], seen: Broken },
        Behaviour { name: "a strange flag", does: "says neither that there is one nor that there is none", greets: &[], answers: &[Say(&strange)], seen: Broken },
        Behaviour { name: "no head", does: "sends less than a block's head", greets: &[], answers: &[Say(&headless)], seen: Broken },
        Behaviour { name: "no and more", does: "says that there is none, and more", greets: &[], answers: &[Say(&said_no)], seen: Broken },
        Behaviour { name: "fewer transactions", does: "sends more transactions than it announces", greets: &[], answers: &[Say(&fewer)], seen: Broken },
        Behaviour { name: "more transactions", does: "announces more transactions than fit", greets: &[], answers: &[Say(&more)], seen: Broken },
        Behaviour { name: "2^64 inputs", does: "announces more inputs than there can be", greets: &[], answers: &[Say(&inputs)], seen: Broken },
        Behaviour { name: "garbage behind a block", does: "goes on with bytes of no frame", greets: &[], answers: &[Say(&answer), Say(&[0xff; 8])], seen: Broken },
        Behaviour { name: "an endless block", does: "fills the longest block with nothing", greets: &[], answers: &[Flood(&endless, &[0; 48])], seen: Failed },
        Behaviour { name: "half a block", does: "stops in the middle of a block", greets: &[], answers: &[Say(&answer[..100]), Hush], seen: Failed },
        Behaviour { name: "a good block", does: "drips a good block", greets: &[], answers: &[Drip(&answer, 1)], seen: Fine },
    ];
    let peer = || -> Peer { Box::new(|_| nothing_yet()) };
    let session = || -> Box<dyn Session> { Box::new(ArchiveSession::new(known(), COMMITTED)) };
    play_watching(&session, &peer, &own, TRANSACTION_BYTES_MAX);
}

/// Claim: the same of who listens to what is refused.
#[test]
#[rustfmt::skip]
fn refusals() {
    let (id, inputs) = (wallet().transaction(0).id, [[7; 32]]);
    let list = |all: &[Why<'_>], count: u64| {
        let (mut list, mut out) = (Vec::new(), Vec::new());
        all.iter().for_each(|why| Error { id: &id, why: *why }.write(&mut list));
        write_errors(&mut out, count, &list);
        out
    };
    let one = list(&[Why::Range], 1);
    let (many, fewer) = (list(&[Why::Range], u64::MAX), list(&[Why::Range, Why::Range], 1));
    let more = list(&[Why::Range], 2);
    let strange = framed(&[&1_u64.to_le_bytes()[..], &id, &[9]].concat());
    let spent = list(&[Why::Spent(&inputs)], 1);
    let cut_off = framed(&spent[8..spent.len() - 1]);
    let (larger, largest) = (length(ERRORS_BYTES_MAX + 1), length(ERRORS_BYTES_MAX));
    let own = [
        Behaviour { name: "more than a list", does: "announces more than any list has", greets: &[], answers: &[Say(&larger), Hush], seen: Broken },
        Behaviour { name: "2^64 errors", does: "announces more errors than there can be", greets: &[], answers: &[Say(&many)], seen: Broken },
        Behaviour { name: "more errors", does: "announces more errors than it sends", greets: &[], answers: &[Say(&more)], seen: Broken },
        Behaviour { name: "fewer errors", does: "sends more errors than it announces", greets: &[], answers: &[Say(&fewer)], seen: Broken },
        Behaviour { name: "a strange error", does: "refuses for no known reason", greets: &[], answers: &[Say(&strange)], seen: Broken },
        Behaviour { name: "cut off", does: "ends in the middle of an input", greets: &[], answers: &[Say(&cut_off)], seen: Broken },
        Behaviour { name: "refused twice", does: "refuses one transaction twice", greets: &[], answers: &[Say(&one), Say(&one)], seen: Broken },
        Behaviour { name: "an endless list", does: "fills the longest list with nothing", greets: &[], answers: &[Flood(&largest, &[0; 64])], seen: Broken },
        Behaviour { name: "half a list", does: "stops in the middle of a list", greets: &[], answers: &[Say(&one[..20]), Hush], seen: Failed },
        Behaviour { name: "a refusal", does: "drips a refusal", greets: &[], answers: &[Drip(&one, 1)], seen: Fine },
    ];
    let known = known();
    told(&known, 0..1);
    let session = || -> Box<dyn Session> { Box::new(ErrorSession::new(Arc::clone(&known), None)) };
    play(&session, &own, FRAME_HEADER_BYTES + ERRORS_BYTES_MAX);
}

/// Claim: the same of who asks a watchtower: what was not asked for, or is of another question, is not of the protocol.
#[test]
#[rustfmt::skip]
fn watchtowers() {
    // Its greeting is the first round's height, so that a question of one transaction is outstanding.
    let known = known();
    told(&known, 0..1);
    let question = {
        let (mut asked, mut height) = (Vec::new(), Vec::new());
        let mut session = WatchSession::new(Arc::clone(&known), Some(wallet()), false);
        session.poll(&mut Vec::new());
        write_best_height(&mut height, 3);
        session.receive(&height, &mut asked, &mut sut::Marks::default()).unwrap();
        asked
    };
    let answer = |status: Status, id_of: u64| {
        let mut asked = question.clone();
        asked[17..49].copy_from_slice(&wallet().transaction(id_of).id);
        let frame = next_frame(&asked, 1 << 20).unwrap().unwrap();
        let Question::Status(question) = read_question(frame.payload).unwrap() else { panic!() };
        let mut out = Vec::new();
        write_status_answer(&mut out, &question, |_, _| (status, 3));
        out
    };
    let height = { let mut out = Vec::new(); write_best_height(&mut out, 3); out };
    let (good, other) = (answer(Status::Unspent, 0), answer(Status::Unspent, 5));
    let none = framed(&[0; 9]);
    let strange = { let mut it = good.clone(); it[57] = 9; it };
    let cut_off = framed(&good[8..good.len() - 1]);
    let longer = framed(&[&good[8..], &[0][..]].concat());
    let many = { let mut it = good.clone(); it[9..17].fill(0xff); it };
    let (larger, largest) = (length(ANSWER_BYTES_MAX + 1), length(ANSWER_BYTES_MAX));
    let greets: &[sut::conformance::Step<'_>] = &[Say(&height)];
    let own = [
        Behaviour { name: "more than an answer", does: "announces more than any answer has", greets, answers: &[Say(&larger), Hush], seen: Broken },
        Behaviour { name: "another's answer", does: "answers of another transaction", greets, answers: &[Say(&other)], seen: Broken },
        Behaviour { name: "no answers", does: "answers of no transaction", greets, answers: &[Say(&none)], seen: Broken },
        Behaviour { name: "a strange status", does: "says what is no status", greets, answers: &[Say(&strange)], seen: Broken },
        Behaviour { name: "cut off", does: "ends in the middle of an output", greets, answers: &[Say(&cut_off)], seen: Broken },
        Behaviour { name: "more", does: "says more than an answer", greets, answers: &[Say(&longer)], seen: Broken },
        Behaviour { name: "2^64 answers", does: "announces more answers than there can be", greets, answers: &[Say(&many)], seen: Broken },
        Behaviour { name: "answered twice", does: "answers one question twice", greets, answers: &[Say(&good), Say(&good)], seen: Broken },
        Behaviour { name: "a height again", does: "says a height instead of an answer", greets, answers: &[Say(&height)], seen: Broken },
        Behaviour { name: "an answer before the question", does: "answers before anybody asked", greets: &[Say(&good)], answers: &[], seen: Broken },
        Behaviour { name: "an endless answer", does: "fills the longest answer with nothing", greets, answers: &[Flood(&largest, &[0; 64])], seen: Broken },
        Behaviour { name: "half an answer", does: "stops in the middle of an answer", greets, answers: &[Say(&good[..40]), Hush], seen: Failed },
        Behaviour { name: "an answer", does: "drips an answer", greets, answers: &[Drip(&good, 1)], seen: Fine },
    ];
    let session = || -> Box<dyn Session> {
        let mut session = WatchSession::new(Arc::clone(&known), Some(wallet()), false);
        // The engine polls by time; a list of behaviours has none.
        session.poll(&mut Vec::new());
        Box::new(session)
    };
    play(&session, &own, UNREAD_MAX);
}
