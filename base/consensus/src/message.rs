//! What replicas say to each other, and its bytes.
//!
//! Who sent a message is known from the connection, not from the message. A message is lost, repeated or overtaken without
//! harm. Numbers are little-endian; a ballot is its counter (8) and its replica (1); an entry's head is origin 9 ·
//! follows 9 · kind 1 · length 4. The bytes of entries follow all heads, in order, so that whoever sends a message can write its head from one
//! buffer and the values from where they are.
//!
//! | tag | message | fields |
//! | --- | --- | --- |
//! | 1 | ask for votes | ballot · last 8 · chosen 8 |
//! | 2 | vote | ballot · granted 1 · promised |
//! | 3 | prepare | ballot · first 8 |
//! | 4 | promise | ballot · first 8 · chosen 8 · is last 1 · count 4 · for each: accepted in (ballot), entry's head |
//! | 5 | accept | ballot · chosen 8 · first 8 · count 4 · entries' heads |
//! | 6 | accepted | ballot · through 8 · expected 8 · is gap 1 |
//! | 7 | rejected | ballot · promised |
//! | 8 | heartbeat | ballot · chosen 8 · round 8 |
//! | 9 | heard | ballot · round 8 · through 8 · expected 8 |
//! | 10 | decide | ballot · chosen 8 · first 8 · count 4 · entries' heads |
//! | 11 | snapshot | ballot · through 8 · origin 9 · count 1 · members · offset 8 · is last 1 · the part's bytes |
//! | 12 | snapshot wanted | ballot · through 8 · offset 8 |

use crate::codec::{
    DecodeError, Reader, put_ballot, put_count, put_proposal, put_snapshot, put_u64,
};
use crate::entry::{Accepted, Proposal, SnapshotHead};
use crate::ids::{Ballot, Instance};
use crate::value::Value;

/// One message from a replica to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Would you vote for me? Asked before any promise is broken by it.
    AskForVotes {
        /// The ballot that the sender would prepare.
        ballot: Ballot,
        /// The last instance of its log.
        last: Instance,
        /// What it knows to be chosen.
        chosen: Instance,
    },
    /// The answer to [`Message::AskForVotes`].
    Vote {
        /// The ballot that was asked about.
        ballot: Ballot,
        /// Whether the sender would follow.
        granted: bool,
        /// What it has promised so far.
        promised: Ballot,
    },
    /// Phase 1 for all instances from `first` on at once.
    Prepare {
        /// The ballot that is to lead.
        ballot: Ballot,
        /// The first instance that is asked for.
        first: Instance,
    },
    /// The answer to [`Message::Prepare`]: nothing below the ballot is accepted any more, and this is what was. It comes in
    /// parts; the next is asked for by another `Prepare`.
    Promise {
        /// The ballot that was promised.
        ballot: Ballot,
        /// The instance of the first entry.
        first: Instance,
        /// What the sender knows to be chosen.
        chosen: Instance,
        /// Whether nothing follows these entries.
        is_last: bool,
        /// What it has accepted, instance after instance.
        entries: Vec<Accepted>,
    },
    /// Phase 2 for instances one after the other.
    Accept {
        /// The leader's ballot.
        ballot: Ballot,
        /// All instances up to this one are chosen.
        chosen: Instance,
        /// The instance of the first entry.
        first: Instance,
        /// What is to be accepted.
        entries: Vec<Proposal>,
    },
    /// The answer to [`Message::Accept`], once it is durable.
    Accepted {
        /// The leader's ballot.
        ballot: Ballot,
        /// All instances up to this one are durable at the sender, as the leader of the ballot proposed them.
        through: Instance,
        /// The next instance that the sender can take.
        expected: Instance,
        /// Whether an entry came too early, because what stands before it was lost.
        is_gap: bool,
    },
    /// The sender has promised more than the ballot of what it was sent.
    Rejected {
        /// The ballot of what it was sent.
        ballot: Ballot,
        /// What it has promised.
        promised: Ballot,
    },
    /// The leader is there.
    Heartbeat {
        /// Its ballot.
        ballot: Ballot,
        /// All instances up to this one are chosen.
        chosen: Instance,
        /// Numbers heartbeats, so that an answer says to which it is.
        round: u64,
    },
    /// The answer to [`Message::Heartbeat`], at once.
    Heard {
        /// The leader's ballot.
        ballot: Ballot,
        /// Which heartbeat it answers.
        round: u64,
        /// As in [`Message::Accepted`].
        through: Instance,
        /// As in [`Message::Accepted`].
        expected: Instance,
    },
    /// What was chosen, once more in full: only where values are resent, as a published system does. Never answered.
    Decide {
        /// The leader's ballot.
        ballot: Ballot,
        /// All instances up to this one are chosen.
        chosen: Instance,
        /// The instance of the first entry.
        first: Instance,
        /// What was chosen.
        entries: Vec<Proposal>,
    },
    /// A part of a snapshot, for a replica that lacks what the leader's log no longer has.
    Snapshot {
        /// The leader's ballot.
        ballot: Ballot,
        /// What the whole snapshot holds.
        head: SnapshotHead,
        /// Where in the whole the part begins.
        offset: u64,
        /// Whether the whole ends with it.
        is_last: bool,
        /// The part.
        bytes: Value,
    },
    /// The answer to [`Message::Snapshot`]: what the sender lacks next.
    SnapshotWanted {
        /// The leader's ballot.
        ballot: Ballot,
        /// The end of the snapshot that the answer is about.
        through: Instance,
        /// How much of it the sender has.
        offset: u64,
    },
}

/// Bytes of an entry's head, and of one in a promise.
const PROPOSAL_HEAD_BYTES: usize = 23;
const ACCEPTED_HEAD_BYTES: usize = 9 + PROPOSAL_HEAD_BYTES;

impl Message {
    /// Writes all of it but the bytes of values, which [`Self::bodies`] has and which follow in that order.
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        out.push(self.tag());
        put_ballot(out, self.ballot());
        match self {
            Self::AskForVotes { last, chosen, .. } => put_all(out, &[*last, *chosen]),
            Self::Vote { granted, promised, .. } => {
                out.push((*granted).into());
                put_ballot(out, *promised);
            }
            Self::Prepare { first, .. } => put_u64(out, *first),
            Self::Promise { first, chosen, is_last, entries, .. } => {
                put_all(out, &[*first, *chosen]);
                out.push((*is_last).into());
                put_count(out, entries.len());
                for entry in entries {
                    put_ballot(out, entry.ballot);
                    put_proposal(out, &entry.proposal);
                }
            }
            Self::Accept { chosen, first, entries, .. }
            | Self::Decide { chosen, first, entries, .. } => {
                put_all(out, &[*chosen, *first]);
                put_count(out, entries.len());
                for entry in entries {
                    put_proposal(out, entry);
                }
            }
            Self::Accepted { through, expected, is_gap, .. } => {
                put_all(out, &[*through, *expected]);
                out.push((*is_gap).into());
            }
            Self::Rejected { promised, .. } => put_ballot(out, *promised),
            Self::Heartbeat { chosen, round, .. } => put_all(out, &[*chosen, *round]),
            Self::Heard { round, through, expected, .. } => {
                put_all(out, &[*round, *through, *expected]);
            }
            Self::Snapshot { head, offset, is_last, .. } => {
                put_snapshot(out, head);
                put_u64(out, *offset);
                out.push((*is_last).into());
            }
            Self::SnapshotWanted { through, offset, .. } => put_all(out, &[*through, *offset]),
        }
    }

    /// The bytes that follow what [`Self::encode_head`] writes.
    pub fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let (promised, proposed, part) = match self {
            Self::Promise { entries, .. } => (entries.as_slice(), &[][..], None),
            Self::Accept { entries, .. } | Self::Decide { entries, .. } => {
                (&[][..], entries.as_slice(), None)
            }
            Self::Snapshot { bytes, .. } => (&[][..], &[][..], Some(bytes)),
            _ => (&[][..], &[][..], None),
        };
        let promised = promised.iter().map(|accepted| &accepted.proposal);
        promised
            .chain(proposed)
            .filter_map(|proposal| proposal.entry.body())
            .chain(part.map(|bytes| &**bytes))
    }

    /// Writes all of it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_head(out);
        for body in self.bodies() {
            out.extend_from_slice(body);
        }
    }

    /// The message that these bytes are.
    ///
    /// # Errors
    /// When they are no message, or not exactly one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        let tag = reader.u8("the kind of a message")?;
        let ballot = reader.ballot("a ballot")?;
        let message = decode_fields(tag, ballot, &mut reader)?;
        reader.end()?;
        Ok(message)
    }

    /// The ballot that it is about.
    #[must_use]
    pub fn ballot(&self) -> Ballot {
        match self {
            Self::AskForVotes { ballot, .. }
            | Self::Vote { ballot, .. }
            | Self::Prepare { ballot, .. }
            | Self::Promise { ballot, .. }
            | Self::Accept { ballot, .. }
            | Self::Accepted { ballot, .. }
            | Self::Rejected { ballot, .. }
            | Self::Heartbeat { ballot, .. }
            | Self::Heard { ballot, .. }
            | Self::Decide { ballot, .. }
            | Self::Snapshot { ballot, .. }
            | Self::SnapshotWanted { ballot, .. } => *ballot,
        }
    }

    /// The highest counter of a ballot that it claims a replica has seen.
    pub(crate) fn counter(&self) -> u64 {
        let promised = match self {
            Self::Vote { promised, .. } | Self::Rejected { promised, .. } => promised.counter,
            _ => 0,
        };
        self.ballot().counter.max(promised)
    }

    fn tag(&self) -> u8 {
        match self {
            Self::AskForVotes { .. } => 1,
            Self::Vote { .. } => 2,
            Self::Prepare { .. } => 3,
            Self::Promise { .. } => 4,
            Self::Accept { .. } => 5,
            Self::Accepted { .. } => 6,
            Self::Rejected { .. } => 7,
            Self::Heartbeat { .. } => 8,
            Self::Heard { .. } => 9,
            Self::Decide { .. } => 10,
            Self::Snapshot { .. } => 11,
            Self::SnapshotWanted { .. } => 12,
        }
    }
}

fn put_all(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        put_u64(out, *number);
    }
}

fn decode_fields(tag: u8, ballot: Ballot, reader: &mut Reader) -> Result<Message, DecodeError> {
    Ok(match tag {
        1 => Message::AskForVotes {
            ballot,
            last: reader.u64("the end of a log")?,
            chosen: reader.u64("what is chosen")?,
        },
        2 => Message::Vote {
            ballot,
            granted: reader.flag("a vote")?,
            promised: reader.ballot("a promise")?,
        },
        3 => Message::Prepare { ballot, first: reader.u64("an instance")? },
        4 => decode_promise(ballot, reader)?,
        5 | 10 => {
            let chosen = reader.u64("what is chosen")?;
            let (first, entries) = decode_entries(reader)?;
            match tag {
                5 => Message::Accept { ballot, chosen, first, entries },
                _ => Message::Decide { ballot, chosen, first, entries },
            }
        }
        6 => Message::Accepted {
            ballot,
            through: reader.u64("what is durable")?,
            expected: reader.u64("what is expected")?,
            is_gap: reader.flag("a gap")?,
        },
        7 => Message::Rejected { ballot, promised: reader.ballot("a promise")? },
        8 => Message::Heartbeat {
            ballot,
            chosen: reader.u64("what is chosen")?,
            round: reader.u64("a round")?,
        },
        9 => Message::Heard {
            ballot,
            round: reader.u64("a round")?,
            through: reader.u64("what is durable")?,
            expected: reader.u64("what is expected")?,
        },
        11 => Message::Snapshot {
            ballot,
            head: reader.snapshot()?,
            offset: reader.u64("an offset")?,
            is_last: reader.flag("the end of a snapshot")?,
            bytes: reader.rest("a part of a snapshot")?,
        },
        12 => Message::SnapshotWanted {
            ballot,
            through: reader.u64("the end of a snapshot")?,
            offset: reader.u64("an offset")?,
        },
        found => return Err(DecodeError::Unknown { what: "the kind of a message", found }),
    })
}

fn decode_promise(ballot: Ballot, reader: &mut Reader) -> Result<Message, DecodeError> {
    let first = reader.u64("an instance")?;
    let chosen = reader.u64("what is chosen")?;
    let is_last = reader.flag("the end of a promise")?;
    let count = reader.count_of("the number of entries", ACCEPTED_HEAD_BYTES)?;
    let mut heads = Vec::with_capacity(count);
    for _ in 0..count {
        heads.push((reader.ballot("a ballot")?, reader.proposal_head()?));
    }
    let mut entries = Vec::with_capacity(count);
    for (ballot, head) in heads {
        entries.push(Accepted { ballot, proposal: reader.proposal(&head)? });
    }
    Ok(Message::Promise { ballot, first, chosen, is_last, entries })
}

fn decode_entries(reader: &mut Reader) -> Result<(Instance, Vec<Proposal>), DecodeError> {
    let first = reader.u64("an instance")?;
    let count = reader.count_of("the number of entries", PROPOSAL_HEAD_BYTES)?;
    let mut heads = Vec::with_capacity(count);
    for _ in 0..count {
        heads.push(reader.proposal_head()?);
    }
    let mut entries = Vec::with_capacity(count);
    for head in heads {
        entries.push(reader.proposal(&head)?);
    }
    Ok((first, entries))
}
