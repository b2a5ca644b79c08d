//! What the ledger on object stores reads: batches, blocks, tokens, attestations, proofs, pieces, frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| object_ledger_node::fuzz::fuzz_data(bytes));
