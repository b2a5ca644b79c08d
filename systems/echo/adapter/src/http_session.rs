//! The canary over HTTP/1.1: one POST a transaction, answers in order.

use std::collections::VecDeque;
use std::net::SocketAddr;

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};
use wire::http1::{Asked, Limits, Response, ResponseReader, write_request};

/// The state of a connection.
pub(crate) struct HttpSession {
    host: String,
    reader: ResponseReader,
    /// Not answered, oldest first.
    outstanding: VecDeque<TxId>,
    in_flight_max: u32,
}

impl HttpSession {
    pub(crate) fn new(server: SocketAddr, in_flight_max: u32) -> Self {
        Self {
            host: server.to_string(),
            reader: ResponseReader::new(Limits::CLIENT),
            outstanding: VecDeque::new(),
            in_flight_max,
        }
    }
}

impl Session for HttpSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        write_request(out, "POST", "/", &[("Host", self.host.as_bytes())], tx.payload);
        self.outstanding.push_back(tx.id);
        u32::try_from(tx.payload.len()).expect("bounded by the options")
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        while used < bytes.len() {
            if self.outstanding.is_empty() {
                marks.unasked((bytes.len() - used) as u64);
                return Err(ProtocolError("bytes that no request had asked for".to_owned()));
            }
            let progress = self
                .reader
                .read(&bytes[used..], Asked::Other)
                .map_err(|error| ProtocolError(error.to_string()))?;
            used += progress.used;
            let Some(response) = progress.response else { break };
            if let Some(tx) = self.outstanding.pop_front() {
                judge(tx, response, marks);
            }
            if !response.keep_alive {
                marks.close();
                // What comes behind the last answer has no meaning (RFC 9112 §9.6), and is no good sign.
                marks.unasked((bytes.len() - used) as u64);
                return Ok(bytes.len());
            }
        }
        Ok(used)
    }

    fn closed(&mut self, marks: &mut Marks) {
        if let Ok(Some(response)) = self.reader.closed()
            && let Some(tx) = self.outstanding.pop_front()
        {
            judge(tx, response, marks);
        }
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        // Answers carry no id: with one missing, the next would be taken for it.
        Abandon::Close
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn reset(&mut self) {
        self.outstanding.clear();
        self.reader.reset();
    }
}

fn judge(tx: TxId, response: Response, marks: &mut Marks) {
    let bytes_in = u32::try_from(response.body_bytes).unwrap_or(u32::MAX);
    let status = response.status;
    let (class, why) = match status {
        200..=299 => return marks.reached(tx, 0, status, bytes_in),
        429 => (Class::Limited, "429 Too Many Requests"),
        503 => (Class::Overloaded, "503 Service Unavailable"),
        400..=499 => (Class::BadRequest, "4xx"),
        _ => (Class::Server, "unexpected status"),
    };
    marks.ended(tx, Outcome::Rejected(class), status, bytes_in, why);
}
