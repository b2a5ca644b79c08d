//! What a leader does: it proposes, counts what is durable, and says what is chosen.
//!
//! A value goes to each follower once, in an accept; that it is chosen is said by a number, in the next accept or heartbeat.
//! The leader's own disk is one of many: it sends before its own record is durable, and any majority decides.

use clock::Instant;

use crate::config::Config;
use crate::effects::{Effects, Refusal, Request};
use crate::entry::{Entry, OVERHEAD_BYTES, Proposal, VALUE_BYTES_MAX};
use crate::ids::{Ballot, Instance, Members, ReplicaId};
use crate::message::Message;
use crate::peer::{Peer, Position, Sender};
use crate::replica::Replica;
use crate::role::{Joining, Leadership, Role};
use crate::value::Value;

impl Replica {
    /// Whether what waits for this replica's own disk is within the bound that followers have, too.
    fn keeps_up(&self) -> bool {
        let durable = self.durable.max(self.log.first() - 1);
        let behind = self.log.weight_through(self.log.last()) - self.log.weight_through(durable);
        behind < self.config.peer_bytes_max
    }

    /// Whether a value of so many bytes would be proposed at once. Refusing what would not is the last resort: a caller
    /// asks, and lets values gather meanwhile.
    #[must_use]
    pub fn can_propose(&self, bytes: usize) -> bool {
        let Role::Leader(lead) = &self.role else { return false };
        let Config { window_max, window_bytes_max, .. } = self.config;
        let open = self.log.last() - self.chosen;
        let weight =
            self.log.weight_through(self.log.last()) - self.log.weight_through(self.chosen);
        let fits = open == 0 || weight + bytes as u64 + OVERHEAD_BYTES <= window_bytes_max;
        fits && open < window_max && lead.barrier <= self.chosen && self.keeps_up()
    }

    pub(crate) fn propose(&mut self, id: u64, value: Value, out: &mut Effects) {
        let request = Request::Propose(id);
        if !self.is_leader() {
            self.refuse_as_follower(request, out);
        } else if value.len() > VALUE_BYTES_MAX {
            out.refuse(request, Refusal::TooLong);
        } else if !self.can_propose(value.len()) {
            out.refuse(request, Refusal::Busy);
        } else {
            self.propose_entry(Entry::Value(value), id, out);
        }
    }

    fn propose_entry(&mut self, entry: Entry, id: u64, out: &mut Effects) {
        let follows = self.origin_of(self.log.last());
        let proposal = Proposal { origin: self.promised, follows, entry };
        self.accept(self.log.last() + 1, proposal, Some(id), out);
        self.pump(out);
    }

    /// The leadership, and what sending needs of everything else.
    pub(crate) fn leading(&mut self) -> Option<(&mut Leadership, Sender<'_>)> {
        let Self { config, log, promised, chosen, snapshot, role, .. } = self;
        let Role::Leader(lead) = role else { return None };
        let (ballot, chosen) = (*promised, *chosen);
        let snapshot_through = snapshot.through;
        Some((lead, Sender { config, log, ballot, chosen, snapshot_through }))
    }

    /// Sends every follower what it lacks.
    fn pump(&mut self, out: &mut Effects) {
        let Some((lead, by)) = self.leading() else { return };
        for peer in &mut lead.peers {
            peer.pump(&by, out);
        }
    }

    /// When a heartbeat is due: gives up if a majority is silent or its own disk stands still, else says that the leader
    /// is there.
    pub(crate) fn lead_on(&mut self, now: Instant, out: &mut Effects) {
        let id = self.config.id;
        let members = self.members().clone();
        let is_disk_stuck = self.is_disk_stuck(now);
        let Some((lead, by)) = self.leading() else { return };
        if now < lead.heartbeat_at {
            return;
        }
        let is_silent =
            |peer: &Peer| now.saturating_since(peer.heard_at) >= by.config.election_timeout;
        let is_heard = |member| {
            member == id || lead.peers.iter().any(|peer| peer.id == member && !is_silent(peer))
        };
        // One whose disk stands still would go on with the others' disks until what waits for its own is too much, and
        // then hold everybody up.
        if !members.most(is_heard) || is_disk_stuck {
            self.step_down(out);
            self.wait_for_leader(now);
            return;
        }
        lead.heartbeat_at = now.plus(by.config.heartbeat_every);
        lead.chosen_at_heartbeat = by.chosen;
        for peer in &mut lead.peers {
            let is_silent = is_silent(peer);
            peer.tend(&by, is_silent, out);
        }
        self.next_round(out);
        self.pump(out);
    }

    /// True of a leader that has heard from this member of late: within an election timeout before its last heartbeat.
    #[must_use]
    pub fn hears(&self, member: ReplicaId) -> bool {
        let Role::Leader(lead) = &self.role else { return false };
        lead.peers.iter().any(|peer| peer.id == member && !peer.is_silent)
    }

    /// Sends a heartbeat to everybody.
    pub(crate) fn next_round(&mut self, out: &mut Effects) {
        let Some((lead, by)) = self.leading() else { return };
        lead.round += 1;
        for peer in &mut lead.peers {
            peer.heartbeat(&by, lead.round, out);
        }
    }

    /// Chooses what enough members have durably.
    pub(crate) fn choose(&mut self, out: &mut Effects) {
        let before = self.chosen;
        loop {
            let Role::Leader(lead) = &self.role else { return };
            let members = self.members();
            let all = self.config.wait_for_all;
            let needed = if all { members.count() } else { members.majority() };
            let id = self.config.id;
            let reached = lead.reached(members, id, self.durable, needed, |peer| peer.acked);
            if !self.learn_to_change(reached.min(self.log.last()).max(self.chosen)) {
                break;
            }
            self.note_change(out);
            self.change_peers(out);
        }
        if self.chosen == before {
            return;
        }
        if self.config.resend_values {
            self.resend(before, out);
        }
        self.deliver(out);
        self.serve_reads(out);
        self.leave_if_removed(out);
    }

    /// Fidelity: what was chosen behind `before` goes out once more, values and all.
    fn resend(&mut self, before: Instance, out: &mut Effects) {
        let Some((lead, by)) = self.leading() else { return };
        let mut first = before + 1;
        while first <= by.chosen {
            let entries = by.log.proposals(first, by.chosen, by.config.message_bytes_max);
            let next = first + entries.len() as u64;
            for peer in lead.peers.iter().filter(|peer| !peer.is_silent) {
                let entries = entries.clone();
                let message =
                    Message::Decide { ballot: by.ballot, chosen: by.chosen, first, entries };
                out.send(peer.id, message);
            }
            first = next;
        }
    }

    pub(crate) fn on_accepted(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        position: Position,
        is_gap: bool,
        out: &mut Effects,
    ) {
        let Some((lead, by)) = self.leading().filter(|(_, by)| by.ballot == ballot) else { return };
        let Some(peer) = lead.peer(from) else { return };
        peer.has(now, position, by.log.last());
        if is_gap {
            peer.rewind(position.expected);
        }
        self.after_answer(from, out);
    }

    pub(crate) fn on_heard(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        round: u64,
        position: Position,
        out: &mut Effects,
    ) {
        let Some((lead, by)) = self.leading().filter(|(_, by)| by.ballot == ballot) else { return };
        let Some(peer) = lead.peer(from) else { return };
        peer.has(now, position, by.log.last());
        peer.heard_round(round, position.expected);
        self.after_answer(from, out);
        self.serve_reads(out);
    }

    /// A follower has said how far it is: that may choose something, let a newcomer in, and make room to send more.
    fn after_answer(&mut self, from: ReplicaId, out: &mut Effects) {
        self.choose(out);
        self.let_in(out);
        let Some((lead, by)) = self.leading() else { return };
        if let Some(peer) = lead.peer(from) {
            peer.pump(&by, out);
        }
    }

    pub(crate) fn change_members(
        &mut self,
        now: Instant,
        id: u64,
        members: Members,
        out: &mut Effects,
    ) {
        let request = Request::ChangeMembers(id);
        let present = self.members().clone();
        let (chosen, last) = (self.chosen, self.log.last());
        let Role::Leader(lead) = &mut self.role else {
            return self.refuse_as_follower(request, out);
        };
        if lead.barrier > chosen {
            return out.refuse(request, Refusal::Busy);
        }
        if !members.is_one_change_from(&present) {
            return out.refuse(request, Refusal::NotOneChange);
        }
        // A newcomer that never comes must not stand in the way of others.
        if let Some(joining) = lead.joining.take() {
            lead.peers.retain(|peer| present.contains(peer.id));
            out.refuse(Request::ChangeMembers(joining.id), Refusal::Busy);
        }
        let newcomer = members.iter().find(|id| !present.contains(*id));
        match newcomer {
            Some(who) => {
                lead.add_peer(now, who, None, chosen, last);
                lead.joining = Some(Joining { id, who, members });
                self.next_round(out);
            }
            None => self.propose_members(members, id, out),
        }
    }

    fn propose_members(&mut self, members: Members, id: u64, out: &mut Effects) {
        let Role::Leader(lead) = &mut self.role else { return };
        lead.barrier = self.log.last() + 1;
        self.propose_entry(Entry::Members(members), id, out);
    }

    /// Proposes the change that brings a newcomer once it lags by no more than what may be open anyway, or than what
    /// was chosen since the last heartbeat: before, a majority that needs it would have to wait for it for longer. Under load a
    /// follower may lag by more than a window all the time, and be no slower than others for that.
    fn let_in(&mut self, out: &mut Effects) {
        let (last, window) = (self.log.last(), self.config.window_max);
        let chosen = self.chosen;
        let Role::Leader(lead) = &mut self.role else { return };
        let Some(joining) = &lead.joining else { return };
        let newcomer = lead.peers.iter().find(|peer| peer.id == joining.who);
        if lead.barrier <= chosen
            && newcomer.is_some_and(|peer| {
                let keeps_up = peer.acked + window > last || peer.acked >= lead.chosen_at_heartbeat;
                peer.round > 0 && keeps_up
            })
            && let Some(joining) = lead.joining.take()
        {
            self.propose_members(joining.members, joining.id, out);
        }
    }

    /// A change of members was chosen: those who left are told how far things are, for the last time.
    fn change_peers(&mut self, out: &mut Effects) {
        let members = self.members().clone();
        let Some((lead, by)) = self.leading() else { return };
        let joining = lead.joining.as_ref().map(|joining| joining.who);
        lead.round += 1;
        let (stay, leave): (Vec<Peer>, Vec<Peer>) = std::mem::take(&mut lead.peers)
            .into_iter()
            .partition(|peer| members.contains(peer.id) || joining == Some(peer.id));
        lead.peers = stay;
        for mut peer in leave {
            peer.heartbeat(&by, lead.round, out);
        }
    }

    /// A leader that has no vote any more says how far things are and steps down.
    fn leave_if_removed(&mut self, out: &mut Effects) {
        if self.is_leader() && !self.members().contains(self.config.id) {
            self.next_round(out);
            self.step_down(out);
        }
    }
}
