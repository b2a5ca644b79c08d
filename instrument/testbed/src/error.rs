//! Why the testbed could not do what it was asked. It holds words for people, never a decision.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use model::quantity::show_duration;

/// Why the testbed could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A name that cannot be a file's name.
    #[error("`{0}` cannot be the name of a node; use letters, digits, `-`, `_` and `.`")]
    BadName(String),
    /// Two nodes of one name.
    #[error("there is a node `{0}` already; give each node a name of its own")]
    NameTaken(String),
    /// Nothing of that name.
    #[error("there is no node `{name}`; {known}")]
    NoSuchNode {
        /// The name.
        name: String,
        /// Those that there are, in words.
        known: String,
    },
    /// The log cannot be written.
    #[error("the log of node `{node}` cannot be written to {}: {source}; make the folder writable", path.display())]
    Log {
        /// The node.
        node: String,
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("node `{node}` could not be started with {}: {source}; {hint}", program.display())]
    Start {
        /// The node.
        node: String,
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What to do next.
        hint: String,
    },
    /// A node that is a program of its own is not there.
    #[error("{name} is not there: looked for {looked}; run: assay doctor --install {name}")]
    NoProgram {
        /// The program.
        name: String,
        /// Where it was looked for, in words.
        looked: String,
    },
    /// The watching processes could not be started.
    #[error(
        "the guard that ends the nodes if this process is killed could not be started: {0}; /bin/sh must be there"
    )]
    Guard(io::Error),
    /// It ended while it was waited for.
    #[error("node `{node}` ended before it was ready: {how}; {}", tail(log))]
    EndedBeforeReady {
        /// The node.
        node: String,
        /// How it ended.
        how: String,
        /// Its last lines.
        log: String,
    },
    /// It took too long.
    #[error("node `{node}` was not ready after {}; {}", show_duration(*waited), tail(log))]
    NotReady {
        /// The node.
        node: String,
        /// How long it was waited for.
        waited: Duration,
        /// Its last lines.
        log: String,
    },
    /// Somebody stopped the waiting.
    #[error("stopped by request, before node `{0}` was ready")]
    Stopped(String),
    /// It has ended, so nothing can be done to it.
    #[error("node `{node}` cannot be asked to {action}: it has ended ({how})")]
    NotRunning {
        /// The node.
        node: String,
        /// What was to be done.
        action: &'static str,
        /// How it ended.
        how: String,
    },
    /// A signal was refused.
    #[error("node `{node}` cannot be asked to {action}: {source}")]
    Signal {
        /// The node.
        node: String,
        /// What was to be done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It would not end.
    #[error(
        "{0} did not end after SIGKILL; look for a process that is stuck in the kernel (state D in ps)"
    )]
    Stuck(String),
    /// No port.
    #[error("no free port on 127.0.0.1: {0}; see /proc/sys/net/ipv4/ip_local_port_range")]
    Port(io::Error),
    /// It runs already.
    #[error("node `{0}` cannot be started: it runs")]
    Runs(String),
    /// The testbed is being taken down.
    #[error("node `{0}` cannot be started: the trial is over")]
    Over(String),
    /// The trial's own network could not be made, or cannot do that.
    #[error("the network of the plan's links: {what}")]
    Network {
        /// What is missing, and what to do.
        what: String,
    },
    /// A node's disk could not be made, or cannot do that.
    #[error("the disks of the plan: {what}")]
    Disk {
        /// What is missing, and what to do.
        what: String,
    },
    /// Something of the host could not be read or set.
    #[error("{what}: {source}")]
    Host {
        /// What was attempted, on what.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

fn tail(log: &str) -> String {
    if log.is_empty() { "it wrote nothing".to_owned() } else { format!("its last lines:\n{log}") }
}
