//! From a recorded trial to a verdict that can be defended: summary, intervals, fates, audits, thresholds, tables.
//!
//! A pure function of the run folder: it reads no clock, draws no randomness and depends on no hash order, so
//! that the same folder gives the same bytes on any machine. It never talks to a system, never averages a
//! percentile, and never repairs a row: an impossible row is counted, and an audit says so.
//!
//! The rooms stand in the order of the data, and none uses a later one: `figures` counts rows and entries, `audits`
//! tests the measurement by these figures, `names` gives each number its name, `judge` holds the numbers against
//! thresholds and comes to a verdict, `show` makes tables and the picture. [`TrialAnalysis`] walks a trial through them,
//! `run` does so with the trials of a run, and `folder` reads the files.

mod audits;
mod figures;
mod folder;
mod fuzz;
mod judge;
mod names;
mod run;
mod show;
#[cfg(test)]
mod testing;
mod trial;

pub use audits::{audits_asked, names as audit_names};
pub use figures::vegeta::Vegeta;
pub use folder::{AnalysisError, ChecksOf, analyse, analyse_trial, analyse_with_picture, count};
pub use fuzz::fuzz_counts;
pub use judge::checks::Checks;
pub use judge::search::seen;
pub use judge::thresholds::check_threshold;
pub use names::check_metric::{check_metric, no_stage};
pub use names::listed::{AuditListed, NumberListed, audits_listed, numbers};
pub use names::metric::{Metric, metric};
pub use names::metric_names::percentiles_named;
pub use names::unit::Unit;
pub use run::{PERCENTILE_METHOD, RunInput, SettingInput, summarise};
pub use trial::so_far::summarise_so_far;
pub use trial::{TrialAnalysis, TrialInput};
