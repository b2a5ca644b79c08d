//! Bytes on a connection, as values: length-prefixed frames, HTTP/1.1 and WebSocket, for clients and for
//! servers, and the metrics that these serve over HTTP.
//!
//! Everything here is a function from bytes to findings. It never opens a socket, reads a clock, waits,
//! retries or logs, and it never trusts a byte: whatever arrives is parsed or refused, within named bounds.

pub mod frames;
pub mod http1;
pub mod http2;
pub mod metrics;
pub mod nats;
pub mod websocket;

pub use http1::fuzz::{fuzz_request, fuzz_response};
pub use websocket::fuzz::fuzz_websocket;
