//! The adapter of CometBFT: starts a testnet of real nodes (or attaches to one), submits transactions over the
//! WebSocket JSON-RPC, sees commits in blocks, and reads the chain back from another node. It keeps no time of a
//! transaction, opens no connection of the load and never retries.
//!
//! `options` reads the experiment; `transaction` and `loadtime` are what is submitted; `session` and `observer` are the protocol
//! on a connection, over `channel`; `answer` says what a reply means; `testnet` and `config_file` make and start
//! nodes; `rpc` asks nodes things aside; `ledger` reads the chain; `system` puts them together.

mod answer;
mod care;
mod config_file;
mod fuzz;
mod hexadecimal;
mod ledger;
mod loadtime;
mod manifest;
mod metrics;
mod observer;
mod options;
mod program;
mod rpc;
mod session;
mod settle;
mod sightings;
mod system;
mod testnet;
#[cfg(test)]
mod tests;
mod transaction;

pub use fuzz::fuzz_cometbft;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "cometbft",
    summary: "a network of CometBFT nodes: accepted by one, committed in a block, read back from another",
    build: options::build,
    targets: sut::attached,
    serve: None,
    checks: &[],
};
