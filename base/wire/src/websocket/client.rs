//! A client's connection: the opening handshake, then events. It answers nothing by itself: a ping is an event.

use super::handshake::{Handshake, KEY_BYTES, Opening, write_handshake};
use super::limits::{Limits, WebSocketError};
use super::messages::{MessageReader, Progress, Sender};

/// The connection.
#[derive(Clone, Debug)]
pub struct Client {
    limits: Limits,
    handshake: Option<Handshake>,
    is_open: bool,
    reader: MessageReader,
}

impl Client {
    /// One that is not open yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let reader = MessageReader::new(Sender::Server, limits);
        Self { limits, handshake: None, is_open: false, reader }
    }

    /// Asks for WebSocket, with a key that the caller has drawn.
    pub fn open(&mut self, out: &mut Vec<u8>, opening: &Opening, key: [u8; KEY_BYTES]) {
        write_handshake(out, opening, key);
        self.handshake = Some(Handshake::new(key, &self.limits).offering(&opening.protocols));
    }

    /// Whether the server speaks WebSocket.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Reads the answer to the handshake at the beginning of `bytes`. Gives its length; `None` while it is incomplete.
    ///
    /// # Errors
    /// When the server does not switch, or not as it was asked to; the connection is then lost.
    pub fn switch(&mut self, bytes: &[u8]) -> Result<Option<usize>, WebSocketError> {
        let handshake = self.handshake.as_ref().ok_or(WebSocketError::Head)?;
        let length = handshake.read(bytes)?;
        self.is_open = length.is_some();
        Ok(length)
    }

    /// Reads frames: `bytes` begins with what the last call left unused. Call again with the rest while it gives events.
    ///
    /// # Errors
    /// When its bytes are not of the protocol, or go beyond a bound; the connection is then lost.
    pub fn read<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Progress<'a>, WebSocketError> {
        self.reader.read(bytes)
    }

    /// Forgets the connection and keeps the memory.
    pub fn reset(&mut self) {
        self.handshake = None;
        self.is_open = false;
        self.reader.reset();
    }
}
