//! Entry point for fuzzing: any bytes as each message. What is claimed is asserted: what is read and written again is the
//! same, and a stream of blocks says the same in one piece and in many.

use super::block::{Part, Stream, read_block, write_block_head};
use super::entry::{Entry, read_entry};
use super::errors::{read_errors, write_errors};
use super::request::{Request, read_request, read_standing, write_standing};
use super::status::{Answer, Question, read_answer, read_question, write_status_answer};
use super::{FRAME_HEADER_BYTES, Malformed, next_frame};

/// Any bytes.
///
/// # Panics
/// If one of the claims does not hold.
pub fn fuzz_messages(bytes: &[u8]) {
    messages(bytes);
    if let Ok(Some(frame)) = next_frame(bytes, 1 << 20) {
        assert_eq!(frame.used, FRAME_HEADER_BYTES + frame.payload.len());
        messages(frame.payload);
    }
    let whole = parts(bytes, bytes.len().max(1));
    for piece in [1, 7, 64] {
        assert_eq!(parts(bytes, piece), whole, "in pieces of {piece}");
    }
}

fn messages(bytes: &[u8]) {
    if let Ok(Request::Notify(it)) = read_request(bytes) {
        assert_eq!(it.attested() >> it.transaction.inputs.len().min(127) >> 1, 0);
        let mut again = Vec::new();
        it.transaction.write(&mut again);
        assert_eq!(again, &bytes[9..9 + it.transaction.bytes()]);
    }
    if let Ok(standing) = read_standing(bytes) {
        let mut again = Vec::new();
        write_standing(&mut again, &standing);
        assert_eq!(&again[FRAME_HEADER_BYTES..], bytes);
    }
    if let Ok(Entry::Transactions(batch)) = read_entry(bytes) {
        assert!(batch.iter().count() as u64 <= batch.count());
    }
    if let Ok(block) = read_block(bytes) {
        let mut again = Vec::new();
        write_block_head(&mut again, &block.head, block.bytes.len() as u64);
        block.transactions().for_each(|it| it.write(&mut again));
        assert_eq!(&again[FRAME_HEADER_BYTES..], bytes);
    }
    if let Ok(errors) = read_errors(bytes) {
        let (mut again, mut list) = (Vec::new(), Vec::new());
        errors.iter().for_each(|it| it.write(&mut list));
        write_errors(&mut again, errors.count(), &list);
        assert_eq!(&again[FRAME_HEADER_BYTES..], bytes);
    }
    if let Ok(Question::Status(asked)) = read_question(bytes) {
        let mut again = Vec::new();
        write_status_answer(&mut again, &asked, |_, _| (super::status::Status::Spent, 7));
        let Ok(Answer::Status(answered)) = read_answer(&again[FRAME_HEADER_BYTES..]) else {
            panic!("what is written is read");
        };
        assert_eq!(answered.count(), asked.count());
        for ((id, known), (asked_id, outputs)) in answered.iter().zip(asked.iter()) {
            assert_eq!((id, known.count()), (asked_id, outputs.len()));
        }
    }
    if let Ok(Answer::Status(answered)) = read_answer(bytes) {
        assert_eq!(answered.iter().count() as u64, answered.count());
    }
}

/// What a stream says of the bytes, offered so many more at a time.
fn parts(bytes: &[u8], piece: usize) -> (Vec<String>, Option<Malformed>) {
    let (mut said, mut stream, mut used) = (Vec::new(), Stream::default(), 0);
    let mut end = 0;
    while end < bytes.len() {
        end = bytes.len().min(end + piece);
        let each = |part: Part<'_>| said.push(format!("{part:?}"));
        match stream.read(&bytes[used..end], each) {
            Ok(more) => used += more,
            Err(why) => return (said, Some(why)),
        }
    }
    (said, None)
}
