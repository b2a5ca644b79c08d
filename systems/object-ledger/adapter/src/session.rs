//! Submissions on one connection to the queue: any number of them in flight, each answered when it is durable there, with its
//! number, in any order. What the queue has acknowledged is `accepted` and no more: the rest of the way is the probe's to see.

use std::collections::VecDeque;

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};

use crate::frames::{self, Answer};

/// The stage that an acknowledgement is.
pub(crate) const ACCEPTED: u8 = 0;

/// Bytes of the body of an acknowledgement, and of a refusal.
const ACCEPTED_BYTES: u32 = 8;
const REFUSED_BYTES: u32 = 1;

/// The state of a connection.
pub(crate) struct QueueSession {
    in_flight_max: u32,
    /// Transactions without an answer, in the order in which they were submitted, which is nearly that of the answers.
    waiting: VecDeque<TxId>,
}

impl QueueSession {
    pub(crate) fn new(in_flight_max: u32) -> Self {
        let room = usize::try_from(in_flight_max).unwrap_or(0);
        Self { in_flight_max, waiting: VecDeque::with_capacity(room) }
    }
}

impl Session for QueueSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        frames::write_submit(out, tx.id, tx.payload);
        self.waiting.push_back(tx.id);
        u32::try_from(tx.payload.len()).expect("bounded by the options")
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        while let Some(answered) = frames::read(&bytes[used..]).map_err(ProtocolError)? {
            let tx = answered.number;
            let Some(place) = self.waiting.iter().position(|waiting| *waiting == tx) else {
                marks.unasked((bytes.len() - used) as u64);
                return Err(ProtocolError(
                    "an answer to a submission that does not wait for one".to_owned(),
                ));
            };
            match answered.answer {
                Answer::Accepted => marks.reached(tx, ACCEPTED, 0, ACCEPTED_BYTES),
                Answer::Refused(reason) => {
                    let (class, words) = refusal(reason);
                    let outcome = Outcome::Rejected(class);
                    marks.ended(tx, outcome, u16::from(reason), REFUSED_BYTES, words);
                }
                Answer::Stands { .. } => {
                    return Err(ProtocolError("an answer to another question".to_owned()));
                }
            }
            self.waiting.remove(place);
            used += answered.used;
        }
        Ok(used)
    }

    /// Its answer still names it if it comes.
    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn reset(&mut self) {
        self.waiting.clear();
    }
}

/// What a refusal means.
const fn refusal(reason: u8) -> (Class, &'static str) {
    match reason {
        1 => (Class::Overloaded, "the queue has no room now"),
        2 => (Class::BadRequest, "the queue calls the submission malformed"),
        3 => (Class::BadRequest, "the transaction has a size that the queue does not take"),
        _ => (Class::Server, "the queue refuses for a reason that is not known"),
    }
}
