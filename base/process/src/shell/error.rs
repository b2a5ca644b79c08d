//! Why a node could not be served, for people.

use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// An address could not be bound.
    #[error(
        "listening for `{name}` on {address}: {source}; choose another address, or port 0 for any free one"
    )]
    Bind {
        /// The listener.
        name: String,
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody can be told that the node is ready.
    #[error("writing the ready line to standard output: {0}")]
    Announce(io::Error),
    /// Signals cannot be caught.
    #[error("catching SIGTERM and SIGINT: {0}")]
    Signals(io::Error),
    /// The parent's pipe is not one.
    #[error(
        "watching standard input for its end: {0}; it must be a pipe whose other end the parent keeps open"
    )]
    ParentPipe(io::Error),
    /// What the node keeps cannot be kept.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// A machine has no thread.
    #[error("starting the thread of a machine: {0}")]
    Thread(io::Error),
    /// Anything else that the event loop needs.
    #[error("the event loop: {0}")]
    Kernel(Errno),
}
