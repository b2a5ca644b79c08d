//! What the page draws and the result document does not hold: densities, the slowest transactions, series and
//! bands over time. It is computed with the result from the same folder, and never stored.
//!
//! No number that a verdict rests on stands here only: columns of time, percentile curves and counts are in the
//! result ([`crate::result::Timeline`], [`crate::result::Distribution`]), so that the page and summary.json cannot
//! disagree.

use crate::node_events::Span;
use crate::plan::Axis;
use crate::row::{Row, TxId};

/// The buckets of a density picture: this many a factor of ten, from [`DENSITY_FROM_NS`] up.
pub const DENSITY_PER_DECADE: u32 = 24;
/// The lower edge of bucket 0, nanoseconds. What is faster falls into it.
pub const DENSITY_FROM_NS: i64 = 1_000;
/// Buckets in all: 1 µs to 10,000 s. What is slower falls into the last.
pub const DENSITY_BUCKETS: usize = 240;
/// The most transactions kept of each column of time: its slowest.
pub const SLOWEST_MAX: usize = 8;

/// The picture of a whole run.
#[derive(Clone, Debug, Default)]
pub struct RunPicture {
    /// The experiment file as it was written, secrets redacted; empty if the folder has none.
    pub experiment: String,
    /// plan.toml: every effective value.
    pub plan: String,
    /// The axes of the matrix in the order written.
    pub axes: Vec<Axis>,
    /// Files of the run folder that hold what was measured, by path.
    pub files: Vec<RawFile>,
    /// One a trial, in the order of the result's settings and trials.
    pub trials: Vec<TrialPicture>,
}

/// A file of the run folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawFile {
    /// Relative to the run folder.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32 of its content, as gzip and zip compute it.
    pub crc32: u32,
}

/// The picture of one trial. Columns are those of the result's timeline.
#[derive(Clone, Debug, Default)]
pub struct TrialPicture {
    /// The trial's folder, relative to the run folder: the same as in the result.
    pub path: String,
    /// The ladder.
    pub stages: Vec<String>,
    /// Index of the stage that counts as committed for the measured stream.
    pub final_stage: usize,
    /// By column: (bucket, count), ascending; response time of the measured stream to the final stage, by due time.
    pub density: Vec<Vec<(u8, u32)>>,
    /// Up to [`SLOWEST_MAX`] a column (by due time), by column, then slowest first: from due to when the outcome was
    /// known, whatever it was.
    pub slowest: Vec<SlowTransaction>,
    /// Kinds that `slowest` names.
    pub kinds: Vec<String>,
    /// Error texts that `slowest` names; entry 0 is empty.
    pub errors: Vec<String>,
    /// Warm-up, drain, steps, faults.
    pub bands: Vec<Band>,
    /// Moments worth a mark: connections lost, phases, what an adapter says. At most a few hundred.
    pub moments: Vec<Moment>,
    /// Generator, host and nodes. What they are stands in the result (`series`).
    pub series: Vec<Series>,
    /// Progress of several nodes, of each series that is progress.
    pub lanes: Vec<Lanes>,
    /// A few of the transactions whose spans nodes stamped: the slowest, and some of all others. By how long they took.
    pub traces: Vec<Trace>,
}

/// The most traces of a trial that are drawn.
pub const TRACES_MAX: usize = 24;
/// The most spans of one of them.
pub const TRACE_SPANS_MAX: usize = 64;

/// The way of one transaction, by client and nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The client's row, if it has one: stamps of nodes may be of no transaction known here.
    pub row: Option<Row>,
    /// The transaction.
    pub tx: TxId,
    /// Its spans, by time; `stage` is an index into the result's node stages. The first [`TRACE_SPANS_MAX`].
    pub spans: Vec<Span>,
    /// How many more there were.
    pub spans_left_out: usize,
}

/// One of a column's slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowTransaction {
    /// Its column.
    pub column: usize,
    /// Its row.
    pub row: Row,
}

/// A stretch of time that means something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Band {
    /// What.
    pub kind: BandKind,
    /// Nanoseconds after the trial's start.
    pub from_ns: i64,
    /// Its end; the same as its start for what cannot be undone.
    pub to_ns: i64,
    /// In words: `pause echo-0`, `120/s`.
    pub label: String,
}

/// The meaning of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BandKind {
    /// Load that is not counted.
    Warmup,
    /// After the last due time.
    Drain,
    /// A step of the schedule.
    Step,
    /// Something was disturbed.
    Fault,
}

impl BandKind {
    /// The word on the page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warmup => "warm-up",
            Self::Drain => "drain",
            Self::Step => "step",
            Self::Fault => "fault",
        }
    }
}

/// Something that happened at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds after the trial's start.
    pub at_ns: i64,
    /// The event's name.
    pub name: String,
    /// In words.
    pub detail: String,
}

/// A series of samples, by column of the timeline. NaN where there was no sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// `generator`, `host`, or a node's name.
    pub source: String,
    /// The metric's name, with its unit last.
    pub name: String,
    /// Lowest sample of each column.
    pub min: Vec<f64>,
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Highest sample of each column.
    pub max: Vec<f64>,
}

/// Whether a series is of a node: not of the instrument, the host, or of all nodes together.
#[must_use]
pub fn is_node(source: &str) -> bool {
    !matches!(source, "generator" | "host") && !source.starts_with(ALL_NODES)
}

/// A source without the digits at its end, and these: node-2 stands before node-10.
#[must_use]
pub fn natural_order(source: &str) -> (String, u64) {
    let stem = source.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), source[stem.len()..].parse().unwrap_or(0))
}

/// How several nodes stand in one series that is progress, by column of the timeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lanes {
    /// The series.
    pub name: String,
    /// The things counted, in words.
    pub unit: String,
    /// At most so far behind the highest a node is with the others.
    pub with_max: f64,
    /// At most so far behind it is near them.
    pub near_max: f64,
    /// One a node, in their natural order.
    pub lanes: Vec<Lane>,
}

/// One node's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// The node.
    pub source: String,
    /// How it stands.
    pub states: Vec<LaneState>,
    /// How far it has come, as last sampled; NaN where it did not answer.
    pub reached: Vec<f64>,
    /// How far it was behind the highest when it was sampled last; NaN where it did not answer.
    pub behind: Vec<f64>,
}

/// How a node stands in a column, from the best; merged columns show the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneState {
    /// With the highest.
    With,
    /// A little behind.
    Near,
    /// More behind.
    Far,
    /// It did not answer.
    Absent,
}

/// How the sources begin that say something of all nodes: `nodes.sum`, `nodes.mean`, `nodes.min`, `nodes.max`,
/// `nodes.median`.
pub const ALL_NODES: &str = "nodes.";

/// The density bucket of a response time.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a logarithm of at most 10^13, clamped to the buckets"
)]
pub fn density_bucket(ns: i64) -> u8 {
    let decades = (ns.max(DENSITY_FROM_NS) as f64 / DENSITY_FROM_NS as f64).log10();
    let bucket = (decades * f64::from(DENSITY_PER_DECADE) + 1e-9) as usize;
    u8::try_from(bucket.min(DENSITY_BUCKETS - 1)).expect("fewer than 256 buckets")
}

/// The lower edge of a density bucket, nanoseconds.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "an edge of a picture")]
pub fn density_edge_ns(bucket: u8) -> f64 {
    DENSITY_FROM_NS as f64 * 10f64.powf(f64::from(bucket) / f64::from(DENSITY_PER_DECADE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a value lies in the bucket whose edges enclose it, and the ends of the scale hold the rest.
    #[test]
    fn buckets_enclose_their_values() {
        for ns in [1_000, 1_001, 9_999, 10_000, 123_456_789, 5_000_000_000] {
            let bucket = density_bucket(ns);
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let value = ns as f64;
            assert!(density_edge_ns(bucket) <= value * (1.0 + 1e-9), "{ns}");
            assert!(value < density_edge_ns(bucket + 1) * (1.0 + 1e-9), "{ns}");
        }
        assert_eq!(density_bucket(-5), 0);
        assert_eq!(density_bucket(i64::MAX), 239);
    }
}
