//! The adapter of the canary: all that the instrument sees of it. It starts the node (or attaches to one),
//! speaks its frames or HTTP, and reads its ledger back. It keeps no time of a transaction, opens no connection
//! of the load and never retries.
//!
//! `options` reads the experiment and turns it into the node's command line, `session` and `http_session` are
//! the protocol, `nodes` starts them, `system` attaches and connects, `ledger` reads back, `control` asks the node things aside, `metrics`
//! declares what it says of itself, `content` and `register` test what the ledger holds and what reads returned.

mod client;
mod content;
mod control;
mod events;
mod http_session;
mod ledger;
mod metrics;
mod nodes;
mod options;
mod register;
mod session;
mod system;
#[cfg(test)]
mod tests;
mod workload;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "echo",
    summary: "the built-in canary: a queue whose theory is known, with a ledger, that lies on request",
    build: options::build,
    targets: sut::attached,
    serve: Some(echo_node::serve),
    checks: &[content::CHECK, register::CHECK],
};
