//! Who a replica is, and to which group its folder belongs: pinned once, in a cell, before anything else is kept.
//!
//! A folder is *blank* or *formatted*. A blank one has nothing but a number that was drawn for it, its `disk`. Where all
//! replicas of a command line are blank they found a group: the lowest of them draws the group's name and lists who has which
//! disk, and each of the list is formatted with that. A disk that is not on the list has never held anything of the group, so
//! whoever has it is a newcomer: it is given an id that no replica had before, catches up without a vote, and takes the place of
//! the one of its number.
//!
//! An id is a replica's number and how often its disk was replaced, times 16. So what a lost disk had promised is no replica's
//! promise any more. A replica of a number that founded nothing joins as a newcomer does, once an operator has asked for it
//! (`standing`).

use consensus::{Members, ReplicaId};

/// Numbers of replicas are smaller.
pub const NUMBERS_MAX: u8 = 16;

/// The number of a replica that has this id.
#[must_use]
pub fn number_of(id: ReplicaId) -> u8 {
    id.0 % NUMBERS_MAX
}

/// The id of whoever takes the place of this one; none where the number's disk was replaced 15 times.
pub(crate) fn id_behind(id: ReplicaId) -> Option<ReplicaId> {
    id.0.checked_add(NUMBERS_MAX).map(ReplicaId)
}

/// One of those that founded a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Founder {
    pub(crate) number: u8,
    /// Drawn for its folder; 0 where it is not known yet.
    pub(crate) disk: u64,
}

/// What a folder is pinned to; what a replica says of itself first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The group's name, drawn when it was founded; 0: the folder is blank.
    pub(crate) cluster: u64,
    pub(crate) number: u8,
    /// What it is called in ballots. Of a blank one the number, which means nothing.
    pub(crate) id: ReplicaId,
    /// Drawn for its folder.
    pub(crate) disk: u64,
    /// Who founded the group, by number; of a blank one who is to, by its command line.
    pub(crate) founders: Vec<Founder>,
}

/// Bytes before the founders, and of each.
const HEAD_BYTES: usize = 8 + 1 + 1 + 8 + 1;
const FOUNDER_BYTES: usize = 1 + 8;

impl Identity {
    /// Of a folder that is formatted when others are found.
    pub(crate) fn blank(number: u8, disk: u64, members: &Members) -> Self {
        let founders = members.iter().map(|id| Founder { number: id.0, disk: 0 }).collect();
        Self { cluster: 0, number, id: ReplicaId(number), disk, founders }
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.cluster == 0
    }

    /// The numbers of its group.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u8> {
        self.founders.iter().map(|founder| founder.number)
    }

    /// Whether a blank folder was started with all the replicas that this one's group was founded with: it may be one of them,
    /// or one that is to join them.
    pub(crate) fn covers(&self, group: &Self) -> bool {
        group.numbers().all(|number| self.numbers().any(|own| own == number))
    }

    /// Whether both are of the same numbers.
    pub(crate) fn is_of_same_numbers(&self, other: &Self) -> bool {
        self.numbers().eq(other.numbers())
    }

    /// Who had a vote when the group was founded.
    pub(crate) fn members(&self) -> Members {
        let ids: Vec<ReplicaId> = self.numbers().map(ReplicaId).collect();
        Members::new(&ids).expect("it was made of members")
    }

    /// Whether a disk of this number founded the group.
    pub(crate) fn is_founded_with(&self, number: u8, disk: u64) -> bool {
        self.founders.contains(&Founder { number, disk })
    }

    /// cluster 8 · number 1 · id 1 · disk 8 · count 1 · for each founder: number 1 · disk 8. Little-endian.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.cluster.to_le_bytes());
        out.extend_from_slice(&[self.number, self.id.0]);
        out.extend_from_slice(&self.disk.to_le_bytes());
        out.push(u8::try_from(self.founders.len()).expect("at most 15"));
        for founder in &self.founders {
            out.push(founder.number);
            out.extend_from_slice(&founder.disk.to_le_bytes());
        }
    }

    /// What [`Self::write`] wrote at the beginning of `bytes`, and how long it is; `None` while it is not all there.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, NoIdentity> {
        let Some(head) = bytes.get(..HEAD_BYTES) else { return Ok(None) };
        let count = usize::from(head[HEAD_BYTES - 1]);
        let used = HEAD_BYTES + count * FOUNDER_BYTES;
        let Some(rest) = bytes.get(HEAD_BYTES..used) else { return Ok(None) };
        let word = |at: usize, of: &[u8]| {
            u64::from_le_bytes(of[at..at + 8].try_into().expect("eight bytes"))
        };
        let founders = rest.chunks_exact(FOUNDER_BYTES);
        let founders: Vec<Founder> =
            founders.map(|it| Founder { number: it[0], disk: word(1, it) }).collect();
        let (number, id) = (head[8], ReplicaId(head[9]));
        let ids: Vec<ReplicaId> = founders.iter().map(|it| ReplicaId(it.number)).collect();
        let is_sorted = founders.windows(2).all(|pair| pair[0].number < pair[1].number);
        // One that joined later is no founder, and has an id that no founder has.
        let is_known = founders.iter().any(|it| it.number == number) || id.0 >= NUMBERS_MAX;
        let is_whole = number_of(id) == number
            && is_known
            && founders.iter().all(|it| it.number < NUMBERS_MAX)
            && is_sorted
            && Members::new(&ids).is_some();
        let identity = Self { cluster: word(0, head), number, id, disk: word(10, head), founders };
        if is_whole { Ok(Some((identity, used))) } else { Err(NoIdentity) }
    }
}

/// Bytes that say no replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoIdentity;

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: an identity is read as it was written, waited for while it is not whole, and refused where its id is of another
    /// number or its group has no such number.
    #[test]
    fn there_and_back() {
        let members = Members::new(&[ReplicaId(0), ReplicaId(1), ReplicaId(5)]).unwrap();
        let mut identity = Identity::blank(5, 77, &members);
        identity.cluster = 9;
        identity.id = id_behind(identity.id).unwrap();
        let mut bytes = Vec::new();
        identity.write(&mut bytes);
        for cut in 0..bytes.len() {
            assert_eq!(Identity::read(&bytes[..cut]), Ok(None));
        }
        assert_eq!(Identity::read(&bytes), Ok(Some((identity.clone(), bytes.len()))));
        for (at, byte) in [(8, 6), (9, 4), (HEAD_BYTES, 1)] {
            let mut wrong = bytes.clone();
            wrong[at] = byte;
            assert_eq!(Identity::read(&wrong), Err(NoIdentity), "{at}");
        }
    }

    /// Claim: an id that takes another's place is of the same number, and is given at most 15 times.
    #[test]
    fn ids_are_used_once() {
        let mut ids = vec![ReplicaId(3)];
        while let Some(next) = id_behind(ids[ids.len() - 1]) {
            ids.push(next);
        }
        assert!(ids.len() == 16 && ids.iter().all(|id| number_of(*id) == 3));
    }
}
