//! The words of a PostgreSQL server: messages of every form, and the answers of a connection of the load, cut into pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| postgres_adapter::fuzz_messages(bytes));
