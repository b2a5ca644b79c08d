//! What a replica writes to its log, and its bytes.
//!
//! Records are numbered from 0 in the order in which they are appended, and are found again in that order. The store puts
//! its own length and checksum around each, loses only a tail, and says how far they are durable; nothing here does.
//!
//! | tag | record | fields, little-endian |
//! | --- | --- | --- |
//! | 1 | promised | ballot 9 |
//! | 2 | accepted | instance 8 · ballot 9 · chosen 8 · origin 9 · follows 9 · kind 1 · length 4 · the entry's bytes |
//! | 3 | head | promised 9 · chosen 8 · snapshot (through 8 · origin 9 · count 1 · members) |
//!
//! A ballot is its counter (8) and its replica (1).

use crate::codec::{DecodeError, Reader, put_ballot, put_proposal, put_snapshot, put_u64};
use crate::entry::{Proposal, SnapshotHead};
use crate::ids::{Ballot, Instance};

/// One record of a replica's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Nothing below this ballot is accepted any more.
    Promised {
        /// The ballot.
        ballot: Ballot,
    },
    /// An entry was accepted. A later record of the same instance takes its place.
    Accepted {
        /// Where.
        instance: Instance,
        /// In which ballot.
        ballot: Ballot,
        /// What was known to be chosen by then: all instances up to this one.
        chosen: Instance,
        /// What was accepted.
        proposal: Proposal,
    },
    /// What holds at the beginning of the log once everything before it has been dropped.
    Head {
        /// Nothing below this ballot is accepted any more.
        promised: Ballot,
        /// What was known to be chosen.
        chosen: Instance,
        /// The snapshot that takes the place of all instances up to its end.
        snapshot: SnapshotHead,
    },
}

impl Record {
    /// Writes all of it but the bytes of a value, which [`Self::body`] has and which follow.
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        match self {
            Self::Promised { ballot } => {
                out.push(1);
                put_ballot(out, *ballot);
            }
            Self::Accepted { instance, ballot, chosen, proposal } => {
                out.push(2);
                put_u64(out, *instance);
                put_ballot(out, *ballot);
                put_u64(out, *chosen);
                put_proposal(out, proposal);
            }
            Self::Head { promised, chosen, snapshot } => {
                out.push(3);
                put_ballot(out, *promised);
                put_u64(out, *chosen);
                put_snapshot(out, snapshot);
            }
        }
    }

    /// The bytes that follow what [`Self::encode_head`] writes, if any.
    #[must_use]
    pub fn body(&self) -> Option<&[u8]> {
        match self {
            Self::Accepted { proposal, .. } => proposal.entry.body(),
            _ => None,
        }
    }

    /// Writes all of it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_head(out);
        out.extend_from_slice(self.body().unwrap_or_default());
    }

    /// The record that these bytes are.
    ///
    /// # Errors
    /// When they are no record, or not exactly one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        let record = match reader.u8("the kind of a record")? {
            1 => Self::Promised { ballot: reader.ballot("a promise")? },
            2 => Self::Accepted {
                instance: reader.u64("an instance")?,
                ballot: reader.ballot("a ballot")?,
                chosen: reader.u64("what is chosen")?,
                proposal: {
                    let head = reader.proposal_head()?;
                    reader.proposal(&head)?
                },
            },
            3 => Self::Head {
                promised: reader.ballot("a promise")?,
                chosen: reader.u64("what is chosen")?,
                snapshot: reader.snapshot()?,
            },
            found => return Err(DecodeError::Unknown { what: "the kind of a record", found }),
        };
        reader.end()?;
        Ok(record)
    }
}
