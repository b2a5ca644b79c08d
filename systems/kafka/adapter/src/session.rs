//! Producing on one connection. All records that leave together are one batch in one request; a broker deals with the
//! requests of a connection one after another, so answers come in their order, each with its request's number.
//!
//! With `acks = 0` a broker answers nothing. There a request that produces nothing follows each that does, and its answer
//! acknowledges the batch before it: the broker has dealt with it. That is later, and more, than what a client with
//! `acks = 0` waits for, so what is lost all the same would be lost to such a client, too.

use std::collections::VecDeque;
use std::sync::Arc;

use model::TxId;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction, shown};

use crate::messages::{self, ANSWER_BYTES_MAX};
use crate::records::{Gathering, Producer};
use crate::wire::{Reader, Strange};

/// Transactions that were given up and whose answer may still come, at most; with more the connection is of no use.
const GIVEN_UP_MAX: usize = 4_096;

const NS_PER_MS: i64 = 1_000_000;

/// The part that all sessions of a trial have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) topic: String,
    /// 0: none, 1: the leader, -1: all that are in sync.
    pub(crate) acks: i16,
    pub(crate) is_idempotent: bool,
    pub(crate) in_flight_max: u32,
}

/// The state of a connection.
pub(crate) struct ProduceSession {
    common: Arc<Common>,
    /// The number that a broker gave; `None` until it has.
    producer: Option<Producer>,
    gathering: Gathering,
    /// Requests whose answer is to come: number, and how many of the transactions below are in it.
    requests: VecDeque<(i32, i32)>,
    waiting: VecDeque<TxId>,
    given_up: usize,
    correlation: i32,
    /// Records that were produced, which a broker counts, too.
    sequence: i32,
}

impl ProduceSession {
    pub(crate) fn new(common: Arc<Common>) -> Self {
        let producer = (!common.is_idempotent).then_some(Producer::NONE);
        Self {
            common,
            producer,
            gathering: Gathering::default(),
            requests: VecDeque::new(),
            waiting: VecDeque::new(),
            given_up: 0,
            correlation: 0,
            sequence: 0,
        }
    }

    fn next_correlation(&mut self) -> i32 {
        self.correlation = self.correlation.wrapping_add(1);
        self.correlation
    }

    /// The answer to the oldest request.
    fn answered(
        &mut self,
        correlation: i32,
        body: Reader<'_>,
        marks: &mut Marks,
    ) -> Result<(), ProtocolError> {
        let Some((_, count)) = self.requests.front().filter(|it| it.0 == correlation).copied()
        else {
            return Err(strange("an answer with no request outstanding", body));
        };
        let broken = |Strange(why): Strange| strange(why, body);
        if self.producer.is_none() {
            let (code, id, epoch) = messages::producer_id(body).map_err(broken)?;
            self.requests.pop_front();
            match code {
                0 if id >= 0 => self.producer = Some(Producer { id, epoch }),
                0 => return Err(strange("a producer without a number", body)),
                // A broker that has just started: nothing of the protocol is broken.
                _ => marks.close(),
            }
            return Ok(());
        }
        let produced = messages::produced(body, &self.common.topic).map_err(broken)?;
        let is_asked = produced.code.is_some() == (self.common.acks != 0);
        if !is_asked {
            return Err(strange("an answer of another number of topics", body));
        }
        let code = produced.code.unwrap_or(0);
        let bytes =
            u32::try_from(body.0.len()).expect("bounded") / u32::try_from(count).unwrap_or(1);
        let text = if code == 0 { String::new() } else { messages::words(code) };
        for _ in 0..count {
            let tx = self.waiting.pop_front().expect("as many as the requests say");
            match messages::meaning(code).1 {
                _ if code == 0 => marks.reached(tx, 0, 0, bytes),
                outcome => marks.ended(tx, outcome, shown_code(code), bytes, &text),
            }
        }
        self.requests.pop_front();
        if self.requests.is_empty() {
            self.given_up = 0;
        }
        // Of a broker that does not lead nothing more is to be had, and one that counts has lost count.
        if code != 0 {
            marks.close();
        }
        Ok(())
    }
}

/// A code of the protocol as one of a row, which has no sign.
fn shown_code(code: i16) -> u16 {
    u16::try_from(code).unwrap_or(u16::MAX)
}

fn strange(why: &str, bytes: Reader<'_>) -> ProtocolError {
    ProtocolError(format!("{why}: {:?}", shown(bytes.0)))
}

impl Session for ProduceSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        if self.common.is_idempotent {
            let correlation = self.next_correlation();
            messages::init_producer_id(correlation, out);
            self.requests.push_back((correlation, 0));
        }
    }

    fn is_ready(&self) -> bool {
        self.producer.is_some()
    }

    fn submit(&mut self, tx: &Transaction<'_>, _: &mut Vec<u8>) -> u32 {
        self.gathering.push(tx.given.unix_ns() / NS_PER_MS, tx.payload);
        self.waiting.push_back(tx.id);
        u32::try_from(tx.payload.len()).expect("bounded by the options")
    }

    fn gathered(&mut self, out: &mut Vec<u8>) {
        let count = self.gathering.count();
        if count == 0 {
            return;
        }
        let producer = self.producer.unwrap_or(Producer::NONE);
        let first = if self.common.is_idempotent { self.sequence } else { -1 };
        self.sequence = self.sequence.checked_add(count).unwrap_or(0);
        let (correlation, acks) = (self.next_correlation(), self.common.acks);
        let gathering = &mut self.gathering;
        let batch = |out: &mut Vec<u8>| gathering.write(producer, first, out);
        messages::produce((correlation, acks), &self.common.topic, batch, out);
        let mut asked = correlation;
        if acks == 0 {
            asked = self.next_correlation();
            messages::produce_nothing(asked, out);
        }
        self.requests.push_back((asked, count));
    }

    fn receive(&mut self, bytes: &[u8], _: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if !rest.is_empty() && self.requests.is_empty() {
                marks.unasked(rest.len() as u64);
                return Err(strange("an answer with no request outstanding", Reader(rest)));
            }
            let read = messages::answer(rest, ANSWER_BYTES_MAX);
            let read = read.map_err(|Strange(why)| strange(why, Reader(rest)))?;
            let Some((correlation, body, length)) = read else { return Ok(used) };
            self.answered(correlation, body, marks)?;
            used += length;
            // Nothing after a refusal counts: in other pieces it would not have come.
            if marks.wants_close() {
                return Ok(used);
            }
        }
    }

    /// Its answer will be known by its request.
    fn abandon(&mut self, _: TxId) -> Abandon {
        self.given_up += 1;
        if self.given_up > GIVEN_UP_MAX { Abandon::Close } else { Abandon::Keep }
    }

    fn in_flight_max(&self) -> u32 {
        self.common.in_flight_max
    }

    fn reset(&mut self) {
        *self = Self::new(Arc::clone(&self.common));
    }
}
