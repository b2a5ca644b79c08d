//! The node of the replicated key-value database. It has never heard of Assay.
//!
//! The way of a transaction, file by file: `protocol` reads it, `node` puts what has arrived into one entry, `order` has it decided, `database`
//! executes it, `ledger` keeps it where that was asked for, and the results leave. Everything but [`serve`] runs in virtual
//! time.

pub mod database;
mod fuzz;
pub mod ledger;
pub mod metrics;
mod node;
pub mod protocol;
mod serve;
#[cfg(test)]
mod tests;

pub use fuzz::fuzz_connection;
pub use metrics::Counts;
pub use node::{CLIENTS_LISTENER, KvNode, METRICS_LISTENER, PEERS_LISTENER};
pub use process::shell::Words;
#[doc(hidden)]
pub use serve::serve_broken;
pub use serve::{SEGMENT_BYTES_MIN, operator_key, serve};
