//! What a leader knows of one follower, and how much it lets be under way to it.

use clock::Instant;

use crate::config::Config;
use crate::effects::{Effect, Effects};
use crate::ids::{Ballot, Instance, ReplicaId};
use crate::log::Log;
use crate::message::Message;

/// One follower, as its leader sees it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) id: ReplicaId,
    /// The next instance to send.
    next: Instance,
    /// All up to here are durable there, as this leader proposes them.
    pub(crate) acked: Instance,
    /// When anything came from it last.
    pub(crate) heard_at: Instant,
    /// Whether that was so long ago that it is sent nothing but heartbeats.
    pub(crate) is_silent: bool,
    /// The last heartbeat that it answered.
    pub(crate) round: u64,
    /// The last heartbeat sent to it, and the next instance to send at that time.
    sent: (u64, Instance),
    /// Where sending began again because something had come too early there; once between two heartbeats.
    rewound_to: Option<Instance>,
    /// The snapshot that it is being sent.
    pub(crate) transfer: Option<Transfer>,
}

/// A snapshot on its way to a follower, part by part.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) through: Instance,
    /// How much of it the follower has.
    pub(crate) offset: u64,
    /// Where it ends, once that has been read.
    pub(crate) end: Option<u64>,
    /// Whether anything of it has moved since the last heartbeat.
    pub(crate) moved: bool,
}

/// How far a follower says that it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// What it has durably.
    pub(crate) through: Instance,
    /// What it can take next.
    pub(crate) expected: Instance,
}

/// What sending needs to know of the leader.
pub(crate) struct Sender<'a> {
    pub(crate) config: &'a Config,
    pub(crate) log: &'a Log,
    pub(crate) ballot: Ballot,
    pub(crate) chosen: Instance,
    pub(crate) snapshot_through: Instance,
}

impl Peer {
    /// A follower that has everything up to `acked` and is sent what follows.
    pub(crate) fn new(id: ReplicaId, now: Instant, acked: Instance, next: Instance) -> Self {
        Self {
            id,
            next,
            acked,
            heard_at: now,
            is_silent: false,
            round: 0,
            sent: (0, next),
            rewound_to: None,
            transfer: None,
        }
    }

    pub(crate) fn heard_from(&mut self, now: Instant) {
        self.heard_at = now;
        self.is_silent = false;
    }

    /// The follower says how far it is; `last` is the leader's last instance.
    pub(crate) fn has(&mut self, now: Instant, position: Position, last: Instance) {
        let Position { through, expected } = position;
        self.heard_from(now);
        self.acked = self.acked.max(through.min(last));
        self.next = self.next.max(expected.min(last + 1));
        if self.transfer.as_ref().is_some_and(|transfer| expected > transfer.through) {
            self.transfer = None;
            self.next = expected.min(last + 1);
        }
    }

    /// Something came too early there: what it expects was lost. Sends from there on, once: of what is under way more will
    /// come too early.
    pub(crate) fn rewind(&mut self, expected: Instance) {
        if expected < self.next && self.rewound_to != Some(expected) {
            self.rewound_to = Some(expected);
            self.next = expected.max(1);
        }
    }

    /// It has answered heartbeat `round`, and by then it had seen what was sent before, or that was lost.
    pub(crate) fn heard_round(&mut self, round: u64, expected: Instance) {
        self.round = self.round.max(round);
        if self.sent.0 == round && expected < self.sent.1 && expected < self.next {
            self.next = expected.max(1);
            self.sent.1 = expected;
        }
    }

    /// Says that the leader is there.
    pub(crate) fn heartbeat(&mut self, by: &Sender, round: u64, out: &mut Effects) {
        self.sent = (round, self.next);
        self.rewound_to = None;
        out.send(self.id, Message::Heartbeat { ballot: by.ballot, chosen: by.chosen, round });
    }

    /// Sends what it lacks, as far as the bound on what is under way allows; a snapshot if the log no longer has it.
    pub(crate) fn pump(&mut self, by: &Sender, out: &mut Effects) {
        if self.transfer.is_some() || self.is_silent {
            return;
        }
        if self.next < by.log.first() {
            self.begin_transfer(by, out);
            return;
        }
        while self.next <= by.log.last() {
            let under_way = by
                .log
                .weight_through(self.next - 1)
                .saturating_sub(by.log.weight_through(self.acked.max(by.log.first() - 1)));
            let Some(room) = by.config.peer_bytes_max.checked_sub(under_way) else { return };
            let bytes_max = by.config.message_bytes_max.min(room);
            let entries = by.log.proposals(self.next, by.log.last(), bytes_max);
            let weight: u64 = entries.iter().map(|proposal| proposal.entry.weight()).sum();
            if weight > room && under_way > 0 {
                return;
            }
            let (ballot, chosen, first) = (by.ballot, by.chosen, self.next);
            self.next += entries.len() as u64;
            out.send(self.id, Message::Accept { ballot, chosen, first, entries });
        }
    }

    /// Begins to send the latest snapshot from its beginning.
    fn begin_transfer(&mut self, by: &Sender, out: &mut Effects) {
        let through = by.snapshot_through;
        self.transfer = Some(Transfer { through, offset: 0, end: None, moved: true });
        self.ask_for_part(by, out);
    }

    /// The follower has `offset` bytes of the snapshot up to `through`, and wants the next part.
    pub(crate) fn wants_part(
        &mut self,
        by: &Sender,
        through: Instance,
        offset: u64,
        out: &mut Effects,
    ) {
        let Some(transfer) = &mut self.transfer else { return };
        if transfer.through != through || transfer.offset == offset {
            return;
        }
        transfer.offset = offset;
        transfer.moved = true;
        if transfer.end != Some(offset) {
            self.ask_for_part(by, out);
        }
    }

    /// Between two heartbeats: a transfer that stood still is taken up again, and one to a follower that is silent ends.
    /// One that has been sent as a whole begins anew, because the follower may have lost it; if it has not, it says so.
    pub(crate) fn tend(&mut self, by: &Sender, is_silent: bool, out: &mut Effects) {
        self.is_silent = is_silent;
        if is_silent {
            self.transfer = None;
        }
        let Some(transfer) = &mut self.transfer else { return };
        if transfer.through != by.snapshot_through {
            self.begin_transfer(by, out);
        } else if std::mem::take(&mut transfer.moved) {
            // It goes on by itself.
        } else {
            if transfer.end == Some(transfer.offset) {
                transfer.offset = 0;
            }
            self.ask_for_part(by, out);
        }
    }

    /// Asks the state machine for the next part of the snapshot that this follower is sent.
    pub(crate) fn ask_for_part(&self, by: &Sender, out: &mut Effects) {
        if let Some(transfer) = &self.transfer {
            out.push(Effect::ReadSnapshot {
                to: self.id,
                through: transfer.through,
                offset: transfer.offset,
                bytes_max: by.config.snapshot_part_bytes,
            });
        }
    }
}
