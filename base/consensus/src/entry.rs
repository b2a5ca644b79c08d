//! What replicas agree on, instance by instance.

use crate::ids::{Ballot, Instance, Members};
use crate::value::Value;

/// The longest value that can be proposed. It fits a frame of 16 MiB with all that stands in front of it.
pub const VALUE_BYTES_MAX: usize = (16 << 20) - 4096;

/// What an entry counts for beside its bytes, where bytes are bounded: it takes memory, too, when it is short.
pub(crate) const OVERHEAD_BYTES: u64 = 64;

/// What stands at one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Nothing: a new leader found nothing where something follows.
    Noop,
    /// What was proposed.
    Value(Value),
    /// From the next instance on these have the votes.
    Members(Members),
}

impl Entry {
    /// What of it is bytes, if any.
    pub(crate) fn body(&self) -> Option<&[u8]> {
        match self {
            Self::Noop => None,
            Self::Value(value) => Some(value),
            Self::Members(members) => Some(members.as_bytes()),
        }
    }

    /// What it counts for where bytes are bounded.
    pub(crate) fn weight(&self) -> u64 {
        OVERHEAD_BYTES + self.body().map_or(0, |body| body.len() as u64)
    }
}

/// An entry, the ballot in which it was proposed first, and that of the entry before it: this is what Paxos chooses. Later
/// leaders propose it again in ballots of their own and leave both as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// In which ballot it was proposed first.
    pub origin: Ballot,
    /// The origin of the entry before it in the log of the leader that proposed it first. One origin and instance is one
    /// entry, so this says which entry it follows.
    pub follows: Ballot,
    /// What it is.
    pub entry: Entry,
}

/// A proposal that a replica accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// In which ballot it was accepted last.
    pub ballot: Ballot,
    /// What was accepted.
    pub proposal: Proposal,
}

/// What a snapshot holds: the state after all instances up to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The last instance that is in it; 0 for the empty state.
    pub through: Instance,
    /// Where the entry of that instance came from.
    pub origin: Ballot,
    /// Who had the votes after it.
    pub members: Members,
}
