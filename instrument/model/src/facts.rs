//! What a trial and its host say of themselves, beside the rows: `trial.json` and `environment.json`.

mod connections;

use std::collections::BTreeMap;

use clock::WallTime;
pub use connections::ConnectionFacts;
use serde::{Deserialize, Serialize};

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
    /// What was known before the load; the app writes it.
    pub declared: DeclaredFacts,
    /// What the engine says of the load; the engine writes it.
    pub load: LoadFacts,
    /// What was found beside the load and after it; the app writes it.
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

/// What a trial is, before anything is sent.
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
    /// Index of the stage that counts as committed.
    pub final_stage: usize,
    /// Kinds (targets, operations); `Row::kind` is an index into it.
    pub kinds: Vec<KindFacts>,
    /// Due times before this are warm-up.
    pub measure_start: Stamp,
    /// Due times from this on are not part of the plan; see [`TrialFacts::measure_end`].
    pub measure_end: Stamp,
    /// What the preflight pass found, one entry a kind that was tried.
    pub preflight: Vec<PreflightFinding>,
    /// What the null-target calibration of this machine gave before the trial, if it ran.
    pub calibration: Option<Calibration>,
    /// Fidelity switches that were on, in words.
    pub fidelity: Vec<String>,
    /// Facts for the reader that the adapter adds (versions, addresses without secrets). Nothing reads them back.
    pub system: BTreeMap<String, String>,
    /// Whose clocks the system's own times are by.
    pub clocks: ClockRelation,
    /// What each series is that may be recorded, as those declare it who sample or serve it.
    pub series: Vec<SeriesFacts>,
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

/// What the engine says of the load.
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
    /// Counters of the engine, by worker.
    pub workers: Vec<WorkerFacts>,
    /// Client-visible shape of the connection: `plain` or the TLS version and cipher.
    pub transport: String,
    /// Which driver ran: `io_uring` or `epoll`.
    pub driver: String,
    /// The congestion control of the sockets.
    pub congestion_control: String,
    /// Largest jump of the wall clock against the monotonic line during the trial, nanoseconds.
    pub wall_step_ns: i64,
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
            workers: Vec::new(),
            transport: String::new(),
            driver: String::new(),
            congestion_control: String::new(),
            wall_step_ns: 0,
        }
    }
}

/// What was found beside the load and after it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterFacts {
    /// Processor time of this whole process during the load, connecting and draining included, nanoseconds:
    /// the engine, the record, the sampling and the display.
    pub generator_cpu_ns: u64,
    /// Why a part of the record could not be kept, in words; empty = all of it was.
    pub not_kept: String,
    /// What became of asking nodes for their own metrics, in words; empty = none serves any.
    pub scraped: String,
    /// Whether the system's ledger was read, and if not why not.
    pub ledger: LedgerFacts,
    /// What reading the nodes' own events came to; absent: it declares no node stages.
    pub node_events: Option<NodeEventsFacts>,
    /// Processes of the system under test: name and process id.
    pub nodes: Vec<NodeFacts>,
    /// What the testbed's own network did; absent: the trial had none.
    pub network: Option<NetworkFacts>,
    /// What the nodes' disks of the testbed's own did, in the order made; empty: no node had one.
    pub disks: Vec<DiskFacts>,
}

/// One kind of transactions: a target, an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindFacts {
    /// Its name.
    pub name: String,
    /// Whether the ledger records it. One that is not recorded (a read) cannot be lost, and has no business in the
    /// ledger.
    pub is_recorded: bool,
}

impl KindFacts {
    /// A kind that the ledger records.
    #[must_use]
    pub fn recorded(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_recorded: true }
    }

    /// A kind that leaves nothing in the ledger.
    #[must_use]
    pub fn read(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_recorded: false }
    }

    /// Names of kinds.
    #[must_use]
    pub fn names(kinds: &[Self]) -> Vec<String> {
        kinds.iter().map(|kind| kind.name.clone()).collect()
    }
}

/// Counters of one engine thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerFacts {
    /// Transactions that fell due.
    pub due: u64,
    /// Sent.
    pub sent: u64,
    /// Ended by an answer.
    pub answered: u64,
    /// Ended by the timeout or with a lost connection.
    pub unanswered: u64,
    /// Due, never sent: the backlog was full or its wait exceeded the timeout.
    pub shed: u64,
    /// Due, never sent: no connection could be opened (rejected as transport or client).
    pub refused: u64,
    /// Answers that came after their transaction had ended, or after its timeout.
    pub late_answers: u64,
    /// Answers for a stage that the transaction had already reached.
    pub duplicate_answers: u64,
    /// Answers beyond the first of transactions that were sent more than once: of each attempt one may come.
    pub repeated_answers: u64,
    /// Times that a transaction was sent again.
    pub resent: u64,
    /// Answers for a transaction that was never given to a session.
    pub phantom_answers: u64,
    /// Answers to transactions that ended so long ago that how is no longer known: late, repeated or for nobody.
    pub undecided_answers: u64,
    /// Bytes on the wire that were not of the protocol.
    pub protocol_errors: u64,
    /// Connections opened, the first ones included.
    pub connects: u64,
    /// The connections of the main load, as far as they are this thread's.
    pub pool: PoolFacts,
    /// Connections that could not be opened.
    pub connect_failures: u64,
    /// How those fared that were.
    pub connections: ConnectionFacts,
    /// Times that the text of an error had to be looked up in the table that the threads share: once for each text.
    pub error_lookups: u64,
    /// Times that a due transaction was not yet prepared.
    pub lookahead_dry: u64,
    /// The most transactions that waited for a connection.
    pub backlog_max: u64,
    /// Times that the backlog was full.
    pub backlog_full: u64,
    /// What left together, where the plan has batches.
    pub batches: BatchFacts,
    /// Processor time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// Time that the thread was blocked in the driver, nanoseconds.
    pub idle_ns: u64,
    /// Time that the thread spun on purpose, nanoseconds.
    pub spin_ns: u64,
    /// Wall time of the thread, nanoseconds.
    pub wall_ns: u64,
    /// System calls of the driver.
    pub enters: u64,
    /// Completions that these returned.
    pub completions: u64,
    /// Time that the thread was runnable and not run (`/proc/thread-self/schedstat`), nanoseconds.
    pub run_queue_ns: u64,
    /// The thread's nice value: below zero where the host let the engine take precedence.
    pub nice: i32,
    /// Row batches that the recorder could not take at once.
    pub record_waits: u64,
    /// Observations: what transactions were seen to return.
    pub observations: u64,
    /// Observations that were longer than is kept, or that one receipt had no room for. They are nowhere.
    pub observations_left_out: u64,
}

/// The connections of the main load on one engine thread, or the callers of a client library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolFacts {
    /// Opened before the load.
    pub first: u32,
    /// The most that there could be: what the plan allows, or what the limit of open files and the adapter leave of it.
    pub bound: u32,
    /// The most transactions that each carries at a time.
    pub carries: u32,
    /// Opened during the load because all others were busy.
    pub grown: Vec<Grown>,
    /// Transactions that fell due while all were open and busy and there could be no more: they waited for one of them.
    pub blocked: u64,
}

/// Connections that were added in one second of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// The second, counted from the trial's start.
    pub second: u64,
    /// How many.
    pub count: u32,
}

/// Batches that were sent, by why they left. The four reasons add up to their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchFacts {
    /// Batches.
    pub count: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Transactions in the largest.
    pub size_max: u64,
    /// As many waited as a batch holds.
    pub full: u64,
    /// A batch had come back while something waited.
    pub completion: u64,
    /// The oldest had waited for the longest delay.
    pub delay: u64,
    /// The load was over.
    pub drain: u64,
}

/// One kind that the preflight pass tried.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PreflightFinding {
    /// The kind's name.
    pub kind: String,
    /// Whether it can succeed.
    pub ok: bool,
    /// What was answered, in words.
    pub detail: String,
    /// What a reader should know although it can succeed, in words; empty = nothing.
    pub remark: String,
}

/// What the generator reached on this machine against a target that does nothing.
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
}

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
}

/// What the testbed's own network did to packets, and how exactly it kept what was asked of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkFacts {
    /// `switch` or `forwarders`.
    pub through: String,
    /// Names of the nodes on it, in the order added.
    pub nodes: Vec<String>,
    /// All links together.
    pub total: LinkTraffic,
    /// Packets that devices of the network dropped before the emulator could read them. They are on no link, since
    /// nobody has read where they were going.
    pub device_dropped: u64,
    /// Packets that were for no end of the network, or not IPv4. Nobody was to receive them.
    pub not_carried: u64,
    /// The smallest delay that was asked of a link, other than none, nanoseconds; 0 = none asked for any.
    pub delay_ns_min: u64,
    /// Processor time of the emulator, nanoseconds.
    pub cpu_ns: u64,
    /// Why a part of the network ended before the trial did, in words; empty = none did.
    pub failed: String,
    /// Directed links that carried something. All of them, or of a large network the worst.
    pub links: Vec<LinkFacts>,
    /// Links that carried something and are not listed.
    pub links_left_out: u64,
}

/// What one disk of the testbed's own did, and what it cost.
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

/// What a disk was asked for, of one sort, and what it added of its own to the time that was asked for.
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

/// One directed link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkFacts {
    /// The sending end; `client` is the instrument.
    pub from: String,
    /// The receiving end.
    pub to: String,
    /// What passed.
    pub traffic: LinkTraffic,
}

/// Packets of one link, or of all. With forwarders, pieces of a TCP stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkTraffic {
    /// Sent into the link.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Lost, as the plan asks.
    pub lost: u64,
    /// Lost because the link was cut.
    pub cut: u64,
    /// Dropped because the queue before a link of limited bandwidth was full, as in a router.
    pub tail_dropped: u64,
    /// Sent ahead of others, as the plan asks.
    pub reordered: u64,
    /// Dropped by the emulator itself, for want of memory or because the receiving device refused them.
    pub emulator_dropped: u64,
    /// How much later than asked packets were handed over, median, nanoseconds.
    pub late_p50_ns: u64,
    /// The same, p99.
    pub late_p99_ns: u64,
    /// The same, the most.
    pub late_max_ns: u64,
}

/// `environment.json`: the host, the tool and the command.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// `assay.environment/1`.
    pub schema: String,
    /// Assay's version and commit.
    pub assay: String,
    /// The command line, secrets redacted.
    pub command: Vec<String>,
    /// RFC 3339.
    pub started: String,
    /// Kernel release.
    pub kernel: String,
    /// Operating system.
    pub os: String,
    /// Processor model.
    pub cpu: String,
    /// Processors that this process may run on.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Scaling governor; empty = the host does not say.
    pub governor: String,
    /// Lowest and highest clock rate of the processors, MHz; zero = the host does not say.
    pub cpu_mhz: (f64, f64),
    /// The most open files (soft limit).
    pub files_max: u64,
    /// Local ports for outgoing connections.
    pub ports: u32,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// One-minute load average before the run.
    pub load_average: f64,
    /// Whether the host is a virtual machine, in words; empty = no sign of it.
    pub virtualisation: String,
    /// Warnings, in words.
    pub warnings: Vec<String>,
}

/// One sample of a series: `metrics.parquet` holds these in long form.
#[derive(Clone, Debug, PartialEq)]
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

/// Something that happened at a time: `events.parquet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds after the trial's start.
    pub at: Stamp,
    /// `late_answer`, `duplicate_answer`, `phantom_answer`, `protocol_error`, `connect_failure`,
    /// `connection_lost`, `phase`. What faults did is not among them: it stands in faults.ndjson.
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
    /// Whether the entry carries this trial's mark and its checksum holds. False: it is nobody's.
    pub ours: bool,
    /// Whether it is logged, and refused by the system's rules all the same: it had no effect.
    pub is_refused: bool,
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
        Self { position, tx, ours, is_refused: false, block: 0, submitted: None, recorded: None }
    }
}
