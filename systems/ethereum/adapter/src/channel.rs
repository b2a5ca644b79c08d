//! A connection to a node that speaks JSON-RPC over WebSocket, as a value: the handshake, then messages of text both ways.
//! Pings are answered. Masks and the handshake's key are drawn from a seed, so that repetitions send the same bytes.

use model::Seed;
use model::seed::Rng;
use sut::{Marks, ProtocolError};
use wire::websocket::{
    Client, Event, KEY_BYTES, Limits, Opcode, Opening, WebSocketError, write_frame,
};

/// Where nodes speak WebSocket.
const TARGET: &str = "/";

/// The state of a connection.
pub(crate) struct Channel {
    opening: Opening,
    /// Sent as soon as the connection speaks WebSocket; empty on a connection that submits.
    greeting: &'static str,
    rng: Rng,
    client: Client,
    /// What a message is to be answered with, as soon as it is read.
    answers: Vec<String>,
}

impl Channel {
    pub(crate) fn new(host: String, greeting: &'static str, seed: Seed) -> Self {
        Self {
            opening: Opening { host, target: TARGET.to_owned(), ..Opening::default() },
            greeting,
            rng: seed.rng(),
            client: Client::new(Limits::CLIENT),
            answers: Vec::new(),
        }
    }

    /// Asks for WebSocket.
    pub(crate) fn open(&mut self, out: &mut Vec<u8>) {
        let mut key = [0; KEY_BYTES];
        self.rng.fill(&mut key);
        self.client.open(out, &self.opening, key);
    }

    /// Whether the connection speaks WebSocket.
    pub(crate) const fn is_open(&self) -> bool {
        self.client.is_open()
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
        if !self.client.is_open() {
            let Some(head_bytes) = self.client.switch(bytes).map_err(refused)? else {
                return Ok(0);
            };
            used = head_bytes;
            if !self.greeting.is_empty() {
                let greeting = self.greeting.as_bytes();
                write(&mut self.rng, Opcode::Text, out, |out| out.extend_from_slice(greeting));
            }
        }
        loop {
            let progress = self.client.read(&bytes[used..]).map_err(refused)?;
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
        self.client.reset();
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
