//! The effects of a fault, and how long nothing was committed.

use serde::{Deserialize, Serialize};

use crate::fault::FaultDetail;

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
    /// Details of its beginning, or why there was none.
    pub began: FaultDetail,
    /// Details of its end; absent if it never ended.
    pub ended: Option<FaultDetail>,
    /// Whether it took place.
    pub happened: bool,
    /// The longest time in which nothing was committed, to the millisecond, from its beginning to the first commit after
    /// its end; absent if none came. Where it has no end: to the next fault or to the end of the load, whatever comes
    /// first.
    #[serde(default)]
    pub silence_ns: Option<i64>,
    /// From its end, or from the moment itself where it has none, to the next commit; absent if none came.
    #[serde(default)]
    pub back_after_ns: Option<i64>,
    /// Transactions that were under way when it began, to the millisecond; absent of one that did not take place.
    #[serde(default)]
    pub in_flight: Option<u64>,
}
