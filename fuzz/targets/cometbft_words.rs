//! The words of a CometBFT node to submitters, observers and questions, cut into pieces; and a testnet's manifest.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cometbft_adapter::fuzz_cometbft(bytes));
