//! The result document, `assay.result/2`: what `analysis` concludes and `report` shows. Its JSON form is
//! published (`assay schema result`); units stand in the keys, and a number that cannot be given is null.

mod audit;
mod check;
mod combined;
mod fault;
mod flows;
mod groups;
mod health;
mod latency;
mod ledger;
mod minutes;
mod node_stages;
mod processor;
mod scalability;
mod search;
mod sections;
mod sending;
mod statement;
mod steps;
mod stream;
mod table;
mod threshold;
mod timeline;
mod vegeta;
mod verdict;

use std::collections::BTreeMap;

pub use audit::{
    AuditFacts, AuditOutcome, AuditResult, Direction, Family, Figure, FigureUnit, Voided,
};
pub use check::CheckResult;
pub use combined::{CombinedQuantile, CombinedResult};
pub use fault::FaultResult;
pub use flows::{FlowResult, FlowsResult};
pub use groups::{ErrorResult, GroupResult};
pub use health::HealthResult;
pub use latency::{CallsResult, CurvePoint, Distribution, LatencyResult, Quantile};
pub use ledger::{Fates, StatedLatency};
pub use minutes::{BorneResult, MinuteResult, MinutesResult, PageResult};
pub use node_stages::{
    LegResult, NodeStageColumn, NodeStageGap, NodeStageResult, NodeStagesResult, WayResult,
};
pub use processor::{ProcessorOf, ProcessorResult};
pub use scalability::{ScalabilityLaw, ScalabilityResult};
pub use search::{
    SearchClass, SearchCollapse, SearchEnd, SearchLimit, SearchResult, SearchRole, SearchTrial,
};
pub use sections::{SectionResult, SectionsResult};
pub use sending::{AttemptsResult, BatchesResult};
use serde::{Deserialize, Serialize};
pub use statement::Statement;
pub use steps::{StepResult, StepsResult};
pub use stream::StreamResult;
pub use table::{Cell, TableResult};
pub use threshold::{Answer, Counted, ThresholdResult};
pub use timeline::{SecondResult, TIMELINE_COLUMNS_MAX, Timeline, TimelineColumn};
pub use vegeta::VegetaResult;
pub use verdict::{Exit, Verdict};

use crate::facts::{DurabilityFacts, Environment, PreflightFinding, RestFacts};
use crate::series::SeriesFacts;

/// The name of this document's form. A key that is added leaves it; one that means something else, or is gone, raises it.
pub const SCHEMA: &str = "assay.result/2";

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
    /// Target, load and length.
    #[serde(default)]
    pub subject: RunSubject,
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
    /// Names of the axes of the matrix, in the order in which the experiment has them.
    #[serde(default)]
    pub axes: Vec<String>,
    /// Settings in the order of the plan.
    pub settings: Vec<SettingResult>,
    /// The tables that the experiment asks for.
    pub tables: Vec<TableResult>,
    /// The knee, where settings differ by offered load, in words; empty = none found.
    pub knee: String,
    /// Settings that differ in offered load alone, as the knee was looked for in them.
    pub load_series: Vec<LoadSeries>,
    /// The search for the highest rate that keeps the thresholds; null = settings were written by hand.
    #[serde(default)]
    pub search: Option<SearchResult>,
    /// Every promise about a time, as a sentence that stands alone.
    #[serde(default)]
    pub statements: Vec<Statement>,
    /// Audits that look across trials (repeatability).
    pub audits: Vec<AuditResult>,
    /// The question of each audit of the trials and of the run, in the order of the list of audits.
    #[serde(default)]
    pub audits_asked: Vec<AuditFacts>,
    /// Host, tool, command.
    pub environment: Environment,
}

/// The subject of a run: the first thing that a reader who did not write the experiment asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSubject {
    /// The adapter's name: `http`.
    pub system: String,
    /// Where the load went; empty = the system was started for the run.
    pub targets: Vec<String>,
    /// The loads of the settings in words, in the order of the plan, each once.
    pub loads: Vec<String>,
    /// Lengths of the measured windows, nanoseconds: shortest and longest.
    pub window_ns: (i64, i64),
}

/// Settings that differ in offered load alone, in ascending order of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadSeries {
    /// The values that they share: label by axis; empty = everything.
    pub values: BTreeMap<String, String>,
    /// Keys of the settings.
    pub settings: Vec<String>,
    /// The last that kept up before the first that did not; null = none such.
    pub knee: Option<String>,
    /// The first that did not keep up, in ascending order of load; null = all did.
    #[serde(default)]
    pub limit: Option<String>,
}

/// One setting.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SettingResult {
    /// Its key.
    pub key: String,
    /// Label by axis.
    pub values: BTreeMap<String, String>,
    /// The worst of its trials, or the declared verdict if that is what came.
    pub verdict: Verdict,
    /// The verdict that the experiment declares, if it does.
    pub expect: Option<Verdict>,
    /// Whether a threshold of level `saturated` broke.
    pub saturated: bool,
    /// Its trials taken together; absent where it has fewer than two.
    #[serde(default)]
    pub combined: Option<CombinedResult>,
    /// Its load minute by minute; absent where no trial has a whole minute, or no threshold can be applied to one.
    #[serde(default)]
    pub borne: Option<BorneResult>,
    /// Its place in a sweep over clients; absent where it is in none of six levels or more.
    #[serde(default)]
    pub scalability: Option<ScalabilityResult>,
    /// Trials in order.
    pub trials: Vec<TrialResult>,
}

/// One trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// The stage that counts as committed, of the stream that the latencies are of.
    pub final_stage: String,
    /// Which stream the latencies are of: `main` or `probe`.
    pub stream: String,
    /// Each stream by its own final stage, the main load first; empty in a document of an earlier version, where all have
    /// one.
    #[serde(default)]
    pub streams: Vec<StreamResult>,
    /// Where the load went; empty = the system was started for the trial.
    #[serde(default)]
    pub targets: Vec<String>,
    /// The wait before it until the system was calm; null = the system was started for the trial, or no search was on.
    #[serde(default)]
    pub rest: Option<RestFacts>,
    /// The system's durability settings, with what its documentation promises; no setting where its adapter declares none.
    #[serde(default)]
    pub durability: DurabilityFacts,
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
    /// Batches; absent where the load has none.
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
    /// The measured window in sections.
    #[serde(default)]
    pub sections: SectionsResult,
    /// The view of users who make several calls: the final stage's response time, unconditional.
    pub calls: Vec<CallsResult>,
    /// How often several requests all succeed; absent where nothing was due.
    #[serde(default)]
    pub page: Option<PageResult>,
    /// Minute by minute; absent where the window has no whole minute, or no threshold can be told of one.
    #[serde(default)]
    pub minutes: Option<MinutesResult>,
    /// How connections fared; absent where a client library keeps its own.
    #[serde(default)]
    pub health: Option<HealthResult>,
    /// Processor time of transactions; no process in a document of an earlier version.
    #[serde(default)]
    pub processor: ProcessorResult,
    /// Step by step; absent where the load has no steps.
    #[serde(default)]
    pub steps: Option<StepsResult>,
    /// Flows of users; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowsResult>,
    /// By kind (target, operation).
    pub kinds: Vec<GroupResult>,
    /// By the system's own code.
    pub codes: Vec<GroupResult>,
    /// Error texts with counts, most frequent first.
    pub errors: Vec<ErrorResult>,
    /// Fates by the ledger; absent if it was not read.
    pub fates: Option<Fates>,
    /// Latency by the ledger's own times; absent if it was not read or says none.
    #[serde(default)]
    pub stated: Option<StatedLatency>,
    /// Stamps of its nodes; absent if it declares no node stages.
    #[serde(default)]
    pub node_stages: Option<NodeStagesResult>,
    /// Faults that were injected, or should have been, by when they began; the first thousand.
    #[serde(default)]
    pub faults: Vec<FaultResult>,
    /// How many more there were.
    #[serde(default)]
    pub faults_left_out: u64,
    /// Findings of the preflight pass.
    pub preflight: Vec<PreflightFinding>,
    /// Tests of the measurement.
    pub audits: Vec<AuditResult>,
    /// The system's own tests of what its ledger holds and what its reads returned.
    pub checks: Vec<CheckResult>,
    /// Its thresholds, the implicit ones among them.
    pub thresholds: Vec<ThresholdResult>,
    /// Declarations of the series that were recorded, or made of these: in the order in which they are shown.
    #[serde(default)]
    pub series: Vec<SeriesFacts>,
    /// Generator, host, each node and all nodes during the trial: `source.series` to (min, mean, max).
    pub resources: BTreeMap<String, (f64, f64, f64)>,
    /// Each node and all nodes: `source.series` to its last value in the measured window.
    #[serde(default)]
    pub resources_last: BTreeMap<String, f64>,
}

impl TrialResult {
    /// The final stage of the main load, whose rates stand in `rates`.
    #[must_use]
    pub fn final_stage_of_load(&self) -> &str {
        let load = self.streams.iter().find(|it| it.stream == "main");
        load.map_or(&self.final_stage, |it| &it.until)
    }

    /// Whether the main load is followed to a stage, so that its rate there says something: one beyond its final stage is
    /// the probe's alone.
    #[must_use]
    pub fn load_goes_to(&self, stage: &str) -> bool {
        let ladder = || self.rates.reached_per_s.iter().map(|(name, _)| name.as_str());
        let place = |wanted: &str| ladder().position(|name| name == wanted);
        !self.has_several_ends() || place(stage) <= place(self.final_stage_of_load())
    }

    /// Whether its streams end at different stages, so that a word like *committed* means another thing of each.
    #[must_use]
    pub fn has_several_ends(&self) -> bool {
        self.streams.windows(2).any(|two| two[0].until != two[1].until)
    }
}

/// How many transactions ended how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Fell due.
    pub due: u64,
    /// Were sent.
    pub sent: u64,
    /// Reached the final stage of their stream.
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
    /// The plan's rate; null for closed loops and `max`.
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
