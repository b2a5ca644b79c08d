//! WebSocket (RFC 6455) as values: the opening handshake, frames written, messages read. Both sides are read,
//! because a test's server must understand what a client wrote.
//!
//! Goals: the same findings on any cut of the bytes, bounded, strict where the RFC says that a connection must
//! fail. It draws no randomness: the handshake's key and every mask come from the caller, and how unpredictable
//! they must be is the caller's to judge. Not goals: extensions (compression), subprotocols, TLS, timeouts.

mod client;
mod frame;
pub mod fuzz;
mod handshake;
mod limits;
mod messages;
mod peer;
#[cfg(test)]
mod tests;

pub use client::Client;
pub use frame::{CONTROL_BYTES_MAX, Opcode, write_frame};
pub use handshake::{Handshake, KEY_BYTES, Opening, accept_value, write_handshake};
pub use limits::{Limits, WebSocketError};
pub use messages::{Event, MessageReader, Progress, Sender};
pub use peer::{peer, write_text};
