//! Files to make an experiment of: HAR recordings, OpenAPI descriptions, target files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http_adapter::fuzz_import(bytes));
