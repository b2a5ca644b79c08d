//! The node of the replicated key-value database. It has never heard of Assay.
//!
//! [`database`] is the state machine: deterministic, without I/O and without a clock.

pub mod database;
