//! The plan: an experiment as resolved. Nothing in it is optional by accident: every default has been filled
//! in, the matrix is expanded, and each setting says in full what will be done.
//!
//! Plans made in code begin with a plain one: calibration, measuring aids and tests change the fields that they are about
//! and leave the others.
//!
//! `plan` (the crate) makes it, `load` and the adapters carry it out, `record` keeps it as plan.toml, and
//! `analysis` reads it from there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod abort;
mod disk;
mod fault;
mod links;
mod search;
mod words;

pub use abort::{ABORT_AFTER_MAX, AbortPlan, Hopeless};
pub use disk::{DiskChange, DiskPlan, DisksPlan, NamesRule, PowerLoss};
pub use fault::{CutWay, FaultPlan, FaultValue};
pub use links::{CLIENT, LinkChange, LinkPair, LinkPlan, LinksPlan, Through, is_meant};
pub use search::{SearchDeploy, SearchKey, SearchPlan};

use crate::final_stages::FinalStages;
use crate::options::Options;
use crate::quantity::{Rate, duration_text};
use crate::result::Verdict;
use crate::seed::Seed;

/// The schema of plan.toml that this version writes and reads.
pub const PLAN_SCHEMA: &str = "assay.plan/2";

/// A whole experiment, resolved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
    pub schema: String,
    /// A short name; also part of the run folder's name.
    pub name: String,
    /// The question that the experiment answers.
    pub question: String,
    /// The authors' notes, for the report.
    pub notes: String,
    /// The seed of the run; trial seeds are split from it.
    pub seed: Seed,
    /// Whether the trials are run in shuffled order (by the seed) or as written.
    pub shuffled: bool,
    /// Fractions of one that tables show, such as 0.5 and 0.99.
    pub percentiles: Vec<f64>,
    /// The chosen profile, or empty.
    pub profile: String,
    /// The axes of the matrix in the order written: name and labels.
    pub axes: Vec<Axis>,
    /// Each combination to measure.
    pub settings: Vec<SettingPlan>,
    /// (setting index, trial index) in the order to run.
    pub order: Vec<(usize, u32)>,
    /// The thresholds.
    pub thresholds: Vec<ThresholdPlan>,
    /// Tables that the report shows beside the standard ones.
    pub tables: Vec<TablePlan>,
    /// The search that adds settings while the run goes on; absent: all settings were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
}

impl Plan {
    /// One trial of each setting, as written, with nothing asked of its numbers.
    #[must_use]
    pub fn plain(name: &str, settings: Vec<SettingPlan>) -> Self {
        Self {
            schema: PLAN_SCHEMA.to_owned(),
            name: name.to_owned(),
            question: String::new(),
            notes: String::new(),
            seed: Seed(1),
            shuffled: false,
            percentiles: vec![0.5, 0.9, 0.95, 0.99, 0.999],
            profile: String::new(),
            axes: Vec::new(),
            order: (0..settings.len()).map(|setting| (setting, 0)).collect(),
            settings,
            thresholds: Vec::new(),
            tables: Vec::new(),
            search: None,
        }
    }
}

/// One axis of the matrix.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its labels in the order written.
    pub labels: Vec<String>,
}

/// One combination of the matrix.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingPlan {
    /// `rate=50/s,set=all`, or `default` without a matrix. Also the folder's name (with `/` written as `per`).
    pub key: String,
    /// Label by axis.
    pub values: BTreeMap<String, String>,
    /// How many trials.
    pub trials: u32,
    /// The verdict that the experiment declares for this setting (a trial built to fail declares `invalid`).
    pub expect: Option<Verdict>,
    /// The system under test.
    pub system: SystemPlan,
    /// The load.
    pub load: LoadPlan,
    /// The probe beside it.
    pub probe: Option<ProbePlan>,
    /// The measurement.
    pub measure: MeasurePlan,
    /// Faults to inject, by time.
    pub faults: Vec<FaultPlan>,
    /// The network between the nodes; absent: the host's own.
    pub links: Option<LinksPlan>,
    /// Disks of the testbed's own under the nodes' files; absent: the host's.
    pub disks: Option<DisksPlan>,
}

impl SettingPlan {
    /// One trial of a system without options, with nothing beside the load.
    #[must_use]
    pub fn plain(kind: &str, load: LoadPlan) -> Self {
        Self {
            key: "default".to_owned(),
            values: BTreeMap::new(),
            trials: 1,
            expect: None,
            system: SystemPlan {
                kind: kind.to_owned(),
                deploy: Options::empty(),
                workload: Options::empty(),
            },
            load,
            probe: None,
            measure: MeasurePlan::default(),
            faults: Vec::new(),
            links: None,
            disks: None,
        }
    }
}

impl SettingPlan {
    /// The stages that count as committed, on this ladder: each stream's own, else the trial's, else the last. What is
    /// not on the ladder was refused when the plan was made.
    #[must_use]
    pub fn final_stages(&self, stages: &[String]) -> FinalStages {
        let last = stages.len().saturating_sub(1);
        let place = |name: &str| stages.iter().position(|stage| stage == name);
        let all = place(&self.measure.until).unwrap_or(last);
        let load = place(&self.load.until).unwrap_or(all);
        let probe = self.probe.as_ref().map_or(load, |it| place(&it.until).unwrap_or(all));
        FinalStages { load, probe }
    }
}

/// The system to start or attach to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SystemPlan {
    /// The adapter's name.
    pub kind: String,
    /// `[system.deploy]`, for the adapter to read.
    pub deploy: Options,
    /// `[workload]`, for the adapter to read.
    pub workload: Options,
}

/// The load, as the engine needs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadPlan {
    /// When transactions are due.
    pub arrivals: Arrivals,
    /// Connections opened before the warm-up.
    pub connections: u32,
    /// The most connections: when all are busy, more are opened up to this number.
    pub connections_max: u32,
    /// Engine threads.
    pub threads: u32,
    /// Load that is sent and not counted.
    #[serde(with = "duration_text")]
    pub warmup: Duration,
    /// The measured window.
    #[serde(with = "duration_text")]
    pub duration: Duration,
    /// After the last due time, wait at most this long for what is outstanding.
    #[serde(with = "duration_text")]
    pub drain_max: Duration,
    /// A transaction without a final answer this long after it was due is unknown, and shed if it was not sent by then.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// The most due transactions that wait for a connection, over all workers; more are shed.
    pub backlog_max: u64,
    /// Transactions prepared ahead of their due times, each worker.
    pub lookahead: u32,
    /// How exactly due times are kept.
    pub pacing: Pacing,
    /// Whether transactions wait for each other and leave together; absent: each leaves at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchPlan>,
    /// The most transactions in all (warm-up included); 0 = no bound but the time.
    pub transactions_max: u64,
    /// Whether a client stays on one connection.
    #[serde(default)]
    pub affinity: Affinity,
    /// The resends; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend: Option<ResendPlan>,
    /// The stage that counts as committed for the load; empty = the trial's ([`MeasurePlan::until`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub until: String,
    /// The treatment of a load that cannot come to anything.
    #[serde(default)]
    pub hopeless: Hopeless,
}

impl LoadPlan {
    /// One thread, no warm-up, and every other key at a plain value.
    #[must_use]
    pub fn plain(arrivals: Arrivals, connections: u32, duration: Duration) -> Self {
        Self {
            arrivals,
            connections,
            connections_max: connections,
            threads: 1,
            warmup: Duration::ZERO,
            duration,
            drain_max: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            backlog_max: 10_000,
            lookahead: 256,
            pacing: Pacing::Balanced,
            batch: None,
            transactions_max: 0,
            affinity: Default::default(),
            resend: None,
            until: String::new(),
            hopeless: Default::default(),
        }
    }
}

/// Which connections carry a client's transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Affinity {
    /// Any that has room, the longest idle first.
    #[default]
    Any,
    /// One for each client, always the same, in the order in which they fall due.
    Client,
}

/// Sending again what is unknown: the connection was lost, or there was no answer for a time. The load's timeout,
/// from when a transaction was due, bounds all of its attempts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResendPlan {
    /// The most times that a transaction is sent, the first included.
    pub attempts_max: u8,
    /// Without an answer for this long it is sent again; the load's timeout: only when a connection is lost.
    #[serde(with = "duration_text")]
    pub after: Duration,
}

/// Transactions of the main load that leave together. Each connection has a queue; what waits in it leaves as one
/// batch when the queue is full, when the oldest has waited long enough, or when a batch of the connection has come
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchPlan {
    /// The most transactions of a batch.
    pub size_max: u32,
    /// The longest wait for company, from the due time.
    #[serde(with = "duration_text")]
    pub delay_max: Duration,
    /// The most batches outstanding on a connection; one is back when all its transactions have ended.
    pub in_flight_max: u32,
}

/// When transactions are due.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "lowercase")]
pub enum Arrivals {
    /// They do not wait for answers.
    Open {
        /// The shape in time.
        schedule: Schedule,
    },
    /// Clients, each waiting for its answer.
    Closed {
        /// How many clients (or, with a window, how many may be outstanding in all).
        clients: u32,
        /// Pause between an answer and the next transaction.
        #[serde(with = "duration_text")]
        think: Duration,
        /// Window + poll: this many outstanding a connection, then the session's poll; 0 = plain clients.
        window: u32,
        /// How often a session that polls does so while it waits.
        #[serde(with = "duration_text")]
        poll: Duration,
        /// Clients join and leave: how many of them there are in each step from the start of the measured window, the
        /// first so many of all; in the warm-up those of the first step. Empty: all of them, all the time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<ClientStep>,
    },
}

impl Arrivals {
    /// An open loop of constant rate.
    #[must_use]
    pub fn constant(rate: Rate) -> Self {
        Self::Open { schedule: Schedule::Constant { rate } }
    }

    /// A closed loop of clients that do not think.
    #[must_use]
    pub fn closed(clients: u32) -> Self {
        let (think, poll) = (Duration::ZERO, Duration::ZERO);
        Self::Closed { clients, think, window: 0, poll, steps: Vec::new() }
    }
}

impl Arrivals {
    /// Whether a transaction waits for the answer to another, so that less is sent where answers are late: a closed loop,
    /// or a rate of `max`.
    #[must_use]
    pub const fn wait_for_answers(&self) -> bool {
        match self {
            Self::Closed { .. } => true,
            Self::Open { schedule: Schedule::Constant { rate } } => rate.is_max(),
            Self::Open { .. } => false,
        }
    }
}

/// Open-loop shapes. Rates are totals over all workers (`rate_per` has been multiplied out).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "lowercase")]
pub enum Schedule {
    /// Evenly spaced.
    Constant {
        /// The rate.
        rate: Rate,
    },
    /// Exponential gaps.
    Poisson {
        /// The mean rate.
        rate: Rate,
    },
    /// From one rate to another, linearly over the measured window (the warm-up holds `from`).
    Ramp {
        /// At the start.
        from: Rate,
        /// At the end.
        to: Rate,
    },
    /// Evenly spaced within each step, one after another from the start of the measured window.
    Steps {
        /// Rate and length of each step.
        steps: Vec<Step>,
    },
    /// All of a period's transactions at its start, as tm-load-test sends them.
    Burst {
        /// The mean rate.
        rate: Rate,
        /// The period.
        #[serde(with = "duration_text")]
        every: Duration,
    },
    /// Due times from a file, one a line.
    Trace {
        /// Nanoseconds after the start, ascending, already divided by the speed.
        due_ns: Vec<u64>,
    },
}

/// One step of a staircase.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The rate in it.
    pub rate: Rate,
    /// Its length.
    #[serde(rename = "for", with = "duration_text")]
    pub length: Duration,
    /// How many load generators that rate is of; 0 where the plan counts none.
    #[serde(default)]
    pub generators: u64,
}

/// One step of a staircase of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStep {
    /// How many of them are there.
    pub clients: u32,
    /// Its length.
    #[serde(rename = "for", with = "duration_text")]
    pub length: Duration,
}

/// How exactly due times are kept, and at what price in processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    /// Never sleep: one core an engine thread.
    Exact,
    /// Sleep to about 50 µs before the next due time, then spin.
    Balanced,
    /// Sleep in quanta of 1 ms, send what has become due and read what has come: cheap, and the lag says so. Answers
    /// that a load follows are read as they come.
    Coalesced,
}

/// A light client whose latency is the result, while the background load runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbePlan {
    /// How many transactions.
    pub trials: u64,
    /// `Open`: due every interval, whatever the last one does. `Sequential`: after the last one's answer.
    pub schedule: ProbeSchedule,
    /// Between due times (open), or between an answer and the next (sequential).
    #[serde(with = "duration_text")]
    pub interval: Duration,
    /// Beyond it a probe counts as infinite.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Connections of its own.
    pub connections: u32,
    /// The stage that counts as committed for the probe; empty = the trial's ([`MeasurePlan::until`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub until: String,
}

/// When the probe sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeSchedule {
    /// Every interval.
    Open,
    /// One after another: repeats the flaw of the published measurement.
    Sequential,
}

/// The measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasurePlan {
    /// The stage that counts as committed, for each stream that names none of its own: a name on the system's ladder;
    /// empty = its last.
    pub until: String,
    /// Throughput is sampled per window of this length.
    #[serde(with = "duration_text")]
    pub window: Duration,
    /// Whether the ledger is read after the drain, where the system has one.
    pub ledger: bool,
    /// Requests of a page, for the odds that all of them succeed.
    #[serde(default = "calls_of_a_page")]
    pub calls: u32,
    /// How long after a reading of the ledger that lacks what was acknowledged it is read once more; zero = never.
    #[serde(with = "duration_text", default)]
    pub settle: Duration,
}

impl Default for MeasurePlan {
    /// That of an experiment which says nothing of it.
    fn default() -> Self {
        Self {
            until: String::new(),
            window: Duration::from_secs(1),
            ledger: true,
            calls: calls_of_a_page(),
            settle: Duration::from_secs(2),
        }
    }
}

/// The meaning of plans of an earlier version.
const fn calls_of_a_page() -> u32 {
    10
}

/// A threshold: what is asked of a number of the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThresholdPlan {
    /// `p99 < 1s`.
    pub expr: String,
    /// Which settings: label by axis; empty = all.
    pub at: BTreeMap<String, String>,
    /// The meaning of a missed threshold.
    pub level: Level,
    /// How sure it must be to hold, as a fraction of one; null = what is not resolved only warns.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Broken for so long while the load runs, it ends the trial; null = it is judged at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<Duration>,
}

impl ThresholdPlan {
    /// A threshold of every setting.
    #[must_use]
    pub fn new(expr: impl Into<String>, level: Level) -> Self {
        Self { expr: expr.into(), at: BTreeMap::new(), level, confidence: None, abort: None }
    }
}

/// The meaning of a missed threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The run fails (exit code 99).
    Fail,
    /// The run is invalid (exit code 97).
    Invalid,
    /// The setting is marked saturated; the run does not fail.
    Saturated,
    /// It is printed.
    Warn,
}

impl Level {
    /// The word in the experiment and in the result.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Invalid => "invalid",
            Self::Saturated => "saturated",
            Self::Warn => "warn",
        }
    }
}

/// A table of the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TablePlan {
    /// Axes that make one table each.
    pub group: Vec<String>,
    /// The axis down the side.
    pub rows: String,
    /// The axis along the top (then `cell` says what stands in it), or empty.
    pub across: String,
    /// The metric in each cell.
    pub cell: String,
    /// Metric names, one column each.
    pub columns: Vec<String>,
    /// Unit for durations; empty = each its own.
    pub unit: String,
}
