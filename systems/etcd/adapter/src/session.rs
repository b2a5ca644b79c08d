//! Puts on one connection of HTTP/1.1, one at a time: its answers carry no id.

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Session, Transaction, shown};
use wire::http1::{Asked, Limits, ResponseReader};

use crate::gateway::{prefix, put, revision};

/// The longest body of an answer to a put that is read: one has two hundred bytes.
const BODY_BYTES_MAX: usize = 16 << 10;

const LIMITS: Limits =
    Limits { body_bytes_max: 16 << 10, body_kept_max: BODY_BYTES_MAX, ..Limits::CLIENT };

/// The state of a connection.
pub(crate) struct PutSession {
    prefix: String,
    reader: ResponseReader,
    outstanding: Option<TxId>,
    body: Vec<u8>,
}

impl PutSession {
    pub(crate) fn new(run_mark: u64) -> Self {
        let reader = ResponseReader::new(LIMITS);
        Self { prefix: prefix(run_mark), reader, outstanding: None, body: Vec::new() }
    }

    fn conclude(&mut self, tx: TxId, status: u16, marks: &mut Marks) -> Result<(), ProtocolError> {
        let body = self.reader.body();
        let bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
        match status {
            200 if revision(body).is_some() => marks.reached(tx, 0, 200, bytes),
            200 => {
                return Err(ProtocolError(format!(
                    "an answer without a revision: {:?}",
                    shown(body)
                )));
            }
            _ => {
                let outcome = match status {
                    400 | 404 => Outcome::Rejected(Class::BadRequest),
                    429 => Outcome::Rejected(Class::Overloaded),
                    // A proposal that timed out, or whose leader was lost, may still be chosen.
                    _ => Outcome::Unknown,
                };
                marks.ended(tx, outcome, status, bytes, &message(body));
            }
        }
        Ok(())
    }
}

/// The server's words of an error, without what differs each time.
fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let key = "\"message\":\"";
    let words = text.find(key).map(|at| &text[at + key.len()..]);
    let words = words.and_then(|words| words.split('"').next()).unwrap_or(&text);
    shown(words.as_bytes())
}

impl Session for PutSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        put(&self.prefix, tx.id, tx.payload, &mut self.body, out);
        self.outstanding = Some(tx.id);
        u32::try_from(self.body.len()).expect("bounded by the options")
    }

    fn receive(
        &mut self,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<usize, ProtocolError> {
        let mut used = 0;
        while used < bytes.len() {
            let Some(tx) = self.outstanding else {
                marks.unasked((bytes.len() - used) as u64);
                return Err(ProtocolError("bytes with no request outstanding".to_owned()));
            };
            let read = self.reader.read(&bytes[used..], Asked::Other);
            let progress = read.map_err(|error| ProtocolError(error.to_string()))?;
            used += progress.used;
            let Some(response) = progress.response else { break };
            self.outstanding = None;
            self.conclude(tx, response.status, marks)?;
            if !response.keep_alive {
                marks.close();
                marks.unasked((bytes.len() - used) as u64);
                return Ok(bytes.len());
            }
        }
        Ok(used)
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        if self.outstanding == Some(tx) { Abandon::Close } else { Abandon::Keep }
    }

    fn in_flight_max(&self) -> u32 {
        1
    }

    fn reset(&mut self) {
        self.outstanding = None;
        self.reader.reset();
    }
}
