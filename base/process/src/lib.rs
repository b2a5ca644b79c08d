//! The shape of a node, and the two things that run one.
//!
//! A [`Node`] is a value that is told what happened and when, and says what to send, what to close and when to
//! be woken. It has no socket, no clock and no thread, so the same node runs in [`rehearsal`] (virtual time, no
//! kernel: tests against theory) and in [`shell`] (real TCP, one thread, one epoll).
//!
//! Besides connections a node may have peers that it dials, logs and cells on a disk ([`store`]), and other
//! machines beside it that it hands messages ([`shell::run_machines`]); what a start found on the disk is
//! [`Stored`]. Whether a connection is encrypted is the shell's business alone.
//!
//! This crate never interprets a byte and knows no system and no instrument.

mod node;
mod outputs;
pub mod rehearsal;
pub mod shell;
pub mod store;
mod stored;
#[cfg(test)]
mod tests;

pub use node::{Connection, Input, Node};
pub use outputs::{Outputs, host};
pub use stored::{Stored, StoredLog};
