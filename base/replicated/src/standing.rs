//! How a replica comes to be one of its group: it founds the group with others, is given an id in place of a lost disk, or
//! gives one. See `identity` for what is kept of it. An operator takes a replica's vote, or gives one to a replica that has none;
//! that is asked of the leader, and forgotten with it: whoever asked looks at the members, and asks the next leader again.

use std::collections::BTreeMap;

use consensus::{Members, ReplicaId};

use crate::identity::{Founder, Identity, NUMBERS_MAX, id_behind, number_of};

/// Where a replica stands.
#[derive(Debug)]
pub(crate) struct Standing {
    identity: Identity,
    /// Whether the identity is durable. Nobody is told of one that is not.
    is_kept: bool,
    /// What is being written.
    writing: Option<Identity>,
    /// By number: the disk that was given an id here, and which. Only a leader's own; another leader asks anew.
    seats: BTreeMap<u8, (u64, ReplicaId)>,
    /// By number: whether an operator wants it to have a vote. Only a leader's own.
    wanted: BTreeMap<u8, bool>,
}

/// What a leader has to do for newcomers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Tells whoever has this number and disk what it is called.
    Seat { number: u8, disk: u64, id: ReplicaId },
    /// Asks for these members.
    Change(Members),
}

impl Standing {
    pub(crate) fn new(identity: Identity, is_kept: bool) -> Self {
        let (seats, wanted) = (BTreeMap::new(), BTreeMap::new());
        Self { identity, is_kept, writing: None, seats, wanted }
    }

    /// An operator wants the replica of this number to have a vote, or not to.
    pub(crate) fn want(&mut self, number: u8, has_vote: bool) {
        self.wanted.insert(number, has_vote);
    }

    /// Another leads: what was asked here is asked of that one.
    pub(crate) fn forget_wanted(&mut self) {
        self.wanted.clear();
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it may take part in its group.
    pub(crate) fn is_formatted(&self) -> bool {
        self.is_kept && !self.identity.is_blank()
    }

    /// Who it says that it is; no replica before that is durable.
    pub(crate) fn speaks_as(&self) -> Option<&Identity> {
        self.is_kept.then_some(&self.identity)
    }

    /// What has to be written before anything else: of a blank folder its disk.
    pub(crate) fn first_content(&mut self) -> Option<Vec<u8>> {
        let is_first = !self.is_kept && self.writing.is_none();
        is_first.then(|| self.begin_to_write(self.identity.clone()))
    }

    /// What was being written is durable.
    pub(crate) fn written(&mut self) {
        if let Some(identity) = self.writing.take() {
            self.identity = identity;
            self.is_kept = true;
        }
    }

    fn begin_to_write(&mut self, identity: Identity) -> Vec<u8> {
        let mut content = Vec::new();
        identity.write(&mut content);
        self.writing = Some(identity);
        content
    }

    fn is_free(&self) -> bool {
        self.is_kept && self.identity.is_blank() && self.writing.is_none()
    }

    /// Whether a blank folder is one of a group's founders, by what others say of themselves; then what is to be written.
    pub(crate) fn found(&mut self, others: &[&Identity]) -> Option<Vec<u8>> {
        if !self.is_free() {
            return None;
        }
        let own = &self.identity;
        let alike = || others.iter().filter(|it| it.is_of_same_numbers(own));
        let formatted = others.iter().find(|it| !it.is_blank() && own.covers(it));
        if let Some(group) = formatted {
            let is_founder = group.is_founded_with(own.number, own.disk);
            let (cluster, founders) = (group.cluster, group.founders.clone());
            let identity = Identity { cluster, founders, ..own.clone() };
            return is_founder.then(|| self.begin_to_write(identity));
        }
        // All are blank, and the lowest founds; with one that was not heard there may be a group already.
        let disk_of = |number| {
            let other = alike().find(|it| it.number == number).map(|it| it.disk);
            if number == own.number { Some(own.disk) } else { other }
        };
        let found: Option<Vec<Founder>> =
            own.numbers().map(|number| Some(Founder { number, disk: disk_of(number)? })).collect();
        let founders = found.filter(|all| all[0].number == own.number)?;
        // Disks are drawn at random, so what is made of all of them is as good as drawn.
        let mix = |name: u64, it: &Founder| {
            (name.rotate_left(23) ^ it.disk).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        let cluster = founders.iter().fold(1, mix).max(1);
        let identity = Identity { cluster, founders, ..own.clone() };
        Some(self.begin_to_write(identity))
    }

    /// A leader gives an id to a disk; if it is this one's, what is to be written.
    pub(crate) fn take_seat(
        &mut self,
        from: &Identity,
        disk: u64,
        id: ReplicaId,
    ) -> Option<Vec<u8>> {
        let own = &self.identity;
        let is_own = disk == own.disk && number_of(id) == own.number && id.0 != own.number;
        if !self.is_free() || !is_own || from.is_blank() || !own.covers(from) {
            return None;
        }
        let (cluster, founders) = (from.cluster, from.founders.clone());
        let identity = Identity { cluster, founders, id, ..own.clone() };
        Some(self.begin_to_write(identity))
    }

    /// What a leader of these members has to do, by what others say of themselves: a newcomer is told its id, then let in,
    /// then whoever it stands for is let go.
    pub(crate) fn care(&mut self, members: &Members, others: &[&Identity]) -> Vec<Care> {
        let mut care = Vec::new();
        let with_number = |number| members.iter().filter(move |id| number_of(*id) == number);
        for number in 0..NUMBERS_MAX {
            let (first, last) = (with_number(number).min(), with_number(number).max());
            let is_wanted = self.wanted.get(&number).copied();
            if is_wanted == Some(last.is_some()) {
                self.wanted.remove(&number);
            }
            if let Some(last) = last.filter(|_| first != last || is_wanted == Some(false)) {
                if is_wanted == Some(false) {
                    // No other disk is given its id.
                    self.seats.insert(number, (0, last));
                }
                let stay: Vec<ReplicaId> = members.iter().filter(|id| Some(*id) != first).collect();
                care.extend(Members::new(&stay).map(Care::Change));
            }
        }
        for other in others {
            let present = with_number(other.number).max();
            if present.is_none() && self.wanted.get(&other.number) != Some(&true) {
                continue;
            }
            // A connection of before it was formatted may not have ended yet.
            let is_formatted = |it: &&Identity| {
                it.disk == other.disk && it.number == other.number && !it.is_blank()
            };
            if other.is_blank() && others.iter().any(is_formatted) {
                continue;
            }
            let changes = care.iter().any(|it| matches!(it, Care::Change(_)));
            if other.is_blank() && !self.identity.is_founded_with(other.number, other.disk) {
                let before = self.seats.get(&other.number).copied();
                let id = match before {
                    Some((disk, id)) if disk == other.disk => Some(id),
                    _ => {
                        let known = before.map(|(_, id)| id).into_iter().chain(present).max();
                        id_behind(known.unwrap_or(ReplicaId(other.number)))
                    }
                };
                if let Some(id) = id {
                    self.seats.insert(other.number, (other.disk, id));
                    care.push(Care::Seat { number: other.number, disk: other.disk, id });
                }
            } else if !other.is_blank() && present.is_none_or(|it| other.id > it) && !changes {
                let seat = self.seats.entry(other.number).or_insert((other.disk, other.id));
                // One that was let go, and still has its disk, comes back as it was.
                let is_back = present.is_none() && *seat == (0, other.id);
                if is_back || *seat == (other.disk, other.id) {
                    let all: Vec<ReplicaId> = members.iter().chain([other.id]).collect();
                    care.extend(Members::new(&all).map(Care::Change));
                }
            }
        }
        care
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: &[u8]) -> Members {
        Members::new(&ids.iter().map(|id| ReplicaId(*id)).collect::<Vec<_>>()).unwrap()
    }

    fn kept(number: u8, disk: u64) -> Standing {
        Standing::new(Identity::blank(number, disk, &members(&[0, 1, 2])), true)
    }

    /// Three that founded a group with disks 100, 101 and 102.
    fn group() -> Vec<Standing> {
        let mut all: Vec<Standing> =
            (0..3).map(|number| kept(number, 100 + u64::from(number))).collect();
        let blank: Vec<Identity> = all.iter().map(|it| it.identity().clone()).collect();
        assert!(all[0].found(&[&blank[1], &blank[2]]).is_some());
        all[0].written();
        let first = all[0].identity().clone();
        for other in &mut all[1..] {
            assert!(other.found(&[&first]).is_some());
            other.written();
        }
        all
    }

    /// Claim: a group is founded by the lowest once it has heard that all are blank, never before; the others are of it.
    #[test]
    fn a_group_is_founded_by_all() {
        let all = group();
        assert!(all.iter().all(Standing::is_formatted));
        assert!(all.iter().all(|it| it.identity().cluster == all[0].identity().cluster));
        let blank = |number| kept(number, 7).identity().clone();
        assert_eq!(kept(0, 1).found(&[&blank(1)]), None, "2 was not heard");
        assert_eq!(kept(1, 1).found(&[&blank(0), &blank(2)]), None, "it is not the lowest");
        let formatted = all[2].identity();
        assert_eq!(kept(0, 1).found(&[&blank(1), formatted]), None, "there is a group");
    }

    /// Claim: a disk that did not found the group is no founder of it, whatever its number; it is told an id that none
    /// had, let in under that, and then the one of its number is let go. Another disk is told another id.
    #[test]
    fn a_lost_disk_comes_back_under_another_id() {
        let mut all = group();
        let mut empty = kept(1, 999);
        assert_eq!(empty.found(&[all[0].identity(), all[2].identity()]), None);
        let three = members(&[0, 1, 2]);
        let seat = |disk, id| Care::Seat { number: 1, disk, id: ReplicaId(id) };
        assert_eq!(all[0].care(&three, &[empty.identity()]), [seat(999, 17)]);
        assert_eq!(all[0].care(&three, &[empty.identity()]), [seat(999, 17)], "told again");
        let leader = all[0].identity().clone();
        assert!(empty.take_seat(&leader, 998, ReplicaId(17)).is_none(), "another disk's");
        assert!(empty.take_seat(&leader, 999, ReplicaId(17)).is_some());
        empty.written();
        assert!(empty.is_formatted() && empty.identity().id == ReplicaId(17));
        let four = members(&[0, 1, 2, 17]);
        let before = kept(1, 999);
        let others = [before.identity(), empty.identity()];
        assert_eq!(
            all[0].care(&three, &others),
            [Care::Change(four.clone())],
            "it said less before"
        );
        assert_eq!(all[0].care(&three, &[empty.identity()]), [Care::Change(four.clone())]);
        let now = members(&[0, 2, 17]);
        assert_eq!(all[0].care(&four, &[empty.identity()]), [Care::Change(now.clone())]);
        assert_eq!(all[0].care(&now, &[empty.identity()]), []);
        assert_eq!(all[0].care(&now, &[kept(1, 5).identity()]), [seat(5, 33)]);
        assert_eq!(all[2].care(&now, &[kept(1, 5).identity()]), [seat(5, 33)], "another leader");
    }

    /// Claim: an operator's wish is carried out once: a vote is taken, given back to the disk that had it, under a new id to an
    /// empty one, and to a number that founded nothing; without a wish no new one is let in.
    #[test]
    fn an_operator_gives_and_takes_votes() {
        let mut all = group();
        let (three, two) = (members(&[0, 1, 2]), members(&[0, 2]));
        let second = all[1].identity().clone();
        all[0].want(1, false);
        assert_eq!(all[0].care(&three, &[&second]), [Care::Change(two.clone())]);
        assert_eq!(all[0].care(&two, &[&second]), [], "it stays away");
        all[0].want(1, true);
        assert_eq!(all[0].care(&two, &[&second]), [Care::Change(three.clone())], "its own disk");
        let empty = kept(1, 999).identity().clone();
        let seat = Care::Seat { number: 1, disk: 999, id: ReplicaId(17) };
        assert_eq!(all[0].care(&two, &[&empty]), [seat], "another disk has another id");
        assert_eq!(all[0].care(&three, &[&second]), []);
        assert_eq!(all[0].care(&two, &[&second]), [], "the wish was fulfilled");

        let named = members(&[0, 1, 2, 5]);
        let mut fourth = Standing::new(Identity::blank(5, 55, &named), true);
        let group = all[0].identity().clone();
        assert_eq!(fourth.found(&[&group]), None, "it founded nothing");
        assert_eq!(all[0].care(&three, &[fourth.identity()]), [], "nobody has asked for it");
        all[0].want(5, true);
        let seat = Care::Seat { number: 5, disk: 55, id: ReplicaId(21) };
        assert_eq!(all[0].care(&three, &[fourth.identity()]), [seat]);
        assert!(fourth.take_seat(&group, 55, ReplicaId(21)).is_some());
        fourth.written();
        let mut bytes = Vec::new();
        fourth.identity().write(&mut bytes);
        assert_eq!(Identity::read(&bytes).map(|it| it.is_some()), Ok(true));
        let four = members(&[0, 1, 2, 21]);
        assert_eq!(all[0].care(&three, &[fourth.identity()]), [Care::Change(four.clone())]);
        all[0].want(5, true);
        all[0].forget_wanted();
        assert_eq!(all[0].care(&three, &[fourth.identity()]), [], "another leads");
    }
}
