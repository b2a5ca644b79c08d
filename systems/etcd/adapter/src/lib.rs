//! The adapter of etcd: all that the instrument sees of it. It starts a member or a cluster of them in the folders that the
//! testbed gives the nodes (or attaches to members that run), puts keys by gRPC over HTTP/2, as any client of etcd does, and
//! reads them back from another member, through the JSON gateway that etcd serves beside it.
//!
//! `options` reads the experiment, `keys` names keys and makes values, `session` is a connection of the load and `messages`
//! what it sends and reads, `members` starts the cluster, `ledger` reads back by the requests of `gateway`, `system` holds
//! them together. It keeps no time of a transaction, opens no connection of the load and never retries.

mod durability;
mod fuzz;
mod gateway;
mod keys;
mod ledger;
mod members;
mod messages;
mod options;
mod session;
mod system;
#[cfg(test)]
mod tests;

pub use fuzz::fuzz_answers;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "etcd",
    summary: "etcd, one member or a cluster, by gRPC: what it keeps of the puts that it has acknowledged",
    build: options::build,
    targets: sut::attached,
    serve: None,
    checks: &[],
};
