//! Counts of a reader of a share of a run's rows, added to a report.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| analysis::fuzz_counts(bytes));
