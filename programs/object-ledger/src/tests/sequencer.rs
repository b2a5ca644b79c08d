//! The sequencer, asked by strangers and started after crashes.

use clock::Instant;
use process::rehearsal::Rehearsal;
use process::{Input, Node as _, Outputs, Stored, StoredLog};

use super::made::{keys, row, trust};
use crate::data::{Attestation, Proposal};
use crate::delay::Delay;
use crate::note::{Checkpoint, origin};
use crate::protocol::{PAYLOAD_BYTES_MAX, kind, next_frame, write_frame};
use crate::sequencer::{NoResumption, SEVERAL_MAX, Sequencer, resumption};
use crate::service::Answering as _;

fn record(of: Option<Proposal>) -> Vec<u8> {
    of.map_or(vec![0], |it| it.encoded())
}

fn started(records: &[Option<Proposal>]) -> Sequencer {
    let mut log = StoredLog::new(0);
    records.iter().for_each(|it| log.push(&record(*it)));
    let stored = Stored { logs: vec![log], cells: Vec::new() };
    Sequencer::new(keys().1, "tests", trust(), Delay::none(), &stored).unwrap()
}

fn signatures(of: &Rehearsal<Sequencer>) -> u64 {
    let metrics = of.node().metrics();
    metrics.iter().find(|it| it.0 == "ledger_signatures_total").unwrap().3
}

/// Asks the same many times in one step; gives kind and payload of each answer.
fn asks(of: &mut Rehearsal<Sequencer>, times: u64, asks: u8, payload: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let connection = of.open(0);
    let mut bytes = Vec::new();
    (0..times).for_each(|id| write_frame(&mut bytes, asks, id, &[payload]));
    of.send(connection, &bytes);
    let said = of.take_bytes(connection);
    let (mut rest, mut answers) = (&said[..], Vec::new());
    while let Some(frame) = next_frame(rest, PAYLOAD_BYTES_MAX).unwrap() {
        assert_eq!(frame.id, answers.len() as u64);
        answers.push((frame.kind, frame.payload.to_vec()));
        rest = &rest[frame.used..];
    }
    answers
}

/// Claim: strangers who ask for a checkpoint 5,000 times in one step make the sequencer sign once, those who ask for numbers
/// that it has given not at all; what is said is what was signed, and a new number has a new checkpoint.
#[test]
fn signed_once() {
    let mut it = Rehearsal::new(started(&vec![None; 20_000]));
    let before = signatures(&it);
    let notes = asks(&mut it, 5_000, kind::CHECKPOINT, &[]);
    assert_eq!(signatures(&it), before + 1);
    assert_eq!(notes.len(), 5_000);
    assert!(notes.iter().all(|note| *note == notes[0] && note.0 == kind::NOTE));
    let read = |note: &[u8]| {
        let note = Checkpoint::parse(std::str::from_utf8(note).unwrap()).unwrap();
        assert!(note.is_signed(&origin("tests"), &keys().1.public()));
        note.size
    };
    assert_eq!(read(&notes[0].1), 20_000);
    let payload = [&1_u64.to_be_bytes()[..], &SEVERAL_MAX.to_be_bytes()].concat();
    let answers = asks(&mut it, 100, kind::ATTESTATIONS, &payload);
    assert_eq!(signatures(&it), before + 1);
    assert_eq!(answers.len(), 100);
    let several = answers[99].1.chunks(108).map(|one| Attestation::parse(one).unwrap());
    let several: Vec<Attestation> = several.collect();
    assert!(several.len() == 256 && several.iter().all(|one| trust().has_signed(one)));
    it.node_mut().resume(&resumption(std::iter::repeat_n(None, 20_001))).unwrap();
    let mut out = Outputs::default();
    it.node_mut().step(Instant::ZERO, Input::Persisted { log: 0, below: 20_001 }, &mut out);
    assert_eq!(read(&asks(&mut it, 9, kind::CHECKPOINT, &[])[8].1), 20_001);
    assert_eq!(signatures(&it), before + 3);
}

/// Claim: attestations are asked for from any number on and as many as one likes: those that are durable come, and nothing of
/// what there is none of, up to the last number that can be written.
#[test]
fn any_numbers() {
    let mut it = Rehearsal::new(started(&[None; 3]));
    for (from, count, numbers) in [
        (1_u64, 0_u32, &[][..]),
        (1, 1, &[1]),
        (2, 1, &[2]),
        (2, 9, &[2, 3]),
        (1, u32::MAX, &[1, 2, 3]),
        (4, 1, &[]),
        (u64::MAX, 0, &[]),
        (u64::MAX, 1, &[]),
        (u64::MAX - 1, u32::MAX, &[]),
    ] {
        let payload = [&from.to_be_bytes()[..], &count.to_be_bytes()].concat();
        let (kind, several) = asks(&mut it, 1, kind::ATTESTATIONS, &payload).remove(0);
        let said = several.chunks(108).map(|one| Attestation::parse(one).unwrap().number);
        assert_eq!((kind, said.collect::<Vec<_>>()), (kind::SEVERAL, numbers.to_vec()), "{from}");
    }
}

/// Claim: a crash in the middle of a resumption loses no number: the next start goes on with those that were not durable yet,
/// one whose log has all of them adds none, and one whose log begins with other blocks does not start.
#[test]
fn half_resumed() {
    let row = row(&[1, 2, 3]);
    let whole = [Some(row[0].proposal), Some(row[1].proposal), None, None];
    let bytes = resumption(whole.into_iter());
    let later = [&whole[..], &[Some(row[2].proposal)]].concat();
    for known in 0..=later.len() {
        let mut it = started(&later[..known]);
        it.resume(&bytes).unwrap();
        let mut out = Outputs::default();
        out.begin_log(0, known as u64);
        it.step(Instant::ZERO, Input::Wake, &mut out);
        let (mut stores, mut records) = (Vec::new(), Vec::new());
        out.take_stores(&mut stores, &mut records);
        let missing = whole.iter().skip(known).flat_map(|one| record(*one));
        assert_eq!(records, missing.collect::<Vec<u8>>(), "{known}");
        let below = out.next_number(0);
        it.step(Instant::ZERO, Input::Persisted { log: 0, below }, &mut out);
        assert_eq!(it.durable(), known.max(whole.len()) as u64);
    }
    let mut other = started(&[whole[0], Some(row[2].proposal)]);
    assert_eq!(other.resume(&bytes), Err(NoResumption::Other { number: 2 }));
}
