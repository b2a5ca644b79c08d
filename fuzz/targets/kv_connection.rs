//! What a client of the key-value database sends, and what anybody sends to a replica's listeners.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kv_node::fuzz_connection(bytes));
