//! Experiment file → Options (as typed) → Plan (as resolved): one function between, [`resolve`].
//!
//! The way of a value: [`parse`] makes a tree with positions of each source, [`layer`] lays the sources over
//! each other, [`matrix`] makes one tree a setting, [`setting`] and [`load`] read each of these in full, so
//! that nothing in a [`Plan`] is optional by accident. Every mistake is kept with its place, and
//! [`Rejected`] shows them all at once.
//!
//! This crate does no I/O and reads no clock: files, the names of systems, the kinds of fault and the grammar of
//! thresholds come in through [`Outside`]. It must never fill in a value that `assay check --explain` does not show, and
//! never pass over a key that it does not understand.

mod against;
mod arrival;
mod batch;
mod disk;
mod effective;
mod experiment;
mod fault;
mod fuzz;
mod input;
pub mod keys;
mod layer;
mod links;
mod load;
mod matrix;
mod order;
pub mod outline;
mod parse;
mod promise;
mod quick;
mod rejected;
mod search;
mod secret;
mod setting;
mod shape;
mod steps;
mod table;
mod trace;
mod until;

pub use against::{SIDE_AXIS, SIDES, trial_seed};
pub use fuzz::fuzz_experiment;
pub use input::{
    CheckNames, Effective, Input, Mistake, Outside, Resolved, SETTINGS_MAX, SOURCE_BYTES_MAX,
    SOURCES_MAX, Source, TRANSACTIONS_MAX, TRIALS_MAX,
};
pub use outline::{Outline, OutlineSetting, outline};
pub use quick::{UrlRun, from_url, is_url, search_over};
pub use rejected::{Rejected, file_and_line, reject};
pub use search::add_search_trial;
pub use secret::{redact, redact_plan, taint, taint_plan};

/// The JSON Schema of the experiment file (`assay schema experiment`).
pub const EXPERIMENT_SCHEMA: &str = include_str!("../schema/experiment.schema.json");

/// Resolves an experiment.
///
/// # Errors
/// With every mistake that was found in any of the sources.
pub fn resolve(input: &Input<'_>) -> Result<Resolved, Rejected> {
    experiment::resolve(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a sentence that quotes a part of the expression points at that part, any other at all of it.
    #[test]
    fn sentences_point() {
        let mistake = Mistake::from_sentence("a < p9x", "`p9x` is no number; did you mean `p99`?");
        assert_eq!((mistake.start, mistake.end), (4, 7));
        assert_eq!(mistake.message, "`p9x` is no number");
        assert_eq!(mistake.help.as_deref(), Some("did you mean `p99`?"));
        let mistake = Mistake::from_sentence("a < b", "`c` is not there");
        assert_eq!((mistake.start, mistake.end, mistake.help), (0, 0, None));
    }
}
