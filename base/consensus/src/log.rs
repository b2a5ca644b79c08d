//! The entries that a replica has in memory: one instance after the other, from the first that was not trimmed.
//!
//! The entries of a ballot stand in it without a gap, because a follower takes nothing that comes too early. Behind them
//! there may be older ones, which a new leader has not reached yet; they are what a promise must tell.

use std::collections::VecDeque;

use crate::entry::{Accepted, Proposal};
use crate::ids::{Ballot, Instance};

/// One accepted entry.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// In which ballot it was accepted last.
    pub(crate) ballot: Ballot,
    /// What was accepted.
    pub(crate) proposal: Proposal,
    /// The number of the record that says so.
    pub(crate) record: u64,
    /// The id under which it was proposed here.
    pub(crate) local: Option<u64>,
    /// What all entries up to this one weigh, from an arbitrary beginning. Right in a leader's log, where it is asked for.
    weight_through: u64,
}

/// The entries from `first` on.
#[derive(Debug)]
pub(crate) struct Log {
    first: Instance,
    slots: VecDeque<Slot>,
    /// What all entries before the first weigh.
    weight_before: u64,
}

impl Log {
    /// An empty log whose first entry will be that of `first`.
    pub(crate) fn starting_at(first: Instance) -> Self {
        Self { first, slots: VecDeque::new(), weight_before: 0 }
    }

    /// The first instance that it has or will have.
    pub(crate) fn first(&self) -> Instance {
        self.first
    }

    /// The last instance that it has; one less than the first if it has none.
    pub(crate) fn last(&self) -> Instance {
        self.first + self.slots.len() as u64 - 1
    }

    fn index(&self, instance: Instance) -> Option<usize> {
        usize::try_from(instance.checked_sub(self.first)?).ok()
    }

    /// All of its entries, each with its ballot.
    pub(crate) fn ballots(&self) -> impl Iterator<Item = (Instance, Ballot)> {
        (self.first..).zip(self.slots.iter().map(|slot| slot.ballot))
    }

    pub(crate) fn get(&self, instance: Instance) -> Option<&Slot> {
        self.slots.get(self.index(instance)?)
    }

    /// Puts an entry at an instance, in place of the one there or behind the last.
    ///
    /// # Panics
    /// If that would leave a gap, or is before the first.
    pub(crate) fn put(
        &mut self,
        instance: Instance,
        ballot: Ballot,
        proposal: Proposal,
        record: u64,
        local: Option<u64>,
    ) {
        let weight_through = self.weight_through(instance - 1) + proposal.entry.weight();
        let slot = Slot { ballot, proposal, record, local, weight_through };
        let index = self.index(instance).expect("what is accepted is behind what was trimmed");
        assert!(index <= self.slots.len(), "a gap in the log before instance {instance}");
        match self.slots.get_mut(index) {
            Some(there) => *there = slot,
            None => self.slots.push_back(slot),
        }
    }

    /// What all entries up to this one weigh, from an arbitrary beginning.
    pub(crate) fn weight_through(&self, instance: Instance) -> u64 {
        self.get(instance.min(self.last())).map_or(self.weight_before, |slot| slot.weight_through)
    }

    /// Drops what is behind `last`.
    pub(crate) fn cut_behind(&mut self, last: Instance) {
        let kept = (last + 1).saturating_sub(self.first);
        self.slots.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    /// Makes the weights right again after entries were replaced.
    pub(crate) fn weigh_anew(&mut self) {
        let mut sum = self.weight_before;
        for slot in &mut self.slots {
            sum += slot.proposal.entry.weight();
            slot.weight_through = sum;
        }
    }

    /// Drops entries up to `through`, but not the last of them that weigh up to `retain_bytes`.
    pub(crate) fn trim(&mut self, through: Instance, retain_bytes: u64) {
        let upto = |slots: &VecDeque<Slot>, first: Instance| {
            let count = (through + 1).saturating_sub(first);
            slots.len().min(usize::try_from(count).unwrap_or(usize::MAX))
        };
        let behind = self.slots.iter().take(upto(&self.slots, self.first));
        let mut excess = behind
            .map(|slot| slot.proposal.entry.weight())
            .sum::<u64>()
            .saturating_sub(retain_bytes);
        while excess > 0 && self.first <= through {
            let Some(slot) = self.slots.pop_front() else { break };
            self.weight_before = slot.weight_through;
            excess = excess.saturating_sub(slot.proposal.entry.weight());
            self.first += 1;
        }
    }

    /// Forgets everything up to `through`, whether it is there or not: a snapshot has taken its place.
    pub(crate) fn skip_to(&mut self, through: Instance) {
        self.trim(through, 0);
        if self.first <= through {
            *self = Self::starting_at(through + 1);
        }
    }

    /// The smallest number of a record that an entry behind `through` stands in.
    pub(crate) fn first_record_behind(&self, through: Instance) -> Option<u64> {
        let skipped = (through + 1).saturating_sub(self.first);
        let behind = self.slots.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX));
        behind.map(|slot| slot.record).min()
    }

    /// The entries from `first` on that weigh up to `bytes_max`, at least one if there is one; `None` if the first of them
    /// was trimmed.
    pub(crate) fn accepted_from(&self, first: Instance, bytes_max: u64) -> Option<Vec<Accepted>> {
        let skipped = self.index(first)?;
        let mut room = bytes_max;
        let mut entries = Vec::new();
        for slot in self.slots.iter().skip(skipped) {
            let weight = slot.proposal.entry.weight();
            if weight > room && !entries.is_empty() {
                break;
            }
            room = room.saturating_sub(weight);
            entries.push(Accepted { ballot: slot.ballot, proposal: slot.proposal.clone() });
        }
        Some(entries)
    }

    /// The same as proposals, at most up to instance `last`; empty if there is none.
    pub(crate) fn proposals(
        &self,
        first: Instance,
        last: Instance,
        bytes_max: u64,
    ) -> Vec<Proposal> {
        let mut room = bytes_max;
        let mut entries = Vec::new();
        for instance in first..=last {
            let Some(slot) = self.get(instance) else { break };
            let weight = slot.proposal.entry.weight();
            if weight > room && !entries.is_empty() {
                break;
            }
            room = room.saturating_sub(weight);
            entries.push(slot.proposal.clone());
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::value::Value;

    fn filled(count: u64) -> Log {
        let mut log = Log::starting_at(1);
        for instance in 1..=count {
            let entry = Entry::Value(Value::from(&[0; 36]));
            let proposal = Proposal { origin: Ballot::ZERO, follows: Ballot::ZERO, entry };
            log.put(instance, Ballot::ZERO, proposal, 100 + instance, None);
        }
        log
    }

    /// Claim: weights tell what lies between two instances, before and behind trimming.
    #[test]
    fn weights() {
        let mut log = filled(10);
        assert_eq!(log.weight_through(7) - log.weight_through(3), 400);
        log.trim(6, 250);
        assert_eq!((log.first(), log.last()), (5, 10), "two entries of 100 bytes fit into 250");
        assert_eq!(log.weight_through(7) - log.weight_through(4), 300);
        assert_eq!(log.first_record_behind(6), Some(107));
        log.cut_behind(8);
        assert_eq!((log.last(), log.weight_through(99) - log.weight_through(7)), (8, 100));
        log.skip_to(7);
        assert_eq!((log.first(), log.last()), (8, 8));
        log.skip_to(20);
        assert_eq!((log.first(), log.last(), log.first_record_behind(20)), (21, 20, None));
    }

    /// Claim: parts are as long as asked for, of one entry at least, and never of what was trimmed.
    #[test]
    fn parts() {
        let mut log = filled(10);
        assert_eq!(log.accepted_from(2, 350).unwrap().len(), 3);
        assert_eq!(log.accepted_from(2, 1).unwrap().len(), 1);
        assert_eq!(log.accepted_from(11, 1).unwrap().len(), 0);
        assert_eq!(log.proposals(2, 3, 1000).len(), 2);
        log.trim(4, 0);
        assert!(log.accepted_from(4, 1000).is_none());
    }
}
