//! The adapter of Kafka: all that the instrument sees of it. It starts one broker or three in the folders that the testbed
//! gives the nodes (or attaches to brokers that run), produces to a topic of one partition, and reads the partition back
//! with a consumer from offset 0.
//!
//! `options` reads the experiment, `wire` has the protocol's primitives, `messages` the requests and answers, `records` the
//! batches in them, `session` is that protocol on a connection of the load, `brokers` starts them, `control` asks a broker
//! beside the load, `topic` makes the topic and reads it back, `system` holds them together. It keeps no time of a
//! transaction, opens no connection of the load and never retries.

mod brokers;
mod control;
mod durability;
mod fuzz;
mod messages;
mod options;
mod records;
mod session;
mod system;
#[cfg(test)]
mod tests;
mod topic;
mod wire;
mod workload;

pub use fuzz::fuzz_answers;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "kafka",
    summary: "Kafka, one broker or three: what a partition keeps of what it has acknowledged",
    build: options::build,
    targets: sut::attached,
    serve: None,
    checks: &[],
};
