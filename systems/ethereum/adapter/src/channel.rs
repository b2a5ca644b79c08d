//! A connection to a node that speaks JSON-RPC over WebSocket, as a value: the handshake, then messages of text both ways.
//! Pings are answered. Masks and the handshake's key are drawn from a seed, so that repetitions send the same bytes.

use model::Seed;
use model::seed::Rng;
use sut::{Marks, ProtocolError};
use wire::websocket::{
    Event, Handshake, KEY_BYTES, Limits, MessageReader, Opcode, Sender, WebSocketError,
    write_frame, write_handshake,
};

/// Where nodes speak WebSocket.
const TARGET: &str = "/";

/// The state of a connection.
pub(crate) struct Channel {
    host: String,
    /// Sent as soon as the connection speaks WebSocket; empty on a connection that submits.
    greeting: &'static str,
    rng: Rng,
    handshake: Option<Handshake>,
    pub(crate) is_open: bool,
    reader: MessageReader,
    /// What a message is to be answered with, as soon as it is read.
    answers: Vec<String>,
}

impl Channel {
    pub(crate) fn new(host: String, greeting: &'static str, seed: Seed) -> Self {
        Self {
            host,
            greeting,
            rng: seed.rng(),
            handshake: None,
            is_open: false,
            reader: MessageReader::new(Sender::Server, Limits::CLIENT),
            answers: Vec::new(),
        }
    }

    /// Asks for WebSocket.
    pub(crate) fn open(&mut self, out: &mut Vec<u8>) {
        let mut key = [0; KEY_BYTES];
        self.rng.fill(&mut key);
        write_handshake(out, &self.host, TARGET, key);
        self.handshake = Some(Handshake::new(key, &Limits::CLIENT));
    }

    /// Writes a message of text.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.rng, Opcode::Text, out, body);
    }

    /// Reads what has arrived and gives every message of text to `message`, which may leave texts to send. Gives how many
    /// bytes were used.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        marks: &mut Marks,
        mut message: impl FnMut(&str, &mut Vec<String>, &mut Marks) -> Result<(), ProtocolError>,
    ) -> Result<usize, ProtocolError> {
        let mut used = 0;
        if !self.is_open {
            let handshake = self.handshake.as_ref();
            let handshake = handshake.ok_or_else(|| strange("bytes before the handshake"))?;
            let Some(head_bytes) = handshake.read(bytes).map_err(refused)? else { return Ok(0) };
            used = head_bytes;
            self.is_open = true;
            if !self.greeting.is_empty() {
                let greeting = self.greeting.as_bytes();
                write(&mut self.rng, Opcode::Text, out, |out| out.extend_from_slice(greeting));
            }
        }
        loop {
            let progress = self.reader.read(&bytes[used..]).map_err(refused)?;
            used += progress.used;
            match progress.event {
                None => return Ok(used),
                Some(Event::Text(text)) => {
                    let result = message(text, &mut self.answers, marks);
                    // Some servers write a message only when the one before is acknowledged, and a kernel that
                    // has nothing to send waits 40 ms before it acknowledges.
                    if self.answers.is_empty() && !self.greeting.is_empty() {
                        write(&mut self.rng, Opcode::Pong, out, |_| {});
                    }
                    for answer in self.answers.drain(..) {
                        write(&mut self.rng, Opcode::Text, out, |out| {
                            out.extend_from_slice(answer.as_bytes());
                        });
                    }
                    result?;
                }
                Some(Event::Ping(payload)) => {
                    write(&mut self.rng, Opcode::Pong, out, |out| out.extend_from_slice(payload));
                }
                Some(Event::Pong(_)) => {}
                Some(Event::Close { .. }) => {
                    marks.close();
                    return Ok(used);
                }
                Some(Event::Binary(_)) => return Err(strange("a binary WebSocket message")),
            }
        }
    }

    /// Forgets the connection.
    pub(crate) fn reset(&mut self) {
        self.handshake = None;
        self.is_open = false;
        self.reader.reset();
    }
}

fn write(rng: &mut Rng, opcode: Opcode, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let [a, b, c, d, ..] = rng.next_u64().to_le_bytes();
    write_frame(out, opcode, Some([a, b, c, d]), body);
}

fn refused(error: WebSocketError) -> ProtocolError {
    ProtocolError(error.to_string())
}

fn strange(what: &str) -> ProtocolError {
    ProtocolError(format!("{what}, which no node sends"))
}
