//! Asking the watchtower: what the published generators do instead of following blocks. Each round asks for the last height
//! and then for all that has no end yet, so many transactions a question. One question is outstanding at a time.
//!
//! What the watchtower says counts. One that calls everything unspent makes a commit of each answer: the published
//! benchmark's latencies, which are of its questions and not of the system.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use atomizer_node::protocol::status::{
    Answer, Status, read_answer, write_best_height_question, write_status_question,
};
use atomizer_node::protocol::{Hash, next_frame};
use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};

use crate::known::Known;
use crate::session::{COMMITTED, not_of_the_protocol};
use crate::wallet::{Maker, Wallet};

/// From one round to the next.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Transactions of a question: about a published window of 3000, so that an answer takes half a megabyte.
pub(crate) const ASKED_MAX: usize = 4096;

/// Bytes of what is answered of one of our transactions, which have two outputs: its name, a count, and of each output what
/// it is (1), a height (8) and its name.
const ANSWER_BYTES: usize = 32 + 8 + 2 * (1 + 8 + 32);

/// The longest answer: its kind, a count and the transactions.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 + 8 + ASKED_MAX * ANSWER_BYTES;

/// Transactions whose end is asked for at most; of more the oldest is forgotten, which the load's timeout ends.
const PENDING_MAX: usize = 1 << 20;

/// A transaction that has no end yet.
struct Pending {
    tx: TxId,
    id: Hash,
    outputs: [Hash; 2],
}

/// What is to be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Nothing,
    Height,
    Statuses,
}

/// A connection to a watchtower.
pub(crate) struct WatchSession {
    known: Arc<Known>,
    /// Says what transactions hold; nothing is asked where there is no load yet.
    maker: Option<Maker>,
    wallet: Option<Wallet>,
    /// Where transactions are sent again: what may yet be committed by another attempt is not over.
    resends: bool,
    /// All below were looked at: they are pending, have ended, or stand in `later`.
    next: TxId,
    /// Numbers that were given out and not sent yet.
    later: Vec<TxId>,
    pending: VecDeque<Pending>,
    asked: Vec<Pending>,
    awaited: Awaited,
    /// Of those that are pending, how many this round has still to ask for.
    round_left: usize,
}

/// What a watchtower's words come to.
enum End {
    Committed,
    Refused(Class, u16, &'static str),
}

impl WatchSession {
    pub(crate) fn new(known: Arc<Known>, wallet: Option<Wallet>, resends: bool) -> Self {
        Self {
            known,
            maker: wallet.map(Maker::new),
            wallet,
            resends,
            next: 0,
            later: Vec::new(),
            pending: VecDeque::new(),
            asked: Vec::new(),
            awaited: Awaited::Nothing,
            round_left: 0,
        }
    }

    /// Takes up what was sent since the last round.
    fn take_up(&mut self) {
        let Some(maker) = &self.maker else { return };
        let (known, pending) = (&self.known, &mut self.pending);
        let count = known.count();
        let mut is_later = |tx: &TxId| {
            let is_told = known.is_told(*tx);
            if is_told {
                let made = maker.transaction(*tx);
                pending.push_back(Pending { tx: *tx, id: made.id, outputs: made.outputs });
            }
            !is_told
        };
        self.later.retain(&mut is_later);
        self.later.extend((self.next..count).filter(&mut is_later));
        self.next = count;
        let over = self.later.len().saturating_sub(PENDING_MAX);
        self.later.drain(..over);
        let over = self.pending.len().saturating_sub(PENDING_MAX);
        self.pending.drain(..over);
    }

    fn ask(&mut self, out: &mut Vec<u8>) {
        let count = self.round_left.min(ASKED_MAX).min(self.pending.len());
        self.round_left -= count;
        if count == 0 {
            self.awaited = Awaited::Nothing;
            return;
        }
        self.asked.extend(self.pending.drain(..count));
        self.awaited = Awaited::Statuses;
        write_status_question(out, self.asked.iter().map(|it| (&it.id, &it.outputs[..])));
    }

    /// What became of one, from what is said of its outputs.
    fn end(&self, tx: TxId, said: impl Iterator<Item = Status>) -> Option<End> {
        let is_good = self.wallet.is_some_and(|wallet| wallet.sort(tx).is_good());
        let is_final = !(self.resends && is_good);
        said.fold(None, |end, status| match (status, &end) {
            (_, Some(End::Committed)) => end,
            (Status::Unspent | Status::Spent, _) => Some(End::Committed),
            (Status::NoHistory, _) => end,
            (Status::InternalError, _) if is_final => {
                Some(End::Refused(Class::Expired, 6, "not taken up, or too late"))
            }
            (Status::Rejected | Status::InvalidInput, _) if is_final => {
                Some(End::Refused(Class::BadRequest, 7, "rejected"))
            }
            _ => end,
        })
    }

    fn hear(&mut self, payload: &[u8], marks: &mut Marks) -> Result<(), ProtocolError> {
        let failed = |why| not_of_the_protocol("an answer", why);
        let answer = read_answer(payload).map_err(failed)?;
        let other = || ProtocolError("an answer to another question".to_owned());
        match (answer, self.awaited) {
            (Answer::BestHeight(height), Awaited::Height) => {
                self.known.saw(height);
                self.take_up();
                self.round_left = self.pending.len();
                Ok(())
            }
            (Answer::Status(answered), Awaited::Statuses) => {
                if answered.count() != self.asked.len() as u64 {
                    return Err(other());
                }
                let is_of = |asked: &Pending, id: &Hash| asked.id == *id;
                if !answered.iter().zip(&self.asked).all(|((id, _), asked)| is_of(asked, id)) {
                    return Err(other());
                }
                let asked = std::mem::take(&mut self.asked);
                for ((_, said), asked) in answered.iter().zip(asked) {
                    match self.end(asked.tx, said.map(|it| it.status)) {
                        None => self.pending.push_back(asked),
                        Some(End::Committed) => marks.reached(asked.tx, COMMITTED, 0, 0),
                        Some(End::Refused(class, code, words)) => {
                            marks.ended(asked.tx, Outcome::Rejected(class), code, 0, words);
                        }
                    }
                }
                Ok(())
            }
            _ => Err(other()),
        }
    }
}

impl Session for WatchSession {
    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        let failed = |why| not_of_the_protocol("an answer", why);
        while let Some(frame) = next_frame(&bytes[used..], ANSWER_BYTES_MAX).map_err(failed)? {
            used += frame.used;
            self.hear(frame.payload, marks)?;
            self.ask(out);
        }
        Ok(used)
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn poll(&mut self, out: &mut Vec<u8>) -> Option<Duration> {
        if self.awaited == Awaited::Nothing {
            self.awaited = Awaited::Height;
            write_best_height_question(out);
        }
        Some(ASK_EVERY)
    }

    /// What was asked is asked again.
    fn reset(&mut self) {
        self.pending.extend(self.asked.drain(..));
        self.awaited = Awaited::Nothing;
        self.round_left = 0;
    }
}

/// Bytes that a session may have to wait for.
#[cfg(test)]
pub(crate) const UNREAD_MAX: usize = atomizer_node::protocol::FRAME_HEADER_BYTES + ANSWER_BYTES_MAX;
