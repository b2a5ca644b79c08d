//! The adapter of etcd: all that the instrument sees of it. It starts a member or a cluster of them in the folders that the
//! testbed gives the nodes (or attaches to members that run), puts keys through the JSON gateway that etcd serves beside
//! its gRPC, over HTTP/1.1, and reads them back from another member.
//!
//! `options` reads the experiment, `gateway` is the gateway's requests and answers, `session` is a connection of the
//! load, `members` starts the cluster, `keys` reads back, `system` holds them together. It keeps no time of a
//! transaction, opens no connection of the load and never retries.

mod gateway;
mod keys;
mod members;
mod options;
mod session;
mod system;
#[cfg(test)]
mod tests;

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "etcd",
    summary: "etcd, one member or a cluster, through its JSON gateway: what it keeps of the puts that it has acknowledged",
    build: options::build,
    targets: options::targets,
    serve: None,
    checks: &[],
};
