//! What every replica does: promise, accept, follow. These are the two rules that all of Paxos rests on: after a promise
//! nothing of a lower ballot is accepted, and what was accepted is told to whoever is promised a higher one.

use clock::Instant;

use crate::config::Broken;
use crate::effects::Effects;
use crate::entry::Proposal;
use crate::ids::{Ballot, Instance, ReplicaId};
use crate::message::Message;
use crate::record::Record;
use crate::replica::{Replica, Waiting};
use crate::role::Role;

impl Replica {
    /// Phase 1. The promise goes out when it is durable; by then everything that was accepted before it is, too.
    pub(crate) fn on_prepare(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        first: Instance,
        out: &mut Effects,
    ) {
        if ballot.replica != from || from == self.config.id {
            return;
        }
        if ballot < self.promised {
            out.send(from, Message::Rejected { ballot, promised: self.promised });
            return;
        }
        if ballot > self.promised {
            self.adopt(ballot, out);
            self.wait_for_leader(now);
        }
        let before = self.record_promise(out);
        if before <= self.persisted || self.config.broken == Broken::PromisesBeforeSync {
            self.send_promise(from, ballot, first, out);
            return;
        }
        // Whoever asks again before it is durable is answered once.
        let asked = Waiting::Promise { to: from, ballot, first };
        if !self.waiting.iter().any(|(_, there)| *there == asked) {
            self.waiting.push_back((before, asked));
        }
    }

    /// Writes the promise down unless that was done; how many records must be durable before it is.
    pub(crate) fn record_promise(&mut self, out: &mut Effects) -> u64 {
        if let Some(before) = self.promise_record {
            return before;
        }
        let before = self.append(Record::Promised { ballot: self.promised }, out) + 1;
        self.promise_record = Some(before);
        before
    }

    /// The part of a promise that begins at `first`. Nothing is sent to one who asks for what was trimmed: it cannot lead,
    /// and another can.
    pub(crate) fn send_promise(
        &self,
        to: ReplicaId,
        ballot: Ballot,
        first: Instance,
        out: &mut Effects,
    ) {
        if ballot != self.promised {
            return;
        }
        let Some(entries) = self.log.accepted_from(first, self.config.message_bytes_max) else {
            return;
        };
        let is_last = first + entries.len() as u64 > self.log.last();
        let chosen = self.chosen;
        out.send(to, Message::Promise { ballot, first, chosen, is_last, entries });
    }

    /// Whether `from` leads in `ballot` as far as this replica may know; it then follows.
    pub(crate) fn follow(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        out: &mut Effects,
    ) -> bool {
        if ballot.replica != from || from == self.config.id {
            return false;
        }
        if ballot < self.promised {
            out.send(from, Message::Rejected { ballot, promised: self.promised });
            return false;
        }
        if ballot > self.promised {
            self.adopt(ballot, out);
        }
        if self.leader() != Some(from) {
            self.role = Role::Follower { leader: Some(from) };
            self.wait_for_leader(now);
        }
        self.election_at = now.plus(self.patience);
        self.leader_heard = Some(now);
        true
    }

    /// Phase 2, for entries one after the other. What comes too early is not taken: the entries of a ballot have no gap.
    pub(crate) fn on_accept(
        &mut self,
        from: ReplicaId,
        chosen: Instance,
        first: Instance,
        entries: Vec<Proposal>,
        out: &mut Effects,
    ) {
        let is_gap = first > self.agreed + 1;
        let before = self.agreed;
        if !is_gap {
            for (instance, proposal) in (first..).zip(entries) {
                if !self.goes_with(instance, &proposal) {
                    return self.diverge(from, instance, out);
                }
                if instance > self.agreed {
                    self.accept(instance, proposal, None, out);
                }
            }
        }
        self.learn(chosen.min(self.agreed), out);
        // What is new is acknowledged once it is durable; what is not, at once, for the first answer may have been lost.
        if self.agreed == before {
            self.acknowledge(from, is_gap, out);
        }
    }

    /// Whether a leader's entry is the one that stands here, or follows the one that does. All up to `agreed` is chosen or of
    /// this leader, so it always is, as long as no replica has lost what it had.
    fn goes_with(&self, instance: Instance, proposal: &Proposal) -> bool {
        if instance > self.agreed {
            return proposal.follows == self.origin_of(instance - 1);
        }
        self.log.get(instance).is_none_or(|slot| slot.proposal.origin == proposal.origin)
    }

    /// Tells the leader how far this replica is.
    pub(crate) fn acknowledge(&self, leader: ReplicaId, is_gap: bool, out: &mut Effects) {
        let (ballot, through, expected) = (self.promised, self.durable, self.agreed + 1);
        out.send(leader, Message::Accepted { ballot, through, expected, is_gap });
    }

    /// Whether promises are heeded: they are, unless this is broken on purpose.
    pub(crate) fn heeds_promises(&self) -> bool {
        self.config.broken != Broken::ForgetsPromises
    }
}
