//! Numbers in little-endian order, and reading them from bytes that may be anything. Nothing here panics, whatever the
//! bytes are, and nothing is allocated before the bytes that it is for are known to be there.

use std::sync::Arc;

use crate::entry::{Entry, Proposal, SnapshotHead, VALUE_BYTES_MAX};
use crate::ids::{Ballot, MEMBERS_MAX, Members, NUMBER_MAX, ReplicaId};
use crate::value::Value;

/// Bytes that are no message or no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They end too early.
    #[error(
        "{what} needs {needed} bytes and {left} are left; the bytes were cut, or are of another protocol"
    )]
    Cut {
        /// What was being read.
        what: &'static str,
        /// How many bytes that takes.
        needed: usize,
        /// How many there were.
        left: usize,
    },
    /// The first byte of something is none of those that may be.
    #[error(
        "{what} cannot be {found}; the bytes are of another protocol or a later version of this one"
    )]
    Unknown {
        /// What was being read.
        what: &'static str,
        /// The byte.
        found: u8,
    },
    /// A number is beyond what may be.
    #[error("{what} is {found}, more than the {max} allowed")]
    TooLarge {
        /// What was being read.
        what: &'static str,
        /// The number.
        found: u64,
        /// The most that may be.
        max: u64,
    },
    /// Replicas with a vote that are none, too many, unordered or repeated.
    #[error("{count} members are none, too many, or not in order")]
    NotMembers {
        /// How many were announced.
        count: usize,
    },
    /// More bytes than what they begin with takes.
    #[error("{count} bytes are left over")]
    LeftOver {
        /// How many.
        count: usize,
    },
}

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_ballot(out: &mut Vec<u8>, ballot: Ballot) {
    put_u64(out, ballot.counter);
    out.push(ballot.replica.0);
}

/// A count of bytes or entries. Bounded by [`VALUE_BYTES_MAX`] and the size of messages, so that it fits.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("values and messages are bounded far below 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
}

/// All of a proposal but its bytes: origin 9, follows 9, kind 1, length 4.
pub(crate) fn put_proposal(out: &mut Vec<u8>, proposal: &Proposal) {
    put_ballot(out, proposal.origin);
    put_ballot(out, proposal.follows);
    out.push(match proposal.entry {
        Entry::Noop => 0,
        Entry::Value(_) => 1,
        Entry::Members(_) => 2,
    });
    put_count(out, proposal.entry.body().map_or(0, |body| body.len()));
}

/// through 8, origin 9, count 1, one byte a member.
pub(crate) fn put_snapshot(out: &mut Vec<u8>, head: &SnapshotHead) {
    put_u64(out, head.through);
    put_ballot(out, head.origin);
    let members = head.members.as_bytes();
    out.push(u8::try_from(members.len()).expect("there are at most MEMBERS_MAX members"));
    out.extend_from_slice(members);
}

/// A proposal whose bytes have not been read yet.
pub(crate) struct ProposalHead {
    origin: Ballot,
    follows: Ballot,
    kind: u8,
    length: usize,
}

/// Reads from the front of some bytes.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(
        &mut self,
        what: &'static str,
        count: usize,
    ) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return Err(DecodeError::Cut { what, needed: count, left: self.0.len() });
        };
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(self.take(what, 1)?[0])
    }

    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(DecodeError::Unknown { what, found }),
        }
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(what, 8)?);
        let found = u64::from_le_bytes(bytes);
        if found > NUMBER_MAX {
            return Err(DecodeError::TooLarge { what, found, max: NUMBER_MAX });
        }
        Ok(found)
    }

    pub(crate) fn count(&mut self, what: &'static str, max: usize) -> Result<usize, DecodeError> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(what, 4)?);
        let found = u32::from_le_bytes(bytes);
        match usize::try_from(found) {
            Ok(count) if count <= max => Ok(count),
            _ => Err(DecodeError::TooLarge { what, found: found.into(), max: max as u64 }),
        }
    }

    pub(crate) fn ballot(&mut self, what: &'static str) -> Result<Ballot, DecodeError> {
        Ok(Ballot { counter: self.u64(what)?, replica: ReplicaId(self.u8(what)?) })
    }

    /// A count of things of `bytes_each` bytes at least: no more than can be there, so that a false count reserves
    /// nothing.
    pub(crate) fn count_of(
        &mut self,
        what: &'static str,
        bytes_each: usize,
    ) -> Result<usize, DecodeError> {
        let count = self.count(what, u32::MAX as usize)?;
        let max = self.0.len() / bytes_each;
        if count > max {
            return Err(DecodeError::TooLarge { what, found: count as u64, max: max as u64 });
        }
        Ok(count)
    }

    pub(crate) fn proposal_head(&mut self) -> Result<ProposalHead, DecodeError> {
        let origin = self.ballot("the origin of an entry")?;
        let follows = self.ballot("what an entry follows")?;
        let kind = self.u8("the kind of an entry")?;
        let max = match kind {
            0 => 0,
            1 => VALUE_BYTES_MAX,
            2 => MEMBERS_MAX,
            found => return Err(DecodeError::Unknown { what: "the kind of an entry", found }),
        };
        Ok(ProposalHead {
            origin,
            follows,
            kind,
            length: self.count("the length of an entry", max)?,
        })
    }

    /// The bytes of a proposal, copied once from where they were received.
    pub(crate) fn proposal(&mut self, head: &ProposalHead) -> Result<Proposal, DecodeError> {
        let bytes = self.take("an entry", head.length)?;
        let entry = match head.kind {
            0 => Entry::Noop,
            1 => Entry::Value(Value::from(bytes)),
            _ => Entry::Members(members(bytes)?),
        };
        Ok(Proposal { origin: head.origin, follows: head.follows, entry })
    }

    pub(crate) fn snapshot(&mut self) -> Result<SnapshotHead, DecodeError> {
        let through = self.u64("the end of a snapshot")?;
        let origin = self.ballot("the origin of a snapshot")?;
        let count = self.u8("the number of members")?.into();
        let members = members(self.take("members", count)?)?;
        Ok(SnapshotHead { through, origin, members })
    }

    /// All that is left, as one value.
    pub(crate) fn rest(&mut self, what: &'static str) -> Result<Value, DecodeError> {
        let found = self.0.len();
        if found > VALUE_BYTES_MAX {
            let max = VALUE_BYTES_MAX as u64;
            return Err(DecodeError::TooLarge { what, found: found as u64, max });
        }
        Ok(Value::from(std::mem::take(&mut self.0)))
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            count => Err(DecodeError::LeftOver { count }),
        }
    }
}

fn members(bytes: &[u8]) -> Result<Members, DecodeError> {
    Members::from_bytes(Arc::from(bytes)).ok_or(DecodeError::NotMembers { count: bytes.len() })
}
