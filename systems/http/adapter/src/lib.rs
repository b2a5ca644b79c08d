//! The adapter of HTTP/1.1 servers: any URL, a single request or a file of targets, what a status means by a
//! table. It opens no connection of the load, times nothing, retries nothing and follows no redirect.
//!
//! The way of a target: `options` reads the experiment, `targets` the target file, `requests` writes every
//! request once, `workload` picks the next, `session` sends it and `rules` says what its answer means. A step of a [`flow`]
//! is written when it is sent, because it holds what earlier answers said.

pub mod borrowed;
mod expect;
mod fetch;
mod flow;
mod fuzz;
mod given;
mod http2_session;
mod import;
mod options;
mod outcome_table;
mod post;
mod preflight;
mod requests;
mod rules;
mod server;
mod session;
mod system;
mod targets;
mod tls;
mod url;
mod workload;

#[cfg(test)]
mod tests;

pub use fetch::fetch;
pub use fuzz::{fuzz_import, fuzz_targets};
pub use import::{IMPORT_BYTES_MAX, ImportOptions, Imported, experiment, import};
pub use post::Receiver;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "http",
    summary: "any HTTP/1.1 server: one request, a file of targets (vegeta's formats, lists of URLs), or flows of steps",
    build: options::build,
    targets: options::servers,
    serve: None,
    checks: &[],
};
