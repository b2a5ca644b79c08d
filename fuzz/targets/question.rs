//! What a server says to a question asked beside the load, cut at any point.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| testbed::ask::fuzz_ask(bytes));
