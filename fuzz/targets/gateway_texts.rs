//! What clients and the node of the Ethereum gateway send: paths, quantities, JSON, replies.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| eth_gateway_node::fuzz_gateway(bytes));
