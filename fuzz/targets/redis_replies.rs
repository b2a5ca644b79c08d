//! What a Redis server says: replies of every form, and the answers of a connection of the load, cut into pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redis_adapter::fuzz_resp(bytes));
