//! A system's own tests of what it holds and of what its reads returned: no double spend, a register that never
//! goes back, entries that were signed. An adapter writes them, the analysis runs them over the run folder, and the
//! report words what they found. They stand here, and not on a system, because a folder is analysed where no system
//! can be built.
//!
//! A check never talks to a system, and never decides whether a number holds: it says what it found.

use crate::facts::{KindFacts, LedgerEntry, NodeState};
use crate::final_stages::FinalStages;
use crate::observation::Observation;
use crate::options::Options;
use crate::row::{Row, TxId};
use crate::seed::Seed;

/// The most transactions that a finding names.
pub const EXAMPLES_MAX: usize = 100;

/// One test of a system's content.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Its subject, in one sentence.
    pub summary: &'static str,
    /// Its inputs.
    pub reads: Reads,
    /// Whether it has anything to say of such a trial.
    pub applies: fn(&CheckInput<'_>) -> bool,
    /// Makes the state of one trial's check.
    pub start: fn(&CheckInput<'_>) -> Box<dyn CheckState>,
}

/// The inputs of a check. An input that no check asks for is not read, and contents of entries are not even kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Rows.
    pub rows: bool,
    /// Observations.
    pub observations: bool,
    /// Entries of the ledger.
    pub entries: Entries,
}

/// How a check reads the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entries {
    /// Not at all.
    #[default]
    Unread,
    /// The identity that each entry claims.
    Bare,
    /// That, and what it holds.
    WithContent,
}

/// Facts of a trial that are known before any record is read.
#[derive(Clone, Copy, Debug)]
pub struct CheckInput<'a> {
    /// The trial's seed. The engine splits the workload's from it by the name `workload`, the probe's by `probe`.
    pub seed: Seed,
    /// `[system.deploy]`.
    pub deploy: &'a Options,
    /// `[workload]`.
    pub workload: &'a Options,
    /// The kinds of its transactions; `Row::kind` is an index into them.
    pub kinds: &'a [KindFacts],
    /// The ladder; `Row::marks` is indexed by it.
    pub stages: &'a [String],
    /// The stage that counts as committed, by the stream of a row.
    pub final_stages: FinalStages,
    /// What replicas said that they hold; empty before they were asked.
    pub states: &'a [NodeState],
}

/// The state of a check while a trial streams past it: all rows, then all observations, then all entries. Only what
/// [`Check::reads`] asks for comes.
pub trait CheckState {
    /// A row, in the order of the record.
    fn row(&mut self, row: &Row) {
        let _ = row;
    }

    /// The results that a transaction was seen to return. The order is that of the record, which workers share: its stamps say
    /// when.
    fn observation(&mut self, observation: &Observation<'_>) {
        let _ = observation;
    }

    /// A ledger entry, in the ledger's order, with what it holds; that is empty where it was not asked for, or was
    /// longer than [`crate::facts::LEDGER_CONTENT_BYTES_MAX`].
    fn entry(&mut self, entry: &LedgerEntry, content: &[u8]) {
        let _ = (entry, content);
    }

    /// The finding.
    fn finish(self: Box<Self>) -> CheckFinding;
}

/// The finding of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckFinding {
    /// Whether the promise was kept as far as could be seen.
    pub holds: bool,
    /// How many transactions broke it; of a check that holds, how many were looked at.
    pub count: u64,
    /// Up to [`EXAMPLES_MAX`] of those that broke it.
    pub examples: Vec<TxId>,
    /// What is wrong with them, or what was looked at, as words that follow the count: `reads returned a value that
    /// …`.
    pub words: String,
    /// What it should have been shown and was not: observations of transactions that were committed and read something,
    /// replicas that had not come as far as others. From one on the check warns.
    pub missing: u64,
    /// It was shown nothing that could have contradicted the promise, so it gives no verdict. Of a check that holds.
    pub saw_nothing: bool,
}
