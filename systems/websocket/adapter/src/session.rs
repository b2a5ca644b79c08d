//! One WebSocket connection as a value: the handshake, then messages out and the answers that match them in. Pings are answered,
//! fragments put together, and a close is told to whatever is outstanding. Masks and the key of the handshake are drawn from a
//! seed, so that repetitions send the same bytes: they protect proxies from hostile pages, and nothing of a load.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use model::seed::Rng;
use model::{Class, Outcome, Seed, TxId};
use serde_json::Value;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};
use wire::websocket::{
    Client, Event, KEY_BYTES, Limits, Opcode, Opening, WebSocketError, write_frame,
};

use crate::close;
use crate::messages::{Matching, Message, Messages, id_of, split};

/// The one stage of the ladder.
pub(crate) const COMMITTED: u8 = 0;
/// The longest part of a server's own words that is kept.
const WORDS_CHARS_MAX: usize = 160;
/// Transactions that were given up and whose answers may still come.
const GIVEN_UP_MAX: usize = 1024;

/// The opening of every connection.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    pub(crate) opening: Opening,
    /// Messages that are sent as soon as the connection speaks WebSocket.
    pub(crate) texts: Vec<Vec<u8>>,
    pub(crate) limits: Limits,
    pub(crate) in_flight: u32,
}

/// A message that was sent and not answered.
#[derive(Debug, Default)]
struct Outstanding {
    tx: TxId,
    kind: u32,
    id: Vec<u8>,
}

/// The state of a connection.
pub(crate) struct WebSocketSession {
    messages: Arc<Messages>,
    greeting: Arc<Greeting>,
    rng: Rng,
    client: Client,
    outstanding: VecDeque<Outstanding>,
    spare: Vec<Outstanding>,
    /// Ids of transactions that were given up.
    given_up: VecDeque<Vec<u8>>,
    /// Those that could not be written.
    unwritten: Vec<TxId>,
    text: String,
}

impl WebSocketSession {
    /// The `index`-th connection.
    pub(crate) fn new(messages: Arc<Messages>, greeting: Arc<Greeting>, index: u32) -> Self {
        let client = Client::new(greeting.limits);
        Self {
            messages,
            greeting,
            rng: Seed(u64::from(index)).split("masks").rng(),
            client,
            outstanding: VecDeque::new(),
            spare: Vec::new(),
            given_up: VecDeque::new(),
            unwritten: Vec::new(),
            text: String::with_capacity(256),
        }
    }
}

impl Session for WebSocketSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        let mut key = [0; KEY_BYTES];
        self.rng.fill(&mut key);
        self.client.open(out, &self.greeting.opening, key);
    }

    fn is_ready(&self) -> bool {
        self.client.is_open()
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let Some((id, text)) = split(tx.payload) else {
            // The workload found no id in what it filled in. The answer to a ping is the next occasion to say so.
            self.unwritten.push(tx.id);
            write(&mut self.rng, Opcode::Ping, out, b"");
            return 0;
        };
        let message = &self.messages.list[tx.kind as usize];
        write(&mut self.rng, opcode(message.is_binary), out, text);
        let mut outstanding = self.spare.pop().unwrap_or_default();
        outstanding.id.clear();
        outstanding.id.extend_from_slice(id);
        self.outstanding.push_back(Outstanding { tx: tx.id, kind: tx.kind, ..outstanding });
        u32::try_from(text.len()).unwrap_or(u32::MAX)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        if !self.client.is_open() {
            let Some(head_bytes) = self.client.switch(bytes).map_err(refused)? else {
                return Ok(0);
            };
            used = head_bytes;
            for text in &self.greeting.texts {
                write(&mut self.rng, Opcode::Text, out, text);
            }
        }
        for tx in self.unwritten.drain(..) {
            let text = "what was filled in holds no id";
            marks.ended(tx, Outcome::Rejected(Class::Client), 0, 0, text);
        }
        let Self { messages, rng, client, outstanding, spare, given_up, text, .. } = self;
        let mut reading = Reading { messages, outstanding, spare, given_up, text };
        loop {
            let progress = client.read(&bytes[used..]).map_err(refused)?;
            used += progress.used;
            match progress.event {
                None => return Ok(used),
                Some(Event::Text(text)) => reading.message(text.as_bytes(), marks)?,
                Some(Event::Binary(body)) => reading.message(body, marks)?,
                Some(Event::Ping(payload)) => write(rng, Opcode::Pong, out, payload),
                Some(Event::Pong(_)) => {}
                Some(Event::Close { code, reason }) => {
                    reading.closed(code.unwrap_or(close::NONE), reason, marks);
                    // A close is answered with the same code, and nothing follows.
                    let code = code.map(u16::to_be_bytes);
                    write(rng, Opcode::Close, out, code.as_ref().map_or(&[][..], |code| code));
                    marks.close();
                    return Ok(used);
                }
            }
        }
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        self.unwritten.retain(|it| *it != tx);
        let Some(place) = self.outstanding.iter().position(|it| it.tx == tx) else {
            return Abandon::Keep;
        };
        let outstanding = self.outstanding.remove(place).expect("it was just found");
        match self.messages.matching {
            // Its id says whose a late answer is.
            Matching::Id { .. } => {
                if self.given_up.len() == GIVEN_UP_MAX {
                    self.given_up.pop_front();
                }
                self.given_up.push_back(outstanding.id);
                Abandon::Keep
            }
            Matching::First(_) => Abandon::Close,
        }
    }

    fn in_flight_max(&self) -> u32 {
        self.greeting.in_flight
    }

    fn reset(&mut self) {
        self.spare.extend(self.outstanding.drain(..));
        self.given_up.clear();
        self.unwritten.clear();
        self.client.reset();
    }
}

/// Everything that a message that arrived is compared with.
struct Reading<'a> {
    messages: &'a Messages,
    outstanding: &'a mut VecDeque<Outstanding>,
    spare: &'a mut Vec<Outstanding>,
    given_up: &'a mut VecDeque<Vec<u8>>,
    text: &'a mut String,
}

impl Reading<'_> {
    /// A whole message of the server's: an answer, or something that it says by itself.
    fn message(&mut self, body: &[u8], marks: &mut Marks) -> Result<(), ProtocolError> {
        let needs_json = self.messages.error.is_some();
        let parsed = || serde_json::from_slice::<Value>(body).ok();
        match &self.messages.matching {
            Matching::Id { answered, .. } => {
                let Some(json) = parsed() else {
                    return Err(ProtocolError(
                        "a message that is not JSON, where answers carry an id".to_owned(),
                    ));
                };
                // One without an id is the server's own: an event, a notification.
                let Some(id) = json.pointer(answered).and_then(id_of) else { return Ok(()) };
                if let Some(place) = self.outstanding.iter().position(|it| it.id == id) {
                    self.answer(place, body, Some(&json), marks);
                } else if let Some(place) = self.given_up.iter().position(|it| *it == id) {
                    self.given_up.remove(place);
                } else {
                    marks.unasked(body.len() as u64);
                    return Err(ProtocolError(
                        "an answer with an id that no request outstanding has".to_owned(),
                    ));
                }
            }
            Matching::First(wanted) => {
                if wanted.as_ref().is_some_and(|wanted| wanted.unexpected_body(body).is_some()) {
                    return Ok(());
                }
                if self.outstanding.is_empty() {
                    marks.unasked(body.len() as u64);
                    return Err(ProtocolError(
                        "a message that no request outstanding asked for".to_owned(),
                    ));
                }
                let json = if needs_json { parsed() } else { None };
                self.answer(0, body, json.as_ref(), marks);
            }
        }
        Ok(())
    }

    /// Ends a transaction with its answer.
    fn answer(&mut self, place: usize, body: &[u8], json: Option<&Value>, marks: &mut Marks) {
        let outstanding = self.outstanding.remove(place).expect("the caller has found it");
        let message = &self.messages.list[outstanding.kind as usize];
        let bytes_in = u32::try_from(body.len()).unwrap_or(u32::MAX);
        match self.failure(message, body, json) {
            None => marks.reached(outstanding.tx, COMMITTED, 0, bytes_in),
            Some((outcome, words)) => {
                self.text.clear();
                append(self.text, &words);
                marks.ended(outstanding.tx, outcome, 0, bytes_in, self.text);
            }
        }
        self.spare.push(outstanding);
    }

    fn failure(
        &self,
        message: &Message,
        body: &[u8],
        json: Option<&Value>,
    ) -> Option<(Outcome, String)> {
        let error = self.messages.error.as_ref().and_then(|rule| rule.find(json));
        let expects = &message.expects;
        error.or_else(|| expects.unexpected_body(body))
    }

    /// The server closes: everything outstanding ends as its code says.
    fn closed(&mut self, code: u16, reason: &str, marks: &mut Marks) {
        for outstanding in self.outstanding.drain(..) {
            self.text.clear();
            let _ = write!(self.text, "closed: {code} {}", close::name(code));
            if !reason.is_empty() {
                self.text.push_str(": ");
                append(self.text, reason);
            }
            marks.ended(outstanding.tx, close::outcome(code), code, 0, self.text);
            self.spare.push(outstanding);
        }
    }
}

fn append(text: &mut String, words: &str) {
    let printable = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    text.extend(printable.take(WORDS_CHARS_MAX));
}

const fn opcode(is_binary: bool) -> Opcode {
    if is_binary { Opcode::Binary } else { Opcode::Text }
}

fn write(rng: &mut Rng, opcode: Opcode, out: &mut Vec<u8>, body: &[u8]) {
    let [a, b, c, d, ..] = rng.next_u64().to_le_bytes();
    write_frame(out, opcode, Some([a, b, c, d]), |out| out.extend_from_slice(body));
}

fn refused(error: WebSocketError) -> ProtocolError {
    ProtocolError(error.to_string())
}
