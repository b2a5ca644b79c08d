//! What the queue of the ledger on object stores answers to a connection of the load, cut into pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| object_ledger_adapter::fuzz_answers(bytes));
