//! The adapter of gRPC servers: unary calls and server streams over HTTP/2, their messages described by `.proto` files or by the
//! server's reflection, JSON in and out. It opens no connection of the load, times nothing and retries nothing.
//!
//! The way of a call: `options` reads the experiment, `described` finds its method and its messages (`reflection` asks the server
//! for them), `calls` writes what is the same each time, `workload` fills in the rest ahead of the due time, `session` sends it
//! and reads the answer with `messages`, and `status` says what its end means.

mod calls;
mod described;
mod fuzz;
mod messages;
mod options;
mod reflection;
mod session;
mod status;
mod system;
#[cfg(test)]
mod tests;
mod workload;

pub use fuzz::fuzz_grpc;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "grpc",
    summary: "any gRPC server: unary calls and server streams, by .proto files or by reflection, JSON in and out",
    build: options::build,
    targets: options::targets,
    serve: None,
    checks: &[],
};
