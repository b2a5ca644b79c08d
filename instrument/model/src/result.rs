//! The result document, `assay.result/1`: what `analysis` concludes and `report` shows. Its JSON form is
//! published (`assay schema result`); units stand in the keys, and a number that cannot be given is null.

mod audit;
mod check;
mod health;
mod ledger;
mod node_stages;
mod sending;
mod threshold;

use std::collections::BTreeMap;

pub use audit::{
    AuditFacts, AuditOutcome, AuditResult, Direction, Family, Figure, FigureUnit, Voided,
};
pub use check::CheckResult;
pub use health::HealthResult;
pub use ledger::{Fates, StatedLatency};
pub use node_stages::{NodeStageColumn, NodeStageGap, NodeStageResult, NodeStagesResult};
pub use sending::{AttemptsResult, BatchesResult};
use serde::{Deserialize, Serialize};
pub use threshold::{Answer, ThresholdResult};

use crate::facts::{Environment, PreflightFinding};
use crate::fault::FaultDetail;
use crate::series::SeriesFacts;

/// The name of this document's form.
pub const SCHEMA: &str = "assay.result/1";

/// What a run is worth, from best to worst. Fail outranks invalid: where a promise is broken by a number that holds, other
/// numbers that do not hold change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No promise is broken, and the numbers that the promises rest on hold.
    Pass,
    /// A number that a promise rests on, or without promises the headline, does not hold.
    Invalid,
    /// A promise is broken, and its number holds.
    Fail,
}

impl Verdict {
    /// The word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
        }
    }
}

/// The process's exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// No promise is broken.
    Ok = 0,
    /// It could not run.
    CouldNotRun = 1,
    /// Usage or experiment-file error.
    Usage = 2,
    /// A number that the verdict rests on does not hold.
    Invalid = 97,
    /// Regression against the baseline.
    Regression = 98,
    /// The system broke a promise.
    Failed = 99,
    /// Interrupted; the partial result was written.
    Interrupted = 130,
}

impl Exit {
    /// What the code means, for the last line of a run.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "no promise is broken, and the measurement holds",
            Self::CouldNotRun => "could not run",
            Self::Usage => "usage or experiment-file error",
            Self::Invalid => "the measurement is invalid: do not use its numbers",
            Self::Regression => "worse than the baseline",
            Self::Failed => "a promise is broken",
            Self::Interrupted => "interrupted; the partial result was written",
        }
    }
}

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub name: String,
    /// The experiment's question.
    pub question: String,
    /// The authors' notes.
    pub notes: String,
    /// RFC 3339.
    pub started: String,
    /// The run's seed.
    pub seed: u64,
    /// The run as a whole: the worst of its settings, where a declared verdict counts as met.
    pub verdict: Verdict,
    /// One sentence.
    pub reason: String,
    /// Exit code.
    pub exit_code: i32,
    /// [`Exit::meaning`].
    pub exit_meaning: String,
    /// Whether it was interrupted or cut off.
    pub interrupted: bool,
    /// Fidelity switches that were on in any trial.
    pub fidelity: Vec<String>,
    /// How percentiles are computed, in words.
    pub percentile_method: String,
    /// Settings in the order of the plan.
    pub settings: Vec<SettingResult>,
    /// The tables that the experiment asks for.
    pub tables: Vec<TableResult>,
    /// The knee, where settings differ by offered load, in words; empty = none found.
    pub knee: String,
    /// Settings that differ in offered load alone, as the knee was looked for in them.
    pub load_series: Vec<LoadSeries>,
    /// Audits that look across trials (repeatability).
    pub audits: Vec<AuditResult>,
    /// What each audit of the trials and of the run asks, in the order of the list of audits.
    #[serde(default)]
    pub audits_asked: Vec<AuditFacts>,
    /// Host, tool, command.
    pub environment: Environment,
}

/// Settings that differ in offered load alone, in ascending order of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadSeries {
    /// What they share: label by axis; empty = everything.
    pub values: BTreeMap<String, String>,
    /// Keys of the settings.
    pub settings: Vec<String>,
    /// The last that kept up before the first that did not; null = none such.
    pub knee: Option<String>,
}

/// One setting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingResult {
    /// Its key.
    pub key: String,
    /// Label by axis.
    pub values: BTreeMap<String, String>,
    /// The worst of its trials, or the declared verdict if that is what came.
    pub verdict: Verdict,
    /// What the experiment declares, if it does.
    pub expect: Option<Verdict>,
    /// Whether a threshold of level `saturated` broke.
    pub saturated: bool,
    /// Trials in order.
    pub trials: Vec<TrialResult>,
}

/// One trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialResult {
    /// Folder, relative to the run folder.
    pub path: String,
    /// From 0.
    pub trial: u32,
    /// Its seed.
    pub seed: u64,
    /// Its verdict.
    pub verdict: Verdict,
    /// One sentence.
    pub reason: String,
    /// Length of the measured window, nanoseconds.
    pub window_ns: i64,
    /// The stage that counts as committed.
    pub final_stage: String,
    /// Which stream the latencies are of: `main` or `probe`.
    pub stream: String,
    /// How the engine talked to the kernel: `io_uring`, `epoll` or `calls` (a client library), several with `and`.
    #[serde(default)]
    pub driver: String,
    /// Counts over the measured window (by due time), of that stream.
    pub counts: Counts,
    /// Counts of the background load, where a probe was measured.
    pub background: Option<Counts>,
    /// Rates over the measured window, of the main load (also beside a probe, whose own rate says nothing).
    pub rates: Rates,
    /// How often transactions were sent.
    #[serde(default)]
    pub attempts: AttemptsResult,
    /// What left together; absent where the load has no batches.
    #[serde(default)]
    pub batches: Option<BatchesResult>,
    /// The connections of the main load.
    #[serde(default)]
    pub connections: ConnectionsResult,
    /// Latency by stage, response time and service time.
    pub latency: Vec<LatencyResult>,
    /// `sent − due`.
    pub send_lag: Distribution,
    /// `sent − ready`: the instrument's own part.
    pub own_lag: Distribution,
    /// As vegeta computes it: by sent time, all results.
    pub vegeta: VegetaResult,
    /// Throughput per window: lowest and highest, per second.
    pub throughput_windows: Option<(f64, f64)>,
    /// Per second of the measured window: counts of all streams, by due time for offered and by end for the rest;
    /// latencies of the measured stream, by due time.
    pub seconds: Vec<SecondResult>,
    /// The whole trial in columns of equal length, warm-up and drain included: what the page draws.
    pub timeline: Timeline,
    /// What users who make several calls see: the final stage's response time, unconditional.
    pub calls: Vec<CallsResult>,
    /// How connections fared; absent where a client library keeps its own.
    #[serde(default)]
    pub health: Option<HealthResult>,
    /// By kind (target, operation).
    pub kinds: Vec<GroupResult>,
    /// By the system's own code.
    pub codes: Vec<GroupResult>,
    /// Error texts with counts, most frequent first.
    pub errors: Vec<ErrorResult>,
    /// What the ledger says; absent if it was not read.
    pub fates: Option<Fates>,
    /// Latency by the ledger's own times; absent if it was not read or says none.
    #[serde(default)]
    pub stated: Option<StatedLatency>,
    /// What its nodes stamped; absent if it declares no node stages.
    #[serde(default)]
    pub node_stages: Option<NodeStagesResult>,
    /// Faults that were injected, or should have been, by when they began; the first thousand.
    #[serde(default)]
    pub faults: Vec<FaultResult>,
    /// How many more there were.
    #[serde(default)]
    pub faults_left_out: u64,
    /// What the preflight pass found.
    pub preflight: Vec<PreflightFinding>,
    /// Tests of the measurement.
    pub audits: Vec<AuditResult>,
    /// The system's own tests of what its ledger holds and what its reads returned.
    pub checks: Vec<CheckResult>,
    /// Promises.
    pub thresholds: Vec<ThresholdResult>,
    /// What the series are that were recorded, or made of these: in the order in which they are shown.
    #[serde(default)]
    pub series: Vec<SeriesFacts>,
    /// Generator, host, each node and all nodes during the trial: `source.series` to (min, mean, max).
    pub resources: BTreeMap<String, (f64, f64, f64)>,
    /// Each node and all nodes: `source.series` to its last value in the measured window.
    #[serde(default)]
    pub resources_last: BTreeMap<String, f64>,
}

/// How many transactions ended how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Fell due.
    pub due: u64,
    /// Were sent.
    pub sent: u64,
    /// Reached the final stage.
    pub committed: u64,
    /// Refused or failed, all classes.
    pub rejected: u64,
    /// By class.
    pub rejected_by_class: BTreeMap<String, u64>,
    /// Without a final answer.
    pub unknown: u64,
    /// Never sent.
    pub shed: u64,
}

/// Five different numbers, never one "TPS". Each per second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rates {
    /// What the plan asked for; null for closed loops and `max`.
    pub planned_per_s: Option<f64>,
    /// Due ÷ window.
    pub offered_per_s: f64,
    /// Sends within the window ÷ window; what the drain sent is not in it.
    pub sent_per_s: f64,
    /// By stage: reached ÷ window, in the order of the ladder.
    pub reached_per_s: Vec<(String, f64)>,
    /// Reached the final stage in time ÷ window: those due in the window that got there, less the growth of what is
    /// outstanding over it. Never more than the system can do.
    pub goodput_per_s: f64,
}

/// The connections of the main load, over the whole trial except where a field says otherwise. All zero where the record
/// does not say (a crash, a trial of an earlier version).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionsResult {
    /// Opened before the load.
    pub first: u64,
    /// Opened during it because all others were busy.
    pub grown: u64,
    /// The same by second after the trial's start: second and count.
    pub grown_by_second: Vec<(u64, u64)>,
    /// The most that there could be.
    pub bound: u64,
    /// Transactions that fell due while all of them were busy and there could be no more.
    pub blocked: u64,
    /// Wait for a connection, of those due in the measured window, nanoseconds: p50.
    pub wait_p50_ns: Option<i64>,
    /// p99.
    pub wait_p99_ns: Option<i64>,
}

/// A quantile with its interval and the number of samples that it rests on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Quantile {
    /// Fraction of one.
    pub q: f64,
    /// Name: `p99`.
    pub name: String,
    /// Value over those that reached the stage, nanoseconds.
    pub value_ns: Option<i64>,
    /// 95 % interval; an end that the samples cannot give is null.
    pub low_ns: Option<i64>,
    /// Upper end.
    pub high_ns: Option<i64>,
    /// Over all that were due: what was refused with its own time, what was never answered or never sent as infinite;
    /// null = infinite. Infinite, too, where nothing reached the stage.
    pub unconditional_ns: Option<i64>,
    /// Samples beyond it; fewer than ten and the value is greyed.
    pub beyond: u64,
    /// 95 % interval of the quantile over all that were due; an end that the samples cannot give is null, and so is an
    /// infinite one.
    #[serde(default)]
    pub due_low_ns: Option<i64>,
    /// Whether even the lower end is infinite: the quantile over all that were due certainly is.
    #[serde(default)]
    pub due_low_infinite: bool,
    /// Upper end.
    #[serde(default)]
    pub due_high_ns: Option<i64>,
    /// Of all that were due, how many lie beyond the quantile over all that were due, the infinite ones among them.
    #[serde(default)]
    pub due_beyond: u64,
}

/// A distribution of nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// 95 % interval of the mean.
    pub mean_low_ns: Option<f64>,
    /// Upper end.
    pub mean_high_ns: Option<f64>,
    /// Sample variance (n − 1), in ns².
    pub variance_ns2: Option<f64>,
    /// The plan's percentiles.
    pub quantiles: Vec<Quantile>,
    /// Negative values, counted and never clamped.
    pub negative: u64,
    /// The whole distribution as HdrHistogram prints it: more points towards the tail, from the smallest to the
    /// largest value.
    pub curve: Vec<CurvePoint>,
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Fraction of one.
    pub q: f64,
    /// The value that this fraction of the samples does not exceed.
    pub value_ns: i64,
}

/// A user who makes this many calls sees at least one that takes longer than this, with this chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallsResult {
    /// Calls, independent of each other.
    pub calls: u32,
    /// Chance, of one.
    pub chance: f64,
    /// The response time that the slowest of the calls exceeds with that chance; null = infinite (no answer).
    pub exceeds_ns: Option<i64>,
}

/// Latency of one stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatencyResult {
    /// The stage.
    pub stage: String,
    /// `mark − due`, of those that reached it.
    pub response: Distribution,
    /// `mark − sent`, of those that reached it.
    pub service: Distribution,
    /// Response time of the answered: those that reached the stage, and those that were refused before, by the time to
    /// that answer; null where nobody was refused, because it is `response` then.
    #[serde(default)]
    pub answered: Option<Distribution>,
    /// Service time of the answered; null where nobody was refused.
    #[serde(default)]
    pub answered_service: Option<Distribution>,
    /// Refused before they reached the stage, with an answer.
    #[serde(default)]
    pub refused: u64,
    /// Never answered or never sent.
    #[serde(default)]
    pub missing: u64,
    /// Mean response time of all due; null = infinite: some are missing, or nothing reached the stage.
    #[serde(default)]
    pub due_mean_ns: Option<f64>,
    /// Largest response time of all due; null = infinite.
    #[serde(default)]
    pub due_max_ns: Option<i64>,
    /// Restricted mean: of min(response, timeout) over all due, where those that are missing count with the timeout,
    /// nanoseconds. Finite whatever was lost, and smaller than any mean of all due can be.
    pub restricted_mean_ns: Option<f64>,
    /// Those that never reached the stage (`inf`).
    pub inf: u64,
}

/// The published table, computed as vegeta computes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VegetaResult {
    /// All results.
    pub requests: u64,
    /// Requests ÷ (last send − first send).
    pub rate: f64,
    /// Successes ÷ (attack + wait).
    pub throughput: f64,
    /// Last send − first send, nanoseconds.
    pub attack_ns: i64,
    /// Last completion − last send, nanoseconds.
    pub wait_ns: i64,
    /// Attack + wait.
    pub total_ns: i64,
    /// Mean of all results.
    pub mean_ns: i64,
    /// Quantiles of all results, by sent time.
    pub min_ns: i64,
    /// p50.
    pub p50_ns: i64,
    /// p90.
    pub p90_ns: i64,
    /// p95.
    pub p95_ns: i64,
    /// p99.
    pub p99_ns: i64,
    /// Largest.
    pub max_ns: i64,
    /// Body bytes in.
    pub bytes_in: u64,
    /// Body bytes out.
    pub bytes_out: u64,
    /// Status 200–399 ÷ requests.
    pub success: f64,
    /// Status codes as text, sorted as text; `0` = never got an answer.
    pub status_codes: BTreeMap<String, u64>,
    /// Distinct error texts, in order of first appearance.
    pub errors: Vec<String>,
}

/// One second of a trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SecondResult {
    /// Second after the trial's start.
    pub second: i64,
    /// Due in it.
    pub offered: u64,
    /// Reached the final stage in it.
    pub committed: u64,
    /// Ended otherwise in it.
    pub failed: u64,
    /// Of those that were due in it and committed: response time p50.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// Outstanding at its end (due and not ended).
    pub outstanding: i64,
}

/// A trial in columns of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Start of the first column, nanoseconds after the trial's start.
    pub start_ns: i64,
    /// Length of a column.
    pub width_ns: i64,
    /// At most [`TIMELINE_COLUMNS_MAX`]; all streams together, except the latencies.
    pub columns: Vec<TimelineColumn>,
}

/// The most columns of a timeline: more than a screen has room for is not seen.
pub const TIMELINE_COLUMNS_MAX: usize = 1200;

/// A column of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineColumn {
    /// Due in it.
    pub offered: u64,
    /// Sent in it.
    pub sent: u64,
    /// Ended in it, committed.
    pub committed: u64,
    /// Ended in it otherwise, by class; `unknown` and `shed` stand beside the classes.
    pub failed: BTreeMap<String, u64>,
    /// Reached each stage in it, in the order of the ladder.
    pub reached: Vec<u64>,
    /// Outstanding at its end (due and not ended).
    pub outstanding: i64,
    /// Response time to the final stage of those of the measured stream that were due in it: p50.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// p99.9.
    pub p999_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// The instrument's own lag (`sent − ready`) of those that were due in it: p99.
    pub own_lag_p99_ns: Option<i64>,
}

/// Counts and latency of a group of transactions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GroupResult {
    /// What they share.
    pub name: String,
    /// How they ended.
    pub counts: Counts,
    /// Response time to the final answer: p50, p99, max of those that got one.
    pub p50_ns: Option<i64>,
    /// p99.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
}

/// An error text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ErrorResult {
    /// The text.
    pub text: String,
    /// Its class.
    pub class: String,
    /// How often.
    pub count: u64,
    /// First time, nanoseconds after the trial's start.
    pub first_ns: i64,
    /// Last time.
    pub last_ns: i64,
    /// One transaction that had it.
    pub example_tx: u64,
}

/// A fault on one node, or on links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultResult {
    /// Which fault of the setting's plan, from 0.
    pub fault: u32,
    /// Which round of it, from 1; 0 for what does not come round.
    pub cycle: u32,
    /// The word of its kind: `pause`, `kill`, ….
    pub kind: String,
    /// The node, or both ends: `node0 to node1*`.
    pub node: String,
    /// When it began, or was found impossible; nanoseconds after the trial's start.
    pub from_ns: i64,
    /// When it was over; absent if it never was.
    pub to_ns: Option<i64>,
    /// From one to the other.
    pub length_ns: Option<i64>,
    /// What is said of its beginning, or of why there was none.
    pub began: FaultDetail,
    /// What is said of its end; absent if it never ended.
    pub ended: Option<FaultDetail>,
    /// Whether it took place.
    pub happened: bool,
    /// The longest time in which nothing was committed, from its beginning to the first commit behind its end,
    /// to the millisecond; absent if none came.
    #[serde(default)]
    pub silence_ns: Option<i64>,
    /// From its end, or from the moment itself where it has none, to the next commit; absent if none came.
    #[serde(default)]
    pub back_after_ns: Option<i64>,
}

/// One table that the experiment asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableResult {
    /// What it is of.
    pub title: String,
    /// Column heads.
    pub columns: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// As shown.
    pub text: String,
    /// The number behind it, if it is one.
    pub value: Option<f64>,
    /// Rests on too few samples.
    pub grey: bool,
}
