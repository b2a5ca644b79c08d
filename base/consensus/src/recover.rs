//! A replica made of the records that its last life left.
//!
//! What was accepted counts again, in order, behind the last head; how much of it was known to be chosen stands in the
//! records themselves. What was chosen since is learnt from the leader. Everything that was found counts as durable: a
//! store must not hand out records before they are.

use std::collections::BTreeMap;

use crate::codec::DecodeError;
use crate::config::Config;
use crate::entry::Accepted;
use crate::ids::Instance;
use crate::record::Record;
use crate::replica::Replica;

/// What was accepted last at each instance, and the number of the record that says so.
type Found = BTreeMap<Instance, (u64, Accepted)>;

/// Why a replica could not be made of its records.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Bytes that are no record.
    #[error(
        "record {number} of the log cannot be read: {source}; the log is damaged, and the replica must not start from it"
    )]
    Record {
        /// Its number.
        number: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// Records are missing in the middle.
    #[error(
        "the log has no record of instance {instance} but of later ones; it is damaged, and the replica must not start from it"
    )]
    Hole {
        /// The first instance that is missing.
        instance: Instance,
    },
}

impl Replica {
    /// The replica that wrote these records, the first of which has number `first_record`. The state machine loads the
    /// snapshot that [`Replica::snapshot`] names, if its end is not 0, before the first step; from there on entries are
    /// delivered again.
    ///
    /// # Errors
    /// When the records are not what a replica writes.
    pub fn recover<'a>(
        config: Config,
        first_record: u64,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, RecoverError> {
        let mut replica = Self::new(config);
        let mut read = Vec::new();
        for (number, bytes) in (first_record..).zip(records) {
            let record =
                Record::decode(bytes).map_err(|source| RecoverError::Record { number, source })?;
            if let Record::Head { snapshot, .. } = &record {
                replica.snapshot = snapshot.clone();
            }
            read.push((number, record));
        }
        replica.log = replica.log_behind_snapshot();
        replica.next_record = first_record + read.len() as u64;
        replica.persisted = replica.next_record;
        let mut chosen = replica.snapshot.through;
        let mut accepted = BTreeMap::new();
        for (number, record) in read {
            chosen = chosen.max(replica.replay(number, record, &mut accepted));
        }
        replica.refill(accepted)?;
        replica.stand_up(chosen);
        Ok(replica)
    }

    /// Takes one record in; what it knew to be chosen.
    fn replay(&mut self, number: u64, record: Record, accepted: &mut Found) -> Instance {
        let (ballot, chosen) = match record {
            Record::Promised { ballot } => (ballot, 0),
            Record::Head { promised, chosen, .. } => (promised, chosen),
            Record::Accepted { instance, ballot, chosen, proposal } => {
                if instance >= self.log.first() {
                    accepted.insert(instance, (number, Accepted { ballot, proposal }));
                }
                (ballot, chosen)
            }
        };
        self.promised = self.promised.max(ballot);
        chosen
    }

    /// Fills the log. Only now can a hole be told: an entry that was accepted again stands in a later record than those
    /// behind it that were not, and its earlier record may have been trimmed. So may the record of an entry that this
    /// replica left behind when it took over: those behind it are of lower ballots, cannot be chosen, and go, too.
    fn refill(&mut self, accepted: Found) -> Result<(), RecoverError> {
        for (instance, (number, Accepted { ballot, proposal })) in accepted {
            let next = self.log.last() + 1;
            if instance != next && ballot < self.promised {
                continue;
            }
            if instance != next {
                return Err(RecoverError::Hole { instance: next });
            }
            self.log.put(instance, ballot, proposal, number, None);
        }
        Ok(())
    }

    /// Sets what follows from log, promise and what is chosen.
    fn stand_up(&mut self, chosen: Instance) {
        self.log.weigh_anew();
        self.counter_seen = self.promised.counter;
        self.promise_record = Some(0);
        self.chosen = self.snapshot.through;
        self.delivered = self.snapshot.through;
        while self.learn_to_change(chosen.min(self.log.last())) {}
        self.agreed = self.chosen;
        let is_agreed =
            |instance| self.log.get(instance).is_some_and(|slot| slot.ballot == self.promised);
        while is_agreed(self.agreed + 1) {
            self.agreed += 1;
        }
        self.durable = self.agreed;
    }
}
