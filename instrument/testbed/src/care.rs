//! What only a system knows about its nodes, for faults that take more than a signal.

/// Looks after the nodes of one system.
pub trait NodeCare: Send + Sync + std::fmt::Debug {
    /// Removes what a node that does not run has stored, so that it begins anew when it is started again. What
    /// it needs to be let in again (keys, configuration) stays.
    ///
    /// # Errors
    /// In words, when it cannot be done.
    fn wipe(&self, node: &str) -> Result<(), String>;

    /// Whether a node that was started again has what the others have.
    ///
    /// # Errors
    /// In words, when it cannot be found out (it does not answer yet).
    fn has_caught_up(&self, node: &str) -> Result<bool, String>;
}
