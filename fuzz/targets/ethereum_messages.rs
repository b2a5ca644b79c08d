//! What an Ethereum node says: replies to submissions, heads and answers to an observer, cut into pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ethereum_adapter::fuzz_ethereum(bytes));
