//! One connection of gRPC as a value: calls out on streams, their messages and ends back in any order. It never asks again, and
//! holds nothing back but what the server's windows have no room for yet.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};
use wire::http1::{decimal, header_of};
use wire::http2::{Answer, Client, Ended, Http2Error, Limits, Request, Told};

use crate::calls::{COMMITTED, Call, Calls, FIRST_MESSAGE};
use crate::described;
use crate::messages::MessageReader;
use crate::status;

/// Bytes of metadata and trailers of one answer.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The longest part of a server's own words that is kept.
const WORDS_CHARS_MAX: usize = 160;

/// A call that is outstanding.
#[derive(Debug, Default)]
struct Open {
    tx: TxId,
    call: u32,
    reader: MessageReader,
    messages: u64,
    /// Whether its body is messages; nothing before the first of it.
    is_grpc: Option<bool>,
    /// The first message that is not as expected.
    unexpected: Option<(Outcome, String)>,
}

/// The state of a connection.
pub(crate) struct GrpcSession {
    calls: Arc<Calls>,
    client: Client,
    open: Vec<Open>,
    spare: Vec<Open>,
    /// Those that could not be written.
    unwritten: Vec<TxId>,
    streams: u32,
    text: String,
}

impl GrpcSession {
    /// A session with at most `streams` calls outstanding.
    pub(crate) fn new(calls: Arc<Calls>, streams: u32) -> Self {
        let client = Client::new(Limits {
            head_bytes_max: HEAD_BYTES_MAX,
            body_kept_max: 0,
            body_bytes_max: u64::MAX,
            keeps_heads: true,
            streams_max: streams,
        });
        Self {
            calls,
            client,
            open: Vec::with_capacity(streams as usize),
            spare: Vec::new(),
            unwritten: Vec::new(),
            streams,
            text: String::with_capacity(256),
        }
    }
}

impl Session for GrpcSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.client.open(out);
    }

    fn is_ready(&self) -> bool {
        self.client.is_ready()
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let call = &self.calls.list[tx.kind as usize];
        let body = call.body.as_deref().unwrap_or(tx.payload);
        if body.is_empty() {
            // The workload could not make a message of what it filled in. The answer to a ping is the next occasion to say so.
            self.unwritten.push(tx.id);
            self.client.ping(out);
            return 0;
        }
        self.client.submit(tx.id, &Request { block: &call.block, body, is_head: false }, out);
        let mut open = self.spare.pop().unwrap_or_default();
        open.reader.reset();
        open =
            Open { tx: tx.id, call: tx.kind, messages: 0, is_grpc: None, unexpected: None, ..open };
        self.open.push(open);
        u32::try_from(body.len()).unwrap_or(u32::MAX)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        for tx in self.unwritten.drain(..) {
            let text = "what was filled in does not fit the message";
            marks.ended(tx, Outcome::Rejected(Class::Client), 0, 0, text);
        }
        let Self { calls, client, open, spare, text, .. } = self;
        let used = client.read_parts(bytes, out, &mut |tx, told| {
            let Some(place) = open.iter().position(|it| it.tx == tx) else { return true };
            let call = &calls.list[open[place].call as usize];
            let mut is_whole = true;
            let ended = match told {
                Told::Part { status, head, body } => {
                    let open = &mut open[place];
                    if !*open.is_grpc.get_or_insert_with(|| status == 200 && is_grpc(head)) {
                        // The end of the answer says what it is instead.
                        return true;
                    }
                    let Err(why) = part_of(calls, call, open, body, marks) else { return true };
                    is_whole = false;
                    End::broken(status::INTERNAL, why)
                }
                Told::End(Ended::Reset { why, is_refused }) => {
                    let said = if is_refused { "not processed: " } else { "reset: " };
                    End::broken(status::of_reset(why, is_refused), format!("{said}{why}"))
                }
                Told::End(Ended::Answered(answer)) => answered(call, &open[place], &answer),
            };
            let open = open.swap_remove(place);
            conclude(calls, call, &open, &ended, marks, text);
            spare.push(open);
            // The rest of an answer that broke is of no use.
            is_whole
        });
        client.write_owed(out);
        if client.is_closing() {
            marks.drain();
        }
        used.map_err(|error| {
            if error == Http2Error::Unasked {
                marks.unasked(bytes.len() as u64);
            }
            ProtocolError(error.to_string())
        })
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        // The stream says whose an answer is, so that a late one is told from others.
        if let Some(place) = self.open.iter().position(|it| it.tx == tx) {
            let open = self.open.swap_remove(place);
            self.spare.push(open);
        }
        self.unwritten.retain(|it| *it != tx);
        self.client.give_up(tx);
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.streams
    }

    fn reset(&mut self) {
        self.spare.append(&mut self.open);
        self.unwritten.clear();
        self.client.reset();
    }
}

/// How a call ended.
struct End {
    code: u16,
    bytes_in: u32,
    words: Words,
    /// The metadata that is not as expected.
    unexpected: Option<(Outcome, String)>,
}

impl End {
    /// Of an answer that did not come to its end.
    const fn broken(code: u16, why: String) -> Self {
        Self { code, bytes_in: 0, words: Words::Ours(why), unexpected: None }
    }
}

/// Why a call failed.
enum Words {
    Nothing,
    /// The server's, after the name of its status.
    Theirs(String),
    /// This client's, of an answer that breaks the protocol.
    Ours(String),
}

/// Reads a part of an answer; tells of the first message, and looks at each if something is expected of it.
fn part_of(
    calls: &Calls,
    call: &Call,
    open: &mut Open,
    part: &[u8],
    marks: &mut Marks,
) -> Result<(), String> {
    let Open { tx, reader, messages, unexpected, .. } = open;
    let expects = &call.expects.answer;
    let keeps = expects.reads_bodies() && unexpected.is_none();
    let result = reader.read(part, calls.message_bytes_max, keeps, &mut |message| {
        *messages += 1;
        if *messages == 1 {
            marks.reached(*tx, FIRST_MESSAGE, status::OK, 0);
        }
        if keeps && unexpected.is_none() {
            *unexpected = match described::decode(&call.output, message) {
                // Headers are looked at when they are all there.
                Ok(json) => expects.unexpected_body(&json),
                Err(why) => Some((Outcome::Rejected(Class::Server), why)),
            };
        }
    });
    result.map_err(|error| error.to_string())
}

fn is_grpc(head: &[u8]) -> bool {
    header_of(head, "content-type").is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

/// The end of an answer whose stream has ended.
fn answered(call: &Call, open: &Open, answer: &Answer<'_>) -> End {
    let bytes_in = u32::try_from(answer.body_bytes).unwrap_or(u32::MAX);
    let end = |code, words| {
        let unexpected = call.expects.answer.unexpected_header(answer.head);
        End { code, bytes_in, words, unexpected }
    };
    if answer.status != 200 {
        let words = format!("HTTP {} {}", answer.status, wire::http1::reason(answer.status));
        return end(status::of_http(answer.status), Words::Ours(words));
    }
    if !is_grpc(answer.head) {
        let kind = header_of(answer.head, "content-type").unwrap_or_default();
        let words = format!("the answer is not gRPC: its content-type is `{}`", sut::shown(kind));
        return end(status::UNKNOWN, Words::Ours(words));
    }
    // An answer without messages may have its status in its headers.
    let tail = if answer.trailers.is_empty() && answer.body_bytes == 0 {
        answer.head
    } else {
        answer.trailers
    };
    let Some(code) = header_of(tail, "grpc-status") else {
        let words = "the answer ends without grpc-status".to_owned();
        return end(status::INTERNAL, Words::Ours(words));
    };
    let Some(code) = std::str::from_utf8(code).ok().and_then(|code| code.parse::<u16>().ok())
    else {
        let words = format!("its grpc-status is `{}`, not a number", sut::shown(code));
        return end(status::UNKNOWN, Words::Ours(words));
    };
    if code != status::OK {
        let said = header_of(tail, "grpc-message").map(decoded).unwrap_or_default();
        return end(code, Words::Theirs(said));
    }
    if let Err(why) = open.reader.end() {
        return end(status::INTERNAL, Words::Ours(why.to_string()));
    }
    if !call.is_stream && open.messages != 1 {
        let words = format!("expected one message, got {}", open.messages);
        return end(status::INTERNAL, Words::Ours(words));
    }
    end(code, Words::Nothing)
}

/// Ends a transaction.
fn conclude(
    calls: &Calls,
    call: &Call,
    open: &Open,
    end: &End,
    marks: &mut Marks,
    text: &mut String,
) {
    let (tx, code) = (open.tx, end.code);
    if call.is_stream {
        let mut digits = [0; 20];
        marks.observed(tx, decimal(open.messages, &mut digits));
    }
    text.clear();
    let mut outcome = calls.outcomes.of(code);
    let statuses = &call.expects.statuses;
    if matches!(end.words, Words::Ours(_)) {
        // No status of the server's: nothing is expected of it, and none that counts as committed stands for it.
        if outcome == Outcome::Committed {
            outcome = Outcome::Rejected(Class::Server);
        }
    } else if statuses.contains(&code) {
        outcome = Outcome::Committed;
    } else if !statuses.is_empty() && outcome == Outcome::Committed {
        outcome = Outcome::Rejected(Class::Server);
        let names: Vec<&str> = statuses.iter().map(|code| status::name(*code)).collect();
        let _ = write!(text, "{}: expected status {}", status::name(code), names.join(" or "));
    }
    if outcome == Outcome::Committed {
        // Another status that counts as committed has no message to look at.
        let is_ok = code == status::OK;
        let of_count = call.expects.messages.filter(|wanted| is_ok && *wanted != open.messages);
        let of_count = of_count.map(|wanted| {
            let words = format!("expected {wanted} messages, got {}", open.messages);
            (Outcome::Rejected(Class::Server), words)
        });
        let of_messages = open.unexpected.as_ref().filter(|_| is_ok);
        let found = end.unexpected.as_ref().or(of_count.as_ref()).or(of_messages);
        if let Some((failed, words)) = found {
            outcome = *failed;
            let _ = write!(text, "{}: ", status::name(code));
            append(text, words);
        }
    }
    if outcome == Outcome::Committed {
        return marks.reached(tx, COMMITTED, code, end.bytes_in);
    }
    if text.is_empty() {
        text.push_str(status::name(code));
        match &end.words {
            Words::Nothing => {}
            Words::Theirs(words) | Words::Ours(words) if words.is_empty() => {}
            Words::Theirs(words) | Words::Ours(words) => {
                text.push_str(": ");
                append(text, words);
            }
        }
    }
    marks.ended(tx, outcome, code, end.bytes_in, text);
}

fn append(text: &mut String, words: &str) {
    let printable = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    text.extend(printable.take(WORDS_CHARS_MAX));
}

/// A `grpc-message`, which is percent-encoded.
fn decoded(message: &[u8]) -> String {
    let (mut bytes, mut rest) = (Vec::new(), message);
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    sut::shown(&bytes)
}
