//! Prepared statements on one connection, pipelined: each transaction is as many Bind and Execute as it has statements and
//! one Sync, which commits it, so it is acknowledged by the ReadyForQuery that answers the Sync and by nothing before
//! (PostgreSQL 15 documentation, 55.2.4, *Pipelining*). Answers come in the order of the requests and carry no id.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction, cut};

use crate::messages::{self, Complaint, Message, Strange};
use crate::observing::Observer;
use crate::statements::Statement;
use crate::workload::{Answers, split};

/// SQLSTATE of servers that take no session for now: cannot connect now, too many connections.
const NOT_NOW: [&str; 2] = ["57P03", "53300"];

/// The part that all sessions of a trial have in common.
pub(crate) struct Common {
    /// Parameters of the session's start: who, which database, which isolation.
    pub(crate) parameters: Vec<(&'static str, String)>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) in_flight_max: u32,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The session was asked for.
    Greeted,
    /// It was granted.
    Authenticated,
    /// So many statements are not prepared yet.
    Preparing(usize),
    /// Transactions may be sent.
    Open,
}

/// How far the answer to the first transaction that waits has come.
#[derive(Debug, Default)]
struct Answer {
    is_bound: bool,
    done: usize,
    rows: u32,
    bytes: u32,
    refusal: Option<Class>,
    text: String,
}

/// The state of a connection.
pub(crate) struct PostgresSession {
    common: Arc<Common>,
    phase: Phase,
    /// The transactions whose answers are to come, in order, and how many statements each has.
    waiting: VecDeque<(TxId, usize)>,
    /// Those statements.
    statements: VecDeque<Answers>,
    answer: Answer,
    observer: Observer,
}

impl PostgresSession {
    pub(crate) fn new(common: Arc<Common>) -> Self {
        Self {
            common,
            phase: Phase::Greeted,
            waiting: VecDeque::new(),
            statements: VecDeque::new(),
            answer: Answer::default(),
            observer: Observer::default(),
        }
    }

    /// One on which transactions may be sent at once.
    pub(crate) fn for_fuzzing() -> Self {
        let common = Common { parameters: Vec::new(), statements: Vec::new(), in_flight_max: 64 };
        Self { phase: Phase::Open, ..Self::new(Arc::new(common)) }
    }

    fn handshake(
        &mut self,
        message: Message<'_>,
        out: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<(), ProtocolError> {
        self.phase = match (self.phase, message) {
            (phase, Message::Aside) => phase,
            // A server that starts, recovers or is full says so and closes: nothing of the protocol is broken.
            (phase, Message::Error(Complaint { code, .. })) if NOT_NOW.contains(&code) => {
                marks.close();
                phase
            }
            (_, Message::Error(complaint)) => return Err(refused(&complaint)),
            (Phase::Greeted, Message::Authentication(0)) => Phase::Authenticated,
            (Phase::Greeted, Message::Authentication(_)) => {
                let words = "expected a server that trusts this login, got a demand for a password; set `trust` in \
                             its pg_hba.conf";
                return Err(ProtocolError(words.to_owned()));
            }
            (Phase::Authenticated, Message::Ready(b'I')) => {
                for Statement { name, sql, types } in &self.common.statements {
                    messages::parse(name, sql, types, out);
                }
                messages::sync(out);
                Phase::Preparing(self.common.statements.len())
            }
            (Phase::Preparing(left @ 1..), Message::ParseComplete) => Phase::Preparing(left - 1),
            (Phase::Preparing(0), Message::Ready(b'I')) => Phase::Open,
            (_, other) => return Err(strange(&format!("while the session begins: {other:?}"))),
        };
        Ok(())
    }

    fn answered(&mut self, message: Message<'_>, marks: &mut Marks) -> Result<(), ProtocolError> {
        let Some((tx, count)) = self.waiting.front().copied() else {
            return Err(strange(&format!("an answer with no request outstanding: {message:?}")));
        };
        let statement = self.statements.get(self.answer.done).copied();
        let is_due = self.answer.refusal.is_none() && self.answer.done < count;
        let answer = &mut self.answer;
        match (message, statement) {
            (Message::BindComplete, Some(_)) if is_due && !answer.is_bound => {
                answer.is_bound = true;
            }
            (Message::Row(row), Some(of)) if is_due && answer.is_bound => {
                let value = row.only();
                if !self.observer.row(of, answer.rows, value) {
                    return Err(strange("a row that was not asked for"));
                }
                answer.rows += 1;
                let length = u32::try_from(value.map_or(0, <[u8]>::len)).unwrap_or(u32::MAX);
                answer.bytes = answer.bytes.saturating_add(length);
            }
            (Message::Complete(tag), Some(of)) if is_due && answer.is_bound => {
                if !tag.starts_with(word(of)) {
                    let tag = String::from_utf8_lossy(tag);
                    return Err(strange(&format!("another statement's tag: {}", cut(&tag))));
                }
                self.observer.done(of, tag);
                answer.is_bound = false;
                answer.rows = 0;
                answer.done += 1;
            }
            (Message::Error(complaint), _) if answer.refusal.is_none() => {
                answer.refusal = Some(class(complaint.code));
                answer.text.clear();
                answer.text.extend([complaint.code, " ", cut(complaint.text)]);
            }
            (Message::Ready(b'I'), _) => return self.ready(tx, count, marks),
            (other, _) => {
                return Err(strange(&format!("not the answer to this statement: {other:?}")));
            }
        }
        Ok(())
    }

    /// The transaction has ended: committed if nothing was said against it and all of it was answered.
    fn ready(&mut self, tx: TxId, count: usize, marks: &mut Marks) -> Result<(), ProtocolError> {
        let answer = &mut self.answer;
        match answer.refusal.take() {
            Some(class) => {
                marks.ended(tx, Outcome::Rejected(class), 0, answer.bytes, &answer.text);
            }
            None if answer.done == count => {
                marks.reached(tx, 0, 0, answer.bytes);
                self.observer.committed(tx, marks);
            }
            None => return Err(strange("the end of a transaction of which a part is unanswered")),
        }
        (answer.is_bound, answer.done, answer.rows, answer.bytes) = (false, 0, 0, 0);
        self.observer.begin();
        self.waiting.pop_front();
        self.statements.drain(..count);
        Ok(())
    }
}

/// How the tag of a statement begins.
const fn word(of: Answers) -> &'static [u8] {
    match of {
        Answers::Nothing => b"INSERT 0 1",
        Answers::Moved => b"UPDATE ",
        Answers::List(_) | Answers::Balances => b"SELECT ",
    }
}

/// The meaning of an error of the server, by its SQLSTATE (PostgreSQL 15 documentation, appendix A).
fn class(code: &str) -> Class {
    match code.get(..2).unwrap_or_default() {
        // Serialization failure, deadlock; an integrity constraint.
        "40" | "23" => Class::Conflict,
        // Insufficient resources; object not in prerequisite state (a lock that was not to be waited for).
        "53" | "55" => Class::Overloaded,
        // Data, syntax, access rules, no such database.
        "22" | "42" | "28" | "3D" => Class::BadRequest,
        _ if code == "57P03" => Class::Overloaded,
        _ => Class::Server,
    }
}

fn refused(complaint: &Complaint<'_>) -> ProtocolError {
    let Complaint { severity, code, text } = complaint;
    ProtocolError(format!("the server ends the session: {severity} {code} {}", cut(text)))
}

fn strange(why: &str) -> ProtocolError {
    ProtocolError(cut(why).to_owned())
}

impl Session for PostgresSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        let parameters: Vec<(&str, &str)> =
            self.common.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        messages::startup(&parameters, out);
    }

    fn is_ready(&self) -> bool {
        self.phase == Phase::Open
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let before = self.statements.len();
        let wire = match split(tx.payload) {
            Some((statements, wire)) => {
                self.statements.extend(statements);
                wire
            }
            // Bytes of a test.
            None => {
                self.statements.push_back(Answers::Nothing);
                tx.payload
            }
        };
        out.extend_from_slice(wire);
        self.waiting.push_back((tx.id, self.statements.len() - before));
        u32::try_from(wire.len()).expect("bounded by the options")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let is_idle = self.phase == Phase::Open && self.waiting.is_empty();
            let unasked = |error: ProtocolError, marks: &mut Marks| {
                if is_idle {
                    marks.unasked(rest.len() as u64);
                }
                error
            };
            let read = messages::message(rest);
            let read = read.map_err(|Strange(why)| unasked(strange(&why), marks))?;
            let Some((message, length)) = read else { break };
            if self.phase != Phase::Open {
                self.handshake(message, out, marks)?;
            } else if message != Message::Aside {
                if let Message::Error(complaint) = message {
                    if complaint.severity != "ERROR" {
                        // It ends the session, which is no breach of the protocol: whether the transactions that wait for
                        // their answers had their effect is not said.
                        marks.close();
                        return Ok(bytes.len());
                    }
                    if is_idle {
                        return Err(unasked(refused(&complaint), marks));
                    }
                }
                self.answered(message, marks).map_err(|error| unasked(error, marks))?;
            }
            used += length;
        }
        Ok(used)
    }

    /// Its answer still comes in its turn.
    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.common.in_flight_max
    }

    fn reset(&mut self) {
        self.phase = Phase::Greeted;
        self.waiting.clear();
        self.statements.clear();
        self.answer = Answer::default();
        self.observer.reset();
    }
}
