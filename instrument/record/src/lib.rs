//! The run folder: the record on disk is the only bridge from the load to everything after it. This crate
//! writes it and reads it, and is the only one that knows its formats.
//!
//! It computes nothing that a report shows: no quantile, no rate, no verdict.
//!
//! ```text
//! runs/<utc>_<name>/          RunFolder. Names are made safe by folder_name
//!   plan.toml                 the experiment as resolved
//!   environment.json          host, tool, command
//!   summary.json              the result document
//!   baseline-names.txt        names that users gave it: src/baseline_names.rs
//!   experiment.toml, …        texts that the app adds
//!   seal.sha256               SHA-256 of every file but the reports, at the end of the run: src/digest.rs
//!   settings/<key>/trial-<n>/ TrialFolder
//!     trial.json              facts; `complete` is false until the trial has ended
//!     rows.log                while the load runs, and after a crash: src/row_log.rs
//!     transactions.parquet    after sealing, one row a transaction: src/transactions.rs
//!     latency.hlog            after sealing, HdrHistogram V2 interval log: src/interval_log.rs
//!     observations.log          while the load runs, if anything is observed: src/observation_log.rs
//!     observations.parquet      after sealing: src/observations.rs
//!     metrics.parquet, events.parquet, ledger.parquet: src/tables.rs
//!     stages.parquet          what nodes stamped, by second: src/stage_columns.rs
//!     traces.parquet          spans of sampled transactions: src/traces.rs
//!     rows-PART.log             while agents carry out parts of the load: src/part_logs.rs
//!     faults.ndjson           what faults did, an event a line, as it happens: src/line_log.rs
//!     events.ndjson, metrics.ndjson: the same of what goes into their Parquet files, until these are there
//!     seal.json               length and CRC-32 of each finished Parquet file and of the interval log
//! ```
//!
//! Files and folders are their owner's alone (0600, 0700), and no text in them holds a secret that is known
//! ([`model::secret`]). Nothing in the folder holds an absolute path: a copy reads the same. Every file but the row log
//! and those of lines (.ndjson) appears whole or not at all (written beside, synced, renamed). A trial's rows are read from
//! the Parquet file once seal.json names it, else from the row log; a reader never needs to know which.
//!
//! Files may be damaged, or a stranger's: only regular ones are opened, no link is followed, sizes are checked before memory
//! is taken, checksums before Parquet is parsed, and every error names the file and what to do.

mod baseline_names;
mod carried;
mod columns;
mod counted;
mod digest;
mod disk;
mod documents;
mod error;
mod folder;
mod follow;
mod frames;
mod fuzz;
mod histogram_v2;
mod hold;
mod interval_log;
mod line_log;
mod name;
mod node_events;
mod numbered_words;
mod observation_log;
mod observations;
mod part_logs;
mod resume;
mod row_code;
mod row_log;
mod sampled_spans;
mod seal;
mod secret_files;
mod slots;
mod stage_columns;
mod tables;
mod traces;
mod transactions;
mod transactions_file;
mod trial;
mod trial_tables;

pub use counted::{Counted, CountedTrial, RowsMark, Share};
pub use digest::{DIGESTS, FilesSeal, SIGNATURE};
pub use error::RecordError;
pub use folder::RunFolder;
pub use follow::TrialFollower;
pub use fuzz::{fuzz_run_folder, fuzz_run_folder_and_parquet};
pub use histogram_v2::next_number as next_histogram_number;
pub use hold::RunHold;
pub use line_log::{EventLog, FaultLog, MetricLog};
pub use name::folder_name;
pub use node_events::NodeEventsWriter;
pub use observation_log::ObservationLogWriter;
pub use part_logs::PartLog;
pub use row_log::RowLogWriter;
pub use secret_files::{each_file, find_secrets, mask_secrets, remove_private_keys};
pub use stage_columns::StageSecond;
pub use transactions_file::TransactionsFile;
pub use trial::{RowsRead, TrialFolder};
pub use trial_tables::LedgerWriter;

/// The most rows that a batch holds.
pub const BATCH_ROWS_MAX: usize = row_log::FRAME_ROWS_MAX;
