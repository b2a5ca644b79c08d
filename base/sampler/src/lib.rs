//! Events of a service's stages, stamped by the service itself: what it did, when it was done, how long it took, to how
//! many. Any service can embed it.
//!
//! Each thread has a [`Ring`] of its own: an event is a few stores, without a lock, without an allocation and without a
//! system call. A thread of the [`Sampler`] takes them out and writes them to a file that says itself what its stages are
//! called ([`Reader`] reads it). Counts by stage are kept apart from the records, so that a file can be held against them:
//! no record is ever lost silently. A thread that outruns the disk by a whole ring waits, and that is counted.
//!
//! It must never time anything for its user: stamps are readings of the user's clock, and what is taken from them is said
//! as it is given. What an event costs is measured when a sampler is made, and stands in its file.

mod codec;
mod file;
#[doc(hidden)]
pub mod fuzz;
mod memory;
mod ring;
mod writer;

pub use codec::{Record, Stage, What};
pub use file::{EventFileError, Head, Reader, StageTotals, Totals};
pub use ring::Ring;
pub use writer::{Options, Sampler};

/// The most stages of a file.
pub const STAGES_MAX: usize = 64;
