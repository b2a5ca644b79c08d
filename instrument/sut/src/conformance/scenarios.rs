//! Scenarios for a session, one function each, on connections of its own. A scenario ends at
//! its first breach and says it in one sentence.

use model::TxId;

use super::Subject;
use super::line::Line;
use super::replay::{self, Recording};
use crate::Abandon;

/// Nothing is tried with a session that fails here: what comes after hands it nonsense too, and without a
/// thread of its own to hang.
pub(super) const ARBITRARY_BYTES: &str = "arbitrary bytes";

/// Transactions of one flush.
pub(super) const BATCH: &str = "transactions that leave together";

type Scenario = fn(&Subject<'_>) -> Result<(), String>;

/// Every scenario, in the order that finds the plainest breach first.
pub(super) const ALL: &[(&str, Scenario)] = &[
    ("one transaction at a time", one_at_a_time),
    ("as many as may be in flight", full_window),
    (BATCH, batch),
    ("one of a batch abandoned", abandoned_in_batch),
    ("the same transactions again", same_bytes),
    ("an answer in other pieces", other_pieces),
    ("an abandoned transaction", abandoned),
    ("a connection that is closed", closed),
    (ARBITRARY_BYTES, arbitrary_bytes),
    ("a reset", reset),
    ("another attempt", another_attempt),
];

/// Transactions of the scenarios that go one by one.
const ROUNDS: TxId = 20;

fn one_at_a_time(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    line.window()?;
    one_by_one(&mut line, subject, 0)
}

/// Each transaction is settled before the next one is submitted; a connection that wants to close is replaced.
fn one_by_one(line: &mut Line, subject: &Subject<'_>, first: TxId) -> Result<(), String> {
    for tx in first..first + ROUNDS {
        let request = line.submit(tx)?;
        let answered = line.exchange(request)?;
        line.poll_until_settled(tx)?;
        if !line.judge.is_settled(tx) {
            return Err(unsettled(tx, answered));
        }
        if line.is_closing {
            line.reopen((subject.peer)())?;
        }
    }
    Ok(())
}

fn unsettled(tx: TxId, answered: usize) -> String {
    if answered == 0 {
        return format!(
            "the peer had nothing to say to what submit wrote for transaction {tx}: part of the request was held back (or the peer of this test does not know the protocol)"
        );
    }
    format!("never answered transaction {tx}, although the peer did ({answered} bytes)")
}

fn full_window(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    let window = TxId::from(line.window()?);
    for round in 0..3 {
        let ids = round * window..(round + 1) * window;
        let mut requests = Vec::new();
        for tx in ids.clone() {
            requests.extend(line.submit(tx)?);
        }
        let answered = line.exchange(requests)?;
        for tx in ids {
            line.poll_until_settled(tx)?;
            if line.is_closing {
                return Ok(());
            }
            if !line.judge.is_settled(tx) {
                return Err(format!("with {window} in flight: {}", unsettled(tx, answered)));
            }
        }
        if line.judge.outstanding() != 0 {
            return Err("left transactions unsettled".to_owned());
        }
    }
    Ok(())
}

/// Whatever leaves together, all of it is in the bytes: an honest peer answers each, and each is settled; and nothing
/// is written where nothing was submitted.
fn batch(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    line.gather_nothing()?;
    let window = TxId::from(line.window()?);
    let mut first = 0;
    for size in [1, 2, 7, window].into_iter().filter(|size| *size <= window) {
        let ids = first..first + size;
        first += size;
        let request = line.submit_together(ids.clone())?;
        let answered = line.exchange(request)?;
        line.gather_nothing()?;
        for tx in ids {
            line.poll_until_settled(tx)?;
            if line.is_closing {
                return Ok(());
            }
            if !line.judge.is_settled(tx) {
                return Err(format!("of {size} that left together: {}", unsettled(tx, answered)));
            }
        }
    }
    Ok(())
}

/// After [`Abandon::Keep`] of one, its batch settles the others, and the next batch is none the worse for it.
fn abandoned_in_batch(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    if line.window()? < 6 {
        return Ok(());
    }
    let request = line.submit_together(0..3)?;
    if line.abandon(1) == Abandon::Close {
        return Ok(());
    }
    let said = "after transaction 1 of 0 to 2 that left together was abandoned with `Keep`";
    let say = |words: String| format!("{said}: {words}");
    let next = line.submit_together(3..5).map_err(say)?;
    let answered = line.exchange([request, next].concat()).map_err(say)?;
    for tx in [0, 2, 3, 4] {
        line.poll_until_settled(tx)?;
        if !line.is_closing && !line.judge.is_settled(tx) {
            return Err(say(unsettled(tx, answered)));
        }
    }
    Ok(())
}

fn same_bytes(subject: &Subject<'_>) -> Result<(), String> {
    let first = Recording::make(subject)?;
    let second = Recording::make(subject)?;
    if first.requests == second.requests {
        return Ok(());
    }
    Err("wrote other bytes for the same transactions on a like connection; same seed must give same bytes"
        .to_owned())
}

fn other_pieces(subject: &Subject<'_>) -> Result<(), String> {
    replay::pieces(subject, &Recording::make(subject)?)
}

fn arbitrary_bytes(subject: &Subject<'_>) -> Result<(), String> {
    replay::arbitrary(subject, &Recording::make(subject)?)
}

/// After [`Abandon::Keep`] the answers of others must still find their way, the late one included.
fn abandoned(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    let lost = line.submit(0)?;
    if line.abandon(0) == Abandon::Close {
        return Ok(());
    }
    let next = line.submit(1)?;
    let said = "after transaction 0 was abandoned with `Keep`";
    let answered =
        line.exchange([lost, next].concat()).map_err(|words| format!("{said}: {words}"))?;
    line.poll_until_settled(1)?;
    if line.is_closing || line.judge.is_settled(1) {
        return Ok(());
    }
    Err(format!("{said}: {}", unsettled(1, answered)))
}

fn closed(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    if line.closed()? > 0 {
        return Err("found marks in the end of an idle connection".to_owned());
    }
    let mut line = Line::open(subject)?;
    let request = line.submit(0)?;
    let answer = line.ask_peer(&request);
    line.receive(&answer[..answer.len() / 2])?;
    line.closed()?;
    Ok(())
}

/// A reset session must be as a new one, whatever was outstanding, half read or wrong before.
fn reset(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    let window = TxId::from(line.window()?.min(8));
    for upset in [Upset::Outstanding, Upset::Ungathered, Upset::HalfAnAnswer, Upset::Nonsense] {
        let mut requests = Vec::new();
        for tx in 0..window {
            requests.extend(line.submit(tx)?);
        }
        let answer = line.ask_peer(&requests);
        match upset {
            Upset::Outstanding => {}
            Upset::Ungathered => {
                let after = TxId::from(line.window()?);
                if window < after {
                    line.submit_only(window)?;
                }
            }
            Upset::HalfAnAnswer => {
                // All but the last byte: the end of a stream never lies between two answers.
                line.receive(&answer[..answer.len().saturating_sub(1)])?;
            }
            Upset::Nonsense => {
                // What it says to nonsense is another scenario's business.
                let _ = line.receive(&[0xff; 64]);
            }
        }
        let after = |words: String| format!("after a reset with {}: {words}", upset.words());
        line.reopen((subject.peer)()).map_err(after)?;
        line.gather_nothing().map_err(after)?;
        one_by_one(&mut line, subject, 1_000_000).map_err(after)?;
    }
    Ok(())
}

/// A transaction that is resent after its connection was lost is the same one, whatever its number of attempts.
fn another_attempt(subject: &Subject<'_>) -> Result<(), String> {
    let mut line = Line::open(subject)?;
    line.window()?;
    line.submit(0)?;
    for attempt in 2..=3 {
        let said =
            |words: String| format!("sent the {attempt}. time, on a new connection: {words}");
        line.reopen((subject.peer)()).map_err(said)?;
        let request = line.attempt(0, attempt).map_err(said)?;
        let answered = line.exchange(request).map_err(said)?;
        line.poll_until_settled(0).map_err(said)?;
        if !line.judge.is_settled(0) {
            return Err(said(unsettled(0, answered)));
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Upset {
    Outstanding,
    Ungathered,
    HalfAnAnswer,
    Nonsense,
}

impl Upset {
    const fn words(self) -> &'static str {
        match self {
            Self::Outstanding => "transactions outstanding",
            Self::Ungathered => "a transaction submitted and not gathered",
            Self::HalfAnAnswer => "part of an answer read",
            Self::Nonsense => "nonsense received",
        }
    }
}
