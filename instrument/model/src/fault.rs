//! Faults: what a kind of them is, and what was really done, event by event.
//!
//! An event says which fault of the plan it belongs to, in which round and on which node, so that an end is put to its
//! own beginning whatever else went on. What is said of it is typed; [`FaultDetail::in_words`] is the only place where
//! it becomes a sentence, and nothing ever reads that sentence back.

mod kind;
mod words;

use serde::{Deserialize, Serialize};

use crate::plan::{CutWay, FaultValue, LinkChange};
use crate::row::Stamp;

pub use kind::{FaultComplaint, FaultKey, FaultKind, FaultWritten, KeyForm, Length, Need, Subject};

/// The schema of faults.ndjson, its first line.
pub const FAULTS_SCHEMA: &str = "assay.faults/1";

/// Something that was done to a node or to links, or could not be: a line of faults.ndjson.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// Which fault of the setting's plan, from 0.
    pub fault: u32,
    /// Which round of it, from 1; 0 for what does not come round.
    pub cycle: u32,
    /// Its outcome.
    pub phase: FaultPhase,
    /// The word of its kind.
    pub kind: String,
    /// The node, or both ends of a link: `node0 to node1*`.
    pub node: String,
    /// When the plan wanted the fault to begin, nanoseconds after the start of the measured window.
    pub planned_ns: i64,
    /// When it was, nanoseconds after the trial's start.
    pub at_ns: Stamp,
    /// Its details.
    #[serde(default)]
    pub detail: FaultDetail,
}

/// The outcome of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultPhase {
    /// It began.
    Start,
    /// It was undone, or is over.
    End,
    /// It did not take place.
    Failed,
}

/// The details of an event. A new kind of fault has words for most of it here already.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum FaultDetail {
    /// The event says it all.
    #[default]
    Nothing,
    /// It began with these keys, as planned.
    Keys {
        /// By name.
        keys: std::collections::BTreeMap<String, FaultValue>,
    },
    /// The node's process was ended at once.
    Killed,
    /// Links were cut.
    Cut {
        /// The packets that do not pass.
        way: CutWay,
        /// Whether the instrument is cut off, too.
        client: bool,
    },
    /// Links are different.
    Link {
        /// The new state.
        change: LinkChange,
    },
    /// It was undone.
    After {
        /// How long it was, nanoseconds.
        ns: i64,
        /// Whether the trial ended first.
        cut_short: bool,
        /// Whether another fault of its kind goes on there, so that nothing changed yet.
        goes_on: bool,
        /// The system's objection to undoing it; empty: none.
        error: String,
    },
    /// The node's power was cut.
    PowerCut {
        /// Bytes that it had written and not synced, and that are gone, in sectors of 512.
        lost_bytes: u64,
        /// The same, and they survived.
        kept_bytes: u64,
        /// Names that it had created, renamed or removed and not synced, and that are as before.
        lost_names: u64,
    },
    /// The node's process was ended at once, and bits of what it had stored flipped.
    Rotted {
        /// How many.
        bits: u64,
        /// The first of them: file and place of the byte.
        places: Vec<String>,
    },
    /// The node was started again.
    StartedAgain {
        /// How long it was down, nanoseconds.
        ns: i64,
        /// Whether the trial ended first.
        cut_short: bool,
    },
    /// The node has what the others have.
    CaughtUp {
        /// Since its start, nanoseconds.
        ns: i64,
    },
    /// The node had not got there when it was no longer waited for.
    NotCaughtUp {
        /// Since its start, nanoseconds.
        ns: i64,
        /// Why it was no longer waited for.
        over: RotationOver,
        /// Its last answer; empty: nothing but no.
        said: String,
    },
    /// The node was started and ended again.
    EndedAgain {
        /// Since its start, nanoseconds.
        ns: i64,
        /// How it ended, in the testbed's words.
        how: String,
    },
    /// The node could not be started again and stays down.
    Down {
        /// Why.
        why: String,
    },
    /// The node was started again with what it had.
    NotWiped {
        /// Why it could not be wiped; absent: there was no more time for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Why there was no more time; absent: there was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        over: Option<RotationOver>,
    },
    /// No node of a round came back, and the next would be the same.
    GivenUp,
    /// There is no node of that name.
    NoSuchNode {
        /// Those that there are.
        known: Vec<String>,
    },
    /// There is no such link between nodes on the network.
    NoSuchLink,
    /// The trial has no network of its own.
    NoNetwork,
    /// The system does not say how its nodes are looked after.
    NoCare,
    /// The trial ended before its time came.
    NotReached,
    /// Further events are dropped: the limit is reached.
    TooMuch,
    /// The message of the operating system or the testbed.
    Why {
        /// Its text.
        text: String,
    },
}

/// Why a rotation waited no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RotationOver {
    /// Its own time was over.
    Time,
    /// The trial had ended.
    Trial,
}

impl FaultPhase {
    /// The word for it in pictures and lists.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Start => "fault_start",
            Self::End => "fault_end",
            Self::Failed => "fault_failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: an event is the same after its line, whatever it says, and a line without a detail has none.
    #[test]
    fn events_survive_their_lines() {
        let keys = [("nice".to_owned(), FaultValue::Count(3))].into();
        let details = [
            FaultDetail::Nothing,
            FaultDetail::Keys { keys },
            FaultDetail::Cut { way: CutWay::In, client: true },
            FaultDetail::Link { change: LinkChange { loss: Some(0.5), ..LinkChange::default() } },
            FaultDetail::After { ns: 1, cut_short: true, goes_on: true, error: "no".into() },
            FaultDetail::NotWiped { why: None, over: Some(RotationOver::Time) },
            FaultDetail::NoSuchNode { known: vec!["a: b".into()] },
            FaultDetail::Why { text: "line\nbreak: \"x\"".into() },
        ];
        for detail in details {
            let event = FaultEvent {
                fault: 7,
                cycle: 2,
                phase: FaultPhase::End,
                kind: "rotate".into(),
                node: "a b".into(),
                planned_ns: 1,
                at_ns: 2,
                detail,
            };
            let line = serde_json::to_string(&event).expect("a line");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<FaultEvent>(&line).expect("an event"), event);
        }
        let bare = r#"{"fault":0,"cycle":0,"phase":"start","kind":"kill","node":"a","planned_ns":0,"at_ns":1}"#;
        let event: FaultEvent = serde_json::from_str(bare).expect("an event");
        assert_eq!(event.detail, FaultDetail::Nothing);
    }
}
