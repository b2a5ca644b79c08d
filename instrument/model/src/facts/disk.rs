//! Facts of the testbed's own disks.

use serde::{Deserialize, Serialize};

/// The work of one disk of the testbed's own, and its cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskFacts {
    /// The node whose files are on it.
    pub node: String,
    /// Bytes that it takes.
    pub size: u64,
    /// Bytes that it held at the end of the load.
    pub used: u64,
    /// The smallest delay that was asked of it, other than none, nanoseconds; 0 = none was asked.
    pub delay_ns_min: u64,
    /// All that the kernel asked it for.
    pub all: DiskOperations,
    /// Reads that the kernel's own cache could not answer.
    pub reads: DiskOperations,
    /// Writes.
    pub writes: DiskOperations,
    /// Syncs: fsync, fdatasync, of files and of folders.
    pub syncs: DiskOperations,
    /// Names and attributes.
    pub names: DiskOperations,
    /// Bytes of those writes.
    pub bytes_written: u64,
    /// Writes that were refused because it was full.
    pub refused_full: u64,
    /// How often its power was cut.
    pub power_losses: u64,
    /// Bytes that were written and not synced when it was, and are gone, in sectors of 512.
    pub lost_bytes: u64,
    /// The same, and they survived.
    pub kept_bytes: u64,
    /// Names that were created, renamed or removed, and were as before.
    pub lost_names: u64,
    /// How often it had no room to keep apart what is synced and what is not, and made everything durable.
    pub written_back: u64,
    /// A small write and its sync before the load, as a program sees them, without any delay that was asked for:
    /// median, nanoseconds.
    pub round_trip_p50_ns: u64,
    /// The same, p99.
    pub round_trip_p99_ns: u64,
    /// Processor time of its threads, nanoseconds.
    pub cpu_ns: u64,
    /// Why it could not be relied on, in words; empty = it could.
    pub failed: String,
}

/// Requests of one sort to a disk, and the time that it added to the time that was asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskOperations {
    /// How often.
    pub calls: u64,
    /// Answered with an input/output error, as asked.
    pub errors: u64,
    /// Added, median, nanoseconds.
    pub own_p50_ns: u64,
    /// Added, p99.
    pub own_p99_ns: u64,
    /// Added, the most.
    pub own_max_ns: u64,
}
