//! What happened in a run, or in many: a simulation that never lost a leader has shown nothing about leaders.

use std::collections::BTreeMap;
use std::fmt;

/// How often things happened, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

impl Coverage {
    /// Counts one.
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// Counts several.
    pub fn add(&mut self, what: &'static str, times: u64) {
        *self.counts.entry(what).or_default() += times;
    }

    /// How often it happened.
    #[must_use]
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Adds what another run counted.
    pub fn merge(&mut self, other: &Self) {
        for (what, times) in &other.counts {
            self.add(what, *times);
        }
    }
}

impl fmt::Display for Coverage {
    /// One line each, the count first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, times) in &self.counts {
            writeln!(f, "{times:>12}  {what}")?;
        }
        Ok(())
    }
}
