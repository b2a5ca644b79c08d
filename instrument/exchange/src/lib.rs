//! Results in the files of other tools, and in ours: rows from and to CSV, NDJSON, Parquet and vegeta's
//! results; percentiles from and to HdrHistogram's files.
//!
//! It converts and never judges: no verdict, no interval, no repair. What a format cannot hold is left out and
//! counted in the [`Notes`], or the conversion is refused with the reason. Rows stream through in batches, so
//! memory does not follow their number. Files of the run folder's formats are read and written through `record`.
//!
//! ```text
//! RowsInput ──rows──► write_rows (csv, ndjson, vegeta) · stage_rows (parquet, hlog)
//!                 └─► Latencies → Percentiles → hgrm          VegetaTally → VegetaResult → crate report
//! hlog, hgrm ───────► Percentiles → hgrm, csv, ndjson, json
//! ```

mod cells;
mod delimited;
mod error;
mod event_sampler;
mod format;
mod fuzz;
mod histogram_v2;
mod lines;
mod names;
mod outcome_of_status;
mod percentiles;
mod rows_in;
mod rows_out;
mod staged;
mod tally;
mod vegeta_report;
mod vegeta_result;

pub use error::ExchangeError;
pub use event_sampler::{
    SAMPLER_EVENTS, SAMPLER_RECORD_BYTES, SamplerNotes, SamplerRecord, fuzz_event_sampler,
    read_event_sampler, write_event_sampler,
};
pub use format::{Format, Holds, read_hgrm, read_hlog};
pub use fuzz::fuzz_results;
pub use names::Names;
pub use percentiles::{Percentile, Percentiles, hgrm_text};
pub use rows_in::{Notes, RowsInput};
pub use rows_out::write_rows;
pub use staged::stage_rows;
pub use tally::{Summary, summarise};
pub use vegeta_report::read_vegeta_json;
