//! The words of a NATS server: its lines and messages, and the answers of a connection of the load, cut into pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nats_adapter::fuzz_messages(bytes));
