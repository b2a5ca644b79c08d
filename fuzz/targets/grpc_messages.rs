//! The body of a gRPC answer: messages with their lengths, split at any point.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| grpc_adapter::fuzz_grpc(bytes));
