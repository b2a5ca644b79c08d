//! Publishing on one connection. Each message has a subject of its own for its answer, which carries the transaction's
//! number, so answers may come in any order and an abandoned transaction leaves the connection usable.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction, content, cut, shown};

use crate::messages::{self, Ack, Delivered, Said, Strange};

/// Transactions that were given up and whose answer may still come, at most; when there are more the oldest is forgotten,
/// and an answer to it would be one that nothing asked for.
const GIVEN_UP_MAX: usize = 4_096;

/// The part that all sessions of a trial have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) run_mark: u64,
    pub(crate) stream: String,
    pub(crate) subject: String,
    pub(crate) in_flight_max: u32,
    /// Whether messages carry an id by which the stream drops duplicates.
    pub(crate) has_ids: bool,
}

/// The state of a connection.
pub(crate) struct PublishSession {
    common: Arc<Common>,
    /// Which connection it is, in a word.
    name: String,
    /// Where its answers come: another in each life, since servers deliver what is under way to whoever listens.
    inbox: String,
    life: u32,
    is_open: bool,
    outstanding: VecDeque<TxId>,
    given_up: VecDeque<TxId>,
}

impl PublishSession {
    pub(crate) fn new(common: Arc<Common>, name: &str) -> Self {
        let inbox = inbox(common.run_mark, name, 0);
        Self {
            common,
            name: name.to_owned(),
            inbox,
            life: 0,
            is_open: false,
            outstanding: VecDeque::new(),
            given_up: VecDeque::new(),
        }
    }

    fn answered(&mut self, message: Delivered<'_>, marks: &mut Marks) -> Result<(), ProtocolError> {
        let digits = message.subject.strip_prefix(self.inbox.as_bytes());
        let tx = digits.and_then(content::number);
        let place = tx.and_then(|tx| self.outstanding.iter().position(|other| *other == tx));
        let late = tx.and_then(|tx| self.given_up.iter().position(|other| *other == tx));
        let known = tx.filter(|_| place.is_some() || late.is_some());
        let Some(tx) = known else {
            return Err(strange("an answer with no request outstanding", message.subject));
        };
        let bytes = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
        match (message.status(), messages::ack(message.payload, &self.common.stream)) {
            (Some(503), _) => {
                let text = "503 no responders: no server leads the stream";
                marks.ended(tx, Outcome::Rejected(Class::Server), 503, bytes, text);
            }
            (None, Some(Ack::Stored { is_duplicate, .. })) => {
                marks.reached(tx, 0, u16::from(is_duplicate), bytes);
            }
            (None, Some(Ack::Refused { code, text })) => {
                let class = if code < 500 { Class::BadRequest } else { Class::Server };
                marks.ended(tx, Outcome::Rejected(class), code, bytes, cut(text));
            }
            (_, None) | (Some(_), _) => {
                return Err(strange("no acknowledgement of this stream", message.payload));
            }
        }
        if let Some(place) = place {
            self.outstanding.remove(place);
        } else if let Some(place) = late {
            self.given_up.remove(place);
        }
        Ok(())
    }
}

/// Where the answers of a connection come.
fn inbox(run_mark: u64, name: &str, life: u32) -> String {
    format!("_INBOX.{run_mark:016x}.{name}.{life}.")
}

fn strange(why: &str, bytes: &[u8]) -> ProtocolError {
    ProtocolError(format!("{why}: {:?}", shown(bytes)))
}

impl Session for PublishSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        messages::connect(out);
        messages::subscribe(&self.inbox, out);
        out.extend_from_slice(b"PING\r\n");
    }

    fn is_ready(&self) -> bool {
        self.is_open
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let number = content::digits(tx.id);
        let reply = [self.inbox.as_bytes(), &number];
        // The stream's window for duplicates is the trial's own, so the number is enough.
        let id = [number.as_slice()];
        let id = if self.common.has_ids { &id[..] } else { &[] };
        messages::publish(&self.common.subject, &reply, id, &[tx.payload], out);
        self.outstanding.push_back(tx.id);
        u32::try_from(tx.payload.len()).expect("bounded by the options")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let is_idle = self.is_open && self.outstanding.is_empty();
            let broken = |error: ProtocolError, marks: &mut Marks| {
                if is_idle {
                    marks.unasked(rest.len() as u64);
                }
                error
            };
            let read = messages::said(rest);
            let read = read.map_err(|Strange(why)| broken(strange(&why, rest), marks))?;
            let Some((said, length)) = read else { break };
            match said {
                Said::Info(_) => {}
                Said::Ping => out.extend_from_slice(b"PONG\r\n"),
                Said::Pong if !self.is_open => self.is_open = true,
                Said::Pong => return Err(broken(strange("a PONG to no PING", b""), marks)),
                Said::Error(text) => {
                    return Err(broken(strange("the server complains", text), marks));
                }
                Said::Message(message) => {
                    self.answered(message, marks).map_err(|error| broken(error, marks))?;
                }
            }
            used += length;
        }
        Ok(used)
    }

    /// Its answer names it.
    fn abandon(&mut self, tx: TxId) -> Abandon {
        if let Some(place) = self.outstanding.iter().position(|other| *other == tx) {
            self.outstanding.remove(place);
            if self.given_up.len() == GIVEN_UP_MAX {
                self.given_up.pop_front();
            }
            self.given_up.push_back(tx);
        }
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.common.in_flight_max
    }

    fn reset(&mut self) {
        self.life += 1;
        self.inbox = inbox(self.common.run_mark, &self.name, self.life);
        self.is_open = false;
        self.outstanding.clear();
        self.given_up.clear();
    }
}
