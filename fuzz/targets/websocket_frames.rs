//! Bytes from a WebSocket peer: the answer to a handshake and frames, split at any point.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire::fuzz_websocket(bytes));
