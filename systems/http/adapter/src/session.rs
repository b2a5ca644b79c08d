//! One HTTP/1.1 connection as a value: prepared requests out, answers in order back. It never follows a
//! redirect, never asks again, and never holds a request back: what a user of a flow does next is said beside his answer.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Class, Outcome, TxId};
use sut::content::digits;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};
use wire::http1::{Asked, Response, ResponseReader};

use crate::expect::Answered;
use crate::flow::Flows;
use crate::flow::walk::{Asking, Walk};
use crate::requests::{ID_PLACE, Requests};
use crate::rules::{COMMITTED, Rules};

/// A request that was sent and not answered.
#[derive(Clone, Copy)]
struct Outstanding {
    tx: TxId,
    asked: Asked,
    expects: Option<u16>,
    /// Whether it is a step of the user that the session holds.
    is_step: bool,
}

/// The state of a connection.
pub(crate) struct HttpSession {
    requests: Arc<Requests>,
    rules: Arc<Rules>,
    reader: ResponseReader,
    /// What was asked and not answered, oldest first: HTTP/1.1 answers in order.
    outstanding: VecDeque<Outstanding>,
    pipeline: u32,
    text: String,
    /// The user whose step is outstanding, where there are flows: one at a time.
    walk: Option<Walk>,
}

impl HttpSession {
    /// A session with at most `pipeline` requests outstanding.
    pub(crate) fn new(requests: Arc<Requests>, rules: Arc<Rules>, pipeline: u32) -> Self {
        let reader = reader(&rules);
        let outstanding = VecDeque::with_capacity(pipeline as usize);
        let text = String::with_capacity(256);
        Self { requests, rules, reader, outstanding, pipeline, text, walk: None }
    }

    /// The same, for users who go through flows.
    pub(crate) fn walking(self, flows: Option<Arc<Flows>>) -> Self {
        assert!(flows.is_none() || self.pipeline == 1, "a connection holds one user at a time");
        Self { walk: flows.map(Walk::new), ..self }
    }

    /// Ends the outstanding step of a user, and says what he does next.
    fn conclude_step(&mut self, at: Outstanding, response: Response, marks: &mut Marks) {
        let Self { walk, reader, rules, text, .. } = self;
        let walk = walk.as_mut().expect("a step was written by it");
        let answered = Answered {
            response,
            reason: reader.reason(),
            body: reader.body(),
            has_body: at.asked != Asked::Head,
            head: reader.kept_head(),
            expects: at.expects,
        };
        walk.end(at.tx, rules, &answered, reader.location(), (text, marks));
        if !response.keep_alive {
            marks.close();
        }
    }

    /// Ends the oldest outstanding transaction with the answer.
    fn conclude(&mut self, response: Response, marks: &mut Marks) -> Result<(), ProtocolError> {
        let Some(&at) = self.outstanding.front() else { return Ok(()) };
        if at.is_step {
            self.outstanding.pop_front();
            self.conclude_step(at, response, marks);
            return Ok(());
        }
        let Outstanding { tx, asked, expects, .. } = at;
        let echo = match &self.rules.correlate {
            None => Echo::Same,
            Some(_) => Echo::of(self.reader.watched(), tx),
        };
        if echo == Echo::Other {
            let name = self.rules.correlate.as_deref().unwrap_or_default();
            return Err(ProtocolError(format!("the answer carries another request's {name}")));
        }
        self.outstanding.pop_front();
        let answered = Answered {
            response,
            reason: self.reader.reason(),
            body: self.reader.body(),
            has_body: asked != Asked::Head,
            head: self.reader.kept_head(),
            expects,
        };
        let bytes_in = bytes_of(response);
        match self.rules.judge(&answered, &mut self.text) {
            Outcome::Committed if echo == Echo::None => {
                let name = self.rules.correlate.as_deref().unwrap_or_default();
                let text = format!("{}: the answer does not echo {name}", response.status);
                let outcome = Outcome::Rejected(Class::Server);
                marks.ended(tx, outcome, response.status, bytes_in, &text);
            }
            Outcome::Committed => marks.reached(tx, COMMITTED, response.status, bytes_in),
            outcome => marks.ended(tx, outcome, response.status, bytes_in, &self.text),
        }
        if !response.keep_alive {
            marks.close();
        }
        Ok(())
    }
}

fn bytes_of(response: Response) -> u32 {
    u32::try_from(response.body_bytes).unwrap_or(u32::MAX)
}

/// A reader of answers, with what the rules ask of their heads.
pub(crate) fn reader(rules: &Rules) -> ResponseReader {
    let mut reader = ResponseReader::new(rules.limits());
    if rules.reads_heads() {
        reader = reader.keeping_heads();
    }
    match &rules.correlate {
        Some(name) => reader.watching(name),
        None => reader,
    }
}

/// Whether an answer says whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    Same,
    /// It carries none, or several.
    None,
    Other,
}

impl Echo {
    pub(crate) fn of(echoed: Option<&[u8]>, tx: TxId) -> Self {
        match echoed {
            None => Self::None,
            Some(echoed) if echoed == digits(tx).as_slice() => Self::Same,
            Some(_) => Self::Other,
        }
    }
}

impl Session for HttpSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        if let Some(walk) = self.walk.as_mut().filter(|_| tx.payload.len() > INDEX_BYTES) {
            let asking = walk.request(tx.payload, tx.id, tx.given.unix_ns(), out);
            let Asking { asked, expects, body_bytes } = asking;
            self.outstanding.push_back(Outstanding { tx: tx.id, asked, expects, is_step: true });
            return body_bytes;
        }
        let prepared = &self.requests.prepared[index(tx)];
        let start = out.len();
        out.extend_from_slice(&prepared.bytes);
        if let Some(at) = prepared.id_at {
            out[start + at..][..ID_PLACE.len()].copy_from_slice(&digits(tx.id));
        }
        let (asked, expects) = (prepared.asked, prepared.expects);
        self.outstanding.push_back(Outstanding { tx: tx.id, asked, expects, is_step: false });
        prepared.body_bytes
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        while used < bytes.len() {
            let Some(&Outstanding { asked, .. }) = self.outstanding.front() else {
                return unasked(&bytes[used..], marks).map(|()| bytes.len());
            };
            let progress = self
                .reader
                .read(&bytes[used..], asked)
                .map_err(|e| ProtocolError(e.to_string()))?;
            used += progress.used;
            let Some(response) = progress.response else { break };
            self.conclude(response, marks)?;
            if marks.wants_close() {
                // What comes behind the last answer has no meaning (RFC 9112 §9.6), and is no good sign.
                marks.unasked((bytes.len() - used) as u64);
                return Ok(bytes.len());
            }
        }
        Ok(used)
    }

    fn closed(&mut self, marks: &mut Marks) {
        if let Ok(Some(response)) = self.reader.closed() {
            // One that is another's answers nothing: what is outstanding ends with the connection.
            let _ = self.conclude(response, marks);
        }
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        // Answers carry no id: with one missing, the next would be taken for it.
        let is_outstanding = self.outstanding.iter().any(|it| it.tx == tx);
        if is_outstanding { Abandon::Close } else { Abandon::Keep }
    }

    fn in_flight_max(&self) -> u32 {
        self.pipeline
    }

    fn reset(&mut self) {
        self.outstanding.clear();
        self.reader.reset();
    }
}

/// The length of a payload that names a request; that of a user is longer.
pub(crate) const INDEX_BYTES: usize = 4;

/// Which request the transaction is. The payload says so where the kind alone does not.
pub(crate) fn index(tx: &Transaction<'_>) -> usize {
    match <[u8; INDEX_BYTES]>::try_from(tx.payload) {
        Ok(index) => u32::from_le_bytes(index) as usize,
        Err(_) => tx.kind as usize,
    }
}

/// Bytes on an idle connection. A server that gives an idle connection up may say so with a 408 (RFC 9110
/// §15.5.9); anything else means that answers can no longer be matched.
fn unasked(bytes: &[u8], marks: &mut Marks) -> Result<(), ProtocolError> {
    if bytes.starts_with(b"HTTP/1.1 408") || bytes.starts_with(b"HTTP/1.0 408") {
        marks.close();
        return Ok(());
    }
    marks.unasked(bytes.len() as u64);
    Err(ProtocolError("the server sent bytes that no request had asked for".to_owned()))
}
