//! Durability settings: those of a system that decide which of its acknowledged transactions it keeps, by its own names, beside
//! the words of its documentation.
//!
//! The words must never be anything but a quotation: whoever reads a report compares what was lost with them.

use serde::{Deserialize, Serialize};

/// The durability settings of a system when the load began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DurabilityFacts {
    /// The system's version, as it says it; empty = it does not.
    pub version: String,
    /// In the order of its adapter's list; empty = the adapter declares none.
    pub settings: Vec<DurabilitySetting>,
}

impl DurabilityFacts {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }
}

/// A durability setting of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DurabilitySetting {
    /// By the system's own name: `synchronous_commit`.
    pub name: String,
    /// The value in force; null = the system ran already, and does not say it.
    pub value: Option<String>,
    /// The value where none is set, by the documentation.
    pub default: String,
    /// The documentation's promise for the value in force; null = its adapter quotes none.
    pub promise: Option<DocumentedPromise>,
}

/// The words of a documentation on a value of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentedPromise {
    /// Word by word; `[…]` where something was left out.
    pub words: String,
    /// The documentation, with its version or date: `PostgreSQL 15`.
    pub document: String,
    /// Its section: `20.5.1, Settings`.
    pub section: String,
}
