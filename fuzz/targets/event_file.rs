//! Bytes of a file of events that a service stamped, in our form and in a published one.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sampler::fuzz::file(bytes);
    exchange::fuzz_event_sampler(bytes);
});
