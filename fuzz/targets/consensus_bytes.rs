//! Bytes from another replica, and of a damaged log: messages, records, and a replica made of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| consensus::fuzz_consensus(bytes));
