//! The adapter of Ethereum nodes: starts one (or attaches to one), submits signed transfers over WebSocket JSON-RPC, sees
//! them in blocks, and reads the chain back over HTTP. It keeps no time of a transaction, opens no connection of the load
//! and never retries.
//!
//! `options` reads the experiment; `accounts`, `rlp` and `transfer` make what is submitted, in the order that `course`
//! says; `session` and `observer` are the protocol on a connection, over `channel`; `answer` says what a reply means,
//! `view` is the chain as an observer sees it, `known` whose a hash is; `node` starts a node, `funds` gives accounts
//! something to send; `rpc` asks aside, `ledger` reads the chain, `checks` judge it; `system` puts them together.

mod accounts;
mod answer;
mod checks;
mod course;
mod funds;
mod fuzz;
mod hex;
mod known;
mod ledger;
mod node;
mod observer;
mod options;
mod rlp;
mod rpc;
mod session;
mod settle;
mod system;
#[cfg(test)]
mod tests;
mod transfer;
mod view;

pub use fuzz::fuzz_ethereum;
pub use node::{Which as NodeKind, Wish as NodeWish};
pub use rpc::Rpc;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "ethereum",
    summary: "an Ethereum node (anvil, geth, any): signed transfers, followed through pool and block to confirmations",
    build: options::build,
    targets: options::targets,
    serve: None,
    checks: checks::ALL,
};
