//! Submitting on one connection: requests with the transaction's own number as their id, so that any number may
//! be outstanding, every reply finds its transaction, and an abandoned one leaves the connection usable.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::TxId;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Texts, Transaction};

use crate::answer::{Method, Reply, Verdict, quickly_accepted};
use crate::loadtime::Loadtime;

/// The ladder's stages.
pub(crate) const ACCEPTED: u8 = 0;
pub(crate) const COMMITTED: u8 = 1;

/// A submitting connection.
pub(crate) struct SubmitSession {
    channel: Texts,
    method: Method,
    in_flight_max: u32,
    /// How payloads are made that carry the time; others come ready from the workload.
    loadtime: Option<Loadtime>,
    /// Room to work in.
    message: Vec<u8>,
}

impl SubmitSession {
    pub(crate) const fn new(
        channel: Texts,
        method: Method,
        in_flight_max: u32,
        loadtime: Option<Loadtime>,
    ) -> Self {
        Self { channel, method, in_flight_max, loadtime, message: Vec::new() }
    }
}

impl Session for SubmitSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.channel.open(out);
    }

    fn is_ready(&self) -> bool {
        self.channel.is_open()
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let Self { channel, method, loadtime, message, .. } = self;
        let mut bytes = tx.payload.len();
        channel.write(out, |out| {
            request(out, method.name(), tx.id, |out| match loadtime {
                None => base64(tx.payload, out),
                Some(loadtime) => bytes = loadtime.write(tx, message, out),
            });
        });
        u32::try_from(bytes).expect("bounded by the options")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        self.channel.receive(bytes, out, marks, |text, _, marks| found(text, marks))
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn reset(&mut self) {
        self.channel.reset();
    }
}

fn request(out: &mut Vec<u8>, method: &str, id: TxId, base64: impl FnOnce(&mut Vec<u8>)) {
    let head = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"tx":""#);
    head.expect("a vector takes everything");
    base64(out);
    out.extend_from_slice(br#""}}"#);
}

fn base64(payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    // Four characters for every three bytes begun.
    out.resize(start + payload.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(payload, &mut out[start..]);
    assert_eq!(written, Ok(out.len() - start), "the length of base64 is known");
}

/// One reply.
fn found(text: &str, marks: &mut Marks) -> Result<(), ProtocolError> {
    let bytes_in = u32::try_from(text.len()).unwrap_or(u32::MAX);
    if let Some(tx) = quickly_accepted(text) {
        marks.reached(tx, ACCEPTED, 0, bytes_in);
        return Ok(());
    }
    let reply: Reply<'_> = serde_json::from_str(text)
        .map_err(|error| ProtocolError(format!("a reply that is no JSON-RPC: {error}")))?;
    let (Some(tx), Some(verdict)) = (reply.id, reply.verdict()) else {
        let said = reply.error.as_ref().map_or_else(|| "nothing".to_owned(), |e| e.words());
        return Err(ProtocolError(format!("a reply to no submission, saying {said}")));
    };
    match verdict {
        Verdict::Accepted => marks.reached(tx, ACCEPTED, 0, bytes_in),
        Verdict::Committed => {
            marks.reached(tx, ACCEPTED, 0, bytes_in);
            marks.reached(tx, COMMITTED, 0, bytes_in);
        }
        Verdict::Ended(outcome, code, words) => marks.ended(tx, outcome, code, bytes_in, &words),
    }
    Ok(())
}
