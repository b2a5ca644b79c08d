//! Submitting on one connection: `eth_sendRawTransaction` with the transaction's own number as the request's id, so that any
//! number may be outstanding, every reply finds its transaction, and an abandoned one leaves the connection usable.

use std::io::Write as _;
use std::sync::Arc;

use model::TxId;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Texts, Transaction};

use crate::answer::{Reply, quickly_accepted, refusal};
use crate::hex::{self, Hash};
use crate::known::Known;
use crate::transfer;

/// The ladder's stages.
pub(crate) const ACCEPTED: u8 = 0;
pub(crate) const COMMITTED: u8 = 1;
pub(crate) const VERIFIED: u8 = 2;

/// A submitting connection.
pub(crate) struct SubmitSession {
    channel: Texts,
    known: Arc<Known>,
    in_flight_max: u32,
}

impl SubmitSession {
    pub(crate) const fn new(channel: Texts, known: Arc<Known>, in_flight_max: u32) -> Self {
        Self { channel, known, in_flight_max }
    }
}

impl Session for SubmitSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.channel.open(out);
    }

    fn is_ready(&self) -> bool {
        self.channel.is_open()
    }

    /// What watches is told whose it is before the node can know of it.
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let (hash, bytes) = transfer::split(tx.payload).expect("the workload writes a hash first");
        self.known.give(hash, tx.id, tx.due);
        self.channel.write(out, |out| {
            let head = write!(
                out,
                r#"{{"jsonrpc":"2.0","id":{},"method":"eth_sendRawTransaction","params":["0x"#,
                tx.id
            );
            head.expect("a vector takes everything");
            hex::write(out, bytes);
            out.extend_from_slice(br#""]}"#);
        });
        u32::try_from(bytes.len()).expect("a transfer is short")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let Self { channel, known, .. } = self;
        channel.receive(bytes, out, marks, |text, _, marks| found(text, known, marks))
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

/// One reply.
fn found(text: &str, known: &Known, marks: &mut Marks) -> Result<(), ProtocolError> {
    let bytes_in = u32::try_from(text.len()).unwrap_or(u32::MAX);
    if let Some((tx, hash)) = quickly_accepted(text) {
        return accepted(tx, &hash, bytes_in, known, marks);
    }
    let reply: Reply<'_, &str> = serde_json::from_str(text)
        .map_err(|error| ProtocolError(format!("a reply that is no JSON-RPC: {error}")))?;
    match (reply.id, reply.result, &reply.error) {
        (Some(tx), None, Some(error)) => {
            let (outcome, code, words) = refusal(error);
            marks.ended(tx, outcome, code, bytes_in, &words);
            Ok(())
        }
        (Some(tx), Some(result), None) => {
            let hash = hex::bytes(result).ok_or_else(|| {
                let words = sut::shown(result.as_bytes());
                ProtocolError(format!("a reply to a submission that has no hash but `{words}`"))
            })?;
            accepted(tx, &hash, bytes_in, known, marks)
        }
        (_, _, error) => {
            let said = error.as_ref().map_or_else(|| "nothing".to_owned(), |e| e.words());
            Err(ProtocolError(format!("a reply to no submission, saying {said}")))
        }
    }
}

/// The node says the hash of what it took: of something else, it took something else.
fn accepted(
    tx: TxId,
    hash: &Hash,
    bytes_in: u32,
    known: &Known,
    marks: &mut Marks,
) -> Result<(), ProtocolError> {
    if known.find(hash).is_none_or(|given| given.tx != tx) {
        return Err(ProtocolError("a reply with the hash of another transaction".to_owned()));
    }
    marks.reached(tx, ACCEPTED, 0, bytes_in);
    Ok(())
}
