//! The adapter of PostgreSQL: all that the instrument sees of it. It makes a database cluster in the folder that the
//! testbed gives the node and starts a server on it, as an unprivileged user (or attaches to a server that runs),
//! sends prepared statements in a pipeline, and reads back what the server holds.
//!
//! `options` reads the experiment, `messages` is the wire protocol, `statements` the SQL of each workload, `workload`
//! makes transactions, `session` is the protocol on a connection of the load, `observing` what it keeps of reads,
//! `cluster` makes and starts the server, `control` asks it beside the load, `durability` quotes what it promises, `ledger`
//! reads back, `system` holds them together. It keeps no time of a transaction, opens no connection of the load and never retries.

mod cluster;
mod control;
mod durability;
mod fuzz;
mod ledger;
mod messages;
mod observing;
mod options;
mod session;
mod statements;
mod system;
#[cfg(test)]
mod tests;
mod workload;

pub use fuzz::fuzz_messages;

/// The line in the list of systems. The check `commit-order` is not among them: positions are drawn from a sequence
/// inside the transaction, so they agree with real time and not with the order of commits.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "postgres",
    summary: "a PostgreSQL server: what it keeps when it is killed or loses its power, and what its isolation levels allow",
    build: options::build,
    targets: sut::attached,
    serve: None,
    checks: &[isolation::checks::CONSERVED, isolation::checks::LIST_APPEND],
};
