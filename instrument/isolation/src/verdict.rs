//! What a history is found to be: the anomalies in it, each with the transactions that show it, and what they refute.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::prefix::{Element, Key};

/// What can be wrong with a history. The first ones are seen in one transaction or one list, the others are cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// A read found an element that was never appended there.
    GarbageRead,
    /// A read found an element twice.
    DuplicateElement,
    /// Two reads of a list of which neither is the beginning of the other.
    IncompatibleOrder,
    /// G1a: a committed transaction read what a refused one appended.
    AbortedRead,
    /// G1b: a read of what its writer went on to append to.
    IntermediateRead,
    /// A committed append stands behind a refused one.
    DirtyUpdate,
    /// Appends of one transaction to one list stand there in another order than it made them.
    DisorderedAppends,
    /// A transaction's read disagrees with what the same transaction read or appended before.
    Internal,
    /// A transaction read what it appended only later.
    FutureRead,
    /// Two transactions read one version of a list and both appended to it.
    LostUpdate,
    /// A cycle of ww.
    G0,
    /// A cycle of ww and wr.
    G1c,
    /// A cycle with one rw: read skew.
    GSingle,
    /// A cycle with several rw, of which no two follow each other.
    GNonadjacent,
    /// A cycle with two rw that follow each other: write skew.
    G2Item,
}

impl Anomaly {
    /// Its name in the literature.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GarbageRead => "garbage read",
            Self::DuplicateElement => "duplicate element",
            Self::IncompatibleOrder => "incompatible order",
            Self::AbortedRead => "G1a (aborted read)",
            Self::IntermediateRead => "G1b (intermediate read)",
            Self::DirtyUpdate => "dirty update",
            Self::DisorderedAppends => "disordered appends",
            Self::Internal => "internal inconsistency",
            Self::FutureRead => "future read",
            Self::LostUpdate => "lost update",
            Self::G0 => "G0 (write cycle)",
            Self::G1c => "G1c (circular information flow)",
            Self::GSingle => "G-single (read skew)",
            Self::GNonadjacent => "G-nonadjacent",
            Self::G2Item => "G2-item (write skew)",
        }
    }

    /// The strongest level that may still hold where it is found without real time.
    #[must_use]
    pub const fn allows(self) -> Level {
        match self {
            Self::GarbageRead
            | Self::DuplicateElement
            | Self::IncompatibleOrder
            | Self::DisorderedAppends
            | Self::G0 => Level::None,
            Self::AbortedRead | Self::IntermediateRead | Self::DirtyUpdate | Self::G1c => {
                Level::ReadUncommitted
            }
            Self::Internal
            | Self::FutureRead
            | Self::LostUpdate
            | Self::GSingle
            | Self::GNonadjacent => Level::ReadCommitted,
            Self::G2Item => Level::SnapshotIsolation,
        }
    }
}

/// What a history may be, from nothing to all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Not even writes are isolated.
    None,
    /// No write cycles (PL-1).
    ReadUncommitted,
    /// Only what is committed is read (PL-2).
    ReadCommitted,
    /// Each transaction reads one state and loses to no other's write.
    SnapshotIsolation,
    /// There is an order that explains everything (PL-3).
    Serializable,
    /// There is one that real time agrees with.
    #[default]
    StrictSerializable,
}

impl Level {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::None => "no isolation at all",
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::SnapshotIsolation => "snapshot isolation",
            Self::Serializable => "serializable",
            Self::StrictSerializable => "strictly serializable",
        }
    }
}

/// Why one transaction must stand before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// ww: it appended an element that the other appended directly behind.
    Appended {
        /// The list.
        key: Key,
        /// Its element.
        first: Element,
        /// The other's.
        then: Element,
    },
    /// wr: it appended the last element that the other read.
    WasRead {
        /// The list.
        key: Key,
        /// The element.
        element: Element,
    },
    /// rw: it read the list without an element of the other.
    Missed {
        /// The list.
        key: Key,
        /// How long it was.
        len: u32,
        /// The element.
        element: Element,
    },
    /// Real time: it had been answered before the other was sent.
    WasAnswered {
        /// When it had been answered, nanoseconds.
        completed: i64,
        /// When the other was sent.
        invoked: i64,
    },
}

/// One edge of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// This transaction…
    pub from: u64,
    /// … must stand before this one…
    pub to: u64,
    /// … because of this.
    pub because: Relation,
}

/// Transactions of which each must stand before the next, and the last before the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<Step>);

impl Cycle {
    /// Whether an edge of real time is part of it.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        self.0.iter().any(|step| matches!(step.because, Relation::WasAnswered { .. }))
    }

    /// Which anomaly it is.
    #[must_use]
    pub fn anomaly(&self) -> Anomaly {
        let is_rw = |step: &Step| matches!(step.because, Relation::Missed { .. });
        let is_wr = |step: &Step| matches!(step.because, Relation::WasRead { .. });
        let next = self.0.iter().cycle().skip(1);
        let mut pairs = self.0.iter().zip(next);
        match self.0.iter().filter(|step| is_rw(step)).count() {
            0 if self.0.iter().any(is_wr) => Anomaly::G1c,
            0 => Anomaly::G0,
            1 => Anomaly::GSingle,
            _ if pairs.any(|(one, next)| is_rw(one) && is_rw(next)) => Anomaly::G2Item,
            _ => Anomaly::GNonadjacent,
        }
    }

    /// In words, with times in seconds.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = String::new();
        for Step { from, to, because } in &self.0 {
            if !words.is_empty() {
                words.push_str("; ");
            }
            let written = match because {
                Relation::Appended { key, first, then } => write!(
                    words,
                    "{from} appended {first} to list {key} directly before {to} appended {then}"
                ),
                Relation::WasRead { key, element } => {
                    write!(words, "{to} read {element} of {from} at the end of list {key}")
                }
                Relation::Missed { key, len, element } => write!(
                    words,
                    "{from} read list {key} with {len} elements, without {element} of {to}"
                ),
                Relation::WasAnswered { completed, invoked } => write!(
                    words,
                    "{from} was answered at {} s, before {to} was sent at {} s",
                    seconds(*completed),
                    seconds(*invoked)
                ),
            };
            written.expect("a string takes all");
        }
        words
    }
}

/// Nanoseconds as seconds, to the nanosecond.
fn seconds(ns: i64) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// One case of an anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instance {
    /// A transaction, and the list in which it shows.
    Read {
        /// The transaction.
        id: u64,
        /// The list.
        key: Key,
        /// How long it was when it was read.
        len: u32,
    },
    /// A refused element, and a committed one behind it.
    Update {
        /// The list.
        key: Key,
        /// The refused one.
        refused: Element,
        /// The committed one, and who appended it.
        committed: (Element, u64),
    },
    /// A transaction's appends to one list, of which the second does not stand behind the first.
    Appends {
        /// The transaction.
        id: u64,
        /// The list.
        key: Key,
        /// In its order.
        elements: [Element; 2],
    },
    /// Two transactions that both went on from one version.
    Pair {
        /// The transactions.
        ids: [u64; 2],
        /// The list.
        key: Key,
        /// How long both read it.
        len: u32,
    },
    /// A cycle.
    Cycle(Cycle),
}

impl Instance {
    /// The transactions that show it.
    #[must_use]
    pub fn ids(&self) -> Vec<u64> {
        match self {
            Self::Read { id, .. }
            | Self::Appends { id, .. }
            | Self::Update { committed: (_, id), .. } => vec![*id],
            Self::Pair { ids, .. } => ids.to_vec(),
            Self::Cycle(cycle) => cycle.0.iter().map(|step| step.from).collect(),
        }
    }

    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Read { id, key, len } => format!("{id} read list {key} with {len} elements"),
            Self::Update { key, refused, committed: (element, id) } => {
                format!("{id} appended {element} to list {key} behind {refused}, which was refused")
            }
            Self::Appends { id, key, elements: [first, then] } => {
                format!(
                    "{id} appended {first} and then {then} to list {key}, which has {then} first"
                )
            }
            Self::Pair { ids: [one, other], key, len } => {
                format!("{one} and {other} read list {key} with {len} elements and appended to it")
            }
            Self::Cycle(cycle) => cycle.words(),
        }
    }
}

/// How often an anomaly was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// How many cases: reads, lists, pairs of transactions, or sets of transactions in a cycle with each other.
    pub count: u64,
    /// The first of them.
    pub instances: Vec<Instance>,
}

/// The most cases of an anomaly that are kept.
pub(crate) const INSTANCES_MAX: usize = 100;

/// What a history was found to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many transactions it has.
    pub transactions: u64,
    /// Reads that were held against their lists.
    pub reads: u64,
    /// Reads of lists that were not handed over in full: they say nothing.
    pub unread: u64,
    /// What is wrong with it; the second says whether real time is needed to see it.
    pub anomalies: BTreeMap<(Anomaly, bool), Broken>,
}

impl Verdict {
    /// The strongest level that the history may be of. Nothing stronger is, whatever was not seen.
    #[must_use]
    pub fn level(&self) -> Level {
        let levels = self.anomalies.keys().map(|(anomaly, is_real_time)| match is_real_time {
            true => Level::Serializable,
            false => anomaly.allows(),
        });
        levels.min().unwrap_or_default()
    }

    /// Whether an order in real time explains everything that was seen.
    #[must_use]
    pub fn is_strict_serializable(&self) -> bool {
        self.anomalies.is_empty()
    }

    /// Whether an order, in real time or not, does.
    #[must_use]
    pub fn is_serializable(&self) -> bool {
        self.level() >= Level::Serializable
    }

    pub(crate) fn add(&mut self, anomaly: Anomaly, is_real_time: bool, one: Instance) {
        let broken = self.anomalies.entry((anomaly, is_real_time)).or_default();
        broken.count += 1;
        if broken.instances.len() < INSTANCES_MAX {
            broken.instances.push(one);
        }
    }

    /// One more case of which nothing else is known.
    pub(crate) fn count(&mut self, anomaly: Anomaly, is_real_time: bool) {
        self.anomalies.entry((anomaly, is_real_time)).or_default().count += 1;
    }
}
