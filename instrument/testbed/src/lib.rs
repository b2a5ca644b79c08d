//! Nodes as processes, and what the host and they use. (Skeleton.)

/// Why the testbed could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// In words.
    #[error("{0}")]
    Failed(String),
}

/// The nodes of one trial.
#[derive(Debug, Default)]
pub struct Testbed {}
