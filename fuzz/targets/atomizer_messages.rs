//! Messages of the atomizer's nodes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| atomizer_node::protocol::fuzz_messages(bytes));
