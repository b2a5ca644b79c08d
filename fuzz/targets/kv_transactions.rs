//! Transactions, groups and snapshots of the key-value database.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kv_node::database::fuzz_transaction(bytes));
