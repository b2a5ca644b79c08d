//! Asking a watchtower, held against what the node's own code reads and answers.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use atomizer_node::protocol::Hash;
use atomizer_node::protocol::status::{
    Question, Status, read_question, write_best_height, write_status_answer,
};
use model::options::Value;
use model::{Class, Outcome, TxId};
use sut::{Mark, Marks, Session};

use super::{known, next_frame, system, told, wallet};
use crate::known::Known;
use crate::wallet::{Sort, Wallet};
use crate::watch::{ASKED_MAX, WatchSession};

/// The numbers of transactions by their names.
fn numbers() -> &'static HashMap<Hash, TxId> {
    static NUMBERS: LazyLock<HashMap<Hash, TxId>> =
        LazyLock::new(|| (0..9_000).map(|tx| (wallet().transaction(tx).id, tx)).collect());
    &NUMBERS
}

/// Answers all that was asked, as `look` says; which transactions that were.
fn answered(
    asked: &mut Vec<u8>,
    said: &mut Vec<u8>,
    height: u64,
    look: impl Fn(TxId) -> Status,
) -> Vec<TxId> {
    let (mut used, mut of) = (0, Vec::new());
    while let Ok(Some(frame)) = next_frame(&asked[used..], 1 << 24) {
        used += frame.used;
        match read_question(frame.payload).expect("it asks as it should") {
            Question::BestHeight => write_best_height(said, height),
            Question::Status(question) => {
                let numbers: Vec<TxId> = question.iter().map(|(id, _)| numbers()[id]).collect();
                let mut outputs = numbers.iter().flat_map(|tx| [*tx; 2]);
                write_status_answer(said, &question, |_, output| {
                    let tx = outputs.next().expect("two outputs each");
                    assert!(wallet().transaction(tx).outputs.contains(output));
                    (look(tx), height)
                });
                of.extend(numbers);
            }
        }
    }
    asked.clear();
    of
}

/// One round: what was asked for, and the marks that came of it.
fn round(session: &mut WatchSession, look: impl Fn(TxId) -> Status) -> (Vec<TxId>, Vec<Mark>) {
    let (mut asked, mut marks, mut of) = (Vec::new(), Marks::default(), Vec::new());
    assert!(session.poll(&mut asked).is_some());
    while !asked.is_empty() {
        let mut said = Vec::new();
        of.extend(answered(&mut asked, &mut said, 7, &look));
        assert_eq!(session.receive(&said, &mut asked, &mut marks), Ok(said.len()));
    }
    (of, marks.list().to_vec())
}

fn session(known: &Arc<Known>, wallet: Wallet, resends: bool) -> WatchSession {
    WatchSession::new(Arc::clone(known), Some(wallet), resends)
}

/// Claim: each transaction that was sent is asked for until it has an end, and no more then; one that was numbered and not
/// sent is asked for once it is; the height is what the watchtower says.
#[test]
fn until_there_is_an_end() {
    let known = known();
    told(&known, 0..3);
    told(&known, 4..6);
    let mut watch = session(&known, wallet(), false);
    let (asked, marks) =
        round(&mut watch, |tx| if tx < 2 { Status::Unspent } else { Status::NoHistory });
    assert_eq!((asked, known.height()), (vec![0, 1, 2, 4, 5], 7));
    let reached = |tx| Mark::Reached { tx, stage: 0, code: 0, bytes_in: 0 };
    assert_eq!(marks, [reached(0), reached(1)]);
    told(&known, 3..4);
    let (asked, marks) =
        round(&mut watch, |tx| if tx == 5 { Status::Spent } else { Status::NoHistory });
    assert_eq!((asked, marks), (vec![2, 4, 5, 3], vec![reached(5)]));
    // A connection that was lost with a question on it.
    let mut out = Vec::new();
    watch.poll(&mut out);
    watch.reset();
    let (asked, marks) = round(&mut watch, |_| Status::Unspent);
    assert_eq!((asked, marks.len()), (vec![2, 4, 3], 3));
    assert_eq!(round(&mut watch, |_| Status::Unspent), (vec![], vec![]));
}

/// Claim: what a watchtower refuses is refused, as far as another attempt cannot make it good; a stub's answers are
/// commits, whatever is asked for.
#[test]
fn refusals_and_the_stub() {
    let all = |status: Status, resends: bool| {
        let known = known();
        told(&known, 0..600);
        let (asked, marks) = round(&mut session(&known, wallet(), resends), |_| status);
        assert_eq!(asked.len(), 600);
        marks
    };
    let bad = (0..600).filter(|tx| !wallet().sort(*tx).is_good()).count();
    assert!(bad > 100 && wallet().sort(0) as u32 <= Sort::Future as u32);
    for (status, class) in [
        (Status::InternalError, Class::Expired),
        (Status::Rejected, Class::BadRequest),
        (Status::InvalidInput, Class::BadRequest),
    ] {
        let marks = all(status, false);
        let is_it = |mark: &Mark| matches!(mark, Mark::Ended { answer, .. } if answer.outcome == Outcome::Rejected(class));
        assert!(marks.len() == 600 && marks.iter().all(is_it), "{status:?}");
        assert_eq!(all(status, true).len(), bad, "{status:?}");
    }
    let marks = all(Status::Unspent, false);
    assert!(marks.iter().all(|mark| matches!(mark, Mark::Reached { .. })) && marks.len() == 600);
}

/// Claim: more than a question holds is asked for in several, one after the other, each within the bound of its answer.
#[test]
fn many_at_once() {
    let known = Arc::new(Known::new(10_000));
    let count = u64::try_from(ASKED_MAX).unwrap() * 2 + 1;
    told(&known, 0..count);
    let (asked, marks) = round(&mut session(&known, wallet(), false), |_| Status::Unspent);
    assert_eq!(asked, (0..count).collect::<Vec<_>>());
    assert_eq!(marks.len(), asked.len());
}

/// Claim: a watchtower that is not there cannot be asked, and who asks it needs nobody else's refusals.
#[test]
fn options() {
    let ask = || ("observe", Value::String("watchtower".to_owned()));
    assert!(system(&[ask(), ("watchtower", Value::Boolean(false))], &[]).is_err());
    let asking = system(&[ask(), ("watchtower_stub", Value::Boolean(true))], &[]).unwrap();
    assert_eq!(asking.observers(), 1);
    assert!(
        asking.fidelity().iter().any(|words| words.contains("each answer")),
        "{:?}",
        asking.fidelity()
    );
    assert_eq!(
        system(&[ask(), ("observe_errors", Value::Boolean(true))], &[]).unwrap().observers(),
        2
    );
}
