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
//!
//! ```
//! use sampler::clock::Clock;
//! use sampler::{Options, Reader, Sampler, Stage, What};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = std::env::temp_dir().join(format!("sampler-example-{}", std::process::id()));
//! let stages = [Stage::new("parse", "its bytes were read"), Stage::new("stored", "it was durable")];
//! let sampler = Sampler::create(&path, "service", &stages, Clock::start(), Options::default())?;
//! let mut ring = sampler.ring();
//! let begun = ring.now();
//! let parsed = ring.done(0, begun, 3);
//! ring.done(1, parsed, 3);
//! drop(ring);
//! let totals = sampler.close()?;
//! assert_eq!((totals.stages[0].transactions, totals.lost), (3, 0));
//!
//! let mut reader = Reader::open(std::io::BufReader::new(std::fs::File::open(&path)?))?;
//! let mut seen = Vec::new();
//! while reader.next(|record| seen.push((record.stage, record.what)))? {}
//! assert_eq!(seen, [(0, What::Count(3)), (1, What::Count(3))]);
//! assert_eq!(reader.problem(), None);
//! # std::fs::remove_file(&path)?;
//! # Ok(())
//! # }
//! ```

mod codec;
mod file;
#[doc(hidden)]
pub mod fuzz;
mod memory;
mod ring;
mod writer;

/// Instants and clocks, as stamps are made of them.
pub use clock;
pub use codec::{Record, Stage, What};
pub use file::{EventFileError, Head, Reader, StageTotals, Totals};
pub use ring::Ring;
pub use writer::{Options, Sampler};

/// The most stages of a file.
pub const STAGES_MAX: usize = 64;
