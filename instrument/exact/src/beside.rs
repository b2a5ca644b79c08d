//! Everything beside a run's load: the host, who ends it, and samples of nodes. Told by a test as a testbed would
//! find it; nothing of it reaches the load.

use std::time::Duration;

use clock::WallTime;
use model::facts::{DurabilityFacts, Environment, MetricSample, NodeFacts};
use model::fault::{FaultEvent, FaultKind, FaultWritten, Length, Subject};
use model::plan::SettingPlan;
use model::series::SeriesFacts;

/// When every run and every trial begins, in the calendar: 2026-01-01T00:00:00Z.
pub(crate) const STARTED: WallTime = WallTime::from_unix_ns(1_767_225_600_000_000_000);

/// Kinds of faults that an experiment may plan. They are not injected: the script does what it does by itself, and the test
/// says what a testbed would have noted ([`Beside::faults`]).
pub(crate) const FAULT_KINDS: &[FaultKind] = &[
    kind("pause", "a pause", "Stop this node and let it go on", Length::Positive),
    kind("kill", "a kill", "Kill this node", DEAD),
];

const DEAD: Length = Length::None { message: "what is killed stays down", help: "leave out for" };

const fn kind(
    word: &'static str,
    called: &'static str,
    meaning: &'static str,
    length: Length,
) -> FaultKind {
    FaultKind {
        word,
        called,
        meaning,
        on: Subject::Node,
        keys: &[],
        length,
        needs: &[],
        check: FaultWritten::fine,
    }
}

/// Everything beside the load.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The host.
    pub environment: Environment,
    /// Somebody ends the first trial so long after its start, as with one Ctrl-C; the others are not begun.
    pub ended_after: Option<Duration>,
    /// The answer of every test request before the load, where none can succeed: the load is then withheld.
    pub refusal: Option<String>,
    /// The durability settings of the system in each setting of the experiment.
    pub durability: fn(&SettingPlan) -> DurabilityFacts,
    /// Declarations of the series that have samples.
    pub series: Vec<SeriesFacts>,
    /// The samples of each trial.
    pub metrics: Vec<MetricSample>,
    /// Effects of faults in each trial, as told; a script acts by itself.
    pub faults: Vec<FaultEvent>,
}

impl Default for Beside {
    /// A host in good order, and nothing else.
    fn default() -> Self {
        let environment = Environment {
            schema: "assay.environment/1".to_owned(),
            assay: "exact".to_owned(),
            started: STARTED.rfc3339(),
            cpus: 4,
            memory_bytes: 8 << 30,
            governor: "performance".to_owned(),
            cpu_mhz: (2_000.0, 2_000.0),
            files_max: 65_536,
            ports: 28_000,
            ..Environment::default()
        };
        Self {
            environment,
            ended_after: None,
            refusal: None,
            durability: |_| DurabilityFacts::default(),
            series: Vec::new(),
            metrics: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl Beside {
    /// The nodes that were sampled, in the order in which they come.
    pub(crate) fn nodes(&self) -> Vec<NodeFacts> {
        let mut names: Vec<&str> = Vec::new();
        for sample in &self.metrics {
            let source = sample.source.as_str();
            if !["generator", "host"].contains(&source) && !names.contains(&source) {
                names.push(source);
            }
        }
        let node = |name: &str| NodeFacts { name: name.to_owned(), ..NodeFacts::default() };
        names.into_iter().map(node).collect()
    }
}
