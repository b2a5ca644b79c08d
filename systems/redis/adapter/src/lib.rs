//! The adapter of Redis: all that the instrument sees of it. It starts one server of the distribution in the folder
//! that the testbed gives the node (or attaches to one), sets keys, and reads them back.
//!
//! `options` reads the experiment, `session` is the protocol on a connection of the load, `system` starts and
//! attaches, `ledger` reads back, `control` asks the server aside, `durability` quotes what it promises, `resp` is its
//! protocol's replies.

mod control;
mod durability;
mod fuzz;
mod ledger;
mod options;
mod resp;
mod session;
mod system;
#[cfg(test)]
mod tests;

pub use fuzz::fuzz_resp;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "redis",
    summary: "a Redis server with an append-only file: what it keeps when it is killed or loses its power",
    build: options::build,
    targets: sut::attached,
    serve: None,
    checks: &[],
};
