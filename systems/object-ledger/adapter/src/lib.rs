//! The adapter of the ledger on object stores: it starts every service as a node, loads the queue over its wire protocol,
//! verifies strongly by the ledger's own probe beside it, and has the fates of all transactions read from the buckets alone.
//! The program `object-ledger` is found and never built here: no library of a cloud is part of the instrument.
//!
//! `options` reads the experiment, `nodes` starts the services, `system` connects, `session` is the queue's protocol with the
//! frames of `frames`, `workload` makes transactions, `ledger` has them read back, `metrics` says what a service is asked
//! about itself.

mod frames;
mod fuzz;
mod ledger;
mod metrics;
mod nodes;
mod options;
mod session;
mod stages;
mod system;
#[cfg(test)]
mod tests;
mod workload;

pub use fuzz::fuzz_answers;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "object-ledger",
    summary: "a ledger on object stores: queue, pipelines, timestamps, sequencer, six buckets, and a probe that verifies strongly",
    build: options::build,
    targets: |_| Vec::new(),
    serve: None,
    checks: &[],
};
