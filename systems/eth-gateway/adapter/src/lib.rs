//! The adapter of the gateway to an Ethereum node: starts a node (one that is played, with a limiter; anvil; geth) and gives
//! it a chain, starts the gateway before it, writes the requests of a scenario from what the chain holds, and leaves the
//! load to the adapter of HTTP. It has no session of its own.
//!
//! `options` reads the experiment, `upstream` starts the node, `seeding` puts something on its chain with the token of
//! `token`, `targets` writes requests, `metrics` says what the gateway is asked about itself, `system` puts them together.

mod metrics;
mod options;
mod seeding;
mod system;
mod targets;
#[cfg(test)]
mod tests;
mod token;
mod upstream;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "eth-gateway",
    summary: "a REST gateway to an Ethereum node (played with a limiter, anvil, geth, any), with requests of the published study",
    build: options::build,
    targets: options::targets,
    serve: None,
    checks: &[],
};
