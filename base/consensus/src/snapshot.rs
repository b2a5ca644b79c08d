//! Snapshots: they let the log go, and bring those up to date who lack what has gone.
//!
//! The state machine makes and keeps them; here it is known which one holds, and parts are passed on. A snapshot holds from
//! the moment that the log says so durably; until then the one before is kept. The log is trimmed by snapshots of this
//! replica's own, whatever becomes of others.

use clock::Instant;

use crate::effects::{Effect, Effects};
use crate::entry::SnapshotHead;
use crate::ids::{Ballot, Instance, ReplicaId};
use crate::log::Log;
use crate::message::Message;
use crate::record::Record;
use crate::replica::{Replica, Waiting};
use crate::role::{Installing, Role};
use crate::value::Value;

/// How many times as long the log may become while a follower is sent a snapshot: as long as a follower needs that takes in
/// a snapshot at the rate at which entries come, where the state is a few times as long as what makes a snapshot due.
const SENDING_FACTOR: u64 = 4;

impl Replica {
    /// Whether a snapshot comes from a leader and is not installed yet.
    #[must_use]
    pub fn is_installing(&self) -> bool {
        self.installing.as_ref().is_some_and(|it| it.is_whole || it.head.through > self.chosen)
    }

    /// Asks for a snapshot once enough was delivered. While a follower is sent the last one it would have to begin anew, so
    /// the log may become [`SENDING_FACTOR`] times as long: a follower that is slower than that does not let it grow on.
    pub(crate) fn want_snapshot(&mut self, out: &mut Effects) {
        if self.is_snapshot_wanted || self.weight_delivered < self.config.snapshot_after_bytes {
            return;
        }
        let sends = match &self.role {
            Role::Leader(lead) => lead.peers.iter().any(|peer| peer.transfer.is_some()),
            _ => false,
        };
        let limit = self.config.snapshot_after_bytes.saturating_mul(SENDING_FACTOR);
        if !sends || self.weight_delivered >= limit {
            self.is_snapshot_wanted = true;
            out.push(Effect::NeedSnapshot);
        }
    }

    pub(crate) fn snapshot_made(&mut self, through: Instance, out: &mut Effects) {
        self.is_snapshot_wanted = false;
        if through <= self.snapshot.through || through > self.delivered {
            return;
        }
        let members = self.members_behind(through).clone();
        let head = SnapshotHead { through, origin: self.origin_of(through), members };
        self.weight_delivered = (through + 1..=self.delivered)
            .filter_map(|instance| self.log.get(instance))
            .map(|slot| slot.proposal.entry.weight())
            .sum();
        self.stand_on(head, out);
        self.log.trim(through, self.config.retain_bytes);
    }

    /// From now on this snapshot takes the place of everything up to its end.
    fn stand_on(&mut self, head: SnapshotHead, out: &mut Effects) {
        let through = head.through;
        self.changes.retain(|(instance, _)| *instance > through);
        self.snapshot = head.clone();
        let record = Record::Head { promised: self.promised, chosen: self.chosen, snapshot: head };
        let number = self.append(record, out);
        let first = self.log.first_record_behind(through).unwrap_or(number);
        let trim = Waiting::Trim { records_before: first.min(number), snapshots_before: through };
        self.waiting.push_back((number + 1, trim));
    }

    /// A part of a snapshot came from the leader.
    pub(crate) fn on_snapshot(
        &mut self,
        from: ReplicaId,
        head: SnapshotHead,
        offset: u64,
        is_last: bool,
        bytes: Value,
        out: &mut Effects,
    ) {
        let (ballot, through) = (self.promised, head.through);
        if through <= self.chosen {
            return self.acknowledge(from, false, out);
        }
        let is_this = |there: &Installing| there.from == from && there.head == head;
        if self.installing.as_ref().is_some_and(|there| there.is_whole && !is_this(there)) {
            return;
        }
        if !self.installing.as_ref().is_some_and(is_this) {
            self.installing = Some(Installing { from, head, offset: 0, is_whole: false });
        }
        let Some(installing) = &mut self.installing else { return };
        if !installing.is_whole && installing.offset == offset {
            installing.offset += bytes.len() as u64;
            installing.is_whole = is_last;
            out.push(Effect::InstallPart { through, offset, bytes, is_last });
        }
        out.send(from, Message::SnapshotWanted { ballot, through, offset: installing.offset });
    }

    pub(crate) fn snapshot_installed(&mut self, through: Instance, out: &mut Effects) {
        let is_it = |there: &mut Installing| there.is_whole && there.head.through == through;
        let Some(installing) = self.installing.take_if(is_it) else { return };
        self.log.skip_to(through);
        self.chosen = self.chosen.max(through);
        self.agreed = self.agreed.max(through);
        self.durable = self.durable.max(through);
        self.delivered = through;
        self.weight_delivered = 0;
        self.is_snapshot_wanted = false;
        self.stand_on(installing.head, out);
        self.deliver(out);
        if let Role::Follower { leader: Some(leader) } = self.role {
            self.acknowledge(leader, false, out);
        }
    }

    /// The state machine has read a part for a follower.
    pub(crate) fn snapshot_part(
        &mut self,
        to: ReplicaId,
        through: Instance,
        offset: u64,
        bytes: Value,
        is_last: bool,
        out: &mut Effects,
    ) {
        let head = self.snapshot.clone();
        let Some((lead, by)) = self.leading() else { return };
        let Some(transfer) = lead.peer(to).and_then(|peer| peer.transfer.as_mut()) else { return };
        let is_this = transfer.through == through && transfer.offset == offset;
        if !is_this || head.through != through || (bytes.is_empty() && !is_last) {
            return;
        }
        transfer.end = is_last.then_some(offset + bytes.len() as u64);
        let ballot = by.ballot;
        out.send(to, Message::Snapshot { ballot, head, offset, is_last, bytes });
    }

    pub(crate) fn on_snapshot_wanted(
        &mut self,
        now: Instant,
        from: ReplicaId,
        ballot: Ballot,
        through: Instance,
        offset: u64,
        out: &mut Effects,
    ) {
        let Some((lead, by)) = self.leading().filter(|(_, by)| by.ballot == ballot) else { return };
        let Some(peer) = lead.peer(from) else { return };
        peer.heard_from(now);
        peer.wants_part(&by, through, offset, out);
    }

    /// An empty log behind this replica's snapshot.
    pub(crate) fn log_behind_snapshot(&self) -> Log {
        Log::starting_at(self.snapshot.through + 1)
    }
}
