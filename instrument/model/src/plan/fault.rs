//! Faults, as planned: what is done to whom, when, and for how long.
//!
//! A plan names a kind by its word; what the word means stands in the testbed's list of kinds (`crate::fault`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::{duration_text, show_bandwidth, show_duration, show_percent};

/// One fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultPlan {
    /// The word of its kind.
    pub kind: String,
    /// After the start of the measured window.
    #[serde(with = "duration_text")]
    pub at: Duration,
    /// How long; zero for what cannot be undone.
    #[serde(rename = "for", with = "duration_text")]
    pub length: Duration,
    /// Whom: names of nodes, or beginnings of names with `*` after them; of a link its two ends.
    #[serde(default)]
    pub on: Vec<String>,
    /// The other keys.
    #[serde(default)]
    pub keys: BTreeMap<String, FaultValue>,
}

/// The value at a key of a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultValue {
    /// A length of time.
    Duration(#[serde(with = "duration_text")] Duration),
    /// 0 to 1.
    Share(f64),
    /// Bytes a second; 0 = no limit.
    Bandwidth(u64),
    /// Bytes.
    Size(u64),
    /// A whole number.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// One of the words of its key.
    Word(String),
}

impl fmt::Display for FaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration(duration) => f.write_str(&show_duration(*duration)),
            Self::Share(share) => f.write_str(&show_percent(*share)),
            Self::Bandwidth(rate) => f.write_str(&show_bandwidth(*rate)),
            Self::Size(bytes) => write!(f, "{bytes}B"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// The directions in which nothing passes between the isolated nodes and the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutWay {
    /// Nothing passes.
    #[default]
    Both,
    /// Packets from the others to them.
    In,
    /// Packets from them to the others.
    Out,
}

impl FaultPlan {
    /// A fault without keys.
    #[must_use]
    pub fn new(kind: &str, on: &[&str], at: Duration, length: Duration) -> Self {
        let on = on.iter().map(|name| (*name).to_owned()).collect();
        Self { kind: kind.to_owned(), at, length, on, keys: BTreeMap::new() }
    }

    /// The fault with one more key.
    #[must_use]
    pub fn with(mut self, key: &str, value: FaultValue) -> Self {
        self.keys.insert(key.to_owned(), value);
        self
    }

    /// The first of whom it is done to: the only one, where its kind takes one.
    #[must_use]
    pub fn node(&self) -> &str {
        self.on.first().map_or("", String::as_str)
    }

    /// The two ends of a link.
    #[must_use]
    pub fn ends(&self) -> (&str, &str) {
        (self.node(), self.on.get(1).map_or("", String::as_str))
    }

    /// Whom it is done to, as events name it where it is not each node: `node1`, `full*`, `node0 node2`.
    #[must_use]
    pub fn subject(&self) -> Cow<'_, str> {
        match self.on.as_slice() {
            [one] => Cow::Borrowed(one),
            all => Cow::Owned(all.join(" ")),
        }
    }

    /// A length of time, if it was written.
    #[must_use]
    pub fn duration(&self, key: &str) -> Option<Duration> {
        match self.keys.get(key)? {
            FaultValue::Duration(duration) => Some(*duration),
            _ => None,
        }
    }

    /// A share, if it was written.
    #[must_use]
    pub fn share(&self, key: &str) -> Option<f64> {
        match self.keys.get(key)? {
            FaultValue::Share(share) => Some(*share),
            _ => None,
        }
    }

    /// A whole number, a size or a bandwidth, if it was written.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.keys.get(key)? {
            FaultValue::Count(n) | FaultValue::Size(n) | FaultValue::Bandwidth(n) => Some(*n),
            _ => None,
        }
    }

    /// A word, if it was written.
    #[must_use]
    pub fn word(&self, key: &str) -> Option<&str> {
        match self.keys.get(key)? {
            FaultValue::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether a flag was written and is true.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.keys.get(key) == Some(&FaultValue::Flag(true))
    }
}
