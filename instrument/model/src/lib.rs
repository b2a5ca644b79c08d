//! The vocabulary of the instrument, as types: what the stages share instead of each other's code.
//!
//! Every word here is defined in GLOSSARY.md. This crate holds no I/O, reads no clock and takes no decision
//! that belongs to a stage; it may parse and print its own words (quantities, outcomes), so that a rate is
//! written the same way in a file, in a flag and in a report.

pub mod check;
pub mod comparison;
pub mod facts;
pub mod fault;
mod final_stages;
pub mod names;
pub mod node_events;
pub mod observation;
pub mod options;
pub mod outcome;
pub mod picture;
pub mod plan;
pub mod quantity;
pub mod result;
pub mod row;
pub mod secret;
pub mod seed;
pub mod series;
mod visible;

pub use clock::{Instant, WallTime};
pub use final_stages::FinalStages;
pub use observation::{OBSERVATION_BYTES_MAX, Observation, Observations};
pub use outcome::{Class, Outcome};
pub use row::{NO_STAMP, PROBE_BASE, Row, STAGES_MAX, STAMP_MAX_NS, Stamp, TxId};
pub use seed::Seed;
pub use visible::{is_invisible, visible, visible_lines};
