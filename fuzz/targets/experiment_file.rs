//! A user's experiment file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    plan::fuzz_experiment(bytes, testbed::fault_kinds());
});
