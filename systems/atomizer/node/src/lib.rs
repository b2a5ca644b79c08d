//! The nodes of the atomizer: what puts transactions in order, what keeps its blocks, and what answers for them. They have
//! never heard of Assay.
//!
//! The way of a transaction, file by file: `protocol` reads it, `intake` gathers what vouches for it, `order` has its entry
//! decided, `machine` admits it (by what `spent` remembers) or discards it, `chain` holds the block that it is in,
//! `subscribers` are sent that, `archiver` stores it, `shard` learns from it what is spent, and `watchtower` says what became of it. Everything but `serve` runs in
//! virtual time.

pub mod archiver;
mod archivers;
pub mod chain;
mod dials;
pub mod intake;
pub mod machine;
pub mod node;
pub mod protocol;
mod serve;
pub mod shard;
pub mod spent;
pub mod stamps;
mod subscribers;
mod syncs;
pub mod watchtower;

pub use serve::serve;
pub use subscribers::Missed;
