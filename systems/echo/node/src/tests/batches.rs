//! Several transactions in one frame.

use super::*;
use crate::Lie;
use crate::protocol::write_batch;

fn options() -> Options {
    let service = Duration::from_millis(1);
    let per_frame = Duration::from_millis(10);
    Options { batches: true, service, per_frame, ..Options::default() }
}

fn send(stage: &mut Stage, at: Instant, ids: std::ops::Range<u64>) {
    stage.rehearsal.advance(at);
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    let count = usize::try_from(ids.end - ids.start).unwrap();
    ids.for_each(|tx| write_submit(&mut frames, RUN, tx, 0, b"payload"));
    write_batch(&mut bytes, count, &frames);
    stage.rehearsal.send(stage.connection, &bytes);
}

/// Every frame that answers a batch since the last call: when it came, in milliseconds, and what it says.
fn answered(stage: &mut Stage) -> Vec<(i64, Vec<Answer>)> {
    let mut found = Vec::new();
    for sent in stage.rehearsal.take_sent() {
        let mut rest = sent.bytes.as_slice();
        while let Ok(Some(frame)) = next_frame(rest) {
            if let Ok(Reply::Answers(answers)) = read_reply(frame.payload) {
                found.push((sent.at.as_ns() / 1_000_000, answers.iter().collect()));
            }
            rest = &rest[frame.used..];
        }
    }
    found
}

fn ids(answers: &[Answer]) -> Vec<u64> {
    answers.iter().map(|answer| answer.tx).collect()
}

/// Claim: a batch costs its frame once and each service, is answered in one frame when the last has been served, and
/// all of it is stored; a submission in a frame of its own pays for the frame, too.
#[test]
fn a_batch_is_served_whole() {
    let mut stage = Stage::new(options());
    send(&mut stage, ms(0), 0..5);
    stage.submit(ms(0), 5);
    stage.rehearsal.advance(ms(100));
    let sent = stage.rehearsal.take_sent();
    let at: Vec<_> = sent.iter().map(|sent| sent.at.as_ns() / 1_000_000).collect();
    assert_eq!(at, [15, 26]);
    let frame = next_frame(&sent[0].bytes).unwrap().unwrap();
    let Ok(Reply::Answers(answers)) = read_reply(frame.payload) else { panic!("not answers") };
    assert!(
        answers
            .iter()
            .map(|answer| (answer.code, answer.tx))
            .eq((0..5).map(|tx| (Code::Committed, tx)))
    );
    assert_eq!(stage.ledger().len(), 6);
}

/// Claim: batches beyond those that may be outstanding on a connection are refused whole and at once; another
/// connection has its own count, and an answered one makes room.
#[test]
fn outstanding_batches_are_bounded() {
    let mut stage = Stage::new(Options { frames_max: 1, ..options() });
    send(&mut stage, ms(0), 0..2);
    send(&mut stage, ms(1), 2..4);
    let first = std::mem::replace(&mut stage.connection, stage.rehearsal.open(FRAMES_LISTENER));
    send(&mut stage, ms(2), 4..6);
    stage.connection = first;
    stage.rehearsal.advance(ms(100));
    send(&mut stage, ms(101), 6..8);
    stage.rehearsal.advance(ms(200));
    let found = answered(&mut stage);
    let codes: Vec<_> = found.iter().map(|(at, all)| (*at, all[0].code, ids(all))).collect();
    let done = Code::Committed;
    let expected = [
        (1, Code::Overloaded, vec![2, 3]),
        (12, done, vec![0, 1]),
        (24, done, vec![4, 5]),
        (113, done, vec![6, 7]),
    ];
    assert_eq!(codes, expected);
}

/// Claim: a server that was not asked to take batches hangs up on one.
#[test]
fn batches_are_asked_for() {
    let mut stage = Stage::new(Options::default());
    send(&mut stage, ms(0), 0..2);
    assert!(!stage.rehearsal.is_open(stage.connection));
    assert!(stage.ledger().is_empty());
}

/// Claim: lies strike transactions of a batch as they do others: one is not answered, one is not stored, one is
/// answered twice, one is refused for its kind.
#[test]
fn lies_in_a_batch() {
    for (lie, answers, entries) in [(Lie::Drop, 9, 10), (Lie::Lose, 10, 9), (Lie::Repeat, 10, 11)] {
        let faults = options().faults.lie(lie, 10);
        let mut stage = Stage::new(Options { faults, ..options() });
        send(&mut stage, ms(0), 0..10);
        stage.rehearsal.advance(ms(100));
        let found = answered(&mut stage);
        assert_eq!((found.len(), found[0].1.len()), (1, answers), "{lie:?}");
        assert_eq!(stage.ledger().len(), entries, "{lie:?}");
        assert_eq!(stage.confessed(lie.word()).len(), 1);
    }
    let faults = options().faults.lie(Lie::Twice, 10);
    let mut stage = Stage::new(Options { faults, ..options() });
    send(&mut stage, ms(0), 0..10);
    stage.rehearsal.advance(ms(100));
    assert_eq!(stage.answers().len(), 1, "the second answer has a frame of its own");
}
