//! One connection of the suite: a session and its peer, driven as the engine drives them, every mark judged as
//! it comes. It never repairs what a session did wrong; the first breach ends the scenario.

use std::collections::BTreeMap;

use model::{Outcome, TxId};

use super::{Peer, Subject};
use crate::{Abandon, Made, Mark, Marks, Session, Transaction, Workload};

/// The content of an output buffer before a session may append to it: requests of other calls of the same turn.
const BEFORE: &[u8] = b"written before";

/// Rounds of question and answer that may pass before something must have happened.
const ROUNDS_MAX: u32 = 64;

/// The state of a transaction that the session was given.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    reached: u64,
    is_settled: bool,
    is_abandoned: bool,
}

/// The judge of marks: which transactions were given, and what was said of them.
#[derive(Debug)]
pub(super) struct Judge {
    given: BTreeMap<TxId, Given>,
    stages: usize,
    settled_stage: u8,
}

impl Judge {
    pub(super) fn new(stages: usize, settled_stage: u8) -> Self {
        Self { given: BTreeMap::new(), stages, settled_stage }
    }

    pub(super) fn give(&mut self, tx: TxId) {
        self.given.insert(tx, Given::default());
    }

    pub(super) fn is_settled(&self, tx: TxId) -> bool {
        self.given.get(&tx).is_some_and(|given| given.is_settled)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.given.values().filter(|given| !given.is_settled && !given.is_abandoned).count()
    }

    /// Judges one observation.
    pub(super) fn observation(&self, tx: TxId) -> Result<(), String> {
        if self.given.contains_key(&tx) {
            return Ok(());
        }
        Err(format!("observed what transaction {tx} returned, which it was never given"))
    }

    /// Judges one mark.
    pub(super) fn mark(&mut self, mark: &Mark) -> Result<(), String> {
        let (Mark::Reached { tx, .. } | Mark::Ended { tx, .. }) = *mark;
        let Some(given) = self.given.get_mut(&tx) else {
            return Err(format!("answered for transaction {tx}, which it was never given"));
        };
        match *mark {
            Mark::Reached { stage, .. } => {
                if usize::from(stage) >= self.stages {
                    return Err(format!(
                        "marked stage {stage} of transaction {tx}, but the ladder has {} stages, counted from 0",
                        self.stages
                    ));
                }
                if given.reached >> stage & 1 == 1 {
                    return Err(format!("marked stage {stage} of transaction {tx} twice"));
                }
                if given.is_settled {
                    return Err(format!(
                        "marked stage {stage} of transaction {tx} after it had ended"
                    ));
                }
                given.reached |= 1 << stage;
                given.is_settled = stage >= self.settled_stage;
            }
            Mark::Ended { answer, .. } => {
                if given.is_settled {
                    return Err(format!("marked the end of transaction {tx} twice"));
                }
                if matches!(answer.outcome, Outcome::Committed | Outcome::Shed) {
                    return Err(format!(
                        "ended transaction {tx} as {}; reaching a stage says committed, and only the engine sheds",
                        answer.outcome
                    ));
                }
                given.is_settled = true;
            }
        }
        Ok(())
    }
}

/// A session on a connection.
pub(super) struct Line {
    session: Box<dyn Session>,
    peer: Peer,
    workload: Box<dyn Workload>,
    pub(super) judge: Judge,
    /// Everything that the peer has said.
    pub(super) heard: Vec<u8>,
    unread: Vec<u8>,
    payload: Vec<u8>,
    made: Made,
    marks: Marks,
    pub(super) is_closing: bool,
}

impl Line {
    /// A new connection, opened and ready for transactions.
    pub(super) fn open(subject: &Subject<'_>) -> Result<Self, String> {
        let mut line = Self {
            session: (subject.session)(),
            peer: (subject.peer)(),
            workload: (subject.workload)(),
            judge: Judge::new(subject.stages, subject.settled_stage),
            heard: Vec::new(),
            unread: Vec::new(),
            payload: Vec::new(),
            made: Made::of(0, None),
            marks: Marks::default(),
            is_closing: false,
        };
        line.shake_hands()?;
        Ok(line)
    }

    /// The engine's way from one connection to the next: the same session, another peer.
    pub(super) fn reopen(&mut self, peer: Peer) -> Result<(), String> {
        self.session.reset();
        self.peer = peer;
        self.unread.clear();
        self.judge.given.clear();
        self.is_closing = false;
        self.shake_hands()
    }

    /// How many transactions may be outstanding, as far as the suite tries.
    pub(super) fn window(&self) -> Result<u32, String> {
        match self.session.in_flight_max() {
            0 => Err("allows no transaction at all: `in_flight_max` is 0".to_owned()),
            max => Ok(max.min(super::IN_FLIGHT_TRIED_MAX)),
        }
    }

    /// Submits the transaction `tx`, alone, and gives the bytes that the session made of it.
    pub(super) fn submit(&mut self, tx: TxId) -> Result<Vec<u8>, String> {
        self.submit_together(tx..tx + 1)
    }

    /// Submits transactions that leave together and gives the bytes that the session made of them.
    pub(super) fn submit_together(
        &mut self,
        ids: std::ops::Range<TxId>,
    ) -> Result<Vec<u8>, String> {
        let mut out = BEFORE.to_vec();
        let mut claimed_all = 0;
        for tx in ids.clone() {
            let length = out.len();
            claimed_all += usize::try_from(self.encode(tx, &mut out)?).unwrap_or(usize::MAX);
            let is_alone = ids.end - ids.start == 1;
            if is_alone {
                self.session.gathered(&mut out);
                let written = out.len().saturating_sub(length);
                if written == 0 {
                    return Err(format!(
                        "submit wrote nothing for transaction {tx}: a session that holds a request back hides a queue"
                    ));
                }
            }
        }
        if ids.end - ids.start != 1 {
            self.session.gathered(&mut out);
        }
        let bytes = appended(out, "submit")?;
        if bytes.is_empty() {
            return Err(format!(
                "wrote nothing for transactions {ids:?} and the end of their batch: a session that holds requests back hides a queue"
            ));
        }
        if claimed_all > bytes.len() {
            return Err(format!(
                "submit wrote {} bytes for transaction {} and says that {claimed_all} of them are payload",
                bytes.len(),
                ids.start
            ));
        }
        self.gather_nothing()?;
        Ok(bytes)
    }

    /// Has the session encode a new transaction after the content of `out`.
    fn encode(&mut self, tx: TxId, out: &mut Vec<u8>) -> Result<u32, String> {
        self.payload.clear();
        self.made = self.workload.next(tx, None, &mut self.payload);
        self.encode_again(tx, 1, out)
    }

    fn encode_again(&mut self, tx: TxId, attempt: u8, out: &mut Vec<u8>) -> Result<u32, String> {
        self.judge.give(tx);
        let Made { kind, client } = self.made;
        let transaction =
            Transaction { client, attempt, ..Transaction::new(tx, kind, &self.payload) };
        let before = out.clone();
        let bytes_out = self.session.submit(&transaction, out);
        if out.starts_with(&before) { Ok(bytes_out) } else { Err(changed("submit")) }
    }

    /// Submits the transaction that was submitted last once more, as the engine does where it resends.
    pub(super) fn attempt(&mut self, tx: TxId, attempt: u8) -> Result<Vec<u8>, String> {
        let mut out = BEFORE.to_vec();
        self.encode_again(tx, attempt, &mut out)?;
        self.session.gathered(&mut out);
        appended(out, "submit")
    }

    /// Submits without saying that all was gathered, as when the connection is lost in between.
    pub(super) fn submit_only(&mut self, tx: TxId) -> Result<(), String> {
        self.encode(tx, &mut BEFORE.to_vec()).map(drop)
    }

    /// Says that all was gathered when nothing was submitted.
    pub(super) fn gather_nothing(&mut self) -> Result<(), String> {
        let mut out = BEFORE.to_vec();
        self.session.gathered(&mut out);
        match appended(out, "gathered")?.len() {
            0 => Ok(()),
            count => Err(format!(
                "gathered wrote {count} bytes although nothing had been submitted since the last time"
            )),
        }
    }

    /// Hands bytes to the peer and its answer to the session, and so on until both are quiet. Gives how many
    /// bytes the peer had to say.
    pub(super) fn exchange(&mut self, mut request: Vec<u8>) -> Result<usize, String> {
        let mut answered = 0;
        for _ in 0..ROUNDS_MAX {
            let answer = (self.peer)(&request);
            answered += answer.len();
            if answer.is_empty() {
                return Ok(answered);
            }
            request = self.receive(&answer)?;
            if request.is_empty() || self.is_closing {
                return Ok(answered);
            }
        }
        Err(format!(
            "wrote an answer to each of {ROUNDS_MAX} answers: it and its peer would never be quiet"
        ))
    }

    /// Asks, as the engine does for protocols that must, until `tx` is settled or nothing more comes of it.
    pub(super) fn poll_until_settled(&mut self, tx: TxId) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            if self.judge.is_settled(tx) || self.is_closing {
                return Ok(());
            }
            let Some(question) = self.poll()? else { return Ok(()) };
            self.exchange(question)?;
        }
        Ok(())
    }

    /// The session's question, if its protocol must ask.
    pub(super) fn poll(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut out = BEFORE.to_vec();
        let next = self.session.poll(&mut out);
        let question = appended(out, "poll")?;
        if next.is_some_and(|after| after.is_zero()) {
            return Err(
                "poll wants to ask again at once: the engine would do nothing else".to_owned()
            );
        }
        Ok(next.map(|_| question))
    }

    /// Hands bytes to the session; judges what it found and gives what it wrote.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.heard.extend_from_slice(bytes);
        self.unread.extend_from_slice(bytes);
        let mut out = BEFORE.to_vec();
        self.marks.clear();
        let result = self.session.receive(&self.unread, &mut out, &mut self.marks);
        let used = result.map_err(|error| {
            format!("refused what an honest peer answered as not of the protocol: {error}")
        })?;
        if used > self.unread.len() {
            return Err(claims_too_much(used, self.unread.len()));
        }
        self.unread.drain(..used);
        self.judge_marks()?;
        appended(out, "receive")
    }

    /// The peer closes its side.
    pub(super) fn closed(&mut self) -> Result<usize, String> {
        self.marks.clear();
        self.session.closed(&mut self.marks);
        self.judge_marks()?;
        Ok(self.marks.list().len())
    }

    /// Gives a transaction up.
    pub(super) fn abandon(&mut self, tx: TxId) -> Abandon {
        if let Some(given) = self.judge.given.get_mut(&tx) {
            given.is_abandoned = true;
        }
        self.session.abandon(tx)
    }

    /// The peer's answer to these bytes, without handing it to the session.
    pub(super) fn ask_peer(&mut self, request: &[u8]) -> Vec<u8> {
        (self.peer)(request)
    }

    fn judge_marks(&mut self) -> Result<(), String> {
        self.is_closing |= self.marks.wants_close();
        let judge = &mut self.judge;
        self.marks.observations().iter().try_for_each(|one| judge.observation(one.tx))?;
        self.marks.list().iter().try_for_each(|mark| judge.mark(mark))
    }

    fn shake_hands(&mut self) -> Result<(), String> {
        let mut out = BEFORE.to_vec();
        self.session.open(&mut out);
        let greeting = appended(out, "open")?;
        if !greeting.is_empty() {
            self.exchange(greeting)?;
        }
        if self.session.is_ready() {
            return Ok(());
        }
        Err("is not ready for transactions after its handshake with the peer".to_owned())
    }
}

/// The words for a session that takes more than there is.
pub(super) fn claims_too_much(used: usize, given: usize) -> String {
    format!("receive says that it used {used} bytes of {given}")
}

/// The bytes that a call added to its output buffer.
fn appended(mut out: Vec<u8>, call: &str) -> Result<Vec<u8>, String> {
    if !out.starts_with(BEFORE) {
        return Err(changed(call));
    }
    Ok(out.split_off(BEFORE.len()))
}

fn changed(call: &str) -> String {
    format!(
        "{call} changed bytes of the output buffer that other calls had written; it may only append"
    )
}
