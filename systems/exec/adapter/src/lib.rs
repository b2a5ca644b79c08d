//! Any program as a client or a whole system: lines of JSON over socket pairs that the program inherits (docs/exec.md).
//!
//! `options` reads the experiment, `program` starts the program and speaks with it beside the load by `control`, `lives` does
//! so with one that was started again, `session` is the protocol on a channel of the load, `line` the reading of its lines,
//! `steps` keeps the inner steps that it timed, `ledger` asks what the system holds. Other adapters start programs of their
//! own by [`Program`], as a probe beside their load. Nothing here may take what a program does wrong for the system's failure.

mod control;
mod fuzz;
mod ledger;
mod line;
mod lives;
mod options;
mod program;
mod session;
mod start;
mod steps;
mod system;
#[cfg(test)]
mod tests;
mod workload;

pub use fuzz::fuzz_line;
pub use line::{LINE_BYTES_MAX, Vocabulary};
pub use program::Program;
pub use session::LineSession;
pub use start::Start;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "exec",
    summary: "any program in any language: a client, or a whole system, in lines of JSON",
    build: options::build,
    targets: options::targets,
    serve: None,
    checks: &[],
};
