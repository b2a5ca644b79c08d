//! The whole instrument in virtual time, for tests: an experiment's text → plan → load against a [`Script`] → run folder →
//! result → page, by the code that measures, without a kernel between. Every row, count and latency is then known before it
//! is measured, and a run is the same bytes each time.
//!
//! It never looks into a stage: what the command line does with the stages, it does here, for a system that is a script.

mod beside;
mod changed;
mod pipeline;
mod script;
mod stages;
mod toy;

pub use beside::Beside;
pub use changed::HonestRun;
pub use pipeline::{Ran, run, run_beside};
pub use script::{Law, Script};
pub use toy::Client;
