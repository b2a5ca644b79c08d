//! Results of other tools and ours: vegeta's, CSV, NDJSON, HdrHistogram's.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exchange::fuzz_results(bytes));
