//! The adapter of the atomizer: all that the instrument sees of it. It starts atomizers, archiver and watchtower, speaks
//! their protocol, and reads the archiver's disk. It keeps no time of a transaction, opens no connection of the load and
//! never retries.
//!
//! `options` reads the experiment, `nodes` starts the processes, `system` connects, `wallet` computes what transactions hold
//! and `workload` hands them out, `known` remembers which transaction a hash names, `session`, `archive` and `watch` are
//! the protocols, `ledger` reads the disk, `checks` judge what is on it, `stages` hands over what nodes stamped.

mod archive;
mod care;
mod checks;
mod known;
mod ledger;
mod metrics;
mod nodes;
mod options;
mod places;
mod session;
mod stages;
mod standing;
mod system;
#[cfg(test)]
mod tests;
mod wallet;
mod watch;
mod workload;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "atomizer",
    summary: "the atomizer of a published digital currency, with archiver and watchtower: orders spends and finds double ones",
    build: options::build,
    targets: options::targets,
    serve: Some(atomizer_node::serve),
    checks: &checks::ALL,
};
