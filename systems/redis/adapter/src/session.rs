//! `SET` on one connection. Answers come in the order of the commands and carry no id, so the session remembers whose
//! turn it is; one that was given up keeps its turn.

use std::collections::VecDeque;

use model::{Class, Outcome, TxId};
use sut::content::{self, DIGITS};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction, shown};

use crate::resp;

/// The name of a transaction's key: the trial's mark and the transaction's number.
pub(crate) const KEY_BYTES: usize = 6 + DIGITS + 1 + DIGITS;

/// Where the keys of a trial begin.
pub(crate) fn prefix(run_mark: u64) -> String {
    format!("assay:{run_mark:016x}:")
}

/// The transaction of a key with this prefix; `None`: it is nobody's.
pub(crate) fn transaction(key: &[u8], prefix: &str) -> Option<TxId> {
    content::number(key.strip_prefix(prefix.as_bytes())?)
}

/// The state of a connection.
pub(crate) struct SetSession {
    key: [u8; KEY_BYTES],
    in_flight_max: u32,
    /// Whose answers are to come, in order.
    waiting: VecDeque<TxId>,
}

impl SetSession {
    pub(crate) fn new(run_mark: u64, in_flight_max: u32) -> Self {
        let mut key = [b'0'; KEY_BYTES];
        key[..KEY_BYTES - DIGITS].copy_from_slice(prefix(run_mark).as_bytes());
        let room = usize::try_from(in_flight_max).unwrap_or(0);
        Self { key, in_flight_max, waiting: VecDeque::with_capacity(room) }
    }
}

impl Session for SetSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        self.key[KEY_BYTES - DIGITS..].copy_from_slice(&content::digits(tx.id));
        resp::write_command(&[b"SET", &self.key, tx.payload], out);
        self.waiting.push_back(tx.id);
        u32::try_from(tx.payload.len()).expect("bounded by the options")
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let strange =
                |why: &str, line: &[u8]| ProtocolError(format!("{why}: {:?}", shown(line)));
            let Some(tx) = self.waiting.front().copied() else {
                marks.unasked(rest.len() as u64);
                // A server that takes no more clients says so before anybody asks: its words are worth having.
                let line = rest.split(|byte| *byte == b'\r').next().unwrap_or(rest);
                return Err(strange("an answer that nobody waits for", line));
            };
            let line = resp::line(rest).map_err(|strange| ProtocolError(strange.0))?;
            let Some((line, length)) = line else { break };
            match line.split_first() {
                Some((b'+', b"OK")) => marks.reached(tx, 0, 0, 0),
                Some((b'-', text)) => {
                    let text = String::from_utf8_lossy(text);
                    marks.ended(tx, Outcome::Rejected(class(&text)), 0, 0, &text);
                }
                Some(_) => return Err(strange("no answer to SET", line)),
                None => return Err(strange("an empty line", line)),
            }
            self.waiting.pop_front();
            used += length;
        }
        Ok(used)
    }

    /// Its answer still comes in its turn.
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

/// What an error of the server means, by its first word.
fn class(text: &str) -> Class {
    match text.split(' ').next().unwrap_or_default() {
        "LOADING" | "BUSY" | "TRYAGAIN" | "OOM" => Class::Overloaded,
        "ERR" | "WRONGTYPE" | "NOAUTH" | "NOPERM" => Class::BadRequest,
        // MISCONF: it cannot write its file. READONLY, CLUSTERDOWN, MASTERDOWN and what is to come.
        _ => Class::Server,
    }
}
