//! Why a trial's load could not begin. What happens to a transaction is an outcome, never one of these.

/// Why the load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No connection could be opened at all.
    #[error("opening connections to {place}: {reason}; is the system up, and is this its address?")]
    Connect {
        /// Where to.
        place: String,
        /// Why not.
        reason: String,
    },
    /// The adapter could not make a connection's session.
    #[error("preparing connection {index}: {source}")]
    System {
        /// Which connection.
        index: u32,
        /// Why not.
        source: sut::SutError,
    },
    /// The plan asks for something that the engine cannot do.
    #[error("{0}")]
    Plan(String),
    /// The event loop could not be set up.
    #[error(
        "setting up the {driver} event loop: {reason}; ASSAY_DRIVER=epoll or io_uring chooses the other one"
    )]
    Driver {
        /// Which.
        driver: &'static str,
        /// Why not.
        reason: String,
    },
    /// The operating system refused something that is not a connection.
    #[error("{attempt}: {reason}")]
    Host {
        /// The operation that failed.
        attempt: &'static str,
        /// Why not.
        reason: String,
    },
}
