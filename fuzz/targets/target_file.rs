//! A user's target file, in each format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http_adapter::fuzz_targets(bytes));
