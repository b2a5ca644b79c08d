//! The invariants of every step, checked by an observer that sees all replicas at once.

use std::collections::{BTreeMap, HashMap};

use consensus::{Ballot, Entry, Instance, ReplicaId};

/// Everything that was ever seen.
#[derive(Default)]
pub struct Checks {
    /// What was delivered at each instance, first by whomever.
    chosen: BTreeMap<Instance, Entry>,
    /// Up to which instance `order` has been looked at.
    ordered_through: Instance,
    /// Of each leader's values, by the number that it gave them: how many stand in the sequence.
    order: HashMap<Ballot, u64>,
    /// Who proposed a value, and as which of its own.
    proposed: HashMap<u64, (Ballot, u64)>,
    /// How many values each leader has proposed.
    count: HashMap<Ballot, u64>,
    /// Who led in a ballot, in which life.
    leaders: HashMap<Ballot, (ReplicaId, u64)>,
    /// The last instance whose proposer was told that it is chosen.
    pub acknowledged_through: Instance,
    pub acknowledged: u64,
    /// What had been acknowledged when a read began.
    reads: HashMap<u64, Instance>,
}

pub type Checked = Result<(), String>;

impl Checks {
    /// Gives whether that was not known yet.
    pub fn leads(&mut self, ballot: Ballot, who: ReplicaId, life: u64) -> Result<bool, String> {
        let count = self.leaders.len();
        let first = *self.leaders.entry(ballot).or_insert((who, life));
        if first == (who, life) {
            return Ok(self.leaders.len() > count);
        }
        Err(format!("{ballot:?} is led by {first:?} and by {who:?} in life {life}"))
    }

    pub fn leaders(&self) -> usize {
        self.leaders.len()
    }

    pub fn proposes(&mut self, id: u64, ballot: Ballot) {
        let count = self.count.entry(ballot).or_insert(0);
        self.proposed.insert(id, (ballot, *count));
        *count += 1;
    }

    /// One value an instance, and what one leader proposed in its order without anything left out. Gives whether it is
    /// delivered for the first time.
    pub fn delivers(
        &mut self,
        who: ReplicaId,
        instance: Instance,
        entry: &Entry,
    ) -> Result<bool, String> {
        let is_first = !self.chosen.contains_key(&instance);
        let first = self.chosen.entry(instance).or_insert_with(|| entry.clone());
        if first != entry {
            return Err(format!(
                "{who:?} delivers {entry:?} at {instance}, where {first:?} was delivered before"
            ));
        }
        while let Some(entry) = self.chosen.get(&(self.ordered_through + 1)) {
            self.ordered_through += 1;
            let Some(id) = id_of(entry) else { continue };
            let (ballot, place) = self.proposed[&id];
            let next = self.order.entry(ballot).or_insert(0);
            if *next != place {
                return Err(format!(
                    "value {place} of {ballot:?} at {} follows its value {next}",
                    self.ordered_through
                ));
            }
            *next += 1;
        }
        Ok(is_first)
    }

    pub fn acknowledges(&mut self, instance: Instance, entry: &Entry, id: u64) -> Checked {
        self.acknowledged_through = self.acknowledged_through.max(instance);
        self.acknowledged += 1;
        match id_of(entry) {
            Some(there) if there != id => {
                Err(format!("{id} is told to be chosen at {instance}, where {there} is"))
            }
            _ => Ok(()),
        }
    }

    pub fn reads(&mut self, id: u64) {
        self.reads.insert(id, self.acknowledged_through);
    }

    pub fn read_is_ready(&mut self, id: u64, instance: Instance, applied: Instance) -> Checked {
        let acknowledged = self.reads.remove(&id).ok_or("a read is ready twice")?;
        if instance < acknowledged || applied < instance {
            return Err(format!(
                "a read that began after {acknowledged} was acknowledged is served at {instance} \
                 with {applied} applied"
            ));
        }
        Ok(())
    }

    pub fn last(&self) -> Instance {
        self.chosen.keys().next_back().copied().unwrap_or(0)
    }
}

/// The id that a value begins with.
pub fn id_of(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Value(value) => Some(u64::from_le_bytes(value[..8].try_into().unwrap())),
        _ => None,
    }
}
