//! What every directed link is to do at present: the plan, and what has been changed since. The switch, the
//! forwarders and whoever changes links share it. It holds no packet and reads no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::plan::{CLIENT, LinkPlan, LinksPlan};

use crate::TestbedError;

/// The rules of all links. Ends are named; their places in the list never change.
#[derive(Debug)]
pub(crate) struct Table {
    plan: LinksPlan,
    state: Mutex<State>,
    /// Grows with every change, so that a reader who has read everything knows it with one load.
    generation: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// The first is the instrument.
    ends: Vec<String>,
    changed: BTreeMap<(usize, usize), LinkPlan>,
    cut: BTreeSet<(usize, usize)>,
}

/// What one directed link is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rule {
    pub(crate) link: LinkPlan,
    pub(crate) is_cut: bool,
}

impl Table {
    /// The instrument's end and no other.
    pub(crate) fn new(plan: LinksPlan) -> Self {
        let ends = vec![CLIENT.to_owned()];
        let state = State { ends, changed: BTreeMap::new(), cut: BTreeSet::new() };
        Self { plan, state: Mutex::new(state), generation: AtomicU64::new(0) }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// One more end. Gives its place.
    pub(crate) fn add(&self, name: &str) -> usize {
        let place = {
            let mut state = self.state();
            state.ends.push(name.to_owned());
            state.ends.len() - 1
        };
        self.generation.fetch_add(1, Ordering::AcqRel);
        place
    }

    /// The place of an end, which is added if it is not there.
    pub(crate) fn place(&self, name: &str) -> usize {
        let known = self.state().place(name);
        known.unwrap_or_else(|_| self.add(name))
    }

    /// The names of all ends by place; the first is the instrument.
    pub(crate) fn ends(&self) -> Vec<String> {
        self.state().ends.clone()
    }

    pub(crate) fn set(&self, from: &str, to: &str, link: LinkPlan) -> Result<(), TestbedError> {
        self.change(from, to, |state, pair| {
            state.changed.insert(pair, link);
        })
    }

    pub(crate) fn reset(&self, from: &str, to: &str) -> Result<(), TestbedError> {
        self.change(from, to, |state, pair| {
            state.changed.remove(&pair);
        })
    }

    pub(crate) fn cut(&self, from: &str, to: &str, is_cut: bool) -> Result<(), TestbedError> {
        self.change(from, to, |state, pair| {
            if is_cut {
                state.cut.insert(pair);
            } else {
                state.cut.remove(&pair);
            }
        })
    }

    /// What the link between two ends, by place, is to do now.
    pub(crate) fn rule(&self, from: usize, to: usize) -> Rule {
        let state = self.state();
        let (Some(source), Some(target)) = (state.ends.get(from), state.ends.get(to)) else {
            return Rule::default();
        };
        let changed = state.changed.get(&(from, to)).copied();
        let link = changed.unwrap_or_else(|| self.plan.link(source, target));
        Rule { link, is_cut: state.cut.contains(&(from, to)) }
    }

    fn change(
        &self,
        from: &str,
        to: &str,
        change: impl FnOnce(&mut State, (usize, usize)),
    ) -> Result<(), TestbedError> {
        {
            let mut state = self.state();
            let pair = (state.place(from)?, state.place(to)?);
            change(&mut state, pair);
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// A thread that panicked with the lock has left nothing half done: each change is one call.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn place(&self, name: &str) -> Result<usize, TestbedError> {
        let place = self.ends.iter().position(|end| end == name);
        place.ok_or_else(|| TestbedError::NoSuchNode {
            name: name.to_owned(),
            known: format!("the links have the ends: {}", self.ends.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::plan::{LinkPair, LinkPlan, LinksPlan, Through};

    use super::Table;

    fn late(ms: u64) -> LinkPlan {
        LinkPlan { delay: Duration::from_millis(ms), ..LinkPlan::default() }
    }

    fn table() -> Table {
        let pair = |from: &str, to: &str, ms| LinkPair {
            from: from.to_owned(),
            to: to.to_owned(),
            link: late(ms),
        };
        let pairs = vec![pair("eu*", "us*", 80), pair("eu1", "*", 5), pair("client", "us1", 7)];
        let (between, client) = (late(20), late(1));
        let table = Table::new(LinksPlan { through: Through::Switch, between, client, pairs });
        for name in ["eu0", "eu1", "us0", "us1"] {
            table.add(name);
        }
        table
    }

    /// Claim: of several pairs that fit the last holds, in its direction only; others are between nodes or the
    /// client's.
    #[test]
    fn the_last_pair_that_fits_holds() {
        let table = table();
        let ms = |from, to| table.rule(from, to).link.delay.as_millis();
        let (client, eu0, eu1, us0, us1) = (0, 1, 2, 3, 4);
        assert_eq!([ms(eu0, us0), ms(us0, eu0), ms(eu1, us0), ms(eu1, client)], [80, 20, 5, 1]);
        assert_eq!([ms(client, eu0), ms(us0, client), ms(client, us1)], [1, 1, 7]);
    }

    /// Claim: what is changed holds until it is reset, a cut beside it; unknown names are an error that names
    /// the known ones.
    #[test]
    fn changes_are_undone() {
        let table = table();
        let before = table.generation();
        table.set("eu0", "us0", late(300)).unwrap();
        table.cut("eu0", "us0", true).unwrap();
        assert!(table.rule(1, 3).is_cut);
        assert_eq!(table.rule(1, 3).link, late(300));
        assert!(!table.rule(3, 1).is_cut);
        table.reset("eu0", "us0").unwrap();
        table.cut("eu0", "us0", false).unwrap();
        assert_eq!(table.rule(1, 3).link, late(80));
        assert!(!table.rule(1, 3).is_cut);
        assert!(table.generation() > before);
        let error = table.set("eu9", "us0", late(1)).unwrap_err().to_string();
        assert!(error.contains("`eu9`") && error.contains("client, eu0"), "{error}");
    }
}
