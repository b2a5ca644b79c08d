//! The answers of a Kafka broker: acknowledgements on connections of the load, cut into pieces, and what is asked beside it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kafka_adapter::fuzz_answers(bytes));
