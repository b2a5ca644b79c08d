//! Did what clients saw happen in some order? Algorithms on histories of transactions, and the checks made of them. No
//! system is known here, nothing is read or written, and no clock is looked at.
//!
//! **List-append** ([`History`]). Each object is a list; a transaction appends elements, which no other ever appends,
//! and reads whole lists. One read then shows every version that its key ever had, and each element says who wrote it,
//! so that which transaction must stand before which can be read off:
//!
//! * *ww*: one appended directly behind the other's element;
//! * *wr*: one read the other's element as the last;
//! * *rw*: one read a list which the other's element is the first to be missing from;
//! * *real time*: one had been answered before the other was sent.
//!
//! A history is strictly serializable exactly if this graph has no cycle and no single transaction contradicts itself
//! or the lists; which edges a cycle needs says which weaker promises are broken too. Definitions: A. Adya, Weak
//! Consistency: A Generalized Theory (MIT, 1999); A. Adya, B. Liskov and P. O'Neil, Generalized Isolation Level
//! Definitions (ICDE 2000); K. Kingsbury and P. Alvaro, Elle: Inferring Isolation Anomalies from Experimental
//! Observations (VLDB 2020); for snapshot isolation A. Cerone and A. Gotsman, Analysing Snapshot Isolation (PODC 2016).
//!
//! ```
//! use isolation::{Effect, History, Level, MicroOp, Prefix, Transaction};
//!
//! let mut history = History::default();
//! let sent = |id, at| Transaction { id, invoked: at, completed: at + 10, effect: Effect::Certain };
//! // Two appends to list 0, one after the other; a later read shows only the first.
//! history.add(sent(1, 0), &[MicroOp::Append { key: 0, element: 0 }]);
//! history.add(sent(2, 20), &[MicroOp::Append { key: 0, element: 1 }]);
//! for (id, at, list) in [(3, 40, &[0, 1][..]), (4, 60, &[0][..])] {
//!     history.add(sent(id, at), &[MicroOp::Read { key: 0, found: Some(Prefix::of(list)) }]);
//!     history.list(0, Prefix::EMPTY, list);
//! }
//! // An order explains it, and real time contradicts every such order.
//! assert_eq!(history.check().level(), Level::Serializable);
//! ```
//!
//! **Replay** ([`replay`]). Where a system says in which order it committed, that order is tried and no other.
//!
//! [`workload`] has the transactions, made from their numbers alone, [`observation`] the bytes that sessions keep of their
//! answers, and [`checks`] what an adapter takes up: `isolation::checks::ALL`.
//!
//! The list-append check takes time and memory in proportion to the history: a list is read as its length and the hash of its elements
//! ([`Prefix`]), the lists themselves are kept once, and the graph is searched for cycles once, however many clients
//! ran beside each other.

mod check;
pub mod checks;
mod cycles;
mod direct;
mod edges;
mod graph;
mod history;
pub mod models;
pub mod observation;
mod orders;
mod prefix;
pub mod replay;
mod verdict;
mod versions;
pub mod workload;

pub use history::{Effect, History, MicroOp, Transaction};
pub use prefix::{Element, GARBAGE, Key, Prefix};
pub use verdict::{Anomaly, Broken, Cycle, Instance, Level, Relation, Step, Verdict};

/// An index as the machine wants it.
#[expect(
    clippy::as_conversions,
    reason = "32 bits always fit an index on the machines that Assay runs on"
)]
const fn at(index: u32) -> usize {
    index as usize
}

/// An index as it is kept: histories have fewer than 2³¹ transactions, 2³² micro-operations and 2³² edges.
fn small(index: usize) -> u32 {
    u32::try_from(index).expect("a history has fewer than 2³² of anything")
}

/// No transaction.
const NONE: u32 = u32::MAX;
