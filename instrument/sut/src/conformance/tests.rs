//! Broken sessions, each of which the suite must catch with the right words, and a good one that it must let
//! pass; and systems that are wrong on paper.

mod hostile;
mod mock;
mod systems;

use std::time::Duration;

use model::TxId;

use self::mock::{Flaw, Mock, NoPayload, line_peer};
use super::*;

fn verdict(flaw: Flaw, by_order: bool, in_flight_max: u32) -> Result<(), Breaches> {
    let made = std::cell::Cell::new(0);
    let session = || {
        made.set(made.get() + 1);
        let nonce = made.get();
        let gathers = [
            Flaw::GathersOnlyTheFirst,
            Flaw::GathersFromTheLastTime,
            Flaw::GathersWhatIsNot,
            Flaw::KeepsTheBatchOverReset,
        ];
        let batch = gathers.contains(&flaw).then(Vec::new);
        Box::new(Mock { flaw, by_order, in_flight_max, nonce, batch, ..Mock::default() })
            as Box<dyn Session>
    };
    session_conformance(&Subject::new(&session, &line_peer, &|| Box::new(NoPayload)))
}

/// Claim: sessions that keep the contract pass, answers matched by id or by order, one or many in flight.
#[test]
fn good_sessions_pass() {
    for (by_order, in_flight_max) in
        [(false, 1), (false, 64), (true, 1), (true, 64), (false, u32::MAX)]
    {
        verdict(Flaw::None, by_order, in_flight_max).unwrap();
    }
}

/// Claim: every broken session is caught, in the scenario and with the words that name its flaw.
#[test]
fn every_flaw_is_caught() {
    for (flaw, by_order, scenario, words) in [
        (
            Flaw::WritesNothing,
            false,
            "one transaction at a time",
            "submit wrote nothing for transaction 0: a session that holds a request back hides a queue",
        ),
        (
            Flaw::HoldsTheLast,
            false,
            "one transaction at a time",
            "the peer had nothing to say to what submit wrote for transaction 0: part of the request was held back",
        ),
        (
            Flaw::PipelinesOne,
            true,
            "as many as may be in flight",
            "submit wrote nothing for transaction 1: a session that holds a request back hides a queue",
        ),
        (Flaw::AllowsNothing, false, "one transaction at a time", "allows no transaction at all"),
        (
            Flaw::AnswersTwice,
            false,
            "one transaction at a time",
            "marked stage 0 of transaction 0 twice",
        ),
        (
            Flaw::EndsAfterReaching,
            false,
            "one transaction at a time",
            "marked the end of transaction 0 twice",
        ),
        (
            Flaw::RenamesLaterAttempts,
            false,
            "another attempt",
            "sent the 2. time, on a new connection: answered for transaction 500, which it was never given",
        ),
        (
            Flaw::AnswersForOthers,
            false,
            "one transaction at a time",
            "answered for transaction 1000, which it was never given",
        ),
        (
            Flaw::NeverAnswers,
            false,
            "one transaction at a time",
            "never answered transaction 0, although the peer did (2 bytes)",
        ),
        (
            Flaw::ReadsOneAnswerAReceipt,
            false,
            "as many as may be in flight",
            "never answered transaction 1, although the peer did",
        ),
        (
            Flaw::SaysCommittedAsAnEnd,
            false,
            "one transaction at a time",
            "ended transaction 0 as committed",
        ),
        (
            Flaw::StageBeyondTheLadder,
            false,
            "one transaction at a time",
            "marked stage 3 of transaction 0, but the ladder has 1 stages",
        ),
        (
            Flaw::PanicsOnNonsense,
            false,
            "arbitrary bytes",
            "panicked: index out of bounds; bytes \"",
        ),
        (
            Flaw::ClaimsTooMuch,
            false,
            "one transaction at a time",
            "receive says that it used 3 bytes of 2",
        ),
        (
            Flaw::DependsOnPieces,
            false,
            "an answer in other pieces",
            "found something else when the same 16 bytes came in pieces of 1, 1, 1, 1, 1, 1, 1, 1, …: 0 marks instead of 8 marks",
        ),
        (
            Flaw::ObservesForOthers,
            false,
            "one transaction at a time",
            "observed what transaction 1000 returned, which it was never given",
        ),
        (
            Flaw::ObservesPieces,
            false,
            "an answer in other pieces",
            "16 observations instead of 8 marks and 1 observations",
        ),
        (
            Flaw::DependsOnPiecesOfNonsense,
            false,
            "arbitrary bytes",
            "found something else when the same",
        ),
        (
            Flaw::KeepsUnreadOverReset,
            false,
            "a reset",
            "after a reset with part of an answer read: ",
        ),
        (
            Flaw::KeepsOutstandingOverReset,
            true,
            "a reset",
            "after a reset with transactions outstanding: answered for transaction 0, which it was never given",
        ),
        (
            Flaw::RewritesTheBuffer,
            false,
            "one transaction at a time",
            "submit changed bytes of the output buffer that other calls had written",
        ),
        (
            Flaw::IsNeverReady,
            false,
            "one transaction at a time",
            "is not ready for transactions after its handshake",
        ),
        (
            Flaw::PollsWithoutPause,
            false,
            "the same transactions again",
            "poll wants to ask again at once",
        ),
        (
            Flaw::WritesOtherBytesEachTime,
            true,
            "the same transactions again",
            "wrote other bytes for the same transactions",
        ),
        (
            Flaw::MismatchesAfterAbandon,
            true,
            "an abandoned transaction",
            "after transaction 0 was abandoned with `Keep`: refused what an honest peer answered",
        ),
        (
            Flaw::ClaimsPayload,
            false,
            "one transaction at a time",
            "submit wrote 2 bytes for transaction 0 and says that 1000 of them are payload",
        ),
        (
            Flaw::RefusesHonestAnswers,
            false,
            "one transaction at a time",
            "refused what an honest peer answered as not of the protocol: no",
        ),
        (
            Flaw::MarksAtIdleClose,
            false,
            "a connection that is closed",
            "answered for transaction 0, which it was never given",
        ),
        (
            Flaw::GathersOnlyTheFirst,
            false,
            "transactions that leave together",
            "of 2 that left together: never answered transaction 2, although the peer did",
        ),
        (
            Flaw::GathersFromTheLastTime,
            false,
            "transactions that leave together",
            "although nothing had been submitted since the last time",
        ),
        (
            Flaw::GathersWhatIsNot,
            false,
            "transactions that leave together",
            "gathered wrote 2 bytes although nothing had been submitted since the last time",
        ),
        (
            Flaw::KeepsTheBatchOverReset,
            false,
            "a reset",
            "after a reset with a transaction submitted and not gathered: gathered wrote",
        ),
        (
            Flaw::AbandonsTheWholeBatch,
            false,
            "one of a batch abandoned",
            "after transaction 1 of 0 to 2 that left together was abandoned with `Keep`: never answered",
        ),
    ] {
        let breaches = verdict(flaw, by_order, 64).expect_err(&format!("{flaw:?} passed"));
        let found = breaches.list.iter().find(|breach| breach.scenario == scenario);
        let said = found.map_or("nothing", |breach| breach.words.as_str());
        assert!(said.contains(words), "{flaw:?}: `{scenario}` said: {said}\nall: {breaches}");
    }
}

/// Claim: a session that never returns from bytes that it does not expect is named, and does not hang the test.
#[test]
fn a_loop_is_caught() {
    let session = || {
        Box::new(Mock { flaw: Flaw::LoopsOnNonsense, in_flight_max: 1, ..Mock::default() })
            as Box<dyn Session>
    };
    let words = replay::with_patience(Duration::from_millis(300), || {
        session_conformance(&Subject::new(&session, &line_peer, &|| Box::new(NoPayload)))
    })
    .expect_err("a session that loops passed");
    assert_eq!(words.list.len(), 1, "{words}");
    assert!(words.to_string().contains("it loops; bytes \""), "{words}");
}

/// Claim: an observer that misses what the system sent, or finds it twice, is caught; a good one passes.
#[test]
fn observers() {
    let check = |flaw: Flaw, watched: &[TxId]| {
        let session =
            || Box::new(Mock { flaw, in_flight_max: 1, ..Mock::default() }) as Box<dyn Session>;
        observer_conformance(&session, b"5\n6\n7\n", watched, 1, 0).map_err(|b| b.to_string())
    };
    assert_eq!(check(Flaw::None, &[5, 6, 7]), Ok(()));
    let missed = check(Flaw::NeverAnswers, &[5, 6, 7]).unwrap_err();
    assert!(missed.contains("never answered 3 transactions, although the peer did"), "{missed}");
    let twice = check(Flaw::AnswersTwice, &[5, 6, 7]).unwrap_err();
    assert!(twice.contains("marked stage 0 of transaction 5 twice"), "{twice}");
    let invented = check(Flaw::None, &[5, 6]).unwrap_err();
    assert!(
        invented.contains("answered for transaction 7, which it was never given"),
        "{invented}"
    );
}
