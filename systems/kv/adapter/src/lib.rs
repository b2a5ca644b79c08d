//! The adapter of the key-value database: all that the instrument sees of it. It starts the replicas (or attaches to them),
//! speaks their protocol, and reads their ledger back. It keeps no time of a transaction, opens no connection of the load
//! and never retries.
//!
//! `options` reads the experiment, `nodes` starts the replicas (`several` does for people),
//! `certificates` says who is who, `system` connects, `session` is the protocol, `observing` what it keeps of answers,
//! `workload` makes transactions, `control` asks a replica things aside, `ledger` reads back, `states` compares what replicas hold,
//! `care` empties the folder of one, `votes` is an operator who gives and takes votes, `metrics` declares what a replica says of itself.

mod care;
mod certificates;
mod control;
mod ledger;
mod metrics;
mod nodes;
mod observing;
mod options;
mod session;
mod several;
mod states;
mod system;
#[cfg(test)]
mod tests;
mod votes;
mod workload;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "kv",
    summary: "a replicated key-value database of our own: mini-transactions, once for each client, with a ledger of all of them",
    build: options::build,
    targets: sut::attached,
    serve: Some(several::serve),
    checks: &isolation::checks::ALL,
};
