//! Files of a run folder, truncated and corrupt.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| record::fuzz_run_folder(bytes));
