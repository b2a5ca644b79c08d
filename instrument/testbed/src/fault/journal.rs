//! What was really done, and when: written by every thread of an injection, read when all have ended.
//!
//! The stamp is taken here, under the lock, so that the order of entries is that of time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clock::{Clock, Instant};
use model::facts::Event;

/// The most entries. A rotation of many nodes that comes round every second for a week would make millions; the
/// last entry then says that it is the last.
const ENTRIES_MAX: usize = 100_000;

/// Copies write to the same list.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    clock: Clock,
    entries: Arc<Mutex<Vec<Entry>>>,
}

/// Something that was done, or could not be.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    at: Instant,
    event: Happened,
    kind: &'static str,
    node: String,
    /// When the plan wanted it, after the start of the measured window.
    planned: Duration,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Start,
    End,
    Failed,
}

/// Whose entry it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of<'a> {
    /// The fault's word.
    pub kind: &'static str,
    pub node: &'a str,
    pub planned: Duration,
}

impl Journal {
    pub fn new(clock: Clock) -> Self {
        Self { clock, entries: Arc::default() }
    }

    pub fn note(&self, event: Happened, of: Of<'_>, detail: impl Into<String>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut detail = detail.into();
        match entries.len() {
            ..ENTRIES_MAX => {}
            ENTRIES_MAX => "what follows is not kept: there is too much".clone_into(&mut detail),
            _ => return,
        }
        let (kind, node, planned) = (of.kind, of.node.to_owned(), of.planned);
        entries.push(Entry { at: self.clock.now(), event, kind, node, planned, detail });
    }

    /// Everything so far, by time.
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entry {
    /// The event, stamped in nanoseconds after `trial_start`.
    pub fn event(&self, trial_start: Instant) -> Event {
        Event {
            at: self.at.ns_since(trial_start),
            name: self.event.word().to_owned(),
            tx: None,
            detail: self.in_words(),
        }
    }

    /// The line of faults.ndjson.
    pub fn line(&self, trial_start: Instant) -> String {
        serde_json::json!({
            "at_ns": self.at.ns_since(trial_start),
            "event": self.event.word(),
            "kind": self.kind,
            "node": self.node,
            "planned_ns_after_measure_start": u64::try_from(self.planned.as_nanos()).unwrap_or(u64::MAX),
            "detail": self.detail,
        })
        .to_string()
    }

    fn in_words(&self) -> String {
        let what = format!("{} {}", self.kind, self.node);
        if self.detail.is_empty() { what } else { format!("{what}: {}", self.detail) }
    }
}

impl Happened {
    const fn word(self) -> &'static str {
        match self {
            Self::Start => "fault_start",
            Self::End => "fault_end",
            Self::Failed => "fault_failed",
        }
    }
}
