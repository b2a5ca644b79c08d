//! Bytes from a server: the HTTP/1.1 response parser, split at any point.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire::fuzz_response(bytes));
