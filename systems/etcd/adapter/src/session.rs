//! Puts on one connection: calls of `etcdserverpb.KV/Put` by gRPC over HTTP/2, each on a stream of its own, answered in any
//! order. It holds nothing back but what the server's windows have no room for yet.

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction, shown};
use wire::http1::header_of;
use wire::http2::{Answer, Client, Ended, Http2Error, Limits, Request, request_block};

use crate::keys::prefix;
use crate::messages::{put, revision};

/// The longest body of an answer to a put that is read: one has forty bytes.
const BODY_BYTES_MAX: usize = 4 << 10;
/// The longest headers and trailers of one answer: they hold an error's words.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Codes of gRPC that are given to answers which have none.
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;

/// The words with which a member refuses what it has not proposed yet.
const TOO_MANY: &[u8] = b"etcdserver: too many requests";

/// The state of a connection.
pub(crate) struct PutSession {
    prefix: String,
    /// The headers of every put.
    block: Vec<u8>,
    client: Client,
    in_flight_max: u32,
    /// A put, while it is written.
    body: Vec<u8>,
}

impl PutSession {
    pub(crate) fn new(run_mark: u64, in_flight_max: u32) -> Self {
        let headers: [(&str, &[u8]); 2] =
            [("te", b"trailers"), ("content-type", b"application/grpc")];
        let client = Client::new(Limits {
            head_bytes_max: HEAD_BYTES_MAX,
            body_kept_max: BODY_BYTES_MAX,
            body_bytes_max: BODY_BYTES_MAX as u64,
            keeps_heads: true,
            streams_max: in_flight_max,
        });
        Self {
            prefix: prefix(run_mark),
            block: request_block("POST", "http", "assay", "/etcdserverpb.KV/Put", &headers),
            client,
            in_flight_max,
            body: Vec::new(),
        }
    }
}

impl Session for PutSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.client.open(out);
    }

    fn is_ready(&self) -> bool {
        self.client.is_ready()
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        put(&self.prefix, tx.id, tx.payload, &mut self.body);
        let request = Request { block: &self.block, body: &self.body, is_head: false };
        self.client.submit(tx.id, &request, out);
        u32::try_from(self.body.len()).expect("bounded by the options")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let used = self.client.read(bytes, out, &mut |tx, ended| conclude(tx, ended, marks));
        if self.client.is_closing() {
            marks.drain();
        }
        used.map_err(|error| match error {
            Http2Error::TooFewStreams { allowed } => ProtocolError(format!(
                "the member takes {allowed} streams on a connection; write in_flight_max = {allowed}"
            )),
            error => {
                if error == Http2Error::Unasked {
                    marks.unasked(bytes.len() as u64);
                }
                ProtocolError(error.to_string())
            }
        })
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        self.client.give_up(tx);
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn reset(&mut self) {
        self.client.reset();
    }
}

/// Tells of a put that has ended.
fn conclude(tx: TxId, ended: Ended<'_>, marks: &mut Marks) {
    match ended {
        Ended::Answered(answer) => answered(tx, &answer, marks),
        Ended::Reset { why, is_refused: true } => {
            let outcome = Outcome::Rejected(Class::Overloaded);
            marks.ended(tx, outcome, UNAVAILABLE, 0, &format!("not processed: {why}"));
        }
        Ended::Reset { why, is_refused: false } => {
            marks.ended(tx, Outcome::Unknown, INTERNAL, 0, &format!("reset: {why}"));
        }
    }
}

/// Tells of an answer: acknowledged is a put with the status 0 and a revision.
fn answered(tx: TxId, answer: &Answer<'_>, marks: &mut Marks) {
    let bytes = u32::try_from(answer.body_bytes).unwrap_or(u32::MAX);
    let kind = header_of(answer.head, "content-type").unwrap_or_default();
    if answer.status != 200 || !kind.starts_with(b"application/grpc") {
        let words = format!("HTTP {}, which is not gRPC: `{}`", answer.status, shown(kind));
        return marks.ended(tx, Outcome::Unknown, answer.status, bytes, &words);
    }
    // An answer without a message may have its status in its headers.
    let is_bare = answer.trailers.is_empty() && answer.body_bytes == 0;
    let tail = if is_bare { answer.head } else { answer.trailers };
    let status = header_of(tail, "grpc-status").unwrap_or_default();
    if status == b"0" {
        return match revision(answer.body) {
            Some(_) => marks.reached(tx, 0, 0, bytes),
            None => {
                marks.ended(tx, Outcome::Unknown, INTERNAL, bytes, "an answer without a revision");
            }
        };
    }
    let code = std::str::from_utf8(status).ok().and_then(|code| code.parse().ok());
    let Some(code) = code else {
        let words = format!("a status that is none: `{}`", shown(status));
        return marks.ended(tx, Outcome::Unknown, INTERNAL, bytes, &words);
    };
    let words = header_of(tail, "grpc-message").unwrap_or_default();
    marks.ended(tx, outcome(code, words), code, bytes, &shown(words));
}

/// The meaning of a status (etcd 3.7.3, `api/v3rpc/rpctypes/error.go` and its uses). A put is refused where that is said
/// before it is proposed, or where every member says it as it applies it. Else it may still be chosen: its time ran out
/// (UNAVAILABLE, DEADLINE_EXCEEDED), or it was the one that filled the database, which is applied and answered with
/// RESOURCE_EXHAUSTED (`quotaApplierV3.Put`).
fn outcome(code: u16, words: &[u8]) -> Outcome {
    match code {
        // INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED, UNAUTHENTICATED.
        3 | 5 | 7 | 9 | 11 | 12 | 16 => Outcome::Rejected(Class::BadRequest),
        // RESOURCE_EXHAUSTED by its table of errors, and UNKNOWN from a member, which hands over the client's form of it.
        8 | 2 if words == TOO_MANY => Outcome::Rejected(Class::Overloaded),
        _ => Outcome::Unknown,
    }
}
