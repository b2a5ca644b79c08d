//! Results of a ledger that was read back: the fate of every transaction, and latency by its own times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::ClockRelation;

/// The fates of all transactions of the trial, by the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fates {
    /// Acknowledged and in the ledger once.
    pub once: u64,
    /// Of `once` and `duplicate`, those that were acknowledged and came into the ledger only between its two readings.
    pub acknowledged_early: u64,
    /// Acknowledged and not in the ledger, or there only as refused. Of kinds that the ledger records.
    pub lost: u64,
    /// Of `lost`, those that the ledger holds as refused.
    pub lost_as_refused: u64,
    /// In the ledger more than once (entries beyond the first).
    pub duplicate: u64,
    /// In the ledger, never submitted; or of a kind that it does not record.
    pub phantom: u64,
    /// Of `phantom`, entries of transactions whose kind the ledger does not record.
    pub phantom_unrecorded: u64,
    /// Without an answer in time, and in the ledger all the same.
    pub late: u64,
    /// Refused, and in the ledger all the same.
    pub refused_yet_present: u64,
    /// Refused or without an answer, and in the ledger as refused only: as it should be.
    pub refused_as_logged: u64,
    /// Entries that say of a transaction of this trial that it was refused.
    pub refused_entries: u64,
    /// Entries read.
    pub entries: u64,
    /// Ledger order that contradicts real time: an entry placed before one that was acknowledged before it was sent.
    pub reordered: u64,
    /// Up to 100 transaction ids for each fate but `once`.
    pub examples: BTreeMap<String, Vec<u64>>,
}

/// Latency as the ledger itself states it: recorded − submitted, over every entry that is the trial's own and has
/// both times, the warm-up's and duplicates included. The published report tools' definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatedLatency {
    /// Entries with both times.
    pub count: u64,
    /// Entries of this trial that lack one, because nothing was recorded after them; not in the figures.
    pub without_time: u64,
    /// Of `count`, entries beyond a transaction's first.
    pub duplicates: u64,
    /// Of `count`, those recorded before they were submitted: two clocks that disagree. Never clamped.
    pub negative: u64,
    /// Smallest.
    pub min_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Sample standard deviation (n − 1).
    pub stddev_ns: Option<f64>,
    /// p50.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// The clocks of the two times.
    pub clocks: ClockRelation,
}
