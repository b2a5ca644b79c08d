//! The names that the protocol compares: replicas, ballots, instances, and who has a vote.

use std::sync::Arc;

/// The place of a value in the sequence that replicas agree on. The first is 1; 0 stands for "none yet".
pub type Instance = u64;

/// No instance, counter, offset or record number goes beyond it, so that arithmetic on what a peer sent cannot
/// overflow. A million decisions a second take 146,000 years to get there.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

/// A ballot's counter is at most so much beyond the highest that was seen. Counters grow by one with each attempt to lead:
/// a thousand attempts a second that a replica does not hear of take 49 days to get there.
pub(crate) const COUNTER_JUMP_MAX: u64 = 1 << 32;

/// Most replicas with a vote. More would cost speed and buy nothing: fifteen survive seven.
pub const MEMBERS_MAX: usize = 15;

/// One replica, by a number that is its own for ever: the number of a replica that has lost its records must not be
/// given to a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaId(pub u8);

/// The number of one attempt to lead. Counters are compared first, then replicas, so no two replicas share a ballot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// Grows with each attempt.
    pub counter: u64,
    /// Whose attempt it is.
    pub replica: ReplicaId,
}

impl Ballot {
    /// Below every ballot that anybody leads with.
    pub const ZERO: Self = Self { counter: 0, replica: ReplicaId(0) };
}

/// Who has a vote: between 1 and [`MEMBERS_MAX`] replicas, in order, each once. A copy shares its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Arc<[u8]>);

impl Members {
    /// These replicas; `None` if there are none, too many, or one twice.
    #[must_use]
    pub fn new(ids: &[ReplicaId]) -> Option<Self> {
        let mut bytes: Vec<u8> = ids.iter().map(|id| id.0).collect();
        bytes.sort_unstable();
        Self::from_bytes(bytes.into())
    }

    /// One byte a replica, ascending.
    pub(crate) fn from_bytes(bytes: Arc<[u8]>) -> Option<Self> {
        let fits = (1..=MEMBERS_MAX).contains(&bytes.len());
        (fits && bytes.windows(2).all(|pair| pair[0] < pair[1])).then_some(Self(bytes))
    }

    pub(crate) fn as_bytes(&self) -> &Arc<[u8]> {
        &self.0
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ReplicaId> + '_ {
        self.0.iter().map(|id| ReplicaId(*id))
    }

    /// Whether `id` has a vote.
    #[must_use]
    pub fn contains(&self, id: ReplicaId) -> bool {
        self.0.contains(&id.0)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many of them are more than half.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.count() / 2 + 1
    }

    /// Whether more than half of them are such.
    pub(crate) fn most(&self, is_such: impl Fn(ReplicaId) -> bool) -> bool {
        self.iter().filter(|id| is_such(*id)).count() >= self.majority()
    }

    /// Whether one replica joins or leaves between the two, and nothing else changes.
    #[must_use]
    pub fn is_one_change_from(&self, other: &Self) -> bool {
        let joins = self.iter().filter(|id| !other.contains(*id)).count();
        let leaves = other.iter().filter(|id| !self.contains(*id)).count();
        joins + leaves == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: &[u8]) -> Option<Members> {
        Members::new(&ids.iter().map(|id| ReplicaId(*id)).collect::<Vec<_>>())
    }

    /// Claim: members are a set of bounded size, and a change is of exactly one.
    #[test]
    fn sets_and_changes() {
        assert_eq!(members(&[3, 1, 2]), members(&[1, 2, 3]));
        assert_eq!((members(&[]), members(&[1, 1])), (None, None));
        assert_eq!(members(&(0..16).collect::<Vec<_>>()), None);
        let three = members(&[1, 2, 3]).unwrap();
        assert_eq!((three.count(), three.majority()), (3, 2));
        for (other, is_one) in
            [(&[1, 2][..], true), (&[1, 2, 3, 4], true), (&[1, 2, 3], false), (&[1, 2, 4], false)]
        {
            assert_eq!(members(other).unwrap().is_one_change_from(&three), is_one, "{other:?}");
        }
        assert_eq!(members(&[1, 2, 3, 4]).unwrap().majority(), 3);
    }

    /// Claim: a higher counter comes first, and of two replicas with one counter the ballots differ.
    #[test]
    fn ballots_are_ordered() {
        let ballot = |counter, replica| Ballot { counter, replica: ReplicaId(replica) };
        assert!(ballot(2, 1) > ballot(1, 9) && ballot(1, 2) > ballot(1, 1));
        assert!(ballot(1, 0) > Ballot::ZERO);
    }
}
