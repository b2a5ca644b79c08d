//! Bytes from a node that serves metrics: the reader of Prometheus's text format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| testbed::fuzz_metrics(bytes));
