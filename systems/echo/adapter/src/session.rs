//! The frames protocol on one connection. Answers carry ids, so any number may be outstanding and an abandoned
//! transaction leaves the connection usable.

use std::time::Duration;

use echo_node::protocol::{
    self, Answer, BATCH_BYTES_MAX, BATCH_COUNT_MAX, Code, REPLY_BYTES_MAX, Reply, STATUS_IDS_MAX,
    read_reply, write_batch, write_of_client, write_submit, write_subscribe,
};
use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};
use wire::frames::{LENGTH_BYTES, next_frame};

/// More than a submission has beside its payload.
const HEAD_BYTES: usize = 64;

/// How often to ask, where one must.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// What a read returns.
const VALUE_BYTES: u32 = 8;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Transactions go out, and whatever is answered comes back.
    Submit,
    /// The same, and commits are asked for.
    SubmitAndAsk,
    /// Commits of the whole run come.
    Observe,
}

/// The state of a connection.
pub(crate) struct FrameSession {
    run_mark: u64,
    stages: u8,
    in_flight_max: u32,
    purpose: Use,
    /// The node has said that it will tell of every commit.
    is_subscribed: bool,
    /// Outstanding ids, only where they must be asked about.
    unanswered: Vec<TxId>,
    /// Where in `unanswered` the next question begins.
    asked_to: usize,
    /// The open batch, where what leaves together is one frame.
    batch: Option<Open>,
    /// Whether each transaction says whose it is, for a server that keeps each client's order.
    ordered: bool,
}

/// Submissions of a batch that is not closed yet.
#[derive(Default)]
struct Open {
    frames: Vec<u8>,
    count: usize,
}

impl Open {
    fn close(&mut self, out: &mut Vec<u8>) {
        if self.count > 0 {
            write_batch(out, self.count, &self.frames);
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.count = 0;
    }
}

impl FrameSession {
    pub(crate) fn new(
        run_mark: u64,
        stages: u8,
        in_flight_max: u32,
        purpose: Use,
        batches: bool,
    ) -> Self {
        Self {
            run_mark,
            stages,
            in_flight_max,
            purpose,
            is_subscribed: false,
            unanswered: Vec::new(),
            asked_to: 0,
            batch: batches.then(Open::default),
            ordered: false,
        }
    }

    /// The same, with a server that keeps each client's order, or not.
    pub(crate) fn keeping_order(self, ordered: bool) -> Self {
        Self { ordered, ..self }
    }

    /// Whether it has asked for commits and has not been told yet that they will come.
    fn awaits_subscription(&self) -> bool {
        self.purpose == Use::Observe && !self.is_subscribed
    }

    fn answer(&mut self, answer: Answer, marks: &mut Marks) {
        let Answer { code, tx, .. } = answer;
        let number = code as u16;
        let mut refuse = |class: Class, why: &str| {
            marks.ended(tx, Outcome::Rejected(class), number, 0, why);
        };
        match code {
            Code::Accepted if self.stages >= 2 => return marks.reached(tx, 0, number, 0),
            Code::Started if self.stages == 3 => return marks.reached(tx, 1, number, 0),
            // A server with more stages than it is spoken to with.
            Code::Accepted | Code::Started => return,
            Code::Committed => marks.reached(tx, self.stages - 1, number, 0),
            Code::Limited => refuse(Class::Limited, "rate limited"),
            Code::Overloaded => refuse(Class::Overloaded, "queue full"),
            Code::Invalid => refuse(Class::BadRequest, "refused as invalid"),
            Code::Conflict => refuse(Class::Conflict, "not its client's turn on this connection"),
        }
        self.forget(tx);
    }

    /// A read has been served: it is over with what it returned, however commits are told.
    fn value(&mut self, tx: TxId, value: Option<u64>, marks: &mut Marks) {
        match value {
            Some(value) => marks.observed(tx, &value.to_le_bytes()),
            None => marks.observed(tx, &[]),
        }
        marks.reached(tx, self.stages - 1, Code::Committed as u16, VALUE_BYTES);
        self.forget(tx);
    }

    fn forget(&mut self, tx: TxId) {
        if let Some(at) = self.unanswered.iter().position(|known| *known == tx) {
            self.unanswered.swap_remove(at);
        }
    }
}

impl Session for FrameSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        if self.purpose == Use::Observe {
            write_subscribe(out, self.run_mark);
        }
    }

    /// An observer is ready when nothing that is committed from now on can escape it.
    fn is_ready(&self) -> bool {
        self.purpose != Use::Observe || self.is_subscribed
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let kind = u16::try_from(tx.kind).expect("the workload has fewer kinds");
        match &mut self.batch {
            None if self.ordered => {
                write_of_client(out, tx.client, self.run_mark, tx.id, kind, tx.payload);
            }
            None => write_submit(out, self.run_mark, tx.id, kind, tx.payload),
            Some(open) => {
                // What no frame holds goes into two.
                let is_long = open.frames.len() + tx.payload.len() + HEAD_BYTES > BATCH_BYTES_MAX;
                if open.count == BATCH_COUNT_MAX || is_long {
                    open.close(out);
                }
                write_submit(&mut open.frames, self.run_mark, tx.id, kind, tx.payload);
                open.count += 1;
            }
        }
        if self.purpose == Use::SubmitAndAsk {
            self.unanswered.push(tx.id);
        }
        u32::try_from(tx.payload.len()).expect("bounded by the options")
    }

    fn gathered(&mut self, out: &mut Vec<u8>) {
        if let Some(open) = &mut self.batch {
            open.close(out);
        }
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        let strange = |why: &dyn std::fmt::Display| ProtocolError(why.to_string());
        while let Some(frame) = next_frame(&bytes[used..]).map_err(|error| strange(&error))? {
            match read_reply(frame.payload).map_err(|error| strange(&error))? {
                Reply::Answer(answer) => self.answer(answer, marks),
                Reply::Value { tx, value } => self.value(tx, value, marks),
                Reply::Answers(answers) => {
                    answers.iter().for_each(|answer| self.answer(answer, marks));
                }
                Reply::Subscribed { run } if run == self.run_mark && self.awaits_subscription() => {
                    self.is_subscribed = true;
                }
                _ => return Err(strange(&"an answer to a question that was not asked here")),
            }
            used += frame.used;
        }
        // Known before the rest has come: what announces more is not from this server.
        if let Some(length) = bytes[used..].first_chunk::<LENGTH_BYTES>()
            && u32::from_le_bytes(*length) as usize > REPLY_BYTES_MAX
        {
            return Err(strange(&"a frame announces more than any reply has"));
        }
        Ok(used)
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        self.forget(tx);
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    /// Asks about all that are outstanding; where one question cannot hold them, about one part after another.
    fn poll(&mut self, out: &mut Vec<u8>) -> Option<Duration> {
        if self.purpose != Use::SubmitAndAsk {
            return None;
        }
        let count = self.unanswered.len();
        if count > 0 {
            // Answered ones have left the list since, so the next part may begin beyond its end.
            let start = if self.asked_to < count { self.asked_to } else { 0 };
            let end = (start + STATUS_IDS_MAX).min(count);
            self.asked_to = if end == count { 0 } else { end };
            let ids = self.unanswered[start..end].iter().copied();
            protocol::write_status(out, self.run_mark, ids);
        }
        Some(ASK_EVERY)
    }

    fn reset(&mut self) {
        self.is_subscribed = false;
        self.unanswered.clear();
        self.asked_to = 0;
        if let Some(open) = &mut self.batch {
            open.clear();
        }
    }
}
