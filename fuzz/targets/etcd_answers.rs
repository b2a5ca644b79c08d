//! The words of a member of etcd: the answer to a put, and the frames of a connection of the load, cut into pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| etcd_adapter::fuzz_answers(bytes));
