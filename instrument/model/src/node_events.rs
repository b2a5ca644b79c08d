//! What nodes say of themselves, stage by stage: the words that an adapter, the record, the analysis and the report
//! share. Node stages are what the nodes stamp in files of their own; they are not rungs of the ladder, which is what
//! a client sees, and no row holds them.

use std::time::Duration;

use clock::WallTime;
use serde::{Deserialize, Serialize};

use crate::row::{Stamp, TxId};

/// The most node stages that a system can declare: more are no pipeline that anybody reads.
pub const NODE_STAGES_MAX: usize = 32;

/// A stage that nodes stamp themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStage {
    /// Its name in thresholds and tables: `stage.NAME.throughput`. Lower-case letters, digits, `_` and `.`.
    pub name: String,
    /// In words, for readers.
    pub label: String,
    /// The stage that it is a part of what comes after it: what has passed that one passes exactly one of those that name
    /// it, once. Empty: nothing of the kind holds, because a stage waits, repeats, or leaves something out.
    pub behind: String,
    /// The leg of a transaction's way that ends where it has passed this stage: `queue`. Empty: none ends here.
    pub leg: String,
}

impl NodeStage {
    /// A stage of this name.
    #[must_use]
    pub fn new(name: &str, label: &str) -> Self {
        Self { name: name.to_owned(), label: label.to_owned(), ..Self::default() }
    }

    /// The same, at the end of a leg of each transaction's way. Legs follow one another in the order of the stages.
    #[must_use]
    pub fn ending(mut self, leg: &str) -> Self {
        leg.clone_into(&mut self.leg);
        self
    }

    /// The same, one of the stages that together pass all that has passed `stage`.
    #[must_use]
    pub fn behind(mut self, stage: &str) -> Self {
        stage.clone_into(&mut self.behind);
        self
    }
}

/// Something that a node says it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeEvent<'a> {
    /// Index into the declared node stages.
    pub stage: u32,
    /// The node.
    pub node: &'a str,
    /// When it was done, by the node's clock.
    pub at: WallTime,
    /// How many transactions it was done to: one, or a batch.
    pub count: u64,
    /// How long it took, if the node says so: one sample, however many transactions.
    pub took: Option<Duration>,
}

/// A transaction's time in a stage of a node, as the node says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpan<'a> {
    /// The transaction.
    pub tx: TxId,
    /// Index into the declared node stages.
    pub stage: u32,
    /// The node.
    pub node: &'a str,
    /// When the stage began for it, by the node's clock.
    pub from: WallTime,
    /// When it was done.
    pub to: WallTime,
}

/// The same on the trial's line, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The transaction.
    pub tx: TxId,
    /// Index into the declared node stages.
    pub stage: u32,
    /// The node.
    pub node: String,
    /// When the stage began for it.
    pub from: Stamp,
    /// When it was done.
    pub to: Stamp,
}

/// The result of reading the nodes' events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeEventsFacts {
    /// Whether every event was read and kept. False: `problems` says what is missing.
    pub is_whole: bool,
    /// Events read.
    pub events: u64,
    /// Transactions that they count, all stages together.
    pub transactions: u64,
    /// Events that were left out, because their time lies outside any trial.
    pub outside: u64,
    /// Events and spans that were left out, because their stage is not declared.
    pub undeclared: u64,
    /// Events and spans that were left out, because there were too many nodes.
    pub beyond_nodes: u64,
    /// Spans read.
    pub spans: u64,
    /// Spans kept: all those of a sampled transaction.
    pub spans_kept: u64,
    /// One transaction in so many is sampled.
    pub sampled_one_in: u64,
    /// Events that could not be read or kept, in words; the first hundred.
    pub problems: Vec<String>,
    /// How many more there were.
    pub problems_left_out: u64,
}
