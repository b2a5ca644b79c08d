//! The adapter against the contract, and against the node itself.
