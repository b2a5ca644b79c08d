//! Kinds that no load bears, because the preflight found them unable to succeed.

use model::Row;
use model::facts::DeclaredFacts;

/// Kinds that the preflight found unable to succeed: no load bears them, and they say nothing of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut {
    /// By kind.
    is: Vec<bool>,
    /// Their names.
    names: Vec<String>,
}

impl LeftOut {
    pub fn new(facts: &DeclaredFacts) -> Self {
        let cannot = |name: &str| facts.preflight.iter().any(|it| !it.ok && it.kind == name);
        let is: Vec<bool> = facts.kinds.iter().map(|kind| cannot(&kind.name)).collect();
        let named = facts.kinds.iter().zip(&is).filter(|(_, is)| **is);
        Self { names: named.map(|(kind, _)| kind.name.clone()).collect(), is }
    }

    #[inline]
    pub fn has(&self, row: &Row) -> bool {
        usize::try_from(row.kind).ok().and_then(|kind| self.is.get(kind)).is_some_and(|is| *is)
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
