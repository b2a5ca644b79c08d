//! One HTTP/2 connection as a value: requests out on streams, answers back in any order; each stream may be a step of another
//! user. It never asks again, and holds nothing back but what the server's windows have no room for yet.

use std::sync::Arc;

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};
use wire::http1::{Asked, Response, header_of};
use wire::http2::{Answer, Client, Ended, Limits, Request};

use crate::expect::Answered;
use crate::flow::Flows;
use crate::flow::walk::Walk;
use crate::requests::Requests;
use crate::rules::{COMMITTED, Rules};
use crate::session::{INDEX_BYTES, index};

/// The state of a connection.
pub(crate) struct Http2Session {
    requests: Arc<Requests>,
    rules: Arc<Rules>,
    client: Client,
    outstanding: Vec<Outstanding>,
    streams: u32,
    text: String,
    users: Option<Users>,
}

/// A request that was sent and not answered.
struct Outstanding {
    tx: TxId,
    asked: Asked,
    expects: Option<u16>,
    /// The user whose step it is.
    walk: Option<Box<Walk>>,
}

/// Users who go through flows, one a stream.
struct Users {
    plan: Arc<Flows>,
    /// Those whose buffers are free: as many as were ever outstanding.
    #[expect(
        clippy::vec_box,
        reason = "they are moved from here to a stream and back, and are large"
    )]
    spare: Vec<Box<Walk>>,
    block: Vec<u8>,
    body: Vec<u8>,
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
        let text = String::with_capacity(256);
        Self { requests, rules, client, outstanding, streams, text, users: None }
    }

    /// The same, for users who go through flows.
    pub(crate) fn walking(self, flows: Option<Arc<Flows>>) -> Self {
        let users = |plan| Users { plan, spare: Vec::new(), block: Vec::new(), body: Vec::new() };
        Self { users: flows.map(users), ..self }
    }

    /// Writes the step of a user.
    fn submit_step(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let users = self.users.as_mut().expect("a user's state is a payload of flows alone");
        let Users { plan, spare, block, body } = users;
        let spare = spare.pop();
        let mut walk = spare.unwrap_or_else(|| Box::new(Walk::new(Arc::clone(plan))));
        let now_ns = tx.given.unix_ns();
        let asking = walk.request_http2(tx.payload, tx.id, now_ns, (&mut *block, &mut *body));
        let is_head = asking.asked == Asked::Head;
        self.client.submit(tx.id, &Request { block, body, is_head }, out);
        let (asked, expects) = (asking.asked, asking.expects);
        self.outstanding.push(Outstanding { tx: tx.id, asked, expects, walk: Some(walk) });
        asking.body_bytes
    }
}

impl Users {
    /// Keeps the buffers of a user whose request has ended.
    fn keep(users: &mut Option<Self>, walk: Option<Box<Walk>>) {
        if let (Some(users), Some(walk)) = (users, walk) {
            users.spare.push(walk);
        }
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
        if tx.payload.len() > INDEX_BYTES {
            return self.submit_step(tx, out);
        }
        let prepared = &self.requests.prepared[index(tx)];
        let (block, body) = prepared.bytes.split_at(prepared.block_bytes);
        let is_head = prepared.asked == Asked::Head;
        self.client.submit(tx.id, &Request { block, body, is_head }, out);
        let (asked, expects) = (prepared.asked, prepared.expects);
        self.outstanding.push(Outstanding { tx: tx.id, asked, expects, walk: None });
        prepared.body_bytes
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let Self { rules, client, outstanding, text, users, .. } = self;
        let used = client.read(bytes, out, &mut |tx, ended| {
            let Some(place) = outstanding.iter().position(|it| it.tx == tx) else { return };
            let mut request = outstanding.swap_remove(place);
            match ended {
                Ended::Answered(answer) => conclude(&mut request, &answer, rules, (text, marks)),
                Ended::Reset { why, is_refused } => {
                    text.clear();
                    text.push_str(if is_refused { "not processed: " } else { "reset: " });
                    text.push_str(why);
                    let class = if is_refused { Class::Overloaded } else { Class::Server };
                    marks.ended(tx, Outcome::Rejected(class), 0, 0, text);
                }
            }
            Users::keep(users, request.walk);
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
        if let Some(place) = self.outstanding.iter().position(|it| it.tx == tx) {
            Users::keep(&mut self.users, self.outstanding.swap_remove(place).walk);
        }
        self.client.give_up(tx);
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.streams
    }

    fn reset(&mut self) {
        for request in self.outstanding.drain(..) {
            Users::keep(&mut self.users, request.walk);
        }
        self.client.reset();
    }
}

/// Ends a request with its answer.
fn conclude(
    request: &mut Outstanding,
    answer: &Answer<'_>,
    rules: &Rules,
    (text, marks): (&mut String, &mut Marks),
) {
    let Answer { status, body_bytes, body, head, .. } = *answer;
    let answered = Answered {
        response: Response { status, body_bytes, keep_alive: true },
        reason: reason(status),
        body,
        has_body: request.asked != Asked::Head,
        head,
        expects: request.expects,
    };
    if let Some(walk) = &mut request.walk {
        let location = header_of(head, "location").unwrap_or_default();
        let location = std::str::from_utf8(location).unwrap_or_default();
        return walk.end(request.tx, rules, &answered, location, (text, marks));
    }
    let bytes_in = u32::try_from(body_bytes).unwrap_or(u32::MAX);
    match rules.judge(&answered, text) {
        Outcome::Committed => marks.reached(request.tx, COMMITTED, status, bytes_in),
        outcome => marks.ended(request.tx, outcome, status, bytes_in, text),
    }
}

/// HTTP/2 has no reason phrases; the usual one makes an error readable.
const fn reason(status: u16) -> &'static str {
    wire::http1::reason(status)
}
