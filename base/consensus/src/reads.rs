//! Reads without writing: a leader notes what is chosen, makes sure by one round of heartbeats that it still leads, and lets
//! the read be served once that much has been delivered (the read index of Raft, Ongaro, "Consensus: bridging theory and
//! practice", 2014, §6.4). Reads that come while a round is under way share the next.

use clock::Instant;

use crate::config::Broken;
use crate::effects::{Effect, Effects, Refusal, Request};
use crate::replica::Replica;
use crate::role::{PendingRead, Role};

impl Replica {
    pub(crate) fn read(&mut self, _now: Instant, id: u64, out: &mut Effects) {
        let request = Request::Read(id);
        let answered = self.round_answered();
        let (chosen, delivered) = (self.chosen, self.delivered);
        let (broken, reads_max) = (self.config.broken, self.config.reads_max);
        if broken == Broken::ReadsWithoutRound {
            return out.push(Effect::ReadReady { id, instance: delivered });
        }
        let Role::Leader(lead) = &mut self.role else {
            return self.refuse_as_follower(request, out);
        };
        if lead.reads.len() >= reads_max {
            return out.refuse(request, Refusal::Busy);
        }
        // What an earlier leader had chosen and acknowledged is up to where this one took over.
        let instance = chosen.max(lead.took_over_through);
        lead.reads.push_back(PendingRead { id, instance, round: lead.round + 1 });
        if answered == lead.round {
            self.next_round(out);
        }
        self.serve_reads(out);
    }

    /// The last heartbeat that a majority has answered.
    fn round_answered(&self) -> u64 {
        let Role::Leader(lead) = &self.role else { return 0 };
        let members = self.members();
        let (id, needed) = (self.config.id, members.majority());
        lead.reached(members, id, lead.round, needed, |peer| peer.round)
    }

    /// Lets the reads go that have their round and their instance.
    pub(crate) fn serve_reads(&mut self, out: &mut Effects) {
        let Role::Leader(lead) = &self.role else { return };
        if lead.reads.is_empty() {
            return;
        }
        let answered = self.round_answered();
        let delivered = self.delivered;
        let Role::Leader(lead) = &mut self.role else { return };
        let is_ready = |read: &PendingRead| read.round <= answered && read.instance <= delivered;
        while let Some(read) = lead.reads.front().filter(|read| is_ready(read)) {
            out.push(Effect::ReadReady { id: read.id, instance: read.instance });
            lead.reads.pop_front();
        }
        let waits = lead.reads.back().is_some_and(|read| read.round > lead.round);
        if waits && answered == lead.round {
            self.next_round(out);
        }
    }
}
