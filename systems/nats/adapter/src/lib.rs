//! The adapter of NATS JetStream: all that the instrument sees of it. It starts a server or a cluster of them in the folders
//! that the testbed gives the nodes (or attaches to servers that run), publishes to a stream, and reads the stream back
//! with a consumer on another server than the one that leads it.
//!
//! `options` reads the experiment, `messages` is the text protocol, `session` is that protocol on a connection of the
//! load, `servers` starts the cluster, `control` asks a server beside the load, `stream` makes the stream and reads it
//! back, `system` holds them together. It keeps no time of a transaction, opens no connection of the load and never
//! retries.

mod control;
mod durability;
mod fuzz;
mod messages;
mod options;
mod servers;
mod session;
mod stream;
mod system;
#[cfg(test)]
mod tests;
mod workload;

pub use fuzz::fuzz_messages;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "nats",
    summary: "NATS JetStream, one server or a cluster: what a stream keeps of what it has acknowledged",
    build: options::build,
    targets: sut::attached,
    serve: None,
    checks: &[],
};
