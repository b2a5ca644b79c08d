//! A client's bytes to the canary, frames and HTTP, cut into pieces; and the answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| echo_node::fuzz_frames(bytes));
