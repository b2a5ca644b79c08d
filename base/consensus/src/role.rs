//! The role of a replica, with the state that it has in that role only: a candidate's promises, a leader's followers and
//! reads, a snapshot on its way in. The rules that change it stand above, in `election`, `leader`, `reads` and `snapshot`.

use std::collections::VecDeque;

use clock::Instant;

use crate::effects::{Effects, Refusal, Request};
use crate::entry::{Accepted, Entry, Proposal, SnapshotHead};
use crate::ids::{Ballot, Instance, MEMBERS_MAX, Members, ReplicaId};
use crate::peer::Peer;

/// The role of a replica at present.
#[derive(Debug)]
pub(crate) enum Role {
    Follower {
        leader: Option<ReplicaId>,
    },
    /// Asks whether anybody would vote for it.
    Asking(Asking),
    /// Collects promises.
    Candidate(Candidacy),
    Leader(Box<Leadership>),
}

/// A replica that asks for votes.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) ballot: Ballot,
    pub(crate) granted: Vec<ReplicaId>,
}

/// A replica that collects promises.
#[derive(Debug)]
pub(crate) struct Candidacy {
    pub(crate) ballot: Ballot,
    /// The first instance that was not known to be chosen when it began.
    pub(crate) first: Instance,
    /// Whether its own promise is durable.
    pub(crate) has_own: bool,
    pub(crate) promises: Vec<Promised>,
    /// The entries accepted from `first` on: of each instance that of the highest ballot.
    pub(crate) found: Vec<Option<Accepted>>,
    /// When those that have not answered are asked again.
    pub(crate) ask_again_at: Instant,
}

/// How far a replica has told what it has accepted.
#[derive(Debug)]
pub(crate) struct Promised {
    pub(crate) by: ReplicaId,
    pub(crate) next: Instance,
    pub(crate) is_whole: bool,
    pub(crate) chosen: Instance,
}

impl Candidacy {
    /// The entries to propose, instance after instance. Where nothing was found, nothing was chosen. An entry that followed
    /// another one than that before it here was left behind, and so was all behind it: had it been chosen, a majority
    /// would have accepted what it followed in the same ballot, so that would stand here.
    pub(crate) fn findings(&self, origin_before: Ballot) -> Vec<Proposal> {
        let mut proposals = Vec::with_capacity(self.found.len());
        let mut origin = origin_before;
        for found in &self.found {
            let proposal = match found {
                Some(accepted) => accepted.proposal.clone(),
                None => Proposal { origin, follows: origin, entry: Entry::Noop },
            };
            if proposal.follows != origin {
                break;
            }
            origin = proposal.origin;
            proposals.push(proposal);
        }
        proposals
    }

    pub(crate) fn take(&mut self, instance: Instance, accepted: Accepted) {
        let Some(index) = instance.checked_sub(self.first).and_then(|i| usize::try_from(i).ok())
        else {
            return;
        };
        if self.found.len() <= index {
            self.found.resize(index + 1, None);
        }
        let there = &mut self.found[index];
        if there.as_ref().is_none_or(|there| there.ballot < accepted.ballot) {
            *there = Some(accepted);
        }
    }

    pub(crate) fn has_promise_of(&self, id: ReplicaId) -> bool {
        self.promises.iter().any(|promised| promised.by == id && promised.is_whole)
    }
}

/// The knowledge of a leader.
#[derive(Debug)]
pub(crate) struct Leadership {
    pub(crate) peers: Vec<Peer>,
    /// All that earlier leaders may have had chosen is up to here.
    pub(crate) took_over_through: Instance,
    /// The last change of members that was proposed: nothing is proposed behind it until it is chosen.
    pub(crate) barrier: Instance,
    /// A change of members that waits until the newcomer has caught up.
    pub(crate) joining: Option<Joining>,
    /// The last heartbeat.
    pub(crate) round: u64,
    pub(crate) heartbeat_at: Instant,
    /// All up to here was chosen when the last heartbeat was sent.
    pub(crate) chosen_at_heartbeat: Instance,
    pub(crate) reads: VecDeque<PendingRead>,
}

#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) id: u64,
    pub(crate) who: ReplicaId,
    pub(crate) members: Members,
}

impl Leadership {
    /// Begins to lead, with everything up to `last` proposed.
    pub(crate) fn begin(now: Instant, last: Instance, barrier: Instance) -> Self {
        Self {
            peers: Vec::new(),
            took_over_through: last,
            barrier,
            joining: None,
            round: 0,
            heartbeat_at: now,
            chosen_at_heartbeat: last,
            reads: VecDeque::new(),
        }
    }

    /// A follower, which knows all up to `known` to be chosen, if it has said so.
    pub(crate) fn add_peer(
        &mut self,
        now: Instant,
        id: ReplicaId,
        known: Option<Instance>,
        chosen: Instance,
        last: Instance,
    ) {
        let acked = known.unwrap_or(0).min(last);
        let next = known.unwrap_or(chosen).min(last) + 1;
        self.peers.push(Peer::new(id, now, acked, next));
    }

    pub(crate) fn peer(&mut self, id: ReplicaId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.id == id)
    }

    /// The highest number that enough members have reached, by what is known of each: `own` of the leader.
    pub(crate) fn reached(
        &self,
        members: &Members,
        leader: ReplicaId,
        own: u64,
        needed: usize,
        of: impl Fn(&Peer) -> u64,
    ) -> u64 {
        let mut reached = [0; MEMBERS_MAX];
        for (place, id) in reached.iter_mut().zip(members.iter()) {
            let peer = || self.peers.iter().find(|peer| peer.id == id);
            *place = if id == leader { own } else { peer().map_or(0, &of) };
        }
        let reached = &mut reached[..members.count()];
        reached.sort_unstable();
        reached[members.count() - needed]
    }

    /// Tells everybody who waits that it is over.
    pub(crate) fn give_up(self, out: &mut Effects) {
        let why = Refusal::NotLeader { leader: None };
        for read in self.reads {
            out.refuse(Request::Read(read.id), why);
        }
        if let Some(joining) = self.joining {
            out.refuse(Request::ChangeMembers(joining.id), why);
        }
    }
}

/// A read that waits.
#[derive(Debug)]
pub(crate) struct PendingRead {
    pub(crate) id: u64,
    /// Delivered before the read is answered.
    pub(crate) instance: Instance,
    /// The heartbeat that a majority must have answered.
    pub(crate) round: u64,
}

/// A snapshot that comes from a leader.
#[derive(Debug)]
pub(crate) struct Installing {
    pub(crate) from: ReplicaId,
    pub(crate) head: SnapshotHead,
    /// How much of it came.
    pub(crate) offset: u64,
    /// Whether it is with the state machine as a whole. From then on nothing is delivered until it is installed.
    pub(crate) is_whole: bool,
}
