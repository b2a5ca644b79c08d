//! The adapter of WebSocket servers (RFC 6455): a message out, the answer that belongs to it in, over and over on each connection,
//! many at once where answers carry an id. It opens no connection of the load, times nothing and retries nothing.
//!
//! The way of a message: `options` reads the experiment, `messages` is what it sends and how an answer is known, `workload` fills a
//! message in ahead of the due time, `session` sends it and reads the connection, and `close` says what a close code means.

mod close;
mod messages;
mod options;
mod session;
mod system;
#[cfg(test)]
mod tests;
mod workload;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "websocket",
    summary: "any WebSocket server: a message and the answer that matches it, many at once where answers carry an id",
    build: options::build,
    targets: options::targets,
    serve: None,
    checks: &[],
};
