//! What faults have done to links, so that each can be undone while others go on: cuts are counted, changes are laid
//! over each other in the order in which they began.
//!
//! It knows which links a fault means; what a packet then meets is the network's.

use std::collections::BTreeMap;

use model::plan::{CLIENT, CutWay, LinkChange, LinksPlan, is_meant};

use crate::{LinkControl, TestbedError};

/// A directed link: from, to.
pub(super) type Pair = (String, String);

/// The links of one trial.
#[derive(Debug)]
pub(super) struct Changes {
    control: LinkControl,
    plan: LinksPlan,
    /// How many partitions cut a link at present.
    cuts: BTreeMap<Pair, u32>,
    /// What is different at present, by fault, in the order begun.
    changed: BTreeMap<Pair, Vec<(u32, LinkChange)>>,
}

impl Changes {
    pub fn new(control: LinkControl, plan: LinksPlan) -> Self {
        Self { control, plan, cuts: BTreeMap::new(), changed: BTreeMap::new() }
    }

    /// The nodes that any of the patterns means.
    pub fn nodes(&self, patterns: &[String]) -> Vec<String> {
        let is_one = |name: &String| patterns.iter().any(|pattern| is_meant(pattern, name));
        self.control.nodes().into_iter().filter(is_one).collect()
    }

    /// The links that a partition cuts.
    pub fn cut_by(&self, inside: &[String], way: CutWay, with_client: bool) -> Vec<Pair> {
        let mut outside = self.control.nodes();
        outside.retain(|name| !inside.contains(name));
        if with_client {
            outside.push(CLIENT.to_owned());
        }
        let mut pairs = Vec::new();
        for one in inside {
            for other in &outside {
                if way != CutWay::Out {
                    pairs.push((other.clone(), one.clone()));
                }
                if way != CutWay::In {
                    pairs.push((one.clone(), other.clone()));
                }
            }
        }
        pairs
    }

    /// The links from what one pattern means to what the other does.
    pub fn links(&self, from: &str, to: &str) -> Vec<Pair> {
        let mut ends = self.control.nodes();
        ends.push(CLIENT.to_owned());
        let of = |pattern: &str| -> Vec<String> {
            ends.iter().filter(|name| is_meant(pattern, name)).cloned().collect()
        };
        let tos = of(to);
        let with_all = |from: String| {
            let others: Vec<Pair> = tos.iter().map(|to| (from.clone(), to.clone())).collect();
            others.into_iter().filter(|(from, to)| from != to)
        };
        of(from).into_iter().flat_map(with_all).collect()
    }

    /// Cuts every link of a list. If one cannot be, none is.
    pub fn cut(&mut self, pairs: &[Pair]) -> Result<(), TestbedError> {
        for (index, pair) in pairs.iter().enumerate() {
            if let Err(error) = self.control.cut(&pair.0, &pair.1, true) {
                let _ = self.join(&pairs[..index]);
                return Err(error);
            }
            *self.cuts.entry(pair.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// Undoes one cut of each link. A link that another partition cuts stays cut.
    pub fn join(&mut self, pairs: &[Pair]) -> Result<(), TestbedError> {
        let mut result = Ok(());
        for pair in pairs {
            let count = self.cuts.entry(pair.clone()).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.cuts.remove(pair);
                result = result.and(self.control.cut(&pair.0, &pair.1, false));
            }
        }
        result
    }

    /// Makes links different for a fault. If one cannot be, none is.
    pub fn change(
        &mut self,
        fault: u32,
        pairs: &[Pair],
        change: LinkChange,
    ) -> Result<(), TestbedError> {
        for pair in pairs {
            self.changed.entry(pair.clone()).or_default().push((fault, change));
            if let Err(error) = self.apply(pair) {
                let _ = self.restore(fault, pairs);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Takes a fault's change back.
    pub fn restore(&mut self, fault: u32, pairs: &[Pair]) -> Result<(), TestbedError> {
        let mut result = Ok(());
        for pair in pairs {
            if let Some(changes) = self.changed.get_mut(pair) {
                changes.retain(|(other, _)| *other != fault);
            }
            result = result.and(self.apply(pair));
        }
        result
    }

    fn apply(&mut self, pair: &Pair) -> Result<(), TestbedError> {
        let (from, to) = (pair.0.as_str(), pair.1.as_str());
        match self.changed.get(pair) {
            Some(changes) if !changes.is_empty() => {
                let planned = self.plan.link(from, to);
                let link = changes.iter().fold(planned, |link, (_, change)| change.over(link));
                self.control.set(from, to, link)
            }
            _ => {
                self.changed.remove(pair);
                self.control.reset(from, to)
            }
        }
    }
}
