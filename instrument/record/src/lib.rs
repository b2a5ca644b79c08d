//! The run folder: the record on disk is the only bridge from the load to everything after it. This crate
//! writes it and reads it, and is the only one that knows its formats.
//!
//! It computes nothing that a report shows: no quantile, no rate, no verdict.

mod columns;
mod disk;
mod error;
mod folder;
mod fuzz;
mod interval_log;
mod name;
mod row_code;
mod row_log;
mod seal;
mod tables;
mod transactions;
mod trial;
mod trial_tables;

pub use error::RecordError;
pub use folder::RunFolder;
pub use fuzz::{fuzz_run_folder, fuzz_run_folder_and_parquet};
pub use name::folder_name;
pub use row_log::RowLogWriter;
pub use trial::{RowsRead, TrialFolder};
pub use trial_tables::LedgerWriter;

/// The most rows that a batch holds.
pub const BATCH_ROWS_MAX: usize = row_log::FRAME_ROWS_MAX;
