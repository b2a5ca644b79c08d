//! From a recorded trial to a verdict that can be defended: summary, intervals, fates, audits, thresholds, tables.
//!
//! A pure function of the run folder: it reads no clock, draws no randomness and depends on no hash order, so
//! that the same folder gives the same bytes on any machine. It never talks to a system, never averages a
//! percentile, and never repairs a row: what is wrong with a row is counted, and an audit says so.
//!
//! The way of a row: [`TrialAnalysis::rows`] → dense tallies (`tally`, `latency`, `flow`, `vegeta`, `groups`,
//! `order`, `fates`) → [`model::result::TrialResult`] → `audits` → `thresholds` → `verdict`; then `tables` and
//! `knee` across settings.

mod audits;
mod beyond;
mod block;
mod checks;
mod combined;
mod connections;
mod families;
mod fates;
mod faults;
mod first_use;
mod flow;
mod folder;
mod foreign_names;
mod grid;
mod groups;
mod implicit;
mod knee;
mod lanes;
mod latency;
mod metric;
mod metric_list;
mod metric_names;
mod minutes;
mod names_listed;
mod node_stages;
mod nodes;
mod order;
mod page;
mod phases;
mod picture;
mod pool;
mod processor;
mod received;
mod resolution;
mod run;
mod sending;
mod silence;
mod stated;
mod steps;
mod tables;
mod tally;
#[cfg(test)]
mod testing;
mod threshold_expr;
mod thresholds;
mod timeline;
mod traces;
mod trial;
mod under_way;
mod vegeta;
mod verdict;
mod without_lag;

pub use audits::{audits_asked, names as audit_names};
pub use checks::Checks;
pub use folder::{AnalysisError, ChecksOf, analyse, analyse_with_picture};
pub use metric::{Metric, Unit, metric};
pub use metric_names::{check_metric, no_stage, percentiles_named};
pub use names_listed::{AuditListed, NumberListed, audits_listed, numbers};
pub use run::{RunInput, SettingInput, summarise};
pub use thresholds::check_threshold;
pub use trial::{TrialAnalysis, TrialInput};
pub use vegeta::Vegeta;

/// How percentiles are computed, for the report.
pub const PERCENTILE_METHOD: &str = "smallest recorded value v with count(≤ v) ≥ ceil(q·n), HdrHistogram with three \
     significant digits; 95 % intervals by batch means over blocks of time (widest of 5 to 30 blocks, Student's t), for \
     quantiles by a test at each value (order statistics of the effective number of independent samples); an end that the \
     samples cannot give is left open; thresholds compare the value over all that were due, no answer counting as \
     infinitely long";
