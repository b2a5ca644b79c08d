//! A ledger without consensus of its own: a queue, pipelines that make blocks of its batches, a timestamp service and a
//! sequencer that sign, and object stores that hold everything; whoever reads it verifies it without trusting any of them but
//! for two signatures.
//!
//! The modules in the order of the data path. What is not behind the feature `server` is values: no socket, file or runtime.
//! It knows no instrument.

pub mod chain;
pub mod data;
pub mod delay;
pub mod fault;
pub mod fuzz;
pub mod keys;
pub mod known;
pub mod note;
pub mod pieces;
pub mod pipeline;
pub mod protocol;
pub mod queue;
pub mod sequencer;
pub mod service;
pub mod timestamp;
pub mod verify;

#[cfg(feature = "server")]
mod asking;
#[cfg(feature = "server")]
mod audit;
#[cfg(feature = "server")]
mod bucket;
#[cfg(feature = "server")]
mod client;
#[cfg(feature = "server")]
mod config;
#[cfg(feature = "server")]
mod http_client;
#[cfg(feature = "server")]
mod inherited;
#[cfg(feature = "server")]
mod lifecycle;
#[cfg(feature = "server")]
mod making;
#[cfg(feature = "server")]
mod metrics_door;
#[cfg(feature = "server")]
mod probe;
#[cfg(feature = "server")]
mod program;
#[cfg(feature = "server")]
mod proof;
#[cfg(feature = "server")]
mod reading;
#[cfg(feature = "server")]
mod services;
#[cfg(feature = "server")]
mod storage;
#[cfg(test)]
mod tests;
#[cfg(feature = "server")]
mod watch;
#[cfg(feature = "server")]
mod witness;
#[cfg(feature = "server")]
pub use program::run;
