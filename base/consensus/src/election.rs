//! How a replica comes to lead: it waits, asks whether anybody would vote for it, then prepares all instances that are not
//! chosen at once, and proposes what it was told.
//!
//! The question before (as in Raft's pre-vote) breaks no promise, so a replica that was cut off or paused does not
//! unseat a leader that works. Votes are no part of what makes Paxos safe; promises are.

use clock::Instant;

use crate::config::Broken;
use crate::effects::Effects;
use crate::entry::{Accepted, Entry};
use crate::ids::{Ballot, Instance, Members, ReplicaId};
use crate::message::Message;
use crate::replica::{Replica, Waiting};
use crate::role::{Asking, Candidacy, Leadership, Promised, Role};

impl Replica {
    /// The leader was silent for too long.
    pub(crate) fn ask_for_votes(&mut self, now: Instant, out: &mut Effects) {
        self.wait_for_leader(now);
        let is_installing = self.installing.as_ref().is_some_and(|installing| installing.is_whole);
        // What a replica promises has to become durable: one whose disk stands still would only unseat others.
        let may_lead =
            self.members().contains(self.config.id) && !is_installing && !self.is_disk_stuck(now);
        if !may_lead {
            self.role = Role::Follower { leader: None };
            return;
        }
        let ballot = Ballot { counter: self.counter_seen + 1, replica: self.config.id };
        self.role = Role::Asking(Asking { ballot, granted: vec![self.config.id] });
        let (last, chosen) = (self.log.last(), self.chosen);
        for to in self.others(&[self.members()]) {
            out.send(to, Message::AskForVotes { ballot, last, chosen });
        }
        self.count_votes(now, out);
    }

    /// All members of these but itself, each once.
    fn others(&self, groups: &[&Members]) -> Vec<ReplicaId> {
        let mut ids: Vec<ReplicaId> = groups.iter().flat_map(|group| group.iter()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| *id != self.config.id);
        ids
    }

    /// A vote goes to whoever could lead, if no replica does. One that lacks what is known to be chosen here would have to
    /// fetch it first, or could not if it was trimmed; the replica that knows most can always have all votes.
    pub(crate) fn on_ask_for_votes(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        last: Instance,
        chosen: Instance,
        out: &mut Effects,
    ) {
        let is_led = self.is_leader()
            || self
                .leader_heard
                .is_some_and(|heard| now.saturating_since(heard) < self.config.election_timeout);
        let could_lead = last >= self.chosen && chosen + 1 >= self.log.first();
        let granted = !is_led && could_lead && ballot > self.promised;
        out.send(from, Message::Vote { ballot, granted, promised: self.promised });
    }

    pub(crate) fn on_vote(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        granted: bool,
        promised: Ballot,
        out: &mut Effects,
    ) {
        self.counter_seen = self.counter_seen.max(promised.counter);
        let Role::Asking(asking) = &mut self.role else { return };
        if granted && asking.ballot == ballot && !asking.granted.contains(&from) {
            asking.granted.push(from);
            self.count_votes(now, out);
        }
    }

    fn count_votes(&mut self, now: Instant, out: &mut Effects) {
        let Role::Asking(asking) = &self.role else { return };
        if self.members().most(|id| asking.granted.contains(&id)) {
            self.prepare(now, out);
        }
    }

    /// Phase 1 for all instances behind what is known to be chosen, in a ballot that no replica has seen.
    fn prepare(&mut self, now: Instant, out: &mut Effects) {
        let ballot = Ballot { counter: self.counter_seen + 1, replica: self.config.id };
        self.adopt(ballot, out);
        self.wait_for_leader(now);
        let first = self.chosen + 1;
        let own = self.log.accepted_from(first, u64::MAX).unwrap_or_default();
        self.role = Role::Candidate(Candidacy {
            ballot,
            first,
            has_own: self.config.broken == Broken::OwnPromiseAtOnce,
            promises: Vec::new(),
            found: own.into_iter().map(Some).collect(),
            ask_again_at: now,
        });
        // Its own promise counts once it is durable, like any other: a ballot that was forgotten would be used twice.
        let before = self.record_promise(out);
        self.waiting.push_back((before, Waiting::OwnPromise { ballot }));
        self.ask_again(now, out);
    }

    /// Asks all that have not said everything. A change of members that was found adds those whom it brings.
    pub(crate) fn ask_again(&mut self, now: Instant, out: &mut Effects) {
        let groups = self.groups();
        let others = self.others(&groups.iter().collect::<Vec<_>>());
        let Role::Candidate(candidacy) = &mut self.role else { return };
        candidacy.ask_again_at = now.plus(self.config.heartbeat_every);
        for to in others {
            let promised = candidacy.promises.iter().find(|promised| promised.by == to);
            if promised.is_none_or(|promised| !promised.is_whole) {
                let first = promised.map_or(candidacy.first, |promised| promised.next);
                out.send(to, Message::Prepare { ballot: candidacy.ballot, first });
            }
        }
    }

    /// Whose majorities a candidate needs: that of the members in force, and that of every change of them that it found.
    /// A change may have been chosen; then what followed it was accepted by a majority of the new members. As each
    /// change is of one replica, majorities before and after it have one in common, so none is overlooked.
    fn groups(&self) -> Vec<Members> {
        let mut groups = vec![self.members().clone()];
        if let Role::Candidate(candidacy) = &self.role {
            let findings = candidacy.findings(self.origin_of(self.chosen));
            groups.extend(findings.into_iter().filter_map(|found| match found.entry {
                Entry::Members(members) => Some(members),
                _ => None,
            }));
        }
        groups
    }

    pub(crate) fn own_promise(&mut self, now: Instant, ballot: Ballot, out: &mut Effects) {
        if let Role::Candidate(candidacy) = &mut self.role
            && candidacy.ballot == ballot
        {
            candidacy.has_own = true;
            self.count_promises(now, out);
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the fields of one message, taken apart in one place"
    )]
    pub(crate) fn on_promise(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        first: Instance,
        chosen: Instance,
        is_last: bool,
        entries: Vec<Accepted>,
        out: &mut Effects,
    ) {
        let heeds = self.heeds_promises();
        let Role::Candidate(candidacy) = &mut self.role else { return };
        if candidacy.ballot != ballot {
            return;
        }
        let place = candidacy.promises.iter().position(|promised| promised.by == from);
        let place = place.unwrap_or_else(|| {
            let next = candidacy.first;
            candidacy.promises.push(Promised { by: from, next, is_whole: false, chosen });
            candidacy.promises.len() - 1
        });
        let promised = &mut candidacy.promises[place];
        // A part that was repeated or overtaken says nothing new; one without an entry leads nowhere.
        if promised.next != first || promised.is_whole || (entries.is_empty() && !is_last) {
            return;
        }
        promised.next += entries.len() as u64;
        promised.is_whole = is_last;
        let next = promised.next;
        for (instance, accepted) in (first..).zip(entries).filter(|_| heeds) {
            candidacy.take(instance, accepted);
        }
        if is_last {
            self.count_promises(now, out);
        } else {
            out.send(from, Message::Prepare { ballot, first: next });
        }
    }

    /// With a majority of each group this replica leads.
    fn count_promises(&mut self, now: Instant, out: &mut Effects) {
        let groups = self.groups();
        let Role::Candidate(candidacy) = &self.role else { return };
        let id = self.config.id;
        let has = |member| {
            if member == id { candidacy.has_own } else { candidacy.has_promise_of(member) }
        };
        if candidacy.has_own && groups.iter().all(|group| group.most(has)) {
            self.take_over(now, &groups, out);
        }
    }

    /// Proposes everything that was found once more, in one round, and begins to lead.
    fn take_over(&mut self, now: Instant, groups: &[Members], out: &mut Effects) {
        let origin = self.origin_of(self.chosen);
        let Role::Candidate(candidacy) = &self.role else { return };
        let findings = candidacy.findings(origin);
        let known: Vec<(ReplicaId, Instance)> =
            candidacy.promises.iter().map(|promised| (promised.by, promised.chosen)).collect();
        let mut last = self.chosen;
        let mut barrier = 0;
        for proposal in findings {
            last += 1;
            if matches!(proposal.entry, Entry::Members(_)) {
                barrier = last;
            }
            self.accept(last, proposal, None, out);
        }
        // Entries after it cannot be chosen: no replica of a majority will accept anything below this ballot.
        self.log.cut_behind(last);
        self.log.weigh_anew();
        let mut lead = Leadership::begin(now, last, barrier);
        for id in self.others(&groups.iter().collect::<Vec<_>>()) {
            let chosen = known.iter().find(|(by, _)| *by == id).map(|(_, chosen)| *chosen);
            lead.add_peer(now, id, chosen, self.chosen, last);
        }
        self.role = Role::Leader(Box::new(lead));
        self.lead_on(now, out);
        self.choose(out);
    }

    /// Somebody has promised more than the ballot that this replica leads in or wants to. Whoever it was promised to may
    /// be there: this replica waits for it before it tries again.
    pub(crate) fn on_rejected(
        &mut self,
        now: Instant,
        ballot: Ballot,
        promised: Ballot,
        out: &mut Effects,
    ) {
        self.counter_seen = self.counter_seen.max(promised.counter);
        let tries = matches!(self.role, Role::Leader(_) | Role::Candidate(_));
        if tries && ballot == self.promised && promised > ballot {
            self.step_down(out);
            self.wait_for_leader(now);
        }
    }
}
