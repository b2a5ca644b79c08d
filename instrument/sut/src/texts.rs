//! A connection that carries texts over WebSocket (RFC 6455), as a value: the handshake, then messages both ways. Pings are
//! answered. Masks and the handshake's key are drawn from a seed: they protect proxies from hostile pages, and here the same
//! bytes in every repetition are worth more.

use model::Seed;
use model::seed::Rng;
use wire::websocket::{
    Client, Event, KEY_BYTES, Limits, Opcode, Opening, WebSocketError, write_frame,
};

use crate::{Marks, ProtocolError, Received};

/// The number of the question that a reply of JSON-RPC answers, and the reply from there on. `None`: it does not begin as servers
/// write one; it may be a reply all the same.
#[must_use]
pub fn reply_id(text: &str) -> Option<(u64, &[u8])> {
    let rest = text.as_bytes().strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Nineteen digits fit 64 bits, whatever they are.
    if !(1..=19).contains(&digits) || (rest[0] == b'0' && digits > 1) {
        return None;
    }
    let (digits, rest) = rest.split_at(digits);
    let number = |sum: u64, digit: &u8| sum * 10 + u64::from(digit - b'0');
    Some((digits.iter().fold(0, number), rest))
}

/// The state of a connection.
#[derive(Debug)]
pub struct Texts {
    opening: Opening,
    /// Sent as soon as the connection speaks WebSocket.
    greeting: Option<String>,
    acknowledges: bool,
    rng: Rng,
    client: Client,
    /// Sent as soon as the message that they answer is read.
    answers: Vec<String>,
}

impl Texts {
    /// To this path of a host; `greeting` is the first text that is sent.
    #[must_use]
    pub fn new(host: String, target: &str, greeting: Option<String>, seed: Seed) -> Self {
        Self {
            opening: Opening { host, target: target.to_owned(), ..Opening::default() },
            greeting,
            acknowledges: false,
            rng: seed.rng(),
            client: Client::new(Limits::CLIENT),
            answers: Vec::new(),
        }
    }

    /// Each text that is not answered is acknowledged with a pong. Some servers write a message only when the one before is
    /// acknowledged, and a kernel that has nothing to send waits 40 ms before it acknowledges.
    #[must_use]
    pub fn acknowledging(self) -> Self {
        Self { acknowledges: true, ..self }
    }

    /// Asks for WebSocket.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        let mut key = [0; KEY_BYTES];
        self.rng.fill(&mut key);
        self.client.open(out, &self.opening, key);
    }

    /// Whether the connection speaks WebSocket.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.client.is_open()
    }

    /// Writes a text.
    pub fn write(&mut self, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.rng, Opcode::Text, out, body);
    }

    /// Reads all that has arrived and gives every text to `message`, which may leave texts to send. Gives how many bytes were
    /// used.
    ///
    /// # Errors
    /// Those of `message`; bytes that are no WebSocket; a binary message.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        marks: &mut Marks,
        mut message: impl FnMut(&str, &mut Vec<String>, &mut Marks) -> Result<(), ProtocolError>,
    ) -> Received {
        let Self { greeting, acknowledges, rng, client, answers, .. } = self;
        let mut used = 0;
        if !client.is_open() {
            let Some(head_bytes) = client.switch(bytes).map_err(refused)? else { return Ok(0) };
            used = head_bytes;
            if let Some(greeting) = greeting {
                write(rng, Opcode::Text, out, |out| out.extend_from_slice(greeting.as_bytes()));
            }
        }
        loop {
            let progress = client.read(&bytes[used..]).map_err(refused)?;
            used += progress.used;
            match progress.event {
                None => return Ok(used),
                Some(Event::Text(text)) => {
                    let result = message(text, answers, marks);
                    if *acknowledges && answers.is_empty() {
                        write(rng, Opcode::Pong, out, |_| {});
                    }
                    for answer in answers.drain(..) {
                        write(rng, Opcode::Text, out, |out| {
                            out.extend_from_slice(answer.as_bytes());
                        });
                    }
                    result?;
                }
                Some(Event::Ping(payload)) => {
                    write(rng, Opcode::Pong, out, |out| out.extend_from_slice(payload));
                }
                Some(Event::Pong(_)) => {}
                Some(Event::Close { .. }) => {
                    marks.close();
                    return Ok(used);
                }
                Some(Event::Binary(_)) => {
                    let message = "expected texts over WebSocket, got a binary message";
                    return Err(ProtocolError(message.to_owned()));
                }
            }
        }
    }

    /// Forgets the connection.
    pub fn reset(&mut self) {
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
