//! A session of one line protocol (`ID\n` out, `ID\n` back), its peer, and the ways in which it breaks the contract.

use std::collections::VecDeque;
use std::time::Duration;

use model::{Class, Outcome, TxId};

use super::super::Peer;
use crate::{Abandon, Made, Marks, ProtocolError, Received, Session, Transaction, Workload};

/// The ways to break the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Flaw {
    #[default]
    None,
    WritesNothing,
    HoldsTheLast,
    PipelinesOne,
    AllowsNothing,
    AnswersTwice,
    EndsAfterReaching,
    AnswersForOthers,
    NeverAnswers,
    ReadsOneAnswerAReceipt,
    SaysCommittedAsAnEnd,
    StageBeyondTheLadder,
    PanicsOnNonsense,
    LoopsOnNonsense,
    ClaimsTooMuch,
    DependsOnPieces,
    DependsOnPiecesOfNonsense,
    KeepsUnreadOverReset,
    KeepsOutstandingOverReset,
    RewritesTheBuffer,
    IsNeverReady,
    PollsWithoutPause,
    WritesOtherBytesEachTime,
    MismatchesAfterAbandon,
    ClaimsPayload,
    RefusesHonestAnswers,
    MarksAtIdleClose,
    RenamesLaterAttempts,
    ObservesForOthers,
    ObservesPieces,
    GathersOnlyTheFirst,
    GathersFromTheLastTime,
    GathersWhatIsNot,
    KeepsTheBatchOverReset,
    AbandonsTheWholeBatch,
    SkipsNonsense,
    CommitsOnNonsense,
    KeepsALineWithoutEnd,
    RepeatsNonsense,
    AnswersNonsenseAtLength,
}

/// The longest line.
pub(super) const LINE_BYTES_MAX: usize = 10_000;

/// The line protocol; answers are matched in order where `by_order` is set, else by id.
#[derive(Default)]
pub(super) struct Mock {
    pub(super) flaw: Flaw,
    pub(super) by_order: bool,
    pub(super) in_flight_max: u32,
    pub(super) outstanding: VecDeque<TxId>,
    pub(super) held: Vec<u8>,
    /// Transactions that are to leave together, where that is framed.
    pub(super) batch: Option<Vec<u8>>,
    pub(super) given_up: bool,
    pub(super) kept: Vec<u8>,
    pub(super) calls: u32,
    pub(super) nonce: u64,
}

impl Mock {
    fn answer(&mut self, line: &[u8], marks: &mut Marks) -> Result<(), ProtocolError> {
        let strange = || ProtocolError("not a number".to_owned());
        let text = std::str::from_utf8(line).map_err(|_| strange())?;
        let said: TxId = text.parse().map_err(|_| strange())?;
        let tx =
            if self.by_order { self.outstanding.pop_front().ok_or_else(strange)? } else { said };
        match self.flaw {
            Flaw::NeverAnswers => {}
            Flaw::ObservesForOthers => {
                marks.observed(tx + 1000, line);
                marks.reached(tx, 0, 0, 0);
            }
            Flaw::AbandonsTheWholeBatch if self.given_up => {}
            Flaw::AnswersForOthers => marks.reached(tx + 1000, 0, 0, 0),
            Flaw::SaysCommittedAsAnEnd => marks.ended(tx, Outcome::Committed, 0, 0, ""),
            Flaw::StageBeyondTheLadder => marks.reached(tx, 3, 0, 0),
            Flaw::AnswersTwice => (0..2).for_each(|_| marks.reached(tx, 0, 0, 0)),
            Flaw::EndsAfterReaching => {
                marks.reached(tx, 0, 0, 0);
                marks.ended(tx, Outcome::Rejected(Class::Server), 0, 0, "why");
            }
            _ => marks.reached(tx, 0, 0, 0),
        }
        Ok(())
    }
}

impl Session for Mock {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let renamed = self.flaw == Flaw::RenamesLaterAttempts && tx.attempt > 1;
        let id = if renamed { tx.id + 500 } else { tx.id };
        let mut line = format!("{id}\n").into_bytes();
        self.outstanding.push_back(tx.id);
        match self.flaw {
            Flaw::WritesNothing => return 0,
            Flaw::HoldsTheLast => {
                let split = line.len() - 1;
                out.append(&mut self.held);
                self.held = line.split_off(split);
            }
            Flaw::PipelinesOne if self.outstanding.len() > 1 => return 0,
            Flaw::RewritesTheBuffer => out.clear(),
            Flaw::WritesOtherBytesEachTime => {
                line.splice(0..0, self.nonce.to_string().bytes()).for_each(drop)
            }
            _ => {}
        }
        match &mut self.batch {
            Some(batch) => batch.extend_from_slice(&line),
            None => out.extend_from_slice(&line),
        }
        if self.flaw == Flaw::ClaimsPayload { 1000 } else { 0 }
    }

    fn gathered(&mut self, out: &mut Vec<u8>) {
        let Some(batch) = &mut self.batch else { return };
        match self.flaw {
            Flaw::GathersWhatIsNot if batch.is_empty() => out.extend_from_slice(b"x\n"),
            Flaw::GathersOnlyTheFirst => {
                let end = batch.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                out.extend_from_slice(&batch[..end]);
                batch.clear();
            }
            Flaw::GathersFromTheLastTime => {
                // The last of several stays for the next time.
                let mut ends = batch.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                let first = ends.next().map_or(0, |(at, _)| at + 1);
                let last = ends.next_back().map_or(first, |_| first);
                out.extend(batch.drain(..last));
            }
            _ => out.append(batch),
        }
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        self.calls += 1;
        let bytes = &[self.kept.as_slice(), bytes].concat()[..];
        let is_nonsense = bytes.contains(&0xff);
        match self.flaw {
            Flaw::PanicsOnNonsense if is_nonsense => panic!("index out of bounds"),
            Flaw::SkipsNonsense if is_nonsense => return Ok(bytes.len()),
            Flaw::CommitsOnNonsense if is_nonsense => {
                marks.reached(0, 0, 0, 0);
                return Err(ProtocolError("no".to_owned()));
            }
            Flaw::RepeatsNonsense if is_nonsense => {
                return Err(ProtocolError(format!("what is {}", "no ".repeat(1_000))));
            }
            Flaw::AnswersNonsenseAtLength if is_nonsense => out.extend_from_slice(&[b'?'; 4_096]),
            Flaw::LoopsOnNonsense if is_nonsense => loop {
                std::thread::park();
            },
            Flaw::ClaimsTooMuch => return Ok(bytes.len() + 1),
            Flaw::DependsOnPieces if self.calls > 1 => return Ok(bytes.len()),
            Flaw::DependsOnPiecesOfNonsense if is_nonsense && bytes.len() > 5 => {
                marks.reached(5, 0, 0, 0);
            }
            // What was seen of an answer, however little of it has come.
            Flaw::ObservesPieces => marks.observed(0, bytes),
            Flaw::RefusesHonestAnswers => return Err(ProtocolError("no".to_owned())),
            _ => {}
        }
        let mut used = 0;
        while let Some(length) = bytes[used..].iter().position(|byte| *byte == b'\n') {
            self.answer(&bytes[used..used + length], marks)?;
            used += length + 1;
            if self.flaw == Flaw::ReadsOneAnswerAReceipt {
                break;
            }
        }
        let unread = bytes.len() - used;
        if unread > LINE_BYTES_MAX && self.flaw != Flaw::KeepsALineWithoutEnd {
            return Err(ProtocolError("a line that never ends".to_owned()));
        }
        if matches!(self.flaw, Flaw::KeepsUnreadOverReset) {
            let kept_before = self.kept.len();
            self.kept = bytes[used..].to_vec();
            return Ok(bytes.len() - kept_before);
        }
        Ok(used)
    }

    fn is_ready(&self) -> bool {
        self.flaw != Flaw::IsNeverReady
    }

    fn closed(&mut self, marks: &mut Marks) {
        if self.flaw == Flaw::MarksAtIdleClose {
            marks.reached(0, 0, 0, 0);
        }
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        if self.by_order && self.flaw != Flaw::MismatchesAfterAbandon {
            return Abandon::Close;
        }
        self.outstanding.retain(|known| *known != tx);
        self.given_up = true;
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        if self.flaw == Flaw::AllowsNothing { 0 } else { self.in_flight_max }
    }

    fn poll(&mut self, _: &mut Vec<u8>) -> Option<Duration> {
        (self.flaw == Flaw::PollsWithoutPause).then_some(Duration::ZERO)
    }

    fn reset(&mut self) {
        if self.flaw != Flaw::KeepsOutstandingOverReset {
            self.outstanding.clear();
        }
        if let Some(batch) =
            self.batch.as_mut().filter(|_| self.flaw != Flaw::KeepsTheBatchOverReset)
        {
            batch.clear();
        }
    }
}

/// Says every whole line back.
pub(super) fn line_peer() -> Peer {
    let mut kept = Vec::new();
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let whole = kept.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        kept.drain(..whole).collect()
    })
}

pub(super) struct NoPayload;

impl Workload for NoPayload {
    fn next(&mut self, _: TxId, client: Option<u32>, _: &mut Vec<u8>) -> Made {
        Made::of(0, client)
    }
}
