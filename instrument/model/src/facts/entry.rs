//! Records that are kept line by line beside the rows: samples, events, entries of a ledger.

use clock::WallTime;
use serde::{Deserialize, Serialize};

use crate::row::Stamp;

/// Names the version of `metrics.ndjson`.
pub const METRICS_SCHEMA: &str = "assay.metrics/1";

/// One sample of a series: `metrics.parquet` holds these in long form, and `metrics.ndjson` while the load runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    /// Nanoseconds after the trial's start.
    pub at: Stamp,
    /// `generator`, `host`, or a node's name.
    pub source: String,
    /// The series' name; what it is stands in the trial's declared series.
    pub name: String,
    /// Its value.
    pub value: f64,
}

/// Names the version of `events.ndjson`.
pub const EVENTS_SCHEMA: &str = "assay.events/1";

/// Something that happened at a time: `events.parquet`, and `events.ndjson` while the load runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds after the trial's start.
    pub at: Stamp,
    /// `late_answer`, `duplicate_answer`, `phantom_answer`, `protocol_error`, `connect_failure`,
    /// `connection_lost`, `phase`, `mark`. What faults did is not among them: it stands in faults.ndjson.
    pub name: String,
    /// The transaction, if it is about one.
    pub tx: Option<u64>,
    /// In words.
    pub detail: String,
}

/// The longest content of a ledger entry that is kept for a check that asks for it. A longer one is left out and
/// counted.
pub const LEDGER_CONTENT_BYTES_MAX: usize = 64 << 10;

/// One entry of a system's ledger, as its adapter read it back: `ledger.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Place in the ledger's own order, ascending.
    pub position: u64,
    /// The transaction that the entry claims to be.
    pub tx: u64,
    /// Whether the entry carries this trial's mark and its checksum holds. False: it is not this trial's.
    pub ours: bool,
    /// Whether it is logged, and refused by the system's rules all the same: it had no effect.
    pub is_refused: bool,
    /// Whether it is not recorded, but waits in the system's own pool: nothing has become of it yet.
    pub is_waiting: bool,
    /// The block, batch or segment that it stands in, in the ledger's own numbers; 0 = the ledger has none.
    pub block: u64,
    /// When it was submitted, as the entry itself says; absent if it does not say.
    pub submitted: Option<WallTime>,
    /// When it was recorded, as the ledger says, by whatever clock the system has; absent if it does not say.
    pub recorded: Option<WallTime>,
}

impl LedgerEntry {
    /// An entry of a ledger that knows neither blocks nor times.
    #[must_use]
    pub const fn new(position: u64, tx: u64, ours: bool) -> Self {
        Self {
            position,
            tx,
            ours,
            is_refused: false,
            is_waiting: false,
            block: 0,
            submitted: None,
            recorded: None,
        }
    }
}
