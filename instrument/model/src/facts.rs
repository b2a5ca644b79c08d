//! Facts of a trial and its host, beside the rows: `trial.json` and `environment.json`.

mod agent;
mod connections;
mod disk;
mod durability;
mod entry;
mod environment;
mod network;
mod receive;
mod worker;

use std::collections::BTreeMap;

use crate::options::Span;
pub use agent::{AgentFacts, ClockExchange};
use clock::WallTime;
pub use connections::ConnectionFacts;
pub use disk::{DiskFacts, DiskOperations};
pub use durability::{DocumentedPromise, DurabilityFacts, DurabilitySetting};
pub use entry::{
    EVENTS_SCHEMA, Event, LEDGER_CONTENT_BYTES_MAX, LedgerEntry, METRICS_SCHEMA, MetricSample,
};
pub use environment::Environment;
pub use network::{LinkFacts, LinkTraffic, NetworkFacts};
pub use receive::ReceiveFacts;
use serde::{Deserialize, Serialize};
pub use worker::{BatchFacts, Grown, PoolFacts, WorkerFacts};

use crate::final_stages::FinalStages;
use crate::node_events::{NodeEventsFacts, NodeStage};
use crate::row::Stamp;
use crate::seed::Seed;
use crate::series::SeriesFacts;

/// The schema of trial.json that this version writes and reads.
pub const TRIAL_SCHEMA: &str = "assay.trial/2";

/// `trial.json`: everything that the rows do not hold and that analysis needs. Each part has one writer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialFacts {
    /// [`TRIAL_SCHEMA`].
    pub schema: String,
    /// Facts known before the load; the app writes them.
    pub declared: DeclaredFacts,
    /// The engine's facts of the load; the engine writes them.
    pub load: LoadFacts,
    /// Facts found beside the load and after it; the app writes them.
    pub after: AfterFacts,
    /// Whether the trial came to its end (false in a folder that a crash left behind).
    pub complete: bool,
}

impl Default for TrialFacts {
    fn default() -> Self {
        Self {
            schema: TRIAL_SCHEMA.to_owned(),
            declared: DeclaredFacts::default(),
            load: LoadFacts::default(),
            after: AfterFacts::default(),
            complete: false,
        }
    }
}

impl TrialFacts {
    /// Due times before this are warm-up.
    #[must_use]
    pub const fn measure_start(&self) -> Stamp {
        self.declared.measure_start
    }

    /// Due times from this on are not part of what was measured: the plan's end, or where the load was cut short.
    #[must_use]
    pub fn measure_end(&self) -> Stamp {
        self.load.cut_at.map_or(self.declared.measure_end, |cut| cut.min(self.declared.measure_end))
    }

    /// Why the trial is not whole, in words; empty = nothing came between.
    #[must_use]
    pub fn interrupted(&self) -> &str {
        match self.load.interrupted.as_str() {
            "" => &self.after.not_kept,
            why => why,
        }
    }
}

/// A trial's facts before anything is sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredFacts {
    /// The setting's key.
    pub setting: String,
    /// From 0.
    pub trial: u32,
    /// The trial's seed.
    pub seed: Seed,
    /// The ladder: names of the stages in order; `Row::marks` is indexed by it.
    pub stages: Vec<String>,
    /// The stages that nodes stamp themselves, in the order of the pipeline.
    pub node_stages: Vec<NodeStage>,
    /// Index of the stage that counts as committed: of the load, and of a probe that has none of its own.
    pub final_stage: usize,
    /// The probe's own; absent where there is no probe, or in a record of when a trial had one for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_final_stage: Option<usize>,
    /// Kinds (targets, operations); `Row::kind` is an index into it.
    pub kinds: Vec<KindFacts>,
    /// Due times before this are warm-up.
    pub measure_start: Stamp,
    /// Due times from this on are not part of the plan; see [`TrialFacts::measure_end`].
    pub measure_end: Stamp,
    /// Findings of the preflight pass, one entry for each kind that was tried.
    pub preflight: Vec<PreflightFinding>,
    /// Codes that count as committed and of which a reader should know something.
    pub code_remarks: Vec<CodeRemark>,
    /// The null-target calibration of this machine before the trial, if it ran.
    pub calibration: Option<Calibration>,
    /// Fidelity switches that were on, in words.
    pub fidelity: Vec<String>,
    /// Where the load goes, as the adapter says it from the options: addresses or URLs without secrets. Empty where the
    /// system is started for the trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Facts for the reader that the adapter adds (versions, addresses without secrets). Nothing reads them back.
    pub system: BTreeMap<String, String>,
    /// Its durability settings; absent in a record of an earlier version.
    #[serde(skip_serializing_if = "DurabilityFacts::is_empty")]
    pub durability: DurabilityFacts,
    /// The clocks of the system's own times.
    pub clocks: ClockRelation,
    /// Declarations of the series that may be recorded, by those who sample or serve them.
    pub series: Vec<SeriesFacts>,
    /// The wait for a system that was there before the trial to become calm; absent where it was started for the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<RestFacts>,
}

/// The wait between two trials of a search, until probes of the system are answered as fast as before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestFacts {
    /// Its length, nanoseconds.
    pub waited_ns: i64,
    /// Probes in it: passes of the preflight.
    pub probes: u64,
    /// The longest that a probe may take of a system that is calm, nanoseconds.
    pub calm_ns: i64,
    /// The time of the last probe, nanoseconds; null = it was not answered.
    pub last_ns: Option<i64>,
    /// Whether the system became calm before the wait was over.
    pub is_calm: bool,
}

impl DeclaredFacts {
    /// Whether the preflight tried at least one kind and none of them can succeed.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        let mut tried = self.preflight.iter().filter(|it| !it.is_note).peekable();
        tried.peek().is_some() && tried.all(|it| !it.ok)
    }

    /// The final stage of each stream.
    #[must_use]
    pub fn final_stages(&self) -> FinalStages {
        let probe = self.probe_final_stage.unwrap_or(self.final_stage);
        FinalStages { load: self.final_stage, probe }.within_rows()
    }
}

/// How the clocks of a system's nodes relate to the instrument's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockRelation {
    /// Nobody says.
    #[default]
    Unknown,
    /// Nodes and instrument are on one host and read one clock.
    OneHost,
    /// Nodes are on other hosts; how far their clocks are off is not known.
    OtherHosts,
}

/// The engine's facts of the load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadFacts {
    /// The calendar's reading of the trial's start (stamp 0).
    pub started: WallTime,
    /// Error texts; `Row::error` is an index into it, entry 0 is empty.
    pub errors: Vec<String>,
    /// Where the load was cut short, if it was: the last due time that was taken.
    pub cut_at: Option<Stamp>,
    /// When the drain ended; [`crate::NO_STAMP`] if the trial was cut off.
    pub drain_end: Stamp,
    /// Transactions still outstanding when the drain ended (they were resolved as unknown).
    pub drain_left: u64,
    /// Whether the load was stopped before its time, and by what, in words; empty = no.
    pub interrupted: String,
    /// Whether nothing was sent at all, because no kind can succeed ([`DeclaredFacts::is_hopeless`]).
    pub is_withheld: bool,
    /// Why the instrument ended the load before its time, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
    /// Counters of the engine, by worker.
    pub workers: Vec<WorkerFacts>,
    /// The agents that carried out parts of the load, in the order of the parts; empty: this host carried out all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFacts>,
    /// Client-visible shape of the connection: `plain` or the TLS version and cipher.
    pub transport: String,
    /// Which driver ran: `io_uring` or `epoll`.
    pub driver: String,
    /// The congestion control of the sockets.
    pub congestion_control: String,
    /// Largest jump of the wall clock against the monotonic line during the trial, nanoseconds.
    pub wall_step_ns: i64,
}

/// Why a load was ended before its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndedEarly {
    /// In words.
    pub why: String,
    /// Whether the machine that sends is the reason, and not the system.
    pub is_machine: bool,
}

impl Default for LoadFacts {
    /// Those of a trial whose engine has not reported yet.
    fn default() -> Self {
        Self {
            started: WallTime::default(),
            errors: vec![String::new()],
            cut_at: None,
            drain_end: crate::NO_STAMP,
            drain_left: 0,
            interrupted: String::new(),
            is_withheld: false,
            ended_early: None,
            workers: Vec::new(),
            agents: Vec::new(),
            transport: String::new(),
            driver: String::new(),
            congestion_control: String::new(),
            wall_step_ns: 0,
        }
    }
}

/// Facts found beside the load and after it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterFacts {
    /// Processor time of this whole process during the load, connecting and draining included, nanoseconds:
    /// the engine, the record, the sampling and the display.
    pub generator_cpu_ns: u64,
    /// Why a part of the record could not be kept, in words; empty = all of it was.
    pub not_kept: String,
    /// The result of asking nodes for their own metrics, in words; empty = none serves any.
    pub scraped: String,
    /// Whether the system's ledger was read, and if not why not.
    pub ledger: LedgerFacts,
    /// The result of reading the nodes' own events; absent: the system declares no node stages.
    pub node_events: Option<NodeEventsFacts>,
    /// Processes of the system under test: name and process id.
    pub nodes: Vec<NodeFacts>,
    /// Facts of the testbed's own network; absent: the trial had none.
    pub network: Option<NetworkFacts>,
    /// Facts of the nodes' disks of the testbed's own, in the order made; empty: no node had one.
    pub disks: Vec<DiskFacts>,
    /// What replicas said that they hold, when the ledger had been read; empty: the system has none that say it.
    pub states: Vec<NodeState>,
}

/// What a replica said that it holds, when the load was over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeState {
    /// Its name in the testbed.
    pub node: String,
    /// How many transactions it has executed.
    pub position: u64,
    /// A digest of all that it holds there; empty: it did not answer.
    pub digest: String,
    /// Why it did not answer, in words; empty: it did.
    pub why: String,
}

/// One kind of transactions: a target, an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindFacts {
    /// Its name.
    pub name: String,
    /// Whether the ledger records it. One that is not recorded (a read) cannot be lost, and has no business in the
    /// ledger.
    pub is_recorded: bool,
    /// Its place in a flow, if it is a step of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepFacts>,
}

/// The place of a kind in a flow: a user's transactions, each of which follows the answer to the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFacts {
    /// The flow's name.
    pub flow: String,
    /// Whether a transaction of this kind begins the flow: it is due by the schedule, where the others follow an answer.
    pub is_first: bool,
    /// Whether nothing can follow it.
    pub is_last: bool,
}

impl KindFacts {
    /// A kind that the ledger records.
    #[must_use]
    pub fn recorded(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_recorded: true, step: None }
    }

    /// A kind that leaves nothing in the ledger.
    #[must_use]
    pub fn read(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_recorded: false, step: None }
    }

    /// A step of a flow, which the ledger records.
    #[must_use]
    pub fn of_flow(name: impl Into<String>, step: StepFacts) -> Self {
        Self { step: Some(step), ..Self::recorded(name) }
    }

    /// Names of kinds.
    #[must_use]
    pub fn names(kinds: &[Self]) -> Vec<String> {
        kinds.iter().map(|kind| kind.name.clone()).collect()
    }
}

/// A remark for the reader on a code that counts as committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeRemark {
    /// The system's own code, as in `Row::code`.
    pub code: u16,
    /// In words.
    pub remark: String,
}

/// One kind that the preflight pass tried.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PreflightFinding {
    /// The kind's name.
    pub kind: String,
    /// Whether it can succeed.
    pub ok: bool,
    /// The answer, in words.
    pub detail: String,
    /// A remark for the reader although it can succeed, in words; empty = none.
    pub remark: String,
    /// Whether this is about the pass itself (what it left out), and of no kind.
    pub is_note: bool,
    /// From the first time that it was asked to its answer, nanoseconds; null where none was measured.
    pub took_ns: Option<i64>,
    /// Where the experiment asks for what was not there, if it is known; the record has it in `detail`, as a line of a file.
    #[serde(skip)]
    pub span: Option<Span>,
}

impl PreflightFinding {
    /// The result of asking for a kind, without a remark.
    #[must_use]
    pub fn new(kind: impl Into<String>, ok: bool, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), ok, detail: detail.into(), ..Self::default() }
    }
}

/// The generator's limits on this machine against a target that does nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// Requests a second, closed loop, one engine thread.
    pub rate_max: f64,
    /// Median response time with one connection, nanoseconds.
    pub floor_p50_ns: i64,
    /// Send lag at a low constant rate: p99, nanoseconds.
    pub lag_p99_ns: i64,
    /// Processor time of the generator for each request, nanoseconds.
    pub cpu_ns_per_request: f64,
}

/// How the ledger was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerFacts {
    /// Whether the system has one and it was read to its end.
    pub read: bool,
    /// Entries read.
    pub entries: u64,
    /// By which way, or why not.
    pub detail: String,
    /// Whether its entries come in no order of their own, as the keys of a store do.
    pub is_unordered: bool,
    /// Entries whose content was asked for by a check and was longer than is kept.
    pub contents_left_out: u64,
    /// Why a ledger that the system keeps has no reading; absent: it has one, or there is no ledger, or it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<LedgerFault>,
    /// The run was told to stop before a reading came to its end: a run that goes on measures the trial again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_cut: bool,
    /// The second reading, whose entries are those that are kept; absent: the first lacked nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondReading>,
}

/// Why there is no reading of a ledger that the system keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerFault {
    /// It could not be read to its end.
    Unreadable,
    /// Its own audit refuses what it holds.
    Refused,
}

/// A ledger that lacked what was acknowledged was read again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SecondReading {
    /// How long after the first, nanoseconds.
    pub after_ns: u64,
    /// Transactions that had been acknowledged and came into the ledger between the two.
    pub early: u64,
    /// Up to [`EARLY_EXAMPLES_MAX`] of them.
    pub early_examples: Vec<u64>,
}

/// Ids kept of transactions that were acknowledged before they were in the ledger.
pub const EARLY_EXAMPLES_MAX: usize = 100;

/// A node process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    /// Its name in the testbed.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// How it ended, if it did before tear-down, in words; empty = it was running.
    pub ended: String,
    /// It ended by itself: no fault had ended it.
    pub is_unasked: bool,
}
