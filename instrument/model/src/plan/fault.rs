//! Faults, as planned: what is done to which nodes, when, and for how long.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LinkChange;
use crate::quantity::duration_text;

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultPlan {
    /// After the start of the measured window.
    #[serde(with = "duration_text")]
    pub at: Duration,
    /// How long; zero for what cannot be undone (kill).
    #[serde(rename = "for", with = "duration_text")]
    pub length: Duration,
    /// What, to whom.
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// Faults that the testbed can inject. A node is a name, or the beginning of names with `*` behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FaultKind {
    /// SIGSTOP, and SIGCONT at the end.
    Pause {
        /// Which.
        node: String,
    },
    /// SIGKILL.
    Kill {
        /// Which.
        node: String,
    },
    /// SIGKILL, and started again at the end.
    Restart {
        /// Which.
        node: String,
    },
    /// Over and over until the time is over: all of them are stopped, wiped, started, and waited for until they have
    /// caught up with the others.
    Rotate {
        /// Which.
        node: String,
        /// The most times; 0 = as often as the time allows.
        cycles: u32,
    },
    /// Cut off from all nodes but one another.
    Partition {
        /// Which.
        nodes: Vec<String>,
        /// What does not pass.
        way: CutWay,
        /// Whether the instrument is cut off from them, too.
        client: bool,
    },
    /// A link that is different for a while.
    Link {
        /// The sending end.
        from: String,
        /// The receiving end.
        to: String,
        /// What is different.
        change: LinkChange,
    },
}

/// What does not pass between nodes that are cut off and the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutWay {
    /// Nothing passes.
    #[default]
    Both,
    /// What the others send to them.
    In,
    /// What they send to the others.
    Out,
}

impl FaultKind {
    /// The word for it in files, events and reports.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pause { .. } => "pause",
            Self::Kill { .. } => "kill",
            Self::Restart { .. } => "restart",
            Self::Rotate { .. } => "rotate",
            Self::Partition { .. } => "partition",
            Self::Link { .. } => "link",
        }
    }

    /// The nodes or ends as they are named: `node1`, `full*`, `node0 to node1*`.
    #[must_use]
    pub fn subject(&self) -> Cow<'_, str> {
        match self {
            Self::Pause { node }
            | Self::Kill { node }
            | Self::Restart { node }
            | Self::Rotate { node, .. } => Cow::Borrowed(node),
            Self::Partition { nodes, .. } => Cow::Owned(nodes.join(" ")),
            Self::Link { from, to, .. } => Cow::Owned(format!("{from} to {to}")),
        }
    }

    /// Every name or pattern of a node in it.
    #[must_use]
    pub fn patterns(&self) -> Vec<&str> {
        match self {
            Self::Pause { node }
            | Self::Kill { node }
            | Self::Restart { node }
            | Self::Rotate { node, .. } => vec![node],
            Self::Partition { nodes, .. } => nodes.iter().map(String::as_str).collect(),
            Self::Link { from, to, .. } => vec![from, to],
        }
    }

    /// What else there is to say of it when it begins; empty if its word and nodes say it all.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Partition { way, client, .. } => {
                let way = match way {
                    CutWay::Both => "",
                    CutWay::In => "only what comes in",
                    CutWay::Out => "only what goes out",
                };
                let client = if *client { "from the instrument, too" } else { "" };
                let words: Vec<&str> =
                    [way, client].into_iter().filter(|it| !it.is_empty()).collect();
                words.join(", ")
            }
            Self::Link { change, .. } => change.in_words(),
            _ => String::new(),
        }
    }

    /// Whether it is done to links, which takes a network of the trial's own.
    #[must_use]
    pub const fn is_of_links(&self) -> bool {
        matches!(self, Self::Partition { .. } | Self::Link { .. })
    }
}
