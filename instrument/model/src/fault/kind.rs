//! The declaration of a kind of fault: the word that stands in `[[fault]]`, the keys beside it, its needs.
//! The testbed has one list of kinds, each with its action; the experiment reader, the schema and the documents take
//! everything that they know of faults from there, through these types.

use crate::plan::{FaultPlan, LinksPlan};

/// The declared part of one kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct FaultKind {
    /// The key that asks for it, and its word in files, events and reports.
    pub word: &'static str,
    /// As a message calls one: `a pause`.
    pub called: &'static str,
    /// The meaning of the key, a sentence without a final stop.
    pub meaning: &'static str,
    /// Whom or what it is done to.
    pub on: Subject,
    /// Keys that may stand beside it.
    pub keys: &'static [FaultKey],
    /// Whether it lasts.
    pub length: Length,
    /// Its needs.
    pub needs: &'static [Need],
    /// Mistakes of one that was read, beyond its keys each by itself.
    pub check: fn(&FaultWritten<'_>) -> Vec<FaultComplaint>,
}

/// The value at a kind's word.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// A node, or the beginning of names with `*` after it.
    Node,
    /// One of these, or a list of them.
    Nodes,
    /// A table with `from`, `to` and these keys: a link.
    Link(&'static [FaultKey]),
}

/// A key of a kind.
#[derive(Clone, Copy, Debug)]
pub struct FaultKey {
    /// Its name.
    pub name: &'static str,
    /// Allowed values.
    pub form: KeyForm,
    /// Its meaning, a sentence without a final stop.
    pub meaning: &'static str,
    /// Its default, for the documents; empty: none.
    pub default: &'static str,
}

/// The allowed values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// A length of time.
    Duration,
    /// A percentage.
    Share,
    /// Bytes a second.
    Bandwidth,
    /// A size in bytes.
    Size,
    /// A whole number between these, both included.
    Count(u64, u64),
    /// true or false; false where it is not written.
    Flag,
    /// One of these.
    Word(&'static [&'static str]),
}

/// Whether a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// It cannot be undone: `for` is a mistake.
    None {
        /// Its words then.
        message: &'static str,
        /// And what to do.
        help: &'static str,
    },
    /// As long as `for`, which may be nothing.
    Any,
    /// As long as `for`, which must be greater than zero.
    Positive,
}

/// A need of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// `[links]`: it is done to the trial's own network.
    Links,
    /// `[disk]`: it is done to the disk of a node's own.
    Disks,
    /// A system that says how its nodes are wiped and when they have caught up.
    Care,
}

/// A fault as it was written.
#[derive(Clone, Copy, Debug)]
pub struct FaultWritten<'a> {
    /// The keys that could be read.
    pub plan: &'a FaultPlan,
    /// Every key of it that was written, rightly or wrongly.
    pub given: &'a [&'static str],
    /// The network, if there is one.
    pub links: Option<&'a LinksPlan>,
}

/// Something wrong with a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultComplaint {
    /// At which key; empty: at all of it.
    pub key: &'static str,
    /// One sentence without a final stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl FaultKind {
    /// Keys of it that stand in the table of a link.
    #[must_use]
    pub const fn inner_keys(&self) -> &'static [FaultKey] {
        match self.on {
            Subject::Link(keys) => keys,
            Subject::Node | Subject::Nodes => &[],
        }
    }

    /// Whether it is done to links, which takes a network of the trial's own.
    #[must_use]
    pub fn is_of_links(&self) -> bool {
        self.needs.contains(&Need::Links)
    }
}

impl FaultKey {
    /// A key that has no default.
    #[must_use]
    pub const fn new(name: &'static str, form: KeyForm, meaning: &'static str) -> Self {
        Self { name, form, meaning, default: "" }
    }

    /// The key with what holds where it is not written.
    #[must_use]
    pub const fn or(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }
}

impl FaultWritten<'_> {
    /// Nothing is wrong with any.
    #[must_use]
    pub const fn fine(_: &FaultWritten<'_>) -> Vec<FaultComplaint> {
        Vec::new()
    }

    /// Whether a key was written, rightly or wrongly.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.given.contains(&key)
    }
}

impl FaultComplaint {
    /// One at a key.
    #[must_use]
    pub fn at(key: &'static str, message: impl Into<String>, help: &str) -> Self {
        let help = (!help.is_empty()).then(|| help.to_owned());
        Self { key, message: message.into(), help }
    }
}
