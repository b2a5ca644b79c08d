//! What a program of an `exec` experiment says: lines of its channels, cut into pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exec_adapter::fuzz_line(bytes));
