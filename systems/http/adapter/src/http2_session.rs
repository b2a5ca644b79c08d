//! One HTTP/2 connection as a value: prepared requests out on streams, answers back in any order. It never asks again, and
//! holds nothing back but what the server's windows have no room for yet.

use std::sync::Arc;

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Session, Transaction};
use wire::http1::Response;
use wire::http2::{Client, Ended, Limits, Request};

use crate::requests::Requests;
use crate::rules::{Answered, Rules};
use crate::session::{COMMITTED, index};

/// The state of a connection.
pub(crate) struct Http2Session {
    requests: Arc<Requests>,
    rules: Arc<Rules>,
    client: Client,
    /// Which request each outstanding transaction is.
    outstanding: Vec<(TxId, u32)>,
    streams: u32,
    text: String,
}

impl Http2Session {
    /// A session with at most `streams` requests outstanding.
    pub(crate) fn new(requests: Arc<Requests>, rules: Arc<Rules>, streams: u32) -> Self {
        let of_http1 = rules.limits();
        let client = Client::new(Limits {
            head_bytes_max: of_http1.head_bytes_max,
            body_kept_max: of_http1.body_kept_max,
            body_bytes_max: of_http1.body_bytes_max,
            keeps_heads: rules.reads_heads(),
            streams_max: streams,
        });
        let outstanding = Vec::with_capacity(streams as usize);
        Self { requests, rules, client, outstanding, streams, text: String::with_capacity(256) }
    }
}

impl Session for Http2Session {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.client.open(out);
    }

    fn is_ready(&self) -> bool {
        self.client.is_ready()
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let at = index(tx);
        let prepared = &self.requests.prepared[at];
        let (block, body) = prepared.bytes.split_at(prepared.block_bytes);
        let is_head = prepared.asked == wire::http1::Asked::Head;
        self.client.submit(tx.id, &Request { block, body, is_head }, out);
        let at = u32::try_from(at).expect("there are fewer requests");
        self.outstanding.push((tx.id, at));
        prepared.body_bytes
    }

    fn receive(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<usize, ProtocolError> {
        let Self { requests, rules, client, outstanding, text, .. } = self;
        let used = client.read(bytes, out, &mut |tx, ended| {
            let Some(place) = outstanding.iter().position(|(of, _)| *of == tx) else { return };
            let (_, at) = outstanding.swap_remove(place);
            let prepared = &requests.prepared[at as usize];
            let answer = match ended {
                Ended::Answered(answer) => answer,
                Ended::Reset { why, is_refused } => {
                    text.clear();
                    text.push_str(if is_refused { "not processed: " } else { "reset: " });
                    text.push_str(why);
                    let class = if is_refused { Class::Overloaded } else { Class::Server };
                    return marks.ended(tx, Outcome::Rejected(class), 0, 0, text);
                }
            };
            let response =
                Response { status: answer.status, body_bytes: answer.body_bytes, keep_alive: true };
            let answered = Answered {
                response,
                reason: reason(answer.status),
                body: answer.body,
                has_body: prepared.asked != wire::http1::Asked::Head,
                head: answer.head,
                expects: prepared.expects,
            };
            let bytes_in = u32::try_from(answer.body_bytes).unwrap_or(u32::MAX);
            match rules.judge(&answered, text) {
                Outcome::Committed => marks.reached(tx, COMMITTED, answer.status, bytes_in),
                outcome => marks.ended(tx, outcome, answer.status, bytes_in, text),
            }
        });
        if self.client.is_closing() {
            marks.drain();
        }
        used.map_err(|error| {
            if error == wire::http2::Http2Error::Unasked {
                marks.unasked(bytes.len() as u64);
            }
            ProtocolError(error.to_string())
        })
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        // The stream says whose an answer is, so that a late one is told from others.
        self.outstanding.retain(|(of, _)| *of != tx);
        self.client.give_up(tx);
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.streams
    }

    fn reset(&mut self) {
        self.outstanding.clear();
        self.client.reset();
    }
}

/// HTTP/2 has no reason phrases; the usual one makes an error readable.
const fn reason(status: u16) -> &'static str {
    wire::http1::reason(status)
}
