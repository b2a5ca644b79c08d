//! What a session keeps of an answer, in each of the forms that checks read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolation::observation::fuzz(bytes));
